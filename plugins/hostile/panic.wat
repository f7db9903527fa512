;; Says why at level error, as the SDK's panic hook does, and traps.
(module
  (import "oncebox:handler/log@1.0.0" "write" (func $log (param i32 i32 i32 i32 i32)))
  ;; @prelude
  (data (i32.const 0) "panicked at src/lib.rs:7: \1b[31mno such user")
  (func $award (call $log (i32.const 4) (i32.const 0) (i32.const 43) (i32.const 0) (i32.const 0)) (unreachable))
  (func (export "oncebox:handler/guest@1.0.0#handle") (param i32) (result i32)
    (call $award)
    (unreachable)))
