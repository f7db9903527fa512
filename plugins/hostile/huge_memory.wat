;; Declares 62.5 MiB of memory before the first instruction.
(module
  (memory (export "memory") 1000)
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 16384))
  (func (export "oncebox:handler/guest@1.0.0#handle") (param i32) (result i32)
    (i32.const 8192)))
