;; Emits the same small event for ever.
(module
  (import "oncebox:handler/events@1.0.0" "emit" (func $emit (param i32 i32)))
  ;; @prelude
  (data (i32.const 0) "out")
  (data (i32.const 8) "points.awarded")
  ;; At 64: destination (ptr, len) and the record, whose event-type is its first field; all else none or empty.
  (data (i32.const 64) "\00\00\00\00\03\00\00\00\08\00\00\00\0e\00\00\00")
  (func (export "oncebox:handler/guest@1.0.0#handle") (param i32) (result i32)
    (loop $again
      ;; The allocator begins anew, so that only the host's quota ends it.
      (global.set $top (i32.const 16384))
      (call $emit (i32.const 64) (i32.const 256))
      (br $again))
    (unreachable)))
