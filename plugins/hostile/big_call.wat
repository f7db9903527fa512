;; Hands 700,000 bytes over in one call that is itself without a limit.
(module
  (import "oncebox:handler/log@1.0.0" "write" (func $log (param i32 i32 i32 i32 i32)))
  (memory (export "memory") 11)
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 16384))
  (func (export "oncebox:handler/guest@1.0.0#handle") (param i32) (result i32)
    (call $log (i32.const 2) (i32.const 0) (i32.const 700000) (i32.const 0) (i32.const 0))
    (i32.const 8192)))
