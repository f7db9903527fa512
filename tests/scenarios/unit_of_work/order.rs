//! Events of one ordering key: none is applied before those that came before it, whatever becomes of them.

use std::{sync::Arc, time::Duration};

use oncebox::host::{BatchLimits, Delivery, Fate, Item, LaneQueue, Lines, Link, Ran, Waiting, unit_of_work};
use oncebox_core::{
    failure::{Class, Failure},
    life::Verdict,
};

use crate::{
    bench::{ATTEMPTS_MAX, Bench, breaks, deliver, effect, failed, known, over},
    fates,
};

const LEASE: Duration = Duration::from_secs(60);

/// A delivery with an ordering key.
fn ordered(bench: &Bench, key: &str, ordering_key: &str) -> Delivery {
    in_order(deliver(&bench.plain, key, 1), ordering_key)
}

fn in_order(mut delivery: Delivery, ordering_key: &str) -> Delivery {
    delivery.identity.as_mut().unwrap().ordering_key = Some(ordering_key.into());
    delivery
}

fn retried(delivery: Delivery) -> Item {
    over(delivery, failed(Class::GuestRetry, "not-yet"))
}

fn rejected(delivery: Delivery) -> Item {
    over(delivery, failed(Class::GuestReject, "no"))
}

impl Bench {
    /// Claims what is due by itself.
    async fn claim_due(&self) -> Vec<Delivery> {
        self.run(&format!("UPDATE ob_held SET due_at = {} WHERE state = 0 AND due_at IS NOT NULL", self.at(0))).await;
        self.claim_now(&self.plain, LEASE).await
    }

    /// Key, state and code of what is held, in the order of its places, and whether it is due some time.
    async fn line(&self) -> Vec<String> {
        let sql = "SELECT concat(business_key, ' ', state, ' ', code, CASE WHEN due_at IS NULL THEN '' ELSE ' due' END)
                   FROM ob_held WHERE place IS NOT NULL ORDER BY place";
        self.texts(sql).await
    }

    /// One unit after a person's act, which no tally knows of.
    async fn unit_after_act(&self, batch: &[Item]) -> Vec<Fate> {
        let mut connection = self.store.lane().await.unwrap();
        unit_of_work(&self.lane, connection.as_mut(), batch).await.unwrap().fates
    }

    async fn held_count(&self) -> Vec<String> {
        self.texts("SELECT held FROM ob_order ORDER BY ordering_key").await
    }
}

on_every_store!(what_stands_behind_a_parked_event_of_the_same_batch_is_held_behind_it_and_others_go_on);
async fn what_stands_behind_a_parked_event_of_the_same_batch_is_held_behind_it_and_others_go_on() {
    let bench = Bench::new().await;
    bench.behind(2);
    let batch = [
        effect(ordered(&bench, "a1", "a")),
        retried(ordered(&bench, "a2", "a")),
        effect(ordered(&bench, "b1", "b")),
        effect(ordered(&bench, "a3", "a")),
        effect(deliver(&bench.plain, "free", 1)),
        rejected(ordered(&bench, "a4", "a")),
    ];
    assert_eq!(bench.verdicts(&batch).await, fates![Applied Parked Applied Parked Applied Parked]);
    assert_eq!(bench.effects().await, ["a1", "b1", "free"]);
    // The one that would have been rejected was not counted: its turn has not come.
    assert_eq!(bench.line().await, ["a2 0 not-yet due", "a3 0 behind", "a4 0 behind"]);
    assert_eq!(bench.texts("SELECT attempts FROM ob_held ORDER BY place").await, ["1", "0", "0"]);
    assert_eq!(bench.held_count().await, ["3", "0"]);
    assert_eq!(bench.texts("SELECT count(*) FROM ob_attempt").await, ["1"]);
}

