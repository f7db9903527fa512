;; Reads a value that the manifest does not declare.
(module
  (import "oncebox:handler/config@1.0.0" "get" (func $get (param i32 i32 i32)))
  ;; @prelude
  (data (i32.const 0) "password")
  (func (export "oncebox:handler/guest@1.0.0#handle") (param i32) (result i32)
    (call $get (i32.const 0) (i32.const 8) (i32.const 256))
    (i32.const 8192)))
