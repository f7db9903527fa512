;; Takes memory until it is refused, and lives with it.
(module
  ;; @prelude
  (func (export "oncebox:handler/guest@1.0.0#handle") (param i32) (result i32)
    (loop $more
      (br_if $more (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
    (i32.const 8192)))
