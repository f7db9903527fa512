;; Rejects with a code that no operator could group by.
(module
  ;; @prelude
  (data (i32.const 0) "No Such User!")
  ;; At 8192: err; at 8196: reject; at 8200: code (ptr, len), message (ptr, len).
  (data (i32.const 8192) "\01\00\00\00\01\00\00\00\00\00\00\00\0d\00\00\00\00\00\00\00\0d\00\00\00")
  (func (export "oncebox:handler/guest@1.0.0#handle") (param i32) (result i32)
    (i32.const 8192)))
