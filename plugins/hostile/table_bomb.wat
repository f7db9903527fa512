;; Takes table elements until it is refused, and then traps.
(module
  ;; @prelude
  (table $t 1 funcref)
  (func (export "oncebox:handler/guest@1.0.0#handle") (param i32) (result i32)
    (loop $more
      (br_if $more (i32.ne (table.grow $t (ref.null func) (i32.const 1000)) (i32.const -1))))
    (unreachable)))
