//! A handler of a tenant and what serves it now.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU32, Ordering},
    },
};

use oncebox_core::{
    config, fold,
    manifest::{Integers, Reaction, RowExpectation},
    retry::RetryPolicy,
    rule::Rule,
    sql::Mark,
};

use crate::{
    plugin::{Module, RunLimits},
    store::{DeploymentId, HandlerId, RuleId},
};

/// A statement, ready to run: the author's text, byte for byte, and what its answers mean.
#[derive(Debug, Clone)]
pub struct ReadyStatement {
    /// The text for this tenant's store.
    pub sql: Arc<str>,
    /// Each `?` of the text.
    pub marks: Vec<Mark>,
    /// Whether it asks for `LAST_INSERT_ID()`.
    pub last_insert_id: bool,
    /// What it must match.
    pub rows: RowExpectation,
    /// What another count means.
    pub mismatch: Reaction,
    /// What a server error means, by MySQL's number.
    pub errors: BTreeMap<u32, Reaction>,
    /// Whether rows of many events may be written as one.
    pub fold: fold::Facts,
}

/// A query, ready to run.
#[derive(Debug, Clone)]
pub struct ReadyQuery {
    /// The text for this tenant's store.
    pub sql: Arc<str>,
    /// Whether it asks for `LAST_INSERT_ID()`.
    pub last_insert_id: bool,
    /// Rows that the answer may have.
    pub rows_max: u32,
    /// Bytes that the answer may have.
    pub bytes_max: u64,
    /// How integers reach the guest.
    pub integers: Integers,
}

/// A destination of the manifest, bound to one of the tenant's.
#[derive(Debug, Clone)]
pub struct BoundDestination {
    /// The tenant's name of it.
    pub name: String,
    /// What it is.
    pub kind: config::Destination,
    /// The CloudEvents source of events sent there: `/oncebox/TENANT/HANDLER`.
    pub source_uri: String,
}

/// A deployment that this host has made ready: it never changes, and a batch ends on the one that it began with.
pub struct Deployed {
    /// The row of `ob_deployment`.
    pub id: DeploymentId,
    /// The sandboxed module.
    pub module: Arc<Module>,
    /// The rule in force.
    pub rule_id: RuleId,
    /// The same, parsed.
    pub rule: Rule,
    /// Every rule that the handler ever had: an inbox row is compared by its own.
    pub rules: BTreeMap<RuleId, Rule>,
    /// Limits of a run.
    pub limits: Arc<RunLimits>,
    /// What is done with failures.
    pub retry: RetryPolicy,
    /// Values for the plugin.
    pub config: Arc<BTreeMap<String, String>>,
    /// Statements by name.
    pub statements: BTreeMap<String, ReadyStatement>,
    /// Queries by name; any of them makes the handler run inside the unit of work.
    pub queries: BTreeMap<String, ReadyQuery>,
    /// Destinations by the manifest's name.
    pub destinations: BTreeMap<String, BoundDestination>,
}

impl Deployed {
    /// Whether it runs inside the open unit of work.
    #[must_use]
    pub fn has_queries(&self) -> bool {
        !self.queries.is_empty()
    }

    /// Whether any of its texts asks for `LAST_INSERT_ID()`: no event may see what an earlier one was given.
    #[must_use]
    pub fn asks_last_insert_id(&self) -> bool {
        self.statements.values().any(|statement| statement.last_insert_id)
            || self.queries.values().any(|query| query.last_insert_id)
    }
}

/// Runs in a row that must be quick before a slow handler counts as quick again.
const QUICK_RUNS: u32 = 16;

/// Attempts in a row that must fail before a handler counts as failing.
const FAILED_RUNS: u32 = 16;

/// What serves a handler, or has served it last.
#[derive(Default)]
struct Serving {
    last: Option<Arc<Deployed>>,
    /// The active deployment cannot be served here: nothing new is taken.
    is_withdrawn: bool,
}

/// A handler of a tenant.
pub struct Handler {
    /// Its name.
    pub name: Arc<str>,
    /// Its row.
    pub id: HandlerId,
    /// What the operator says of it.
    pub settings: config::Handler,
    serving: RwLock<Serving>,
    /// Quick runs that are still missing; 0: not slow.
    slow: AtomicU32,
    /// Attempts in a row that have failed.
    failed: AtomicU32,
    /// Why its events are put aside without a run, if they are.
    blocked: RwLock<Option<Arc<str>>>,
}

impl Handler {
    /// A handler that nothing serves yet.
    #[must_use]
    pub fn new(name: &str, id: HandlerId, settings: config::Handler) -> Self {
        Self {
            name: name.into(),
            id,
            settings,
            serving: RwLock::default(),
            slow: AtomicU32::new(0),
            failed: AtomicU32::new(0),
            blocked: RwLock::new(None),
        }
    }

    /// The deployment that serves it now.
    #[must_use]
    pub fn current(&self) -> Option<Arc<Deployed>> {
        let serving = self.serving.read().unwrap_or_else(PoisonError::into_inner);
        serving.last.clone().filter(|_| !serving.is_withdrawn)
    }

    /// The deployment that serves it now or has served it last: what was taken before the handler was withdrawn ends on
    /// that.
    #[must_use]
    pub fn last(&self) -> Option<Arc<Deployed>> {
        self.serving.read().unwrap_or_else(PoisonError::into_inner).last.clone()
    }

    /// Lets a ready deployment serve from now on.
    pub fn serve(&self, deployed: Arc<Deployed>) {
        *self.serving.write().unwrap_or_else(PoisonError::into_inner) =
            Serving { last: Some(deployed), is_withdrawn: false };
        self.slow.store(0, Ordering::Relaxed);
        self.failed.store(0, Ordering::Relaxed);
    }

    /// Why its events are put aside without a run: a statement that was prepared at deployment is refused now.
    #[must_use]
    pub fn blocked(&self) -> Option<Arc<str>> {
        self.blocked.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Blocks the handler, or frees it; true if that is news.
    pub fn block(&self, reason: Option<&str>) -> bool {
        let mut blocked = self.blocked.write().unwrap_or_else(PoisonError::into_inner);
        let is_news = blocked.is_some() != reason.is_some();
        if is_news {
            *blocked = reason.map(Arc::from);
        }
        is_news
    }

    /// Takes nothing new until another deployment serves it; true if something served it until now.
    pub fn withdraw(&self) -> bool {
        let mut serving = self.serving.write().unwrap_or_else(PoisonError::into_inner);
        !std::mem::replace(&mut serving.is_withdrawn, true) && serving.last.is_some()
    }

    /// Whether nothing but failures came of its attempts for some time.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        self.failed.load(Ordering::Relaxed) >= FAILED_RUNS
    }

    /// Notes what a delivery has come to.
    pub fn note_end(&self, is_failure: bool) {
        let count = |so_far: u32| if is_failure { so_far.saturating_add(1) } else { 0 };
        let _ = self.failed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |so_far| Some(count(so_far)));
    }

    /// Whether its deliveries go to a slow lane.
    #[must_use]
    pub fn is_slow(&self) -> bool {
        self.slow.load(Ordering::Relaxed) > 0
    }

    /// Notes that a run has taken longer than a batch waits for one.
    pub fn was_slow(&self) {
        self.slow.store(QUICK_RUNS, Ordering::Relaxed);
    }

    /// Notes that a run was over in good time.
    pub fn was_quick(&self) {
        let _ = self.slow.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |missing| missing.checked_sub(1));
    }
}
