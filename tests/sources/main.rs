//! What every source promises: one list of cases, run on each kind through the seam `oncebox::source`, and after it the
//! cases of RabbitMQ alone, on a real server (`cargo services up`).

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking, its helpers too")]

mod admin;
mod bench;
mod cases;
mod raw;

use bench::{Bench, Kind};

fn run<F: Future<Output = ()>>(kind: Kind, case: impl FnOnce(Bench) -> F) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { case(Bench::new(kind).await).await });
}

macro_rules! every_kind {
    ($($name:ident;)*) => {
        every_kind!(@ local Local $($name)*);
        every_kind!(@ quorum Quorum $($name)*);
        every_kind!(@ classic Classic $($name)*);
    };
    (@ $module:ident $kind:ident $($name:ident)*) => {
        mod $module {
            $(#[test]
            fn $name() {
                super::run(super::Kind::$kind, super::cases::common::$name);
            })*
        }
    };
}

macro_rules! rabbitmq {
    ($($kind:ident $module:ident $name:ident;)*) => {
        mod rabbitmq {
            $(#[test]
            fn $name() {
                super::run(super::Kind::$kind, super::cases::$module::$name);
            })*
        }
    };
}

every_kind! {
    what_was_sent_is_taken_once_and_in_order;
    what_is_settled_is_gone;
    no_more_than_the_prefetch_is_in_memory;
    what_was_not_settled_comes_again_to_another_host;
    nothing_is_taken_before_its_handlers_are_served;
    a_stop_ends_the_taking;
    what_is_undecided_at_a_stop_is_given_back;
    what_is_decided_after_a_stop_is_still_settled;
    a_settled_message_is_not_asked_back_by_a_crash;
}

rabbitmq! {
    Quorum acks a_prefix_is_acked_at_once_and_what_stands_behind_an_old_gap_singly;
    Quorum acks a_receipt_of_an_older_channel_settles_nothing;
    Classic acks a_receipt_of_an_older_channel_settles_nothing_of_a_classic_queue;
    Quorum acks a_stop_gives_back_without_counting_a_delivery;
    Quorum at_risk what_was_delivered_often_goes_first_and_alone;
    Quorum at_risk where_order_is_kept_it_keeps_its_place;
    Quorum at_risk prefetching_alone_never_drops_a_message;
    Quorum faults a_deleted_queue_is_consumed_again_when_it_is_made_again;
    Quorum faults a_consumer_timeout_is_survived;
    Quorum faults a_missing_queue_is_told_and_waited_for;
    Quorum faults a_queue_of_another_kind_is_told;
    Quorum faults a_wrong_password_is_told_and_a_right_one_taken;
    Quorum faults a_missing_virtual_host_is_told_and_waited_for;
    Quorum faults a_user_without_permission_is_told;
    Quorum faults a_broker_that_is_away_is_waited_for;
    Quorum faults a_silent_address_is_told;
    Quorum faults a_database_that_is_away_pauses_the_consumer_and_keeps_its_deliveries;
    Quorum faults a_handler_that_is_not_served_any_more_pauses_the_consumer;
    Quorum order a_declared_queue_keeps_the_order_where_it_is_asked_for;
    Quorum order a_queue_that_somebody_made_is_looked_at;
    Quorum order a_host_that_stops_lets_nothing_of_a_quorum_queue_pass_what_it_decides;
    Classic order a_host_that_stops_lets_nothing_of_a_classic_queue_pass_what_it_decides;
    Quorum order what_a_paused_host_has_not_decided_goes_first_to_the_next_one;
    Quorum order order_that_is_asked_for_later_is_looked_at_then;
    Quorum message properties_and_headers_come_through;
    Quorum message a_message_that_the_library_cannot_read_comes_through;
    Classic message tables_nested_without_an_end_harm_nobody;
    Quorum message a_redelivered_message_has_the_same_hash;
    Quorum tls a_certificate_is_checked;
    Quorum tls a_client_shows_its_own_certificate;
}
