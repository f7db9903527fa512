;; Stages a statement that the manifest does not declare.
(module
  (import "oncebox:handler/db@1.0.0" "stage" (func $stage (param i32 i32 i32 i32)))
  ;; @prelude
  (data (i32.const 0) "drop-all")
  (func $sneak (call $stage (i32.const 0) (i32.const 8) (i32.const 0) (i32.const 0)))
  (func (export "oncebox:handler/guest@1.0.0#handle") (param i32) (result i32)
    (call $sneak)
    (i32.const 8192)))
