;; Says no for good.
(module
  ;; @prelude
  (data (i32.const 0) "no-such-user")
  (data (i32.const 16) "user 7 is not known")
  (data (i32.const 8192) "\01\00\00\00\01\00\00\00\00\00\00\00\0c\00\00\00\10\00\00\00\13\00\00\00")
  (func (export "oncebox:handler/guest@1.0.0#handle") (param i32) (result i32)
    (i32.const 8192)))
