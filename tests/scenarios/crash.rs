//! The process ends at a moment that nobody chose.

use std::{thread, time::Duration};

use oncebox::clock;
use oncebox_tests::{
    checker::{check_feed, check_promise},
    feed::{Chance, Feed},
    patience::{PATIENCE, pass},
};

use crate::support::{ONE, settled};

#[test]
fn ten_kills_while_a_thousand_events_arrive_lose_nothing_and_do_nothing_twice() {
    let seed = u64::try_from(clock::now_us()).unwrap();
    println!("seed {seed}");
    let site = ONE.site();
    let feed = Feed::seeded(seed, 1_000);
    thread::scope(|scope| {
        let arriving = scope.spawn(|| {
            let mut sender = site.sender("t/in");
            for ten in feed.lines.chunks(10) {
                sender.send(ten);
                pass(Duration::from_millis(100));
            }
            sender.finish();
        });
        let mut chance = Chance::new(seed);
        let database = site.database("t.db");
        for _ in 0..10 {
            let host = site.start();
            pass(Duration::from_millis(100 + chance.below(1_500)));
            host.kill();
            check_promise(&database);
        }
        arriving.join().unwrap();
    });
    let host = site.start().ready();
    let database = site.database("t.db");
    settled(&database, PATIENCE);
    host.stop();
    check_promise(&database);
    check_feed(&database, "a", &feed);
}
