;; Returns ok(applied(some(2,000 bytes))).
(module
  ;; @prelude
  ;; At 8192: ok; at 8196: applied; at 8200: some, (at 16384, 2,000).
  (data (i32.const 8200) "\01\00\00\00\00\40\00\00\d0\07\00\00")
  (func (export "oncebox:handler/guest@1.0.0#handle") (param i32) (result i32)
    (i32.const 8192)))
