//! The example plugins, built as their authors build them, inspected, and run in the sandbox.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::{collections::BTreeMap, fs, path::PathBuf, sync::Arc, time::Duration};

use oncebox::{
    module::{Inspection, build, inspect},
    plugin::{Attempt, Compiler, Context, Engine, EngineLimits, Event, Module, Outcome, QueryPort, Rows, RunLimits},
};
use oncebox_core::{failure::Class, value::Value};
use tokio::sync::{OnceCell, mpsc};

/// Bytes that a small Rust handler may come to.
const BYTES_MAX: usize = 150_000;

const PAID: &str = r#"{"orderId": 42, "userId": 7, "amount": 10, "receiptNo": "R-1"}"#;

/// The packed modules by name, built once: cargo would queue up behind itself.
async fn modules() -> &'static BTreeMap<&'static str, Vec<u8>> {
    static MODULES: OnceCell<BTreeMap<&'static str, Vec<u8>>> = OnceCell::const_new();
    MODULES
        .get_or_init(|| async {
            let out = tempfile::tempdir().unwrap();
            let mut modules = BTreeMap::new();
            for name in ["points-award", "points-level", "coupon-grant", "coupon-notice"] {
                let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../plugins").join(name);
                let path = out.path().join(name);
                let built = build(&dir, Some(&path)).await.unwrap_or_else(|error| panic!("{error}"));
                modules.insert(name, fs::read(built.path).unwrap());
            }
            modules
        })
        .await
}

async fn inspected(name: &str) -> Inspection {
    inspect(&modules().await[name]).unwrap_or_else(|error| panic!("{error}"))
}

async fn loaded(name: &str) -> Arc<Module> {
    let limits = EngineLimits { memory_bytes_max: 16 << 20, instances_max: 2, module_bytes_max: 1 << 20 };
    let compiler = Compiler::new(env!("CARGO_BIN_EXE_compile-child"), [] as [&str; 0]);
    let cache = tempfile::tempdir().unwrap();
    let engine = Engine::with_compiler(&limits, compiler).unwrap();
    engine.load(&modules().await[name], cache.path()).await.unwrap_or_else(|error| panic!("{error}"))
}

fn attempt(payload: &str, config: &[(&str, &str)], queries: Option<QueryPort>) -> Attempt {
    let limits = RunLimits {
        run_time_max: Duration::from_secs(10),
        memory_bytes_max: 8_388_608, // what their manifests ask for
        staged_rows_max: 2,
        staged_bytes_max: 4_096,
        events_max: 1,
        host_calls_max: 10,
        log_lines_max: 10,
        result_bytes_max: 64,
    };
    Attempt {
        event: Arc::new(Event { id: "e-1".into(), payload: Arc::from(payload.as_bytes()), ..Event::default() }),
        limits: Arc::new(limits),
        config: Arc::new(config.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()),
        context: Context {
            now_us: 1_795_953_600_000_000,
            attempt: 1,
            generation: 0,
            tenant: "shop".into(),
            handler: "h".into(),
            traceparent: None,
            random_key: [7; 32],
        },
        queries,
    }
}

fn functions(interfaces: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let each = interfaces.iter().flat_map(|(name, functions)| functions.iter().map(move |f| format!("{name}.{f}")));
    each.collect()
}

#[tokio::test]
async fn a_built_plugin_is_small_and_reaches_nothing_but_what_it_uses_of_the_contract() {
    let (config, emit) = ("oncebox:handler/config@1.0.0.get", "oncebox:handler/events@1.0.0.emit");
    let (stage, query) = ("oncebox:handler/db@1.0.0.stage", "oncebox:handler/db@1.0.0.query");
    let (random, log) = ("oncebox:handler/context@1.0.0.random", "oncebox:handler/log@1.0.0.write");
    let used = [
        ("points-award", vec![config, stage, emit, log]),
        ("points-level", vec![stage, log]),
        ("coupon-grant", vec![random, stage, query, emit, log]),
        ("coupon-notice", vec![stage, log]),
    ];
    for (name, imports) in used {
        let inspection = inspected(name).await;
        assert_eq!(functions(&inspection.imports), imports, "{name}");
        assert_eq!(functions(&inspection.exports), ["oncebox:handler/guest@1.0.0.handle"], "{name}");
        assert!(inspection.bytes < BYTES_MAX, "{name} has {} bytes", inspection.bytes);
    }
}

