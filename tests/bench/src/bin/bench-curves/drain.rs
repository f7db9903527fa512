//! One drain: a full queue, a host, and what an event has cost once the host was warm.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use oncebox::clock;
use oncebox_bench::{
    cost::{Cost, Moment},
    stage::Kit,
};
use oncebox_tests::{database::Tables as _, host::Host, patience::pass, services::Session};

use crate::{check::check, ground::Ground, inbox, scenario::Scenario};

/// Between two looks at how far it is.
const LOOK: Duration = Duration::from_millis(100);
/// A drain that has decided nothing for so long does not go on.
const STUCK: Duration = Duration::from_secs(60);

/// How long a host may take to activate what is deployed.
const ROLLED_OUT_WITHIN: Duration = Duration::from_mins(10);

/// What was measured of one drain whose tables were found right.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Drained {
    pub(crate) events: u32,
    /// By the database's clock.
    pub(crate) per_second: f64,
    pub(crate) cost: Cost,
}

/// How far all tenants are, by their books.
struct Books {
    session: Session,
    sql: String,
    looks: u32,
}

/// What the books say at a moment.
#[derive(Debug, Clone, Copy)]
struct Page {
    /// Events that were applied, or found to be duplicates.
    decided: u32,
    /// When the last of them was, microseconds.
    at_us: u64,
}

impl Books {
    fn open(ground: &Ground) -> Result<Self> {
        let book = |name: &str| format!("SELECT n, at FROM {name}.ob_tally WHERE verdict IN (0, 1)");
        let books: Vec<String> = ground.stages.iter().map(|stage| book(&stage.tenant.database.name)).collect();
        let session = ground.stages.first().context("no tenant")?.session();
        let sql = format!(
            "SELECT CONCAT(COALESCE(SUM(n), 0), ' ', COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', MAX(at)), 0))
             FROM ({}) AS books",
            books.join(" UNION ALL ")
        );
        Ok(Self { session, sql, looks: 0 })
    }

    fn look(&mut self) -> Result<Page> {
        self.looks += 1;
        let line = self.session.lines(&self.sql).pop().context("no books")?;
        let (decided, at_us) = line.split_once(' ').context("the books cannot be read")?;
        Ok(Page { decided: decided.parse()?, at_us: at_us.parse()? })
    }

    /// Waits until so many are decided.
    fn until(&mut self, host: &mut Host, wanted: u32) -> Result<Page> {
        let (mut last, mut since) = (0, clock::monotonic());
        loop {
            let page = self.look()?;
            if page.decided >= wanted {
                return Ok(page);
            }
            if page.decided > last {
                (last, since) = (page.decided, clock::monotonic());
            }
            if host.has_ended() {
                bail!("the host has ended after {} of {wanted} events{}", page.decided, last_line(host));
            }
            // The first has to wait until all that is deployed is served again.
            if since.elapsed() >= if last == 0 { ROLLED_OUT_WITHIN } else { STUCK } {
                bail!("it stands still after {} of {wanted} events{}", page.decided, last_line(host));
            }
            pass(LOOK);
        }
    }
}

/// What the host has said last: it may know why.
fn last_line(host: &Host) -> String {
    host.log().pop().map_or_else(String::new, |line| format!("; its last line: {line}"))
}

/// Lets a host drain what the scenario says.
pub(crate) fn drain(kit: &Kit, scenario: &Scenario) -> Result<Drained> {
    let ground = Ground::set(kit, scenario)?;
    for stage in &ground.stages {
        inbox::fill(stage, scenario.inbox_rows)?;
    }
    let mut books = Books::open(&ground)?;
    if scenario.modules > 1 {
        roll_out(&ground, scenario)?;
    }
    let history = scenario.history() * scenario.tenants;
    if history > 0 {
        ground.fill(kit, scenario, &(0..scenario.history()).collect::<Vec<_>>())?;
        let mut host = ground.site.start();
        books.until(&mut host, history)?;
        drop(host.stop());
    }
    let before = history + scenario.warmed() * scenario.tenants;
    let mut host = started(kit, scenario, &ground, &mut books, before)?;
    let drained = measured(&mut books, &mut host, before, scenario.each() * scenario.tenants)?;
    drop(host.stop());
    for stage in &ground.stages {
        check(stage, scenario)?;
        ensure!(stage.waiting(kit)? == 0, "messages are left in the queue");
    }
    Ok(drained)
}

/// Lets a host activate all that is deployed, one after the other: no part of what an event costs.
fn roll_out(ground: &Ground, scenario: &Scenario) -> Result<()> {
    let session = ground.stages.first().context("no tenant")?.session();
    let began = clock::monotonic();
    let mut host = ground.site.start();
    loop {
        let active = session.number("SELECT count(*) FROM ob_deployment WHERE active_from IS NOT NULL");
        if active >= i64::from(scenario.modules) {
            break;
        }
        ensure!(!host.has_ended(), "the host has ended with {active} deployments active{}", last_line(&host));
        ensure!(began.elapsed() < ROLLED_OUT_WITHIN, "only {active} deployments are active{}", last_line(&host));
        pass(LOOK);
    }
    println!("   they were active after {:.0} s", began.elapsed().as_secs_f64());
    drop(host.stop());
    Ok(())
}

/// A host beside full queues, with so many events behind it.
fn started(kit: &Kit, scenario: &Scenario, ground: &Ground, books: &mut Books, before: u32) -> Result<Host> {
    if scenario.warm_up().is_empty() {
        ground.fill(kit, scenario, &scenario.numbers())?;
        return Ok(ground.site.start());
    }
    ground.fill(kit, scenario, &scenario.warm_up().collect::<Vec<_>>())?;
    let mut host = ground.site.start();
    books.until(&mut host, before)?;
    // Or it would drain while the queue is still being filled.
    host.freeze();
    ground.fill(kit, scenario, &scenario.numbers())?;
    host.thaw();
    Ok(host)
}

/// From the first look after a tenth is decided, so that neither the start nor the warm-up counts, to the last commit.
fn measured(books: &mut Books, host: &mut Host, behind: u32, events: u32) -> Result<Drained> {
    let first = books.until(host, behind + events / 10)?;
    let (before, looks_before) = (Moment::of(&books.session, host.id())?, books.looks);
    let last = books.until(host, behind + events)?;
    let counted = last.decided - first.decided;
    ensure!(counted >= events / 4 && last.at_us > first.at_us, "it was over before it could be looked at");
    let mut cost = Moment::of(&books.session, host.id())?.since(&before, counted);
    // The looks are statements of our own.
    cost.round_trips -= f64::from(books.looks - looks_before) / f64::from(counted);
    let seconds = Duration::from_micros(last.at_us - first.at_us).as_secs_f64();
    Ok(Drained { events: counted, per_second: f64::from(counted) / seconds, cost })
}
