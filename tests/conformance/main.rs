//! What every store promises: one list of cases, run on each implementation of the seam `oncebox::store`.
//!
//! A case is marked `Common` (every store), `MySql` (MySQL and MariaDB alike) or `Sqlite`. A further store plugs in by
//! one function that opens an empty database of it, and one line at the end of this file. The last case that ends says
//! how many ran.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod bench;
mod cases;

use std::{
    io::Write as _,
    sync::atomic::{AtomicUsize, Ordering},
};

use bench::Bench;
use oncebox_tests::services::Kind;

/// Which stores a case is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Common,
    MySql,
    Sqlite,
}

impl Mark {
    const ALL: [Self; 3] = [Self::Common, Self::MySql, Self::Sqlite];
}

/// One run of the list on one store.
struct Suite {
    store: &'static str,
    own: Mark,
    /// The server, if it is on one.
    server: Option<Kind>,
    ran: [AtomicUsize; 3],
}

impl Suite {
    const fn new(store: &'static str, own: Mark, server: Option<Kind>) -> Self {
        Self { store, own, server, ran: [AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0)] }
    }

    fn run<F: Future<Output = ()>>(&'static self, mark: Mark, case: fn(Bench) -> F) {
        let _ended = Ended { suite: self, mark };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(async {
            let bench = match self.server {
                None => Bench::sqlite().await,
                Some(kind) => Bench::server(kind).await,
            };
            case(bench).await;
        });
    }

    /// How many cases of the list are for this store.
    fn cases(&self) -> usize {
        CASES.iter().filter(|mark| [Mark::Common, self.own].contains(mark)).count()
    }

    fn summary(&self) -> String {
        let ran = |mark: Mark| self.ran[mark as usize].load(Ordering::SeqCst);
        let of = |mark: Mark| CASES.iter().filter(|other| **other == mark).count();
        let counts = Mark::ALL.map(|mark| format!("{} of {} {mark:?}", ran(mark), of(mark)).to_lowercase());
        format!("conformance: {} on {}\n", counts.join(", "), self.store)
    }
}

/// Counts a case at its end, also when it has failed.
struct Ended {
    suite: &'static Suite,
    mark: Mark,
}

impl Drop for Ended {
    fn drop(&mut self) {
        self.suite.ran[self.mark as usize].fetch_add(1, Ordering::SeqCst);
        let ended: usize = self.suite.ran.iter().map(|n| n.load(Ordering::SeqCst)).sum();
        if ended == self.suite.cases() {
            // Not `println!`: the harness swallows what a passing test prints.
            let _ = std::io::stdout().write_all(self.suite.summary().as_bytes());
        }
    }
}

macro_rules! case {
    (SQLITE Common $module:ident $name:ident) => { case!(@ SQLITE Common $module $name); };
    (SQLITE Sqlite $module:ident $name:ident) => { case!(@ SQLITE Sqlite $module $name); };
    (SQLITE MySql $module:ident $name:ident) => {};
    ($server:ident Common $module:ident $name:ident) => { case!(@ $server Common $module $name); };
    ($server:ident MySql $module:ident $name:ident) => { case!(@ $server MySql $module $name); };
    ($server:ident Sqlite $module:ident $name:ident) => {};
    (@ $store:ident $mark:ident $module:ident $name:ident) => {
        #[test]
        fn $name() {
            super::$store.run(super::Mark::$mark, super::cases::$module::$name);
        }
    };
}

macro_rules! cases {
    ($($mark:ident $module:ident $name:ident;)*) => {
        const CASES: &[Mark] = &[$(Mark::$mark),*];
        mod sqlite {
            $(case!(SQLITE $mark $module $name);)*
        }
        mod mysql {
            $(case!(MYSQL $mark $module $name);)*
        }
        mod mariadb {
            $(case!(MARIADB $mark $module $name);)*
        }
    };
}

static SQLITE: Suite = Suite::new("sqlite", Mark::Sqlite, None);
static MYSQL: Suite = Suite::new("mysql", Mark::MySql, Some(Kind::Mysql));
static MARIADB: Suite = Suite::new("mariadb", Mark::MySql, Some(Kind::Mariadb));

