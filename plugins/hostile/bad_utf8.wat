;; Emits an event whose type is no UTF-8.
(module
  (import "oncebox:handler/events@1.0.0" "emit" (func $emit (param i32 i32)))
  ;; @prelude
  (data (i32.const 0) "out")
  (data (i32.const 8) "\ff\fe\fd")
  (data (i32.const 64) "\00\00\00\00\03\00\00\00\08\00\00\00\03\00\00\00")
  (func (export "oncebox:handler/guest@1.0.0#handle") (param i32) (result i32)
    (call $emit (i32.const 64) (i32.const 256))
    (i32.const 8192)))
