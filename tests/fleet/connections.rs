//! Connections of lanes to a server.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

use oncebox_tests::{
    feed::entry,
    patience::{PATIENCE, eventually},
    services::{MysqlDatabase, Server},
};

use crate::stage::{LONG, Lines, Stage, applied_once, settled};

fn sessions(stage: &Stage) -> usize {
    stage.tenants.iter().map(|(_, database)| database.sessions_of(&database.migrate).len()).sum()
}

/// Sends events to every tenant and waits until all are applied; the answer is the most sessions that were seen.
fn most_sessions_under_load(stage: &Stage, count: u32) -> usize {
    let (is_over, most) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let _over = SetWhenDropped(&is_over);
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                most.fetch_max(sessions(stage), Ordering::Relaxed);
            }
        });
        for (tenant, _) in &stage.tenants {
            let lines: Vec<_> = (0..count).map(|n| entry(&format!("e-{n}"), &format!("k-{n}"), 1)).collect();
            stage.site.send(&format!("{tenant}/in"), &lines);
        }
        for (_, database) in &stage.tenants {
            settled(database, LONG);
            applied_once(database, i64::from(count));
        }
    });
    most.into_inner()
}

/// Also when a check has failed: else the scope would wait for ever.
struct SetWhenDropped<'a>(&'a AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn lanes_open_their_connections_when_there_is_work_and_close_them_when_there_is_none() {
    let lines = Lines { tenant: "lanes = 4\nslow_lanes = 2", store: "idle_timeout_s = 5", ..Lines::default() };
    let stage = Stage::new(lines);
    let host = stage.start("a", lines).ready();
    eventually("only the store's own session", PATIENCE, || (sessions(&stage) == 1).then_some(()));
    assert!(most_sessions_under_load(&stage, 400) >= 3, "no lane has opened a connection of its own");
    eventually("the lanes have closed theirs", PATIENCE, || (sessions(&stage) == 1).then_some(()));
    assert!(host.logged("waiting for the database").is_empty());
    assert_eq!(stage.served_by("again"), 1);
    host.stop();
}

#[test]
fn lanes_take_turns_where_there_are_fewer_connections_than_lanes() {
    let lines = Lines {
        host: "limits = { connections_max = 1 }",
        tenant: "lanes = 4\nslow_lanes = 2\nbatch_max = 16",
        ..Lines::default()
    };
    let tenants = ["t", "u"].map(|name| (name, MysqlDatabase::create(&Server::mysql())));
    let stage = Stage::of(tenants.into(), lines);
    let host = stage.start("a", lines).ready();
    // A session of each store, one lane's; one more may not be gone yet, and another's command looks on.
    let most = most_sessions_under_load(&stage, 200);
    assert!(most <= 6, "{most} sessions");
    host.stop();
}
