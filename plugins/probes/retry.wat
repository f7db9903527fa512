;; Asks for another attempt in 1,500 ms.
(module
  ;; @prelude
  (data (i32.const 0) "rates not loaded")
  ;; At 8192: err; at 8196: retry; at 8200: reason (ptr, len); at 8208: some, 1,500.
  (data (i32.const 8192) "\01\00\00\00\00\00\00\00\00\00\00\00\10\00\00\00\01\00\00\00\dc\05\00\00")
  (func (export "oncebox:handler/guest@1.0.0#handle") (param i32) (result i32)
    (i32.const 8192)))