on_every_store!(whoever_decides_the_head_makes_the_next_one_due_in_the_same_unit);
async fn whoever_decides_the_head_makes_the_next_one_due_in_the_same_unit() {
    let bench = Bench::new().await;
    bench.unit(&[retried(ordered(&bench, "1", "a"))]).await;
    bench.behind(1);
    assert_eq!(bench.verdicts(&[effect(ordered(&bench, "2", "a"))]).await, fates![Parked]);
    bench.behind(1);
    assert_eq!(bench.verdicts(&[effect(ordered(&bench, "3", "a"))]).await, fates![Parked]);
    assert_eq!(bench.line().await, ["1 0 not-yet due", "2 0 behind", "3 0 behind"]);
    for (key, rest) in [("1", vec!["2 0 behind due", "3 0 behind"]), ("2", vec!["3 0 behind due"]), ("3", vec![])] {
        let mut claimed = bench.claim_due().await;
        assert_eq!(claimed.len(), 1, "only the head is due");
        let head = claimed.remove(0);
        assert_eq!(head.key().unwrap().1.to_string(), key);
        let done = bench.unit(&[effect(head)]).await;
        assert_eq!((done.fates, done.has_due), (fates![Applied].to_vec(), true));
        assert_eq!(bench.line().await, rest);
    }
    assert_eq!(bench.effects().await, ["1", "2", "3"]);
    assert_eq!(bench.held_count().await, ["0"]);
    // The line is free again.
    assert_eq!(bench.verdicts(&[effect(ordered(&bench, "4", "a"))]).await, fates![Applied]);
}

on_every_store!(a_dead_head_holds_the_others_until_a_person_decides);
async fn a_dead_head_holds_the_others_until_a_person_decides() {
    let bench = Bench::new().await;
    bench.behind(1);
    let batch = [rejected(ordered(&bench, "1", "a")), effect(ordered(&bench, "2", "a"))];
    assert_eq!(bench.verdicts(&batch).await, fates![Dead Parked]);
    bench.behind(1);
    assert_eq!(bench.verdicts(&[effect(ordered(&bench, "3", "a"))]).await, fates![Parked]);
    assert_eq!(bench.line().await, ["1 1 no", "2 0 behind", "3 0 behind"]);
    assert!(bench.claim_due().await.is_empty());
    // Replayed: it keeps its place.
    bench.run(&format!("UPDATE ob_held SET state = 0, due_at = {} WHERE state = 1", bench.at(1))).await;
    bench.run("UPDATE ob_inbox SET state = 2 WHERE state = 3").await;
    let head = bench.claim_due().await.remove(0);
    assert_eq!(bench.unit_after_act(&[effect(head)]).await, fates![Applied]);
    assert_eq!(bench.line().await, ["2 0 behind due", "3 0 behind"]);
}

on_every_store!(a_dead_head_that_a_person_discards_lets_the_next_arrival_set_the_line_going);
async fn a_dead_head_that_a_person_discards_lets_the_next_arrival_set_the_line_going() {
    let bench = Bench::new().await;
    bench.behind(1);
    bench.unit(&[rejected(ordered(&bench, "1", "a")), effect(ordered(&bench, "2", "a"))]).await;
    // The row alone, as somebody in a hurry does it.
    bench.run("UPDATE ob_held SET state = 5 WHERE state = 1").await;
    bench.run("UPDATE ob_inbox SET state = 4 WHERE state = 3").await;
    assert!(bench.claim_due().await.is_empty());
    assert_eq!(bench.unit_after_act(&[effect(ordered(&bench, "3", "a"))]).await, fates![Parked]);
    assert_eq!(bench.line().await[1..], ["2 0 behind due", "3 0 behind"]);
}

on_every_store!(one_that_a_person_made_due_too_early_goes_back_behind);
async fn one_that_a_person_made_due_too_early_goes_back_behind() {
    let bench = Bench::new().await;
    bench.behind(1);
    bench.unit(&[retried(ordered(&bench, "1", "a")), effect(ordered(&bench, "2", "a"))]).await;
    bench.run(&format!("UPDATE ob_held SET due_at = {} WHERE place = 1", bench.at(1))).await;
    bench.run(&format!("UPDATE ob_held SET due_at = {} WHERE place = 0", bench.at(9_000_000_000_000_000))).await;
    bench.behind(1);
    let early = bench.claim_now(&bench.plain, LEASE).await.remove(0);
    assert_eq!(bench.verdicts(&[effect(early)]).await, fates![Parked]);
    assert_eq!((bench.effects().await, bench.line().await[1].as_str()), (vec![], "2 0 behind"));
    assert_eq!(bench.held_count().await, ["2"]);
}

on_every_store!(a_head_that_fails_again_keeps_its_place_and_dies_in_it);
async fn a_head_that_fails_again_keeps_its_place_and_dies_in_it() {
    let bench = Bench::new().await;
    bench.behind(1);
    bench.unit(&[retried(ordered(&bench, "1", "a")), effect(ordered(&bench, "2", "a"))]).await;
    for attempt in 2..=ATTEMPTS_MAX {
        let head = bench.claim_due().await.remove(0);
        let expected = if attempt == ATTEMPTS_MAX { fates![Dead] } else { fates![Parked] };
        assert_eq!(bench.verdicts(&[retried(head)]).await, expected);
        assert_eq!((bench.line().await[1].as_str(), bench.held_count().await), ("2 0 behind", vec!["2".to_owned()]));
    }
}

