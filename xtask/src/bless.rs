//! `cargo bless`: rewrites the generated pages.
//!
//! Each page is written by the test that checks it: with `ONCEBOX_BLESS` set, the tests whose names say
//! `is_up_to_date` write what they would compare.

use std::collections::BTreeMap;

use crate::run::{Failed, Repo, Result, Stopwatch, run};

/// The folder of the pages.
const PAGES: &str = "docs/reference";

/// Rewrites the pages and names those that changed.
pub(crate) fn bless(repo: &Repo, args: &[&str]) -> Result {
    if let Some(arg) = args.first() {
        return Err(Failed::Usage(format!("`cargo bless` takes no argument, and `{arg}` was given")));
    }
    let watch = Stopwatch::start();
    let before = pages(repo)?;
    let mut tests = repo.cargo(["test", "--locked", "--workspace", "--quiet", "is_up_to_date"]);
    run(tests.env("ONCEBOX_BLESS", "1"))?;
    let after = pages(repo)?;
    let changed: Vec<String> = after
        .iter()
        .filter(|(name, text)| before.get(*name) != Some(text))
        .map(|(name, _)| format!("{PAGES}/{name}"))
        .collect();
    println!("\n{} pages in {PAGES}, {} rewritten, in {watch}", after.len(), changed.len());
    for page in changed {
        println!("  {page}");
    }
    Ok(())
}

/// The pages by name.
fn pages(repo: &Repo) -> Result<BTreeMap<String, Vec<u8>>> {
    let dir = repo.path(PAGES);
    let reading = || Failed::to(format!("read {}", dir.display()));
    let mut pages = BTreeMap::new();
    for entry in std::fs::read_dir(&dir).map_err(reading())? {
        let entry = entry.map_err(reading())?;
        let text = std::fs::read(entry.path()).map_err(reading())?;
        pages.insert(entry.file_name().to_string_lossy().into_owned(), text);
    }
    Ok(pages)
}
