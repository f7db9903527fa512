;; Stages few writes of 10,000 bytes each.
(module
  (import "oncebox:handler/db@1.0.0" "stage" (func $stage (param i32 i32 i32 i32)))
  ;; @prelude
  (data (i32.const 0) "note")
  ;; list<value> at 64: bytes(at 16384, 10,000).
  (data (i32.const 64) "\07\00\00\00\00\00\00\00\00\40\00\00\10\27\00\00")
  (func (export "oncebox:handler/guest@1.0.0#handle") (param i32) (result i32)
    (loop $again
      (call $stage (i32.const 0) (i32.const 4) (i32.const 64) (i32.const 1))
      (br $again))
    (unreachable)))
