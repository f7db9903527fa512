//! One drain: a full queue, a contestant, and what it has done and cost.

use std::{
    io::{BufRead as _, BufReader},
    os::unix::process::ExitStatusExt as _,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use oncebox::clock;
use oncebox_bench::{
    cost::{Cost, Moment},
    stage::{Kit, QUEUE, Stage},
};
use oncebox_tests::{
    database::Tables as _,
    host::{Host, Site},
    patience::pass,
    points::USERS,
    services::Session,
};

use crate::contestant::{Contestant, Role};

/// Between two looks at how far it is: each costs the database a walk through an index.
const LOOK: Duration = Duration::from_millis(200);
/// A drain that has decided nothing for so long does not go on.
const STUCK: Duration = Duration::from_secs(60);

/// What was measured of one drain whose tables were found right.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Drained {
    /// Events per second, by the database's clock, without the first tenth.
    pub(crate) per_second: f64,
    /// What each event cost; `None` where there is no database in it.
    pub(crate) cost: Option<Cost>,
}

/// A contestant's process; killed when it is dropped, so that none that has failed is in the way of the next.
pub(crate) enum Player {
    Ours(Host),
    Theirs(Theirs),
}

pub(crate) struct Theirs(Child);

impl Drop for Theirs {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Player {
    /// `site`: of Oncebox, which is deployed there already.
    pub(crate) fn start(stage: &Stage, contestant: &Contestant, site: Option<&Site>, events: u32) -> Result<Self> {
        if let Some(site) = site {
            return Ok(Self::Ours(site.start()));
        }
        Ok(Self::Theirs(Theirs::start(stage, contestant, events)?))
    }

    fn id(&self) -> u32 {
        match self {
            Self::Ours(host) => host.id(),
            Self::Theirs(Theirs(child)) => child.id(),
        }
    }

    fn has_ended(&mut self) -> Result<bool> {
        Ok(match self {
            Self::Ours(host) => host.has_ended(),
            Self::Theirs(Theirs(child)) => child.try_wait()?.is_some(),
        })
    }

    /// Ends it in good order.
    pub(crate) fn stop(self) -> Result<()> {
        match self {
            Self::Ours(host) => drop(host.stop()),
            Self::Theirs(theirs) => theirs.stop()?,
        }
        Ok(())
    }
}

impl Theirs {
    fn start(stage: &Stage, contestant: &Contestant, events: u32) -> Result<Self> {
        let (program, args) = contestant.command.split_first().context("no program")?;
        let mut command = Command::new(program);
        command.args(args).envs(environment(stage, events)).stdout(Stdio::piped());
        command.env("BENCH_CONCURRENCY", contestant.concurrency.to_string());
        command.env("BENCH_BATCH", contestant.batch.to_string());
        Ok(Self(command.spawn().with_context(|| format!("cannot start {}", program.display()))?))
    }

