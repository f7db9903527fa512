//! MySQL and MariaDB outside the unit of work: migrations, rights, what the SQL gate is shown, claims, settings. Every
//! test runs on both servers, in a database of its own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod bench;
mod catalogue;
mod checks;
mod claims;
mod deployments;
mod migrate;
mod rights;
mod shop;

use bench::Bench;

/// Each test once on either server.
macro_rules! on_both_servers {
    ($($module:ident $name:ident;)*) => {
        mod mysql {
            $(#[test] fn $name() { super::Bench::run(oncebox_tests::services::Kind::Mysql, super::$module::$name); })*
        }
        mod mariadb {
            $(#[test] fn $name() { super::Bench::run(oncebox_tests::services::Kind::Mariadb, super::$module::$name); })*
        }
    };
}

on_both_servers! {
    migrate an_empty_database_gets_its_tables_and_a_second_time_nothing_happens;
    migrate a_migration_that_was_killed_in_the_middle_is_run_again;
    migrate two_who_migrate_at_once_do_it_once;
    migrate a_host_and_a_command_refuse_a_database_that_is_not_migrated_or_newer;
    migrate without_a_right_the_migration_says_which;
    rights the_documented_rights_are_enough_and_none_is_missing_for_the_admin_side;
    rights without_the_right_to_execute_the_host_is_refused_with_the_statement_to_grant_it;
    rights a_procedure_that_is_gone_or_whose_maker_is_gone_is_refused_and_made_again;
    rights what_the_maker_of_the_procedure_may_not_see_is_refused;
    rights a_table_that_the_user_may_not_use_is_named;
    catalogue tables_views_and_triggers_are_shown_to_a_user_without_rights;
    catalogue foreign_keys_are_shown_with_their_actions_also_those_of_other_databases;
    catalogue nothing_of_other_databases_is_shown;
    catalogue every_change_of_a_business_table_moves_the_version_and_its_rows_do_not;
    catalogue a_text_that_does_not_fit_does_not_prepare;
    claims claims_go_in_index_order_without_a_sort;
    claims two_hosts_share_what_is_due_and_nobody_waits;
    claims a_row_that_a_unit_holds_is_neither_claimed_nor_renewed_nor_waited_for;
    claims what_is_due_is_found_in_one_step_a_handler;
    deployments one_of_two_hosts_activates;
    deployments two_offers_at_once_leave_one_offered;
    deployments a_large_module_comes_back_and_a_failed_offer_leaves_nothing;
    shop a_shop_goes_from_an_empty_database_to_applied_events_as_the_documented_users;
    checks a_server_as_the_tests_have_it_is_trusted;
    checks a_table_of_another_engine_is_refused;
    checks every_setting_is_read_and_judged;
}
