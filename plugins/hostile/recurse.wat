;; Calls itself until the stack is gone.
(module
  ;; @prelude
  (func $deeper (param i32) (result i32)
    (i32.add (i32.const 1) (call $deeper (i32.add (local.get 0) (i32.const 1)))))
  (func (export "oncebox:handler/guest@1.0.0#handle") (param i32) (result i32)
    (call $deeper (i32.const 0))))
