//! The one thread that advances the engine's epoch while a plugin runs, so that a loop cannot keep its worker.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread::Thread,
    time::Duration,
};

use wasmtime::EngineWeak;

/// Time between two ticks: how long a guest keeps a worker before others get their turn.
const TICK: Duration = Duration::from_millis(1);
/// How often the sleeping thread looks whether its engine is gone.
const IDLE_CHECK: Duration = Duration::from_secs(5);

/// Starts and stops the ticking by the number of runs.
pub(super) struct Ticker {
    runs: Arc<AtomicUsize>,
    thread: Thread,
}

/// While it lives, the epoch advances.
pub(super) struct Ticking(Arc<AtomicUsize>);

impl Ticker {
    /// Starts the thread, asleep.
    pub(super) fn start(engine: EngineWeak) -> std::io::Result<Self> {
        let runs = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&runs);
        let thread = std::thread::Builder::new().name("plugin-epoch".into()).spawn(move || tick(&engine, &seen))?;
        Ok(Self { runs, thread: thread.thread().clone() })
    }

    /// Counts a run in.
    pub(super) fn run(&self) -> Ticking {
        // A wake-up that comes before the thread parks is kept by `unpark`, so none is lost.
        if self.runs.fetch_add(1, Ordering::SeqCst) == 0 {
            self.thread.unpark();
        }
        Ticking(Arc::clone(&self.runs))
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.thread.unpark();
    }
}

impl Drop for Ticking {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn tick(engine: &EngineWeak, runs: &AtomicUsize) {
    while let Some(alive) = engine.upgrade() {
        if runs.load(Ordering::SeqCst) == 0 {
            drop(alive);
            std::thread::park_timeout(IDLE_CHECK);
        } else {
            alive.increment_epoch();
            drop(alive);
            std::thread::sleep(TICK);
        }
    }
}
