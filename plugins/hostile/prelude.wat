  ;; Two pages, a bump allocator from 16384 on, and 64 zero bytes at 8192: ok(applied(none)) for `handle` to return.
  (memory (export "memory") 2)
  (global $top (mut i32) (i32.const 16384))
  (func $realloc (export "cabi_realloc") (param $old i32) (param $old_len i32) (param $align i32) (param $len i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $top) (i32.const 7)) (i32.const -8)))
    (global.set $top (i32.add (local.get $at) (local.get $len)))
    (local.get $at))
