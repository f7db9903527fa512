//! The page for plugin authors says what the gate does.

use super::super::{Rule, UNITS, cast_types, function_names};
use super::{LITE, MY};

const PAGE: &str = include_str!("../../../../../docs/sql-gate.md");

#[test]
fn the_page_names_every_refusal_and_how_to_mend_it() {
    let listed: Vec<&str> =
        PAGE.split("## Refusals").nth(1).unwrap().lines().filter(|l| l.starts_with("| `")).collect();
    let rows: Vec<String> =
        Rule::ALL.iter().map(|rule| format!("| `{}` | {} |", rule.code(), rule.explain())).collect();
    assert_eq!(listed, rows);
}

#[test]
fn the_page_lists_exactly_the_functions_of_each_database() {
    let section = PAGE.split("## Functions").nth(1).unwrap().split("## Refusals").next().unwrap();
    let (mysql, sqlite) = section.split_once("On SQLite").unwrap();
    for (part, dialect) in [(mysql, MY), (sqlite, LITE)] {
        let rows: Vec<&str> = part.lines().filter(|line| line.starts_with("| ") && line.contains('`')).collect();
        let lists = function_names(dialect);
        assert_eq!(rows.len(), lists.len(), "{dialect}");
        for (row, names) in rows.iter().zip(lists) {
            let listed: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
            assert_eq!(listed, *names, "{dialect}");
        }
        for name in cast_types(dialect) {
            assert!(part.contains(&format!("`{name}`")), "{name} of {dialect}");
        }
    }
    assert!(UNITS.iter().all(|unit| mysql.contains(&format!("`{unit}`"))));
}

#[test]
fn every_rule_has_a_code_of_its_own_in_lower_case() {
    let mut codes: Vec<&str> = Rule::ALL.iter().map(|rule| rule.code()).collect();
    codes.sort_unstable();
    assert!(codes.windows(2).all(|pair| pair[0] != pair[1]));
    for rule in Rule::ALL {
        assert!(rule.code().bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{}", rule.code());
        assert!(!rule.explain().ends_with('.') && !rule.explain().starts_with(char::is_uppercase), "{}", rule.code());
    }
}
