//! Messages that a quorum queue has delivered so often that it drops them soon.

use crate::bench::{Bench, Settings, bodies, receipts};

/// Hosts die with these messages in memory, so often that they are at risk.
async fn die_often(bench: &Bench, count: usize) {
    for _ in 0..5 {
        let host = bench.host();
        drop(host.take_all(count).await);
        host.crash().await;
        // The broker hears of it a little later.
        bench.wait_for_waiting(u32::try_from(count).unwrap()).await;
    }
}

pub(crate) async fn what_was_delivered_often_goes_first_and_alone(bench: Bench) {
    bench.send(&["a", "b"]).await;
    die_often(&bench, 2).await;
    bench.send(&["new"]).await;
    let host = bench.host();
    let held = host.take().await;
    assert_eq!(bodies(&held), ["a", "b"], "both, and in one take");
    assert!(held.iter().all(|held| held.at_risk.as_deref() == Some("redelivered")));
    host.settle(&[held[1].receipt]).await;
    host.takes_nothing().await;
    host.settle(&[held[0].receipt]).await;
    let rest = host.take_all(1).await;
    assert_eq!((bodies(&rest), rest[0].at_risk.clone()), (vec!["new".to_owned()], None));
    assert_eq!(host.rabbitmq().counters().at_risk, 2);
}

pub(crate) async fn where_order_is_kept_it_keeps_its_place(bench: Bench) {
    bench.vhost().delete_queue(crate::bench::QUEUE);
    let settings =
        Settings { keeps_order: true, declare: oncebox_core::config::Declare::Quorum, ..Settings::default() };
    bench.host_with(&settings).consumes().await;
    bench.send(&["a", "b"]).await;
    for _ in 0..5 {
        let host = bench.host_with(&Settings { prefetch: 1, ..settings.clone() });
        assert_eq!(bodies(&host.take_all(1).await), ["a"]);
        host.crash().await;
    }
    let host = bench.host_with(&settings);
    let held = host.take_all(2).await;
    assert_eq!(bodies(&held), ["a", "b"]);
    let at_risk: Vec<_> = held.iter().map(|held| held.at_risk.as_deref()).collect();
    assert_eq!(at_risk, [Some("redelivered"), None]);
}

pub(crate) async fn prefetching_alone_never_drops_a_message(bench: Bench) {
    let sent = ["1", "2", "3", "4", "5", "6", "7", "8"];
    bench.send(&sent).await;
    // Each host dies after it has put aside what is at risk: no delivery is ever counted to the queue's limit of 20.
    let mut put_aside = Vec::new();
    for _ in 0..30 {
        let host = bench.host_with(&Settings { prefetch: 4, ..Settings::default() });
        let held = host.take().await;
        if held[0].at_risk.is_some() {
            put_aside.extend(bodies(&held));
            host.settle(&receipts(&held)).await;
        }
        host.crash().await;
        if put_aside.len() == sent.len() {
            break;
        }
    }
    put_aside.sort();
    assert_eq!(put_aside, sent);
    let host = bench.host();
    bench.send(&["end"]).await;
    assert_eq!(bodies(&host.take_all(1).await), ["end"]);
}
