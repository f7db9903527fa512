;; Turns in a loop, 100,000,000 times unless a caller puts another number there, and applies with nothing staged.
(module
  ;; @prelude
  (func (export "oncebox:handler/guest@1.0.0#handle") (param i32) (result i32)
    (local $left i64)
    (local.set $left (i64.const 100000000))
    (loop $again
      (local.set $left (i64.sub (local.get $left) (i64.const 1)))
      (br_if $again (i64.ne (local.get $left) (i64.const 0))))
    (i32.const 8192)))
