//! A run on its way: how long it has had of a processor, and where it goes on when that is too long.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context as Waker, Poll},
    time::Duration,
};

use oncebox_core::failure::{Class, Failure};
use tokio::runtime::{Builder, Handle, Runtime};

use super::{
    delivery::Delivery,
    gate::Beside,
    handler::{Deployed, Handler},
    lane::LaneContext,
    run::attempt,
};
use crate::{clock, plugin::Outcome};

/// A run that has begun and is not over.
pub struct Running {
    run: Pin<Box<dyn Future<Output = Outcome> + Send>>,
    /// How often it has given way to others: once a millisecond of its own. Time by the clock says little where there
    /// are more runs than processors: the quick would be taken for slow because of the slow.
    turns: Arc<AtomicU32>,
    started_us: i64,
}

/// How long a thread of slow runs sleeps after each millisecond of work. A priority counts within one process group only:
/// a database beside it would wait for a time slice, some milliseconds, at each of the round trips of a unit of work.
/// A longer sleep takes from the slow and gives the others nothing (250 and 500 us were tried).
const REST: Duration = Duration::from_micros(50);

impl Running {
    /// `pass`: let go when the run is over, however long its outcome waits for its lane.
    pub(super) fn start(
        lane: &LaneContext,
        handler: &Arc<Handler>,
        deployed: &Deployed,
        delivery: &Delivery,
        mut pass: Option<Beside>,
    ) -> Self {
        let attempt = attempt(lane, handler, deployed, delivery, None);
        let turns = Arc::new(AtomicU32::new(0));
        let (mut run, counted) = (Box::pin(deployed.module.run(attempt)), turns.clone());
        let (handler, slow_run) = (handler.clone(), lane.tenant.settings.slow_run);
        let run = poll_fn(move |waker: &mut Waker<'_>| {
            let polled = run.as_mut().poll(waker);
            if polled.is_ready() {
                drop(pass.take());
            }
            if polled.is_pending() && is_slow(counted.fetch_add(1, Ordering::Relaxed) + 1, slow_run) {
                handler.was_slow();
            }
            polled
        });
        Self { run: Box::pin(run), turns, started_us: clock::now_us() }
    }

    /// When it began, microseconds since 1970.
    pub(super) fn started_us(&self) -> i64 {
        self.started_us
    }

    /// Runs until it is over.
    pub(super) async fn over(&mut self) -> Outcome {
        self.run.as_mut().await
    }

    /// Whether it has had `slow_run` of a processor.
    pub(super) fn is_slow(&self, slow_run: Duration) -> bool {
        is_slow(self.turns.load(Ordering::Relaxed), slow_run)
    }

    /// Runs until it is over, or slow.
    pub(super) async fn unless_slow(&mut self, slow_run: Duration) -> Option<Outcome> {
        poll_fn(|waker| match self.run.as_mut().poll(waker) {
            Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
            Poll::Pending if self.is_slow(slow_run) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// Lets the run go on by itself: its time must not pass while it waits for a slow lane.
    pub(super) fn go_on(self) -> Self {
        let mut run = self.run;
        let run = slow_runs().spawn(poll_fn(move |waker| {
            let polled = run.as_mut().poll(waker);
            if polled.is_pending() {
                std::thread::sleep(REST);
            }
            polled
        }));
        let run = async {
            run.await.unwrap_or_else(|error| {
                Outcome::Failed(Failure::new(Class::Infrastructure, "run-broke", format!("the run broke: {error}")))
            })
        };
        Self { run: Box::pin(run), ..self }
    }
}

/// Where slow runs go on: on threads of their own, half as many as there are processors, and of a lower priority, so that
/// however many loop, the lanes' many short steps find a processor at once. On an idle machine they lose nothing by it.
fn slow_runs() -> Handle {
    static OWN: OnceLock<Option<Runtime>> = OnceLock::new();
    let own = OWN.get_or_init(|| {
        let threads = std::thread::available_parallelism().map_or(1, |processors| processors.get().div_ceil(2));
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(threads).thread_name("slow-run").on_thread_start(give_way).enable_all();
        builder.build().inspect_err(|error| tracing::warn!(%error, "slow runs have no threads of their own")).ok()
    });
    own.as_ref().map_or_else(Handle::current, |own| own.handle().clone())
}

/// Lowers this thread's priority to nice 11: a tenth of another thread's share where both want a processor. Elsewhere
/// than on Linux the call would be for the whole process.
fn give_way() {
    #[cfg(target_os = "linux")]
    {
        use thread_priority::{ThreadPriority, ThreadPriorityValue, set_current_thread_priority};
        let lowered = ThreadPriorityValue::try_from(20).and_then(|of_99| {
            set_current_thread_priority(ThreadPriority::Crossplatform(of_99)).map_err(|e| e.to_string())
        });
        if let Err(error) = lowered {
            tracing::debug!(error, "slow runs keep the priority of the others");
        }
    }
}

fn is_slow(turns: u32, slow_run: Duration) -> bool {
    u128::from(turns) >= slow_run.as_millis()
}
