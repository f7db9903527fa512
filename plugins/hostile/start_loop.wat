;; Never even becomes an instance.
(module
  ;; @prelude
  (func $start (loop $again (br $again)))
  (start $start)
  (func (export "oncebox:handler/guest@1.0.0#handle") (param i32) (result i32)
    (i32.const 8192)))
