;; Emits an event with 5,000 headers, whose values all are the same kilobyte.
(module
  (import "oncebox:handler/events@1.0.0" "emit" (func $emit (param i32 i32)))
  ;; @prelude
  (data (i32.const 0) "out")
  (data (i32.const 8) "points.awarded")
  ;; The parameters of emit at 128: destination, event-type; the headers (at 16384, 5,000) at 128 + 88.
  (data (i32.const 128) "\00\00\00\00\03\00\00\00\08\00\00\00\0e\00\00\00")
  (data (i32.const 216) "\00\40\00\00\88\13\00\00")
  (func (export "oncebox:handler/guest@1.0.0#handle") (param i32) (result i32)
    (local $at i32)
    (local.set $at (i32.const 16384))
    (loop $again
      ;; A header: name (at 0, 3), value (at 0, 1,024).
      (i32.store (local.get $at) (i32.const 0))
      (i32.store offset=4 (local.get $at) (i32.const 3))
      (i32.store offset=8 (local.get $at) (i32.const 0))
      (i32.store offset=12 (local.get $at) (i32.const 1024))
      (local.set $at (i32.add (local.get $at) (i32.const 16)))
      (br_if $again (i32.lt_u (local.get $at) (i32.const 96384))))
    (call $emit (i32.const 128) (i32.const 256))
    (i32.const 8192)))
