;; Asks a query that the manifest does not declare.
(module
  (import "oncebox:handler/db@1.0.0" "query" (func $query (param i32 i32 i32 i32 i32)))
  ;; @prelude
  (data (i32.const 0) "secrets")
  (func (export "oncebox:handler/guest@1.0.0#handle") (param i32) (result i32)
    (call $query (i32.const 0) (i32.const 7) (i32.const 0) (i32.const 0) (i32.const 256))
    (i32.const 8192)))
