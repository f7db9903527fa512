;; Counts its runs in a static, stages one write, emits one event, and returns the count and 16 random bytes.
(module
  (import "oncebox:handler/db@1.0.0" "stage" (func $stage (param i32 i32 i32 i32)))
  (import "oncebox:handler/events@1.0.0" "emit" (func $emit (param i32 i32)))
  (import "oncebox:handler/context@1.0.0" "random" (func $random (param i32 i32)))
  ;; @prelude
  (data (i32.const 0) "out")
  (data (i32.const 8) "points.awarded")
  (data (i32.const 32) "award")
  ;; list<value> at 64: signed(7), unsigned(42).
  (data (i32.const 64) "\02\00\00\00\00\00\00\00\07\00\00\00\00\00\00\00")
  (data (i32.const 80) "\03\00\00\00\00\00\00\00\2a\00\00\00\00\00\00\00")
  ;; The parameters of emit at 128: destination, event-type; the payload (ptr, len) at 128 + 96.
  (data (i32.const 128) "\00\00\00\00\03\00\00\00\08\00\00\00\0e\00\00\00")
  (data (i32.const 224) "\20\00\00\00\05\00\00\00")
  ;; The result at 8192: ok(applied(some(at 512, 17))).
  (data (i32.const 8200) "\01\00\00\00\00\02\00\00\11\00\00\00")
  (func (export "oncebox:handler/guest@1.0.0#handle") (param i32) (result i32)
    ;; The static, at 512.
    (i32.store8 (i32.const 512) (i32.add (i32.load8_u (i32.const 512)) (i32.const 1)))
    (call $stage (i32.const 32) (i32.const 5) (i32.const 64) (i32.const 2))
    (call $emit (i32.const 128) (i32.const 256))
    (call $random (i32.const 16) (i32.const 264))
    (memory.copy (i32.const 513) (i32.load (i32.const 264)) (i32.const 16))
    (i32.const 8192)))
