;; Writes 5,000 lines and is done.
(module
  (import "oncebox:handler/log@1.0.0" "write" (func $log (param i32 i32 i32 i32 i32)))
  ;; @prelude
  (data (i32.const 0) "all is well")
  (func (export "oncebox:handler/guest@1.0.0#handle") (param i32) (result i32)
    (local $left i32)
    (local.set $left (i32.const 5000))
    (loop $again
      (call $log (i32.const 2) (i32.const 0) (i32.const 11) (i32.const 0) (i32.const 0))
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br_if $again (local.get $left)))
    (i32.const 8192)))
