//! The three modules, packed.

#![expect(clippy::unwrap_used, reason = "what measures may stop where something is wrong")]

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use oncebox::{
    clock,
    plugin::{Attempt, Context, Engine, EngineLimits, Event, RunLimits},
};
use oncebox_tests::{
    points::points_award,
    wat::{source, wat_component},
};

/// Turns as `plugins/probes/spin.wat` has them.
const TURNS: u64 = 100_000_000;

/// Packed modules, in the order of `feed::Kind`.
pub(crate) struct Modules(pub(crate) [Vec<u8>; 3]);

impl Modules {
    /// Builds them; the slow one so that a run of it takes `slow_ms` on this machine when it is idle.
    pub(crate) fn build(slow_ms: f64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let turns = turns_for_a_slow_run(dir.path(), slow_ms);
        let failing = wat_component(&source("hostile/panic"), &manifest("failing", "order.failing"));
        Self([points_award(), spinning(turns), failing])
    }
}

fn manifest(name: &str, event_type: &str) -> String {
    format!(
        "name = \"{name}\"\nversion = \"1.0.0\"\ncontract = \"1.0\"\nevent_types = [\"{event_type}\"]\n\
         key = \"order:{{/orderId}}\"\nfingerprint = \"payload\"\n"
    )
}

fn spinning(turns: u64) -> Vec<u8> {
    let text = source("probes/spin");
    let own = text.replace(&TURNS.to_string(), &turns.to_string());
    assert!(turns == TURNS || own != text, "plugins/probes/spin.wat turns another number of times");
    wat_component(&own, &manifest("slow", "order.slow"))
}

/// How many turns take as long as a slow run: the quickest of some tries, for a busy machine makes one slower only.
fn turns_for_a_slow_run(cache: &Path, slow_ms: f64) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let limits = EngineLimits { memory_bytes_max: 1 << 20, instances_max: 1, module_bytes_max: 1 << 20 };
        let module = Engine::new(&limits).unwrap().load(&spinning(TURNS), cache).await.unwrap();
        let mut quickest = Duration::MAX;
        for _ in 0..5 {
            let began = clock::monotonic();
            module.run(attempt()).await;
            quickest = quickest.min(began.elapsed());
        }
        let turns = 1e8 * slow_ms / (quickest.as_secs_f64() * 1_000.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 1 and some thousand million"
        )]
        let turns = turns.max(1.0) as u64;
        turns
    })
}

fn attempt() -> Attempt {
    let limits = RunLimits {
        run_time_max: Duration::from_secs(30),
        memory_bytes_max: 1 << 20,
        staged_rows_max: 1,
        staged_bytes_max: 1,
        events_max: 0,
        host_calls_max: 1,
        log_lines_max: 0,
        result_bytes_max: 0,
    };
    Attempt {
        event: Arc::new(Event::default()),
        limits: Arc::new(limits),
        config: Arc::new(BTreeMap::new()),
        context: Context {
            now_us: 0,
            attempt: 1,
            generation: 0,
            tenant: "shop".into(),
            handler: "slow".into(),
            traceparent: None,
            random_key: [0; 32],
        },
        queries: None,
    }
}
