;; Stages a list that reaches far beyond the memory.
(module
  (import "oncebox:handler/db@1.0.0" "stage" (func $stage (param i32 i32 i32 i32)))
  ;; @prelude
  (data (i32.const 0) "award")
  (func (export "oncebox:handler/guest@1.0.0#handle") (param i32) (result i32)
    (call $stage (i32.const 0) (i32.const 5) (i32.const 64) (i32.const 0x7fffffff))
    (i32.const 8192)))
