//! The contract: unknown names, wrong values, calls where none may be, and lies about memory.

use oncebox_core::failure::Class;

use crate::sandbox::{attempt, dies, failed, lives, load};

#[tokio::test]
async fn a_trap_carries_the_guests_own_last_words_and_its_stack() {
    let failure = dies("hostile/panic", Class::Trap, "unreachable").await;
    assert_eq!(
        failure.message,
        "wasm trap: wasm `unreachable` instruction executed; \
         last error line: panicked at src/lib.rs:7: \\x1b[31mno such user"
    );
    assert!(failure.backtrace.unwrap().contains("award"));
}

#[tokio::test]
async fn an_unknown_name_is_refused_at_the_call() {
    let failure = dies("hostile/unknown_statement", Class::Abi, "unknown-statement").await;
    assert_eq!(failure.message, "db.stage: the manifest declares no statement `drop-all`");
    let backtrace = failure.backtrace.unwrap();
    assert!(backtrace.contains("sneak"), "{backtrace}");
    dies("hostile/unknown_query", Class::Abi, "unknown-query").await;
    dies("hostile/unknown_destination", Class::Abi, "unknown-destination").await;
    dies("hostile/unknown_config", Class::Abi, "unknown-config").await;
}

#[tokio::test]
async fn parameters_are_held_against_the_manifest() {
    let failure = dies("hostile/wrong_type", Class::Abi, "param-type").await;
    let wrong = "db.stage `award`: parameter `user_id` is text where the manifest declares unsigned";
    assert_eq!(failure.message, wrong);
    let failure = dies("hostile/wrong_count", Class::Abi, "param-count").await;
    assert_eq!(failure.message, "db.stage `award`: 1 parameters, the manifest declares 2");
}

#[tokio::test]
async fn lies_in_the_abi_are_told_from_traps() {
    let failure = dies("hostile/bad_utf8", Class::Abi, "malformed-value").await;
    assert!(failure.message.contains("utf-8"), "{}", failure.message);
    dies("hostile/list_out_of_range", Class::Abi, "malformed-value").await;
    dies("hostile/bad_discriminant", Class::Abi, "malformed-value").await;
    dies("hostile/result_out_of_range", Class::Abi, "malformed-value").await;
    dies("hostile/bad_realloc", Class::Abi, "malformed-value").await;
}

#[tokio::test]
async fn an_import_called_while_the_host_moves_values_is_refused() {
    dies("hostile/import_in_realloc", Class::Abi, "component-abi").await;
    dies("hostile/import_in_post_return", Class::Abi, "component-abi").await;
}

#[tokio::test]
async fn an_import_called_before_handle_is_refused_at_the_dry_run_too() {
    let module = load("hostile/import_in_start").await;
    let failure = failed(module.run(attempt()).await);
    assert_eq!((failure.class, failure.code.as_str()), (Class::Abi, "outside-handle"));
    assert_eq!(failure.message, "context.now-us was called before handle");
    let error = module.dry_run().await.unwrap_err();
    assert_eq!(error.to_string(), "the dry run of the module failed: abi: context.now-us was called before handle");
    lives().await;
}

#[tokio::test]
async fn a_reject_code_that_cannot_be_grouped_by_is_a_breach() {
    let failure = dies("hostile/bad_reject_code", Class::Abi, "reject-code").await;
    assert!(failure.message.starts_with("reject with code `No Such User!`"), "{}", failure.message);
}
