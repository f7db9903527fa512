//! Brings parked rows back to the lanes when they are due.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use oncebox_core::{
    blame::Suspicion,
    envelope,
    failure::Failure,
    identify::{Identity, message_hash},
    ids::LeaseToken,
    retry::Counted,
};
use tokio::sync::{Notify, watch};

use super::{
    blame,
    delivery::{Claim, Delivery, Target},
    handler::{Deployed, Handler},
    tenant::Tenant,
};
use crate::{
    clock,
    failpoint::{Place, reach},
    source::Origin,
    store::{ClaimedRow, HandlerId, StoreError},
};

/// The longest time between two looks.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The time until the next look when something was parked or claimed. A look that claims costs two commits, and what is
/// parked can wait: what comes due within a tenth of a second shares them.
const LOOK_SOON: Duration = Duration::from_millis(100);
/// From the first time that a handler is served here until its first claim: what its source's broker would drop soon is
/// put aside before anything else is decided, or a host that is killed again and again never comes to it.
const FIRST_CLAIM: Duration = Duration::from_secs(2);
/// Rows of a slow handler that are claimed at once: its runs must be over before their lease is.
const SLOW_CLAIMS_MAX: usize = 8;

/// What calls for a look before its time.
#[derive(Default)]
pub struct Calls {
    /// Something was parked: it may come due before the next look.
    pub parked: Notify,
    /// Something is due from now on.
    pub due: Notify,
    /// A unit of claims is over: the lanes have room for others.
    pub room: Notify,
}

impl Calls {
    /// After a unit of work: what it has done to what is parked.
    pub(super) fn after(&self, has_parked: bool, has_due: bool, were_claims: bool) {
        for (call, is_due) in [(&self.parked, has_parked), (&self.due, has_due), (&self.room, were_claims)] {
            if is_due {
                call.notify_one();
            }
        }
    }
}

/// Claims what is due, for every handler that is served, until the host stops.
pub(super) async fn claims(tenant: Arc<Tenant>, mut stopping: watch::Receiver<bool>) {
    let (mut looks, mut scope) = (Looks::default(), Scope::All);
    while !*stopping.borrow() {
        let wait = looks.look(&tenant, scope).await.unwrap_or_else(|error| {
            tracing::warn!(tenant = %tenant.name, %error, "cannot claim parked events");
            LOOK_AGAIN
        });
        let soon = looks.until_soon();
        let parked = async {
            tokio::time::sleep(soon).await;
            tenant.calls.parked.notified().await;
        };
        scope = tokio::select! {
            () = tokio::time::sleep(wait) => Scope::All,
            () = parked => Scope::All,
            () = tenant.calls.due.notified() => Scope::All,
            () = tenant.calls.room.notified(), if !looks.want_room.is_empty() => {
                if looks.until_soon().is_zero() { Scope::All } else { Scope::WantRoom }
            }
            _ = stopping.wait_for(|stopping| *stopping) => return,
        }
    }
}

/// Whose parked rows a look is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// All handlers'.
    All,
    /// Only of handlers of which more was due than the lanes had room for. A unit of claims of any handler may make room,
    /// some hundred times a second; each look claimed the one or two rows that had come due of others meanwhile, with two
    /// commits each, if it were for all.
    WantRoom,
}

/// What is remembered from one look to the next.
#[derive(Default)]
struct Looks {
    /// Since when each handler has been served here.
    served: HashMap<HandlerId, Instant>,
    /// Handlers of which more was due than the lanes had room for.
    want_room: HashSet<HandlerId>,
    /// When the last look for all was.
    all: Option<Instant>,
}

impl Looks {
    /// The time until the next look for all may be made where nothing calls for one at once.
    fn until_soon(&self) -> Duration {
        self.all.map_or(Duration::ZERO, |all| LOOK_SOON.saturating_sub(all.elapsed()))
    }

