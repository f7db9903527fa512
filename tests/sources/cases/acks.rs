//! What is told to the broker, and on which channel.

use oncebox_tests::services::Counts;

use crate::bench::{Bench, QUEUE, Settings, bodies, eventually, receipts};

pub(crate) async fn a_prefix_is_acked_at_once_and_what_stands_behind_an_old_gap_singly(bench: Bench) {
    bench.send(&["1", "2", "3", "4", "5", "6"]).await;
    let host = bench.host();
    let held = host.take_all(6).await;
    let source = host.rabbitmq();
    let acks = || (source.counters().acks_up_to, source.counters().acks_single);
    host.settle(&[held[1].receipt, held[0].receipt]).await;
    assert_eq!(acks(), (1, 0), "one ack for both");
    bench.vhost().wait_for(QUEUE, Counts { ready: 0, unacked: 4 });
    // 3 is not decided: 4 waits for it, and then no longer.
    host.settle(&[held[3].receipt]).await;
    assert_eq!(acks(), (1, 0));
    eventually("acked singly", async || (acks() == (1, 1)).then_some(())).await;
    bench.vhost().wait_for(QUEUE, Counts { ready: 0, unacked: 3 });
    host.settle(&[held[2].receipt]).await;
    assert_eq!(acks(), (2, 1), "3 alone is the prefix: 4 is known to the broker no more");
    host.settle(&[held[5].receipt, held[4].receipt]).await;
    assert_eq!(acks(), (3, 1));
    bench.vhost().wait_for(QUEUE, Counts::EMPTY);
    assert_eq!(source.counters().channels, 1, "no ack was one too many");
    assert_eq!(host.reason(), None);
}

async fn older_channel(bench: &Bench) {
    bench.send(&["a", "b"]).await;
    let host = bench.host();
    let old = host.take_all(2).await;
    bench.vhost().close_connections();
    // Their tags are 1 and 2 on the next channel too.
    let new = host.take_all(2).await;
    assert_eq!(bodies(&new), ["a", "b"]);
    assert_eq!(host.rabbitmq().counters().channels, 2);
    host.settle(&receipts(&old)).await;
    assert_eq!(host.rabbitmq().counters().too_late, 2);
    assert_eq!(host.rabbitmq().counters().acks_up_to, 0);
    bench.vhost().wait_for(QUEUE, Counts { ready: 0, unacked: 2 });
    host.settle(&receipts(&new)).await;
    bench.vhost().wait_for(QUEUE, Counts::EMPTY);
}

pub(crate) async fn a_receipt_of_an_older_channel_settles_nothing(bench: Bench) {
    older_channel(&bench).await;
}

pub(crate) async fn a_receipt_of_an_older_channel_settles_nothing_of_a_classic_queue(bench: Bench) {
    older_channel(&bench).await;
}

pub(crate) async fn a_stop_gives_back_without_counting_a_delivery(bench: Bench) {
    bench.send(&["a", "b", "c"]).await;
    for _ in 0..6 {
        let host = bench.host_with(&Settings { prefetch: 2, ..Settings::default() });
        let held = host.take_all(2).await;
        assert_eq!(bodies(&held), ["a", "b"]);
        assert!(held.iter().all(|held| held.at_risk.is_none()), "a release counts as a delivery");
        host.stop().await;
        bench.vhost().wait_for(QUEUE, Counts { ready: 3, unacked: 0 });
    }
}