cases! {
    Common inbox a_row_is_first_only_under_the_token_of_its_own_unit;
    Common inbox a_second_unit_sees_the_row_as_it_is_and_counts_a_duplicate;
    Common inbox rows_come_back_in_the_order_asked;
    Common inbox a_row_that_was_seen_is_counted_and_one_that_has_gone_is_first;
    Common inbox a_rollback_leaves_nothing;
    Common inbox a_unit_that_is_given_up_leaves_nothing_and_counts_nothing;
    Common inbox a_unit_that_is_dropped_is_rolled_back_before_the_next_one;
    Common inbox a_look_up_after_a_dropped_unit_sees_nothing_of_it;
    Common inbox keys_are_compared_byte_for_byte;
    Common inbox a_delete_takes_back_only_what_this_unit_inserted;
    Common inbox a_mark_writes_the_outcome;
    Common inbox a_mark_of_a_row_that_is_not_there_is_an_error;
    Common inbox a_look_up_finds_the_rows_there_are_and_no_others;
    Common inbox a_lock_answers_in_the_order_asked;
    Common order an_order_row_is_made_by_its_lock_and_kept_as_it_was_marked;
    Common order the_head_of_a_line_is_its_first_row_that_is_parked_or_dead;
    Common order only_a_parked_head_that_waits_is_made_due;
    Common order a_resolved_row_gives_up_its_place_and_the_next_one_is_the_head;
    MySql order two_units_of_one_line_come_one_after_the_other;
    Common savepoints a_savepoint_undoes_writes_and_marks_and_stays_set;
    Common savepoints a_savepoint_of_one_event_undoes_only_its_writes;
    Common savepoints a_statement_that_fails_leaves_the_unit_usable;
    Common held a_held_row_of_the_same_identity_is_counted;
    Common held a_resolved_row_is_opened_again_with_its_new_body;
    Common held a_conflict_whose_event_is_parked_becomes_claimable;
    Common held only_due_parked_rows_of_the_handler_are_claimed_oldest_due_first;
    Common held a_claim_carries_all_that_the_next_attempt_needs;
    Common held a_lease_that_is_over_makes_the_row_claimable_again;
    Common held a_write_under_an_old_token_is_lease_lost_and_changes_nothing;
    Common held a_mark_ends_the_lease;
    Common held a_mark_without_a_reason_keeps_the_last_one;
    Common held attempts_are_numbered_by_generation;
    Common held one_question_tells_which_handlers_have_something_due_and_when;
    Common starts a_message_that_comes_again_is_counted_once_a_life;
    Common starts a_column_of_starts_keeps_the_newest;
    Common starts an_end_is_of_a_message_or_of_one_handlers_run_alone;
    Common starts the_end_of_a_unit_that_is_rolled_back_is_none;
    Common starts a_claim_is_a_start_and_its_mark_says_what_is_kept;
    Common starts only_a_claim_under_its_token_may_run_alone;
    Common starts the_tables_know_whether_a_life_has_ended_has_a_successor_or_is_silent;
    Sqlite starts a_life_that_the_next_one_had_to_end_has_crashed;
    Common local an_offered_message_is_claimed_once_and_comes_back_whole;
    Common local claims_take_the_oldest_due_first_and_only_their_own_source;
    Common local a_claim_that_was_taken_over_cannot_settle;
    Common local a_renewed_lease_is_not_taken_over;
    Common local a_delayed_event_is_not_claimed_before_its_time;
    Common local a_settled_message_is_gone_with_its_unit_and_back_with_its_rollback;
    Common books tallies_add_up_over_units_and_lanes;
    Common books tallies_of_a_unit_that_is_rolled_back_do_not_count;
    Common books an_outgoing_event_is_written_once;
    Common statements a_unique_key_of_a_business_table_is_a_duplicate_key;
    Common statements a_missing_parent_row_is_a_foreign_key_failure;
    Common statements null_where_none_may_be_is_a_data_failure;
    Common statements a_check_that_does_not_hold_is_a_data_failure;
    Common statements a_table_that_is_gone_blocks_the_handler;
    Common statements one_insert_of_many_rows_writes_each_of_them_or_fails;
    Common statements a_write_answers_the_rows_that_it_matched;
    Common statements writes_that_come_together_answer_one_by_one;
    Common statements the_first_of_them_that_fails_is_named_and_the_savepoint_undoes_what_stands;
    Sqlite statements values_of_every_type_come_back;
    Common statements a_query_reads_one_row_more_than_its_limit;
    Common statements a_query_without_rows_names_its_columns;
    Common modules a_module_comes_back_byte_for_byte;
    Common modules a_deployment_is_offered_then_active_then_replaced;
    Common modules an_offer_that_nobody_served_is_overtaken;
    Common modules a_refused_deployment_keeps_its_reason_and_does_not_bind_the_rule;
    Common modules an_equal_rule_is_kept_once_and_every_rule_is_kept;
    Common stories a_trace_tells_all_of_a_key;
    Common stories held_rows_are_listed_by_handler_state_and_place;
    Common stories gauges_count_what_is_held_and_what_waits;
    Sqlite catalogue the_catalogue_names_tables_views_and_triggers;
    Sqlite catalogue the_catalogue_knows_what_refers_to_a_table_and_how;
    Common catalogue a_text_that_names_what_is_not_there_does_not_prepare;
    Common catalogue a_changed_table_moves_the_schema_version;
    Common lifecycle a_commit_of_another_connection_is_noticed;
    Common lifecycle handlers_keep_their_numbers;
    Common lifecycle the_clock_never_goes_back;
    Common lifecycle the_tenants_secret_stays_the_same;
    Common lifecycle a_boot_is_recorded_with_its_end;
    MySql server_locks whoever_waits_for_a_key_sees_the_row_that_was_committed;
    MySql server_locks a_key_that_is_given_back_deadlocks_nobody_who_waits_for_it;
    MySql server_locks a_holder_whose_connection_dies_leaves_its_key_to_exactly_one;
    MySql server_locks keys_that_are_locked_or_counted_leave_their_neighbours_free;
    MySql server_locks keys_in_order_never_deadlock;
    MySql server_locks after_a_deadlock_nothing_more_is_written_in_the_transactions_name;
    MySql server_locks a_wait_that_is_too_long_undoes_its_statement_and_no_more;
    MySql server_locks a_wait_for_a_key_that_is_too_long_leaves_the_unit_able_to_give_back;
    MySql server_locks a_delivery_waits_for_the_claim_of_its_key_and_sees_what_became_of_it;
    MySql server_locks two_units_that_bring_the_same_letter_at_once_write_it_once;
    MySql server_locks no_statement_of_a_unit_waits_for_a_neighbours_row;
    MySql server_locks a_session_whose_call_is_over_its_time_is_killed_and_what_it_did_is_undone;
    MySql server_faults a_commit_whose_answer_is_lost_is_seen_by_the_next_try;
    MySql server_faults a_commit_that_never_arrived_has_done_nothing;
    MySql server_faults a_batch_that_is_done_again_waits_for_its_old_transaction;
    MySql server_faults a_connection_that_is_cut_between_two_steps_leaves_nothing;
    MySql server_faults a_transaction_that_is_no_longer_the_one_begun_is_not_committed;
    MySql server_faults a_call_that_is_dropped_in_the_middle_does_not_disturb_the_next_one;
    MySql server_faults few_prepared_statements_and_small_packets_are_lived_with;
    MySql server_tls a_server_is_trusted_as_far_as_its_tls_mode_says;
    MySql server_types a_column_of_every_type_comes_back_without_loss;
    MySql server_types a_value_of_every_type_arrives_as_it_was_bound;
    MySql server_types a_text_is_never_run_with_the_types_of_earlier_values;
    MySql server_types prepared_statements_are_let_go_all_at_once;
    MySql server_types a_decimal_is_calculated_with_exactly;
    MySql server_types a_value_among_others_has_the_type_that_it_would_be_bound_with;
    MySql server_types nothing_in_a_value_is_read_as_sql;
    MySql server_types what_a_column_does_not_take_is_a_data_failure;
    MySql server_types a_column_that_is_gone_blocks_a_statement_that_was_prepared;
    MySql server_types an_event_does_not_see_the_number_that_an_earlier_one_was_given;
    MySql folded the_catalogue_tells_primary_and_unique_keys;
    MySql folded an_update_of_many_rows_changes_each_of_them_and_locks_no_other;
    MySql folded an_update_of_many_rows_tells_that_one_is_missing_or_breaks_a_rule;
    MySql folded a_value_from_a_table_of_them_is_stored_as_it_would_be_alone;
    Common fleet a_boot_lives_until_it_drains_ends_or_is_not_seen;
    Common fleet a_beat_makes_a_row_that_is_gone_anew;
    Common fleet a_blocked_handler_is_told_with_its_first_reason_until_it_is_free;
    Common fleet a_host_has_one_answer_to_a_deployment_its_newest;
    Sqlite embedded a_second_host_is_refused_and_a_command_beside_it_works;
    Sqlite embedded a_second_host_under_another_name_of_the_file_is_refused;
    Sqlite embedded leases_are_void_when_a_host_starts;
    Sqlite embedded opening_again_migrates_nothing_and_a_newer_file_is_refused;
    Sqlite embedded a_table_that_would_break_a_unit_of_work_is_named_with_its_clause;
    Sqlite embedded a_schema_that_is_wrong_leaves_no_half_made_file;
    Sqlite embedded a_decimal_beyond_15_digits_and_a_large_unsigned_are_refused_at_bind;
    Sqlite embedded a_text_where_a_strict_table_wants_a_number_is_a_data_failure;
    Sqlite embedded text_that_is_not_utf_8_is_a_data_failure_and_not_an_absent_database;
    Sqlite embedded a_function_that_refuses_its_argument_is_a_data_failure;
    Sqlite embedded a_table_that_rolls_back_by_itself_does_not_wedge_the_lane;
    Sqlite embedded virtual_tables_are_told_apart_from_tables;
    Sqlite embedded the_settings_of_every_connection_are_the_safe_ones;
}