    /// One look: one question tells what is due where, and only that is claimed. The answer is the time until the next.
    async fn look(&mut self, tenant: &Tenant, scope: Scope) -> Result<Duration, StoreError> {
        if tenant.sources.iter().any(|source| source.has_at_risk()) {
            return Ok(LOOK_SOON);
        }
        if scope == Scope::All {
            self.all = Some(clock::monotonic());
        }
        let mut wait = LOOK_AGAIN;
        let due = tenant.store.held_due().await?;
        let now = if due.is_empty() { 0 } else { tenant.store.now_us().await? };
        let wanted_room = std::mem::take(&mut self.want_room);
        for (id, due_us) in due {
            // A handler that nobody serves here, or that is not configured any more, is looked at again in a second.
            let Some(handler) = tenant.handlers.values().find(|handler| handler.id == id) else { continue };
            let Some(deployed) = handler.current() else { continue };
            let since = self.served.entry(id).or_insert_with(clock::monotonic);
            if since.elapsed() < FIRST_CLAIM {
                wait = wait.min(FIRST_CLAIM);
                continue;
            }
            // What is parked waits until somebody has mended what blocks it.
            if handler.blocked().is_some() {
                continue;
            }
            let is_meant = scope == Scope::All || wanted_room.contains(&id);
            if is_meant && due_us <= now && !claim(tenant, handler, &deployed).await? {
                self.want_room.insert(id);
                continue;
            }
            let later = Duration::from_micros(u64::try_from(due_us.saturating_sub(now)).unwrap_or(0));
            wait = wait.min(later.max(self.until_soon()));
        }
        Ok(wait)
    }
}

/// Claims as many rows of a handler as the lanes have room for; false: more may be due than that. For a few of a slow
/// handler it is not worth a commit of its own while others are under way.
async fn claim(tenant: &Tenant, handler: &Arc<Handler>, deployed: &Arc<Deployed>) -> Result<bool, StoreError> {
    let (max, least) =
        if handler.is_slow() { (SLOW_CLAIMS_MAX, SLOW_CLAIMS_MAX / 2) } else { (tenant.settings.batch_max, 1) };
    let room = max.saturating_sub(tenant.waiting(handler.id));
    if room < least {
        return Ok(false);
    }
    let token = LeaseToken(rand::random());
    let rows = tenant.store.held_claim(handler.id, room, token, tenant.lease_time, tenant.start()).await?;
    if !rows.is_empty() {
        reach(Place::ClaimTaken);
    }
    let is_all = rows.len() < room;
    let lives = blame::lives(tenant, rows.iter().flat_map(|row| [&row.open.beside, &row.open.alone])).await?;
    for row in rows {
        let suspicion = row.open.suspicion(tenant.boot, &lives, tenant.boot_timeout);
        let mut delivery = delivery(tenant, handler, deployed, row, token);
        blame::charge(tenant, &mut delivery, suspicion);
        tenant.spread(delivery);
    }
    Ok(is_all)
}

/// A parked row is what it was when it was parked: key, fingerprint and time are the recorded ones.
fn delivery(
    tenant: &Tenant,
    handler: &Arc<Handler>,
    deployed: &Arc<Deployed>,
    row: ClaimedRow,
    token: LeaseToken,
) -> Delivery {
    let rule = tenant.settings.sources.get(&row.source).map(|source| source.envelope.clone()).unwrap_or_default();
    let opened = envelope::open(&row.body, &rule, &tenant.identify_limits());
    // Its source may be read otherwise now; then it is dead under its own key, and not poison beside a row that stays
    // parked and is claimed for ever.
    let unrun = opened.as_ref().err().map(|poison| Failure::from(poison.clone()));
    let (ordering_key, place) = row.place.map(|place| (place.ordering_key, place.place)).unzip();
    let origin = Origin {
        source: row.source.as_str().into(),
        hash: message_hash(&row.body),
        message: Arc::new(row.body),
        envelope: opened.ok(),
        hops: row.hops,
        received_us: row.received_us,
        is_begun: false,
        is_at_risk: false,
        settle: None,
    };
    Delivery {
        target: Target::Handler(handler.clone(), deployed.clone()),
        origin: Arc::new(origin),
        identity: Ok(Identity { key: row.key, fingerprint: row.fingerprint, ordering_key }),
        counted: Counted { attempts: row.attempts, attempts_short: row.attempts_short },
        claim: Some(Claim { held: row.held, token, generation: row.generation, place }),
        unrun,
        suspicion: Suspicion::default(),
        lock_waits: 0,
        turn: None,
        in_hand: tenant.in_hand.clone(),
    }
}
