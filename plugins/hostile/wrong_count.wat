;; Gives one parameter where the manifest declares two.
(module
  (import "oncebox:handler/db@1.0.0" "stage" (func $stage (param i32 i32 i32 i32)))
  ;; @prelude
  (data (i32.const 0) "award")
  (func (export "oncebox:handler/guest@1.0.0#handle") (param i32) (result i32)
    ;; One null at 64.
    (call $stage (i32.const 0) (i32.const 5) (i32.const 64) (i32.const 1))
    (i32.const 8192)))
