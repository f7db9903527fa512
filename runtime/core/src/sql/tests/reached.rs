//! Tables against the operator's list and the database: kinds, engines, triggers, foreign keys.

use super::super::{Rule, TableKind};
use super::{ANY, KEY, LITE, MY, Purpose, Q, ReferentialAction, S, World, marks};
use crate::manifest::Access;
use ReferentialAction::{Cascade, Restrict, SetDefault, SetNull};

const DELETE: &str = "DELETE FROM account WHERE id = ?";
const UPDATE: &str = "UPDATE account SET points = ? WHERE id = ?";
const INSERT: &str = "INSERT INTO account (id) VALUES (?)";
const UPSERT: &str = "INSERT INTO account (id) VALUES (?) ON DUPLICATE KEY UPDATE points = 1";
const SELECT: &str = "SELECT id FROM account WHERE id = ?";

/// The rule that refuses the text on MySQL, if any.
fn rule(world: &World, purpose: Purpose, sql: &str) -> Option<Rule> {
    world.check(purpose, MY, sql, marks(sql)).err().map(|refusal| refusal.rule)
}

#[test]
fn a_table_that_the_operator_does_not_list_is_refused() {
    let mut world = World::plain();
    world.listed.retain(|table| table != "level");
    assert_eq!(rule(&world, S, DELETE), None);
    assert_eq!(rule(&world, Q, "SELECT id FROM level WHERE id = ?"), Some(Rule::TableUnlisted));
    let subquery = "DELETE FROM account WHERE id IN (SELECT id FROM level WHERE id = ?)";
    assert_eq!(rule(&world, ANY, subquery), Some(Rule::TableUnlisted));
    world.listed.push("LEVEL".to_owned());
    assert_eq!(rule(&world, ANY, subquery), Some(Rule::TableUnlisted));
}

#[test]
fn without_sight_of_triggers_and_foreign_keys_nothing_is_accepted() {
    let mut world = World::plain();
    world.catalogue.complete = false;
    assert_eq!(rule(&world, S, DELETE), Some(Rule::CatalogueIncomplete));
    assert_eq!(rule(&world, Q, SELECT), Some(Rule::CatalogueIncomplete));
}

#[test]
fn a_table_that_does_not_exist_is_refused() {
    let mut world = World::plain();
    world.catalogue.tables.remove("account");
    assert_eq!(rule(&world, S, DELETE), Some(Rule::TableUnknown));
}

#[test]
fn only_base_tables_may_be_named() {
    for kind in [TableKind::View, TableKind::Virtual, TableKind::Temporary, TableKind::System] {
        let mut world = World::plain();
        world.exists("account").kind = kind;
        assert_eq!(rule(&world, S, DELETE), Some(Rule::TableKind), "{kind:?}");
        assert_eq!(rule(&world, Q, SELECT), Some(Rule::TableKind), "{kind:?}");
    }
}

#[test]
fn only_innodb_rolls_back() {
    let mut world = World::plain();
    for engine in [Some("MyISAM"), Some("MEMORY"), Some(""), None] {
        world.exists("account").engine = engine.map(str::to_owned);
        assert_eq!(rule(&world, S, DELETE), Some(Rule::TableEngine), "{engine:?}");
        assert_eq!(rule(&world, Q, SELECT), Some(Rule::TableEngine), "{engine:?}");
    }
    world.exists("account").engine = Some("innodb".to_owned());
    assert_eq!(rule(&world, S, DELETE), None);
    world.exists("account").engine = None;
    assert!(world.check(S, LITE, DELETE, 1).is_ok(), "SQLite has no engines");
}

#[test]
fn a_trigger_is_refused_unless_the_operator_names_it_with_its_table() {
    let mut world = World::plain();
    world.exists("account").triggers = vec!["audit".to_owned(), "mirror".to_owned()];
    world.triggers = vec!["account.audit".to_owned(), "mirror".to_owned(), "stock.mirror".to_owned()];
    assert_eq!(rule(&world, S, DELETE), Some(Rule::Trigger));
    world.triggers.push("account.mirror".to_owned());
    assert_eq!(rule(&world, S, DELETE), None);
}

