//! Usage: what clap refuses, and the help.

use oncebox_tests::command::Folder;

use super::stage::{json, shop};

#[test]
fn help_fits_one_screen_of_eighty_columns() {
    let help = Folder::new("").oncebox(["--help"]).done();
    assert!(help.lines().count() <= 40, "{} lines", help.lines().count());
    for line in help.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn wrong_arguments_end_with_usage_and_say_what_is_expected() {
    let folder = shop();
    folder.oncebox([]).fails(2, ["Usage: oncebox"]);
    folder.oncebox(["sned"]).fails(2, ["unrecognized subcommand 'sned'", "'send'"]);
    folder.oncebox(["trace", "shop", "k"]).fails(2, ["expected a tenant and a name, as in shop/points-award"]);
    folder.oncebox(["dead", "show", "shop", "x"]).fails(2, ["expected a row's number, as `dead list` shows it"]);
    folder.oncebox(["dead", "list", "--limit", "0"]).fails(2, ["0 is not in 1..=1000"]);
    folder.oncebox(["send", "shop/orders", "--header", "a"]).fails(2, ["expected NAME=VALUE"]);
    folder.oncebox(["send", "shop/orders", "--header", "a b=c"]).fails(2, ["visible ASCII characters"]);
    assert_eq!(folder.files(), ["oncebox.toml", "schema.sql"]);
}

#[test]
fn wrong_arguments_of_a_program_are_one_json_object() {
    let answer = shop().oncebox(["--json", "send", "shop/orders", "--header", "a"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (2, ""));
    let error = json(&answer.stderr);
    assert_eq!(error["error"]["code"], "usage");
    assert!(error["error"]["message"].as_str().unwrap().starts_with("invalid value 'a' for '--header <K=V>'"));
}

#[test]
fn every_command_shows_an_example() {
    let folder = Folder::new("");
    for command in ["run", "build", "inspect", "check", "deploy", "migrate", "send", "trace", "dead", "tally"] {
        let help = folder.oncebox([command, "--help"]).done();
        assert!(help.contains(&format!("Examples:\n  oncebox {command}")), "{help}");
    }
}
