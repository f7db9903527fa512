;; Calls the host while it becomes an instance.
(module
  (import "oncebox:handler/context@1.0.0" "now-us" (func $now (result i64)))
  ;; @prelude
  (func $start (drop (call $now)))
  (start $start)
  (func (export "oncebox:handler/guest@1.0.0#handle") (param i32) (result i32)
    (i32.const 8192)))