#[test]
fn a_cascade_is_followed_to_its_end() {
    let mut world = World::plain();
    world.add("invoice", Access::Write);
    world.add("line", Access::Write);
    world.exists("tax");
    world.refer("invoice", "account", Cascade, Restrict);
    world.refer("line", "invoice", Cascade, Restrict);
    assert_eq!(rule(&world, S, DELETE), None);
    world.refer("tax", "line", Cascade, Restrict);
    let refusal = world.check(S, MY, DELETE, 1).unwrap_err();
    assert_eq!(refusal.rule, Rule::Cascade);
    let found = "the foreign key fk_tax passes changes of line on to tax, which is not in the operator's list";
    assert!(refusal.message.starts_with(found), "{}", refusal.message);
    // An UPDATE of the first table sets nothing off: ON UPDATE restricts.
    assert_eq!(rule(&world, S, UPDATE), None);
}

#[test]
fn a_table_that_a_cascade_reaches_must_be_listed_declared_and_written() {
    let mut world = World::plain();
    world.refer("invoice", "account", Cascade, Restrict);
    assert_eq!(rule(&world, S, DELETE), Some(Rule::Cascade));
    world.listed.push("invoice".to_owned());
    assert_eq!(rule(&world, S, DELETE), Some(Rule::Cascade));
    world.declared.insert("invoice".to_owned(), Access::Read);
    assert_eq!(rule(&world, S, DELETE), Some(Rule::Cascade));
    world.declared.insert("invoice".to_owned(), Access::Write);
    assert_eq!(rule(&world, S, DELETE), Some(Rule::TableUnknown));
    world.exists("invoice").triggers = vec!["audit".to_owned()];
    assert_eq!(rule(&world, S, DELETE), Some(Rule::Trigger));
    world.triggers.push("invoice.audit".to_owned());
    world.exists("invoice").engine = Some("MyISAM".to_owned());
    assert_eq!(rule(&world, S, DELETE), Some(Rule::TableEngine));
    world.exists("invoice").engine = Some("InnoDB".to_owned());
    assert_eq!(rule(&world, S, DELETE), None);
}

#[test]
fn a_cascade_never_reaches_a_table_of_the_host_or_of_another_database() {
    for child in ["ob_held", "OB_held", "other.invoice"] {
        let mut world = World::plain();
        world.refer(child, "account", Cascade, Restrict);
        if child.contains('.') {
            world.exists(child);
        } else {
            world.add(child, Access::Write);
        }
        assert_eq!(rule(&world, S, DELETE), Some(Rule::Cascade), "{child}");
    }
}

#[test]
fn each_write_sets_off_only_the_actions_of_its_kind() {
    // (on delete, on update, refused: DELETE, UPDATE, INSERT, upsert)
    let cases = [
        (Restrict, Restrict, [false, false, false, false]),
        (Cascade, Restrict, [true, false, false, false]),
        (SetNull, Restrict, [true, false, false, false]),
        (SetDefault, Restrict, [true, false, false, false]),
        (Restrict, Cascade, [false, true, false, true]),
        (Restrict, SetNull, [false, true, false, true]),
        (Restrict, SetDefault, [false, true, false, true]),
    ];
    for (on_delete, on_update, refused) in cases {
        let mut world = World::plain();
        world.refer("invoice", "account", on_delete, on_update);
        let texts = [(S, DELETE), (S, UPDATE), (S, INSERT), (KEY, UPSERT)];
        let seen = texts.map(|(purpose, sql)| rule(&world, purpose, sql) == Some(Rule::Cascade));
        assert_eq!(seen, refused, "{on_delete:?} {on_update:?}");
        assert_eq!(rule(&world, Q, SELECT), None);
    }
}

#[test]
fn setting_null_goes_on_as_an_update() {
    let mut world = World::plain();
    world.add("invoice", Access::Write);
    world.refer("invoice", "account", SetNull, Restrict);
    world.refer("line", "invoice", Cascade, Restrict);
    assert_eq!(rule(&world, S, DELETE), None, "no invoice is deleted, so no line is");
    world.refer("line", "invoice", Restrict, Cascade);
    assert_eq!(rule(&world, S, DELETE), Some(Rule::Cascade), "an invoice is updated, and with it its lines");
}

#[test]
fn a_cycle_of_cascades_ends() {
    let mut world = World::plain();
    world.refer("account", "account", Cascade, SetNull);
    world.refer("stock", "account", Cascade, Cascade);
    world.refer("account", "stock", Cascade, Cascade);
    assert_eq!(rule(&world, S, DELETE), None);
    assert_eq!(rule(&world, S, UPDATE), None);
    world.refer("level", "stock", SetNull, Restrict);
    assert_eq!(rule(&world, S, DELETE), Some(Rule::Cascade), "level is declared as read");
}
