//! The unit of work on real tables: batches go in by hand, and after each unit the books must balance. Beside it the
//! queue that batches are taken from.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

/// A test on the embedded store, on MySQL and on MariaDB.
macro_rules! on_every_store {
    ($name:ident) => {
        mod $name {
            #[test]
            fn sqlite() {
                crate::bench::on(None, super::$name);
            }
            on_servers!(@ $name);
        }
    };
}

/// A test on MySQL and on MariaDB.
macro_rules! on_servers {
    (@ $name:ident) => {
        #[test]
        fn mysql() {
            crate::bench::on(Some(oncebox_tests::services::Kind::Mysql), super::$name);
        }
        #[test]
        fn mariadb() {
            crate::bench::on(Some(oncebox_tests::services::Kind::Mariadb), super::$name);
        }
    };
    ($name:ident) => {
        mod $name {
            on_servers!(@ $name);
        }
    };
}

mod bench;
mod blame;
mod books;
mod claims;
mod commit;
mod deliveries;
mod failures;
mod faulty;
mod fold;
mod inside;
mod life;
mod links;
mod order;
mod outgoing;
mod queue;
mod settlement;
mod waits;

/// A fate in few letters, for lists.
macro_rules! fates {
    ($($fate:ident)*) => { [$(fates!(@ $fate)),*] };
    (@ Again) => { oncebox::host::Fate::Again };
    (@ Waited) => { oncebox::host::Fate::Waited };
    (@ Lost) => { oncebox::host::Fate::Lost };
    (@ $verdict:ident) => { oncebox::host::Fate::Decided(oncebox_core::life::Verdict::$verdict) };
}
pub(crate) use fates;
