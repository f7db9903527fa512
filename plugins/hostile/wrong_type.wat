;; Gives a text where the manifest declares an unsigned number.
(module
  (import "oncebox:handler/db@1.0.0" "stage" (func $stage (param i32 i32 i32 i32)))
  ;; @prelude
  (data (i32.const 0) "award")
  ;; list<value> at 64: signed(7), text("award").
  (data (i32.const 64) "\02\00\00\00\00\00\00\00\07\00\00\00\00\00\00\00")
  (data (i32.const 80) "\06\00\00\00\00\00\00\00\00\00\00\00\05\00\00\00")
  (func (export "oncebox:handler/guest@1.0.0#handle") (param i32) (result i32)
    (call $stage (i32.const 0) (i32.const 5) (i32.const 64) (i32.const 2))
    (i32.const 8192)))
