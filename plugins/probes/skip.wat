;; Stages a write, and skips with a reason all the same.
(module
  (import "oncebox:handler/db@1.0.0" "stage" (func $stage (param i32 i32 i32 i32)))
  ;; @prelude
  (data (i32.const 0) "award")
  (data (i32.const 8) "not for us")
  (data (i32.const 64) "\02\00\00\00\00\00\00\00\07\00\00\00\00\00\00\00")
  (data (i32.const 80) "\03\00\00\00\00\00\00\00\2a\00\00\00\00\00\00\00")
  ;; At 8192: ok; at 8196: skipped; at 8200: (ptr, len).
  (data (i32.const 8192) "\00\00\00\00\01\00\00\00\08\00\00\00\0a\00\00\00")
  (func (export "oncebox:handler/guest@1.0.0#handle") (param i32) (result i32)
    (call $stage (i32.const 0) (i32.const 5) (i32.const 64) (i32.const 2))
    (i32.const 8192)))
