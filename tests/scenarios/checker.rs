//! The checker is checked, on the embedded store.

use oncebox_tests::{checker::sent::Sent, patience::PATIENCE};

use crate::{
    faults::{each_is_found, feed},
    support::{ONE, settled},
};

#[test]
fn whatever_breaks_the_tables_of_the_embedded_store_is_reported_by_name() {
    let site = ONE.site();
    let host = site.start().ready();
    let feed = feed();
    site.send("t/in", &feed.lines);
    let database = site.database("t.db");
    settled(&database, PATIENCE);
    host.stop();
    each_is_found(&database, |sql| database.execute(sql), &Sent::of("a", &feed), &[]);
}
