;; Asks `count`, stages one `effect` with the text "inside", and returns the text in the first column of the first row.
(module
  (import "oncebox:handler/db@1.0.0" "query" (func $query (param i32 i32 i32 i32 i32)))
  (import "oncebox:handler/db@1.0.0" "stage" (func $stage (param i32 i32 i32 i32)))
  ;; @prelude
  (data (i32.const 0) "count")
  (data (i32.const 8) "effect")
  (data (i32.const 16) "inside")
  ;; list<value> at 64: text("inside").
  (data (i32.const 64) "\06\00\00\00\00\00\00\00\10\00\00\00\06\00\00\00")
  (func (export "oncebox:handler/guest@1.0.0#handle") (param i32) (result i32)
    (local $value i32)
    (call $query (i32.const 0) (i32.const 5) (i32.const 0) (i32.const 0) (i32.const 256))
    (call $stage (i32.const 8) (i32.const 6) (i32.const 64) (i32.const 1))
    ;; rows at 256: columns (ptr, len), data (ptr, len); a row is (ptr, len); a text's (ptr, len) is 8 into its value.
    (local.set $value (i32.load (i32.load (i32.const 264))))
    (i32.store8 (i32.const 8200) (i32.const 1))
    (i32.store (i32.const 8204) (i32.load offset=8 (local.get $value)))
    (i32.store (i32.const 8208) (i32.load offset=12 (local.get $value)))
    (i32.const 8192)))