/// Growing it is two system calls of the host, each time.
#[tokio::test]
async fn an_attempt_finds_its_heap_in_the_memory_that_its_instance_begins_with() {
    let module = loaded("points-award").await;
    let run = async |memory_bytes_max| {
        let mut attempt = attempt(PAID, &[("points_per_yuan", "2")], None);
        Arc::make_mut(&mut attempt.limits).memory_bytes_max = memory_bytes_max;
        module.run(attempt).await
    };
    let Outcome::Failed(failure) = run(65_536).await else { panic!("it ran in a page") };
    let begins_with = failure.message.split(' ').find_map(|word| word.parse::<u64>().ok()).unwrap();
    assert!(begins_with > 1 << 20, "{}", failure.message);
    // Half a page beyond, for its tables.
    let outcome = run(begins_with + 32_768).await;
    assert!(matches!(outcome, Outcome::Applied { .. }), "{outcome:#?}");
}

#[tokio::test]
async fn an_inspection_shows_all_that_a_module_may_do() {
    let inspection = inspected("points-award").await;
    let page = inspection.to_string();
    let shown = [
        "points-award 1.0.0  Adds points for a paid order\n",
        "  key               order:{/orderId}:paid\n",
        "  equal by          /userId, /amount\n",
        "  points_account    write\n",
        "  award(points signed, user_id unsigned)\n    UPDATE points_account SET points = points + ? WHERE user_id = ?\n    rows: 1, else reject account-missing\n",
        "  points_per_yuan   required  points for one yuan, a whole number\n",
        "  points-awarded    points.awarded to any\n",
        "queries: none\n",
        "  oncebox:handler/db@1.0.0: stage\n",
    ];
    for text in shown {
        assert!(page.contains(text), "no {text:?} in\n{page}");
    }
    let json = serde_json::to_value(&inspection).unwrap();
    assert_eq!(json["statements"]["award"]["params"][1]["type"], "unsigned");
    assert_eq!(json["tables"]["points_ledger"], "write");
    assert_eq!(json["digest"].as_str().map(str::len), Some(64));
}

#[tokio::test]
async fn in_the_sandbox_a_plugin_stages_what_its_native_test_saw() {
    let module = loaded("points-award").await;
    let outcome = module.run(attempt(PAID, &[("points_per_yuan", "2")], None)).await;
    let Outcome::Applied { result: None, writes, events } = outcome else { panic!("{outcome:?}") };
    let staged: Vec<_> = writes.into_iter().map(|write| (write.statement, write.params)).collect();
    let recorded = vec![Value::Text("R-1".into()), Value::Unsigned(42), Value::Unsigned(7), Value::Signed(20)];
    assert_eq!(
        staged,
        [("award".to_owned(), vec![Value::Signed(20), Value::Unsigned(7)]), ("record".to_owned(), recorded)]
    );
    let [event] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((event.destination.as_str(), event.event_type.as_str()), ("points-awarded", "points.awarded"));
    assert_eq!(event.payload, br#"{"orderId":42,"userId":7,"points":20}"#);
}

#[tokio::test]
async fn a_panic_tells_the_host_where_and_why_before_it_traps() {
    let module = loaded("points-award").await;
    let outcome = module.run(attempt(PAID, &[], None)).await;
    let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
    assert_eq!(failure.class, Class::Trap);
    let told = "the host has no value for the required configuration entry `points_per_yuan`";
    assert!(failure.message.contains("panicked at") && failure.message.contains(told), "{failure:#?}");
    let stack = failure.backtrace.unwrap_or_default();
    assert!(stack.contains("points_award"), "no function of the plugin's own in\n{stack}");
}

#[tokio::test]
async fn a_coupons_id_is_the_same_at_every_attempt_and_is_kept_as_the_result() {
    let module = loaded("coupon-grant").await;
    let order = r#"{"schemaVersion":1,"orderId":"O-1001","campaignId":"C-9","benefitType":"gift","userId":7}"#;
    let mut results = Vec::new();
    for _ in 0..2 {
        let (sender, mut lane) = mpsc::channel(1);
        let run = tokio::spawn(module.run(attempt(order, &[], Some(QueryPort(sender)))));
        let request = lane.recv().await.unwrap();
        assert_eq!((request.name.as_str(), request.params), ("campaign", vec![Value::Text("C-9".into())]));
        let columns = vec!["title".into(), "face_cents".into()];
        let rows = Rows { columns, data: vec![vec![Value::Text("Tea for two".into()), Value::Signed(1_500)]] };
        request.reply.send(Ok(rows)).unwrap();
        let outcome = run.await.unwrap();
        let Outcome::Applied { result: Some(result), writes, .. } = outcome else { panic!("{outcome:?}") };
        let id = String::from_utf8(result).unwrap();
        assert_eq!(id.len(), 32);
        assert_eq!(writes[1].params[0], Value::Text(id.clone()));
        results.push(id);
    }
    assert_eq!(results[0], results[1]);
}
