;; Returns the value of `rate`.
(module
  (import "oncebox:handler/config@1.0.0" "get" (func $get (param i32 i32 i32)))
  ;; @prelude
  (data (i32.const 0) "rate")
  (func (export "oncebox:handler/guest@1.0.0#handle") (param i32) (result i32)
    ;; option<string> at 8200 is laid out as the result's option<list<u8>>.
    (call $get (i32.const 0) (i32.const 4) (i32.const 8200))
    (i32.const 8192)))
