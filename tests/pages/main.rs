//! The generated pages of `docs/reference/` that need the whole host; those of the decisions are checked in
//! `oncebox-core`. `cargo bless` runs these tests to rewrite the pages, by the words `is_up_to_date` in their names.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod codes;

use oncebox_tests::page::assert_up_to_date;

#[test]
fn the_page_of_the_metrics_is_up_to_date() {
    assert_up_to_date("metrics.md", &oncebox::metrics::reference());
}

#[test]
fn the_page_of_the_command_line_is_up_to_date() {
    assert_up_to_date("cli.md", &oncebox::cli::reference());
}

#[test]
fn the_page_of_the_error_codes_is_up_to_date() {
    assert_up_to_date("errors.md", &oncebox::reference::errors());
}