on_every_store!(one_that_was_applied_in_an_earlier_round_is_held_when_its_predecessor_falls);
async fn one_that_was_applied_in_an_earlier_round_is_held_when_its_predecessor_falls() {
    let bench = Bench::new().await;
    bench.behind(1);
    // Enough failures for rounds with savepoints of their own, the last one before an event whose round went well.
    let mut batch: Vec<Item> = (0..5).map(|n| breaks(deliver(&bench.plain, &format!("x{n}"), 1))).collect();
    batch.insert(0, effect(ordered(&bench, "a1", "a")));
    batch.push(breaks(ordered(&bench, "a2", "a")));
    batch.push(effect(ordered(&bench, "a3", "a")));
    let fates = bench.verdicts(&batch).await;
    assert_eq!((fates[0], fates[7]), (fates![Applied][0], fates![Parked][0]));
    assert_eq!(bench.effects().await, ["a1"]);
    assert_eq!(bench.line().await.last().unwrap(), "a3 0 behind");
}

on_every_store!(behind_one_that_stays_undecided_nothing_is_decided);
async fn behind_one_that_stays_undecided_nothing_is_decided() {
    let bench = Bench::new().await;
    let batch = [
        over(ordered(&bench, "1", "a"), failed(Class::Infrastructure, "pool")),
        effect(ordered(&bench, "2", "a")),
        rejected(ordered(&bench, "3", "a")),
        effect(ordered(&bench, "4", "b")),
    ];
    assert_eq!(bench.verdicts(&batch).await, fates![Again Again Again Applied]);
    assert_eq!(bench.texts("SELECT CAST(business_key AS CHAR) FROM ob_inbox").await, ["4"]);
    assert_eq!((bench.effects().await, bench.line().await), (vec!["4".to_owned()], vec![]));
}

on_every_store!(behind_a_key_that_was_purged_after_its_look_up_nothing_is_decided);
async fn behind_a_key_that_was_purged_after_its_look_up_nothing_is_decided() {
    let bench = Bench::new().await;
    let reborn = |key| known(ordered(&bench, key, "a"));
    // All writes at once, and event by event.
    let batch = [reborn("1"), effect(ordered(&bench, "2", "a")), effect(ordered(&bench, "3", "b"))];
    assert_eq!(bench.verdicts(&batch).await, fates![Again Again Applied]);
    let one_fails = [reborn("1"), effect(ordered(&bench, "2", "a")), breaks(deliver(&bench.plain, "4", 1))];
    assert_eq!(bench.verdicts(&one_fails).await, fates![Again Again Dead]);
    assert_eq!(bench.effects().await, ["3"]);
    let next = [effect(ordered(&bench, "1", "a")), effect(ordered(&bench, "2", "a"))];
    assert_eq!(bench.verdicts(&next).await, fates![Applied Applied]);
    assert_eq!(bench.effects().await, ["3", "1", "2"]);
}

on_every_store!(duplicates_and_conflicts_hold_nobody);
async fn duplicates_and_conflicts_hold_nobody() {
    let bench = Bench::new().await;
    bench.unit(&[effect(ordered(&bench, "1", "a"))]).await;
    let conflict = in_order(deliver(&bench.plain, "1", 2), "a");
    let batch = [effect(ordered(&bench, "1", "a")), effect(conflict), effect(ordered(&bench, "2", "a"))];
    let (first, rest) = batch.split_first().unwrap();
    assert_eq!(bench.verdicts(std::slice::from_ref(first)).await, fates![Duplicate]);
    assert_eq!(bench.verdicts(rest).await, fates![Conflict Applied]);
    assert_eq!(bench.effects().await, ["1", "2"]);
}

on_every_store!(one_put_aside_without_a_run_holds_those_behind_it_too);
async fn one_put_aside_without_a_run_holds_those_behind_it_too() {
    let bench = Bench::new().await;
    bench.behind(1);
    let why = Failure::new(Class::Unrun, "redelivered", "at risk");
    let batch = [Item { delivery: ordered(&bench, "1", "a"), ran: Ran::Unrun(why) }, effect(ordered(&bench, "2", "a"))];
    assert_eq!(bench.verdicts(&batch).await, fates![Parked Parked]);
    assert_eq!(bench.line().await, ["1 0 redelivered due", "2 0 behind"]);
}

