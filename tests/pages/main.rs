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

#[test]
fn the_pages_of_the_reference_are_those_that_the_code_writes() {
    let folder = oncebox_tests::page::reference_page("");
    let mut there: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    there.sort();
    let pages = oncebox::reference::pages();
    let written: Vec<_> = pages.iter().map(|(name, _)| *name).collect();
    assert_eq!(there, written);
}
