//! `oncebox check config`, and what every command says of a wrong configuration.

use super::stage::{CONFIG, json, shop, shop_with, with};

#[test]
fn a_good_configuration_is_done_and_a_questionable_one_has_findings() {
    let folder = shop();
    assert_eq!(folder.oncebox(["check", "config"]).done(), "oncebox.toml: a host would start with it; tenants: shop\n");
    folder.write("more.toml", format!("{CONFIG}\n[tenants.shop.sources.unused]\nkind = \"local\"\n"));
    let answer = folder.oncebox(["--config", "more.toml", "--json", "check", "config"]);
    assert_eq!((answer.code, answer.stderr.as_str()), (8, ""));
    let warning = &json(&answer.stdout)["warnings"][0];
    assert_eq!(warning["message"], "source \"unused\" stands in no route: its events have no handler");
    assert_eq!((&warning["file"], &warning["line"]), (&"more.toml".into(), &26.into()));
    assert_eq!(folder.files(), ["more.toml", "oncebox.toml", "schema.sql"], "a check changes nothing");
}

#[test]
fn a_configuration_that_is_not_there_or_not_text_is_named() {
    let folder = shop();
    let missing = folder.oncebox(["--config", "nope.toml", "tally"]);
    missing.fails(3, ["error[config-file]: cannot read nope.toml: No such file", "`--config FILE` names another one"]);
    folder.write("latin.toml", b"# caf\xe9\n");
    folder.oncebox(["--config", "latin.toml", "tally"]).fails(3, ["latin.toml: it is not UTF-8 from byte 5 on"]);
    folder.write("bad.toml", with(CONFIG, "schema.sql", "nope.sql"));
    let schema = folder.oncebox(["--config", "bad.toml", "check", "config"]);
    schema.fails(3, ["cannot read nope.sql: No such file", "store.schema names it"]);
}

#[test]
fn every_error_is_listed_once_with_its_place_and_its_mending() {
    let folder = shop_with(&with(&with(CONFIG, "listen", "lisen"), "owner", "ownr"));
    for command in [["check", "config"], ["dead", "list"]] {
        let answer = folder.oncebox(command);
        answer.fails(
            3,
            [
                "error: unknown key \"lisen\" in [host]\n --> oncebox.toml:4:1\n",
                "the nearest known key is \"listen\"",
                "error: unknown key \"ownr\" in [tenants.shop.handlers.award]\n  --> oncebox.toml:24:1\n",
                "\n\nerror[config]: the configuration has 2 errors; a host would not start\n",
            ],
        );
        assert_eq!(answer.stderr.matches("lisen").count(), 2, "the message and the line:\n{}", answer.stderr);
        assert_eq!(answer.stderr.matches("error").count(), 4, "{}", answer.stderr);
    }
}

#[test]
fn a_program_gets_each_error_with_file_line_and_column() {
    let folder = shop_with(&with(CONFIG, "listen", "lisen"));
    let answer = folder.oncebox(["--json", "run"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (3, ""));
    let error = &json(&answer.stderr)["error"];
    assert_eq!((&error["code"], &error["exit"]), (&"config".into(), &3.into()));
    let first = &error["errors"][0];
    assert_eq!((&first["file"], &first["line"], &first["column"]), (&"oncebox.toml".into(), &4.into(), &1.into()));
    assert_eq!(first["message"], "unknown key \"lisen\" in [host]");
}

#[test]
fn what_this_build_does_not_have_is_said_by_name() {
    let folder = shop_with(&with(CONFIG, "kind = \"local\"", "kind = \"kafka\""));
    let needs = "kind \"kafka\" needs the feature \"kafka\", which this build of oncebox does not have";
    folder.oncebox(["check", "config"]).fails(3, [needs, "one of: local, rabbitmq"]);
}

#[test]
fn broken_toml_is_shown_where_it_breaks() {
    shop_with("[host\n").oncebox(["check", "config"]).fails(3, ["not TOML", "oncebox.toml:1:6", "1 | [host"]);
}

#[test]
fn a_tenant_that_stands_twice_is_refused_with_both_places() {
    let folder = shop();
    folder.write("tenants.d/shop.toml", "tables = []\n");
    let twice = folder.oncebox(["check", "config"]);
    twice.fails(3, ["tenant \"shop\" stands in oncebox.toml:6 too", "--> tenants.d/shop.toml:1:1"]);
}