#[tokio::test]
async fn when_a_batch_is_cut_nothing_passes_one_that_the_other_half_left_undecided() {
    let bench = Bench::new().await;
    bench.unit(&[effect(deliver(&bench.plain, "odd", 1))]).await;
    bench.run("UPDATE ob_inbox SET fingerprint = x'00'").await;
    let in_line = |key: &str| {
        let mut delivery = ordered(&bench, key, "a");
        delivery.turn = delivery.order_key().map(|key| bench.lane.tenant.lines.enter(key));
        delivery
    };
    // The row that cannot be read makes the whole fail: the two of the line come into different halves.
    let batch = vec![
        over(in_line("a1"), failed(Class::Infrastructure, "pool")),
        effect(deliver(&bench.plain, "odd", 1)),
        effect(in_line("a2")),
        effect(deliver(&bench.plain, "free", 1)),
    ];
    let mut link = Link::from(bench.store.lane().await.unwrap());
    let done = bench.lane.decide(&mut link, batch, None).await;
    let fates: Vec<Fate> = done.iter().flat_map(|(_, done)| done.fates.clone()).collect();
    assert_eq!(fates, fates![Again Applied]);
    assert_eq!(bench.effects().await, ["odd", "free"]);
}

struct Waits(Delivery);

impl Waiting for Waits {
    fn delivery(&self) -> &Delivery {
        &self.0
    }

    fn has_begun(&self) -> bool {
        false
    }
}

async fn take(queue: &LaneQueue<Waits>) -> Vec<Waits> {
    let limits = BatchLimits { events: 2, bytes: u64::MAX, gather: Duration::ZERO };
    tokio::time::timeout(Duration::from_millis(50), queue.take(limits)).await.ok().flatten().unwrap_or_default()
}

fn names(batch: &[Waits]) -> Vec<String> {
    batch.iter().map(|one| one.0.key().unwrap().1.to_string()).collect()
}

on_every_store!(a_lane_takes_up_none_whose_predecessor_is_elsewhere);
async fn a_lane_takes_up_none_whose_predecessor_is_elsewhere() {
    let bench = Bench::new().await;
    let lines = Arc::new(Lines::default());
    let (slow, queue) = (LaneQueue::<Waits>::new(lines.moved()), LaneQueue::<Waits>::new(lines.moved()));
    let waits = |key: &str, ordering_key: &str| {
        let mut delivery = ordered(&bench, key, ordering_key);
        delivery.turn = delivery.order_key().map(|key| lines.enter(key));
        Waits(delivery)
    };
    slow.push(waits("a1", "a"));
    for (key, ordering_key) in [("a2", "a"), ("b1", "b"), ("a3", "a"), ("b2", "b"), ("b3", "b")] {
        queue.push(waits(key, ordering_key));
    }
    let mut first = take(&queue).await;
    assert_eq!(names(&first), ["b1", "b2"], "two of a line may share a batch");
    assert_eq!(names(&take(&queue).await), [""; 0], "neither behind a1 nor behind what is in a batch now");
    let mut a1 = take(&slow).await.remove(0);
    a1.0.turn.as_mut().unwrap().decided();
    drop(a1);
    let mut second = take(&queue).await;
    assert_eq!(names(&second), ["a2", "a3"]);
    // Put back, they come again in their order, and what stands behind them waits.
    queue.put_back(std::mem::take(&mut second));
    for one in &mut first {
        one.0.turn.as_mut().unwrap().decided();
    }
    drop(first);
    assert_eq!(names(&take(&queue).await), ["a2", "a3"]);
}

on_every_store!(behind_one_that_was_let_go_undecided_nothing_is_taken_up);
async fn behind_one_that_was_let_go_undecided_nothing_is_taken_up() {
    let bench = Bench::new().await;
    let lines = Arc::new(Lines::default());
    let queue = LaneQueue::<Waits>::new(lines.moved());
    for key in ["a1", "a2", "a3"] {
        let mut delivery = ordered(&bench, key, "a");
        delivery.turn = delivery.order_key().map(|key| lines.enter(key));
        queue.push(Waits(delivery));
    }
    let batch = take(&queue).await;
    assert_eq!(names(&batch), ["a1", "a2"]);
    drop(batch);
    assert_eq!(names(&take(&queue).await), [""; 0], "a3 waits until all of them come again");
    assert_eq!(bench.tally(Verdict::Applied).await, 0);
}
