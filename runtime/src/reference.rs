//! The generated pages of `docs/reference/`, in one place; `cargo bless` writes them, tests hold them against the code.

use std::fmt::Write as _;

use oncebox_core::{
    config,
    failure::{Answer, Blame, Class},
    failure_code::FAILURE_CODES,
    life, manifest, sql,
};

use crate::{
    access::AccessError,
    cli::{self, Wrong},
    code::{Code, Exit},
    host::admission::Check,
    metrics,
    module::ModuleError,
    plugin::PluginError,
    source::SourceError,
    store::StoreError,
};

/// Every page: its file's name and its text.
#[must_use]
pub fn pages() -> Vec<(&'static str, String)> {
    vec![
        ("cli.md", cli::reference()),
        ("config.md", config::reference()),
        ("errors.md", errors()),
        ("lifecycle.md", life::reference()),
        ("manifest.md", manifest::reference()),
        ("metrics.md", metrics::reference()),
    ]
}

/// The codes of every error enum that a command can end with, under the heading that the page gives them.
pub const CODES: [(&str, &str, &[Code]); 7] = [
    ("Commands", "What the command line finds wrong before or beside everything else.", Wrong::CODES),
    ("Building and reading modules", "`oncebox build` and `oncebox inspect`.", ModuleError::CODES),
    (
        "Taking modules in",
        "`oncebox check module`, `oncebox deploy`, and a host that loads a module.",
        PluginError::CODES,
    ),
    (
        "A module against its place",
        "Reasons below `module-refused`: the manifest against the handler's configuration and the database.",
        Check::CODES,
    ),
    ("Stores", "A tenant's database.", StoreError::CODES),
    ("Secrets", "Passwords and urls that are kept outside of the configuration.", AccessError::CODES),
    (
        "Sources",
        "Why a broker's queue is not consumed: in the log and in `/readyz`. A running host does not end with them; it tries \
         again until it is mended.",
        SourceError::CODES,
    ),
];

/// The page `errors.md`: exit codes, and every code with its meaning and mending.
#[must_use]
pub fn errors() -> String {
    let mut page = String::from(
        "# Error codes\n\n<!-- generated; `cargo bless` rewrites it -->\n\n\
         An error names its code in brackets: `error[store-taken]: …`. With `--json` it is one object on standard error, \
         `{\"error\": {\"code\", \"exit\", \"message\"}}`; errors of a configuration or a manifest stand in `errors`, each \
         with `file`, `line` and `column`, and all reasons against a module in `reasons`. Codes and exit codes never \
         change their meaning.\n",
    );
    exit_codes(&mut page);
    for (heading, about, codes) in CODES {
        let _ = write!(page, "\n## {heading}\n\n{about}\n\n");
        page.push_str("| code | exit | what it means | how to mend it |\n| --- | --- | --- | --- |\n");
        for code in codes {
            row(&mut page, code.name, &code.exit.number().to_string(), code.means, code.mend);
        }
    }
    gate(&mut page);
    failures(&mut page);
    page
}

fn exit_codes(page: &mut String) {
    page.push_str("\n## Exit codes\n\n| exit | what it means |\n| --- | --- |\n");
    for exit in Exit::ALL {
        let _ = writeln!(page, "| {} | {} |", exit.number(), exit.means());
    }
}

fn gate(page: &mut String) {
    page.push_str(
        "\n## The SQL gate\n\nReasons below `module-refused` about the text of a statement or query; \
         [the gate's own page](../sql-gate.md) says what is accepted. All of them end with exit code 4.\n\n\
         | code | how to mend it |\n| --- | --- |\n",
    );
    for rule in sql::Rule::ALL {
        let _ = writeln!(page, "| `{}` | {} |", rule.code(), escaped(rule.explain()));
    }
}

fn failures(page: &mut String) {
    page.push_str(
        "\n## Failed attempts\n\nThe class decides what becomes of an event; a manifest may map the errors of its \
         statements otherwise. `oncebox dead show` and `oncebox trace` name class and code. Beside the codes listed here \
         stand the plugin's own, which it gives to `reject`, `retry` and `mismatch`.\n\n\
         | class | what then | who has to act |\n| --- | --- | --- |\n",
    );
    for class in Class::ALL {
        let _ = writeln!(page, "| {} | {} | {} |", class.name(), then(class.answer()), who(class.blame()));
    }
    page.push_str("\n| code | class | what it means | how to mend it |\n| --- | --- | --- | --- |\n");
    for code in FAILURE_CODES {
        row(page, code.name, code.class.name(), code.means, code.mend);
    }
}

fn then(answer: Answer) -> &'static str {
    match answer {
        Answer::AgainUncounted => "again, uncounted; never dead",
        Answer::ParkUncounted => "parked, uncounted",
        Answer::ParkCounted => "parked and counted; dead at `attempts_max`",
        Answer::ParkShort => "parked and counted; dead at `short_attempts_max`",
        Answer::Dead => "held for a person at once",
    }
}

fn who(blame: Blame) -> &'static str {
    match blame {
        Blame::Plugin => "the plugin's author",
        Blame::Dependency => "the operator",
        Blame::Producer => "the producer of the message",
    }
}

fn row(page: &mut String, name: &str, second: &str, means: &str, mend: &str) {
    let _ = writeln!(page, "| `{name}` | {second} | {} | {} |", escaped(means), escaped(mend));
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_code_means_one_thing_wherever_it_is_given() {
        let mut seen: BTreeMap<&str, Code> = BTreeMap::new();
        for code in CODES.iter().flat_map(|(_, _, codes)| codes.iter()) {
            assert_eq!(seen.entry(code.name).or_insert(*code), code);
            assert!(code.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{}", code.name);
            for words in [code.means, code.mend] {
                assert!(!words.is_empty() && !words.ends_with('.'), "{}", code.name);
            }
        }
        for rule in sql::Rule::ALL {
            assert!(!seen.contains_key(rule.code()), "{} is a rule of the gate too", rule.code());
        }
    }
}