    fn stop(mut self) -> Result<()> {
        Command::new("kill").arg(self.0.id().to_string()).status()?;
        let status = self.0.wait()?;
        // A host that has not come to listen for it yet is ended by the signal itself.
        ensure!(status.success() || status.signal() == Some(15), "it ended with {status}");
        Ok(())
    }
}

/// What a contestant is told.
fn environment(stage: &Stage, events: u32) -> [(&'static str, String); 4] {
    [
        ("BENCH_AMQP_URL", stage.vhost.url()),
        ("BENCH_QUEUE", QUEUE.to_owned()),
        ("BENCH_MYSQL_URL", stage.tenant.database.runtime_url()),
        ("BENCH_EVENTS", events.to_string()),
    ]
}

/// Lets a contestant drain so many events.
pub(crate) fn drain(kit: &Kit, contestant: &Contestant, events: u32) -> Result<Drained> {
    let stage = Stage::set(kit)?;
    // Of the database alone nobody consumes.
    if contestant.role != Role::FloorDatabase {
        stage.fill(kit, events)?;
    }
    if contestant.role == Role::FloorBroker {
        return broker_alone(&stage, contestant, events);
    }
    let site = (contestant.role == Role::Ours).then(|| stage.site(kit));
    let tables = Tables::of(contestant.role);
    let session = stage.session();
    let before = Moment::before(&session);
    let mut player = Player::start(&stage, contestant, site.as_ref(), events)?;
    until_decided(&session, &tables, &mut player, events)?;
    let cost = Moment::of(&session, player.id())?.since(&before, events);
    player.stop()?;
    tables.check(&session, events)?;
    ensure!(stage.waiting(kit)? == 0, "messages are left in the queue");
    Ok(Drained { per_second: tables.per_second(&session, events)?, cost: Some(cost) })
}

/// Waits until so many events are decided.
pub(crate) fn until_decided(session: &Session, tables: &Tables, player: &mut Player, events: u32) -> Result<()> {
    let (mut last, mut since) = (0, clock::monotonic());
    loop {
        let decided = session.number(tables.decided);
        if decided >= i64::from(events) {
            return Ok(());
        }
        if decided > last {
            (last, since) = (decided, clock::monotonic());
        }
        if player.has_ended()? {
            bail!("it has ended after {decided} of {events} events");
        }
        ensure!(since.elapsed() < STUCK, "it stands still after {decided} of {events} events");
        pass(LOOK);
    }
}

/// It tells its rate itself: there is no table to read it from.
fn broker_alone(stage: &Stage, contestant: &Contestant, events: u32) -> Result<Drained> {
    let mut player = Theirs::start(stage, contestant, events)?;
    let out = BufReader::new(player.0.stdout.take().context("no output")?);
    let mut rate = None;
    for line in out.lines() {
        if let Some(told) = line?.strip_prefix("rate ") {
            rate = Some(told.parse()?);
            break;
        }
    }
    player.stop()?;
    Ok(Drained { per_second: rate.context("it has told no rate")?, cost: None })
}

/// What is read of a contestant's tables.
pub(crate) struct Tables {
    /// How many events are decided.
    decided: &'static str,
    /// Keys with the times of their decisions, in microseconds since 1970.
    pub(crate) decisions: &'static str,
    /// Times of the first that counts and of the last, in microseconds, ordered; `{skip}` are not counted.
    times: &'static str,
    /// Rows of the outbox.
    sent: &'static str,
}

impl Tables {
    pub(crate) fn of(role: Role) -> Self {
        if role == Role::Ours {
            return Self {
                decided: "SELECT count(*) FROM ob_inbox WHERE state = 0",
                decisions: "SELECT CONCAT(business_key, ' ', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', decided_at))
                            FROM ob_inbox",
                times: "SELECT CAST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', decided_at) AS SIGNED) FROM ob_inbox
                        ORDER BY decided_at LIMIT 1 OFFSET {skip}",
                sent: "SELECT count(*) FROM ob_outbox",
            };
        }
        Self {
            decided: "SELECT count(*) FROM inbox",
            decisions: "SELECT CONCAT(business_key, ' ', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', decided_at))
                        FROM inbox",
            times: "SELECT CAST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', decided_at) AS SIGNED) FROM inbox
                    ORDER BY decided_at LIMIT 1 OFFSET {skip}",
            sent: "SELECT count(*) FROM outbox",
        }
    }

    /// Each key once, with everything that belongs to it.
    fn check(&self, session: &Session, events: u32) -> Result<()> {
        let events = i64::from(events);
        let found = [
            ("keys", session.number(self.decided)),
            ("ledger rows", session.number("SELECT count(*) FROM points_ledger")),
            ("orders in the ledger", session.number("SELECT count(DISTINCT order_id) FROM points_ledger")),
            ("points", session.number("SELECT CAST(sum(points) AS SIGNED) FROM points_account")),
            ("outgoing events", session.number(self.sent)),
        ];
        for (what, n) in found {
            ensure!(n == events, "{n} {what} of {events}");
        }
        let accounts = session.number("SELECT count(*) FROM points_account");
        ensure!(accounts == i64::from(USERS), "{accounts} accounts");
        Ok(())
    }

    fn per_second(&self, session: &Session, events: u32) -> Result<f64> {
        let skipped = events / 10;
        let at = |skip: u32| session.number(&self.times.replace("{skip}", &skip.to_string()));
        let took_us = at(events - 1) - at(skipped);
        ensure!(took_us > 0, "all was decided at once");
        let seconds = Duration::from_micros(u64::try_from(took_us)?).as_secs_f64();
        Ok(f64::from(events - 1 - skipped) / seconds)
    }
}
