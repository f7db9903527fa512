//! What the decisions of an event cost that the example `points-award` takes from RabbitMQ: opening it, its key and its
//! fingerprint, and what it adds to the plan of its batch's writes. Figures are per event.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::{collections::BTreeMap, hint::black_box, time::Duration};

use criterion::{BenchmarkId, Criterion, Throughput};
use oncebox_core::{
    envelope::{self, EnvelopeFormat, EnvelopeRule, TimeFormat},
    fingerprint::{PayloadForm, fingerprint},
    fold::{self, Facts, Step, Write},
    identify::{Limits, identify},
    manifest::{FingerprintSpec, Manifest},
    message::{Header, Message},
    rule::Rule,
    sql::{Catalogue, Declared, Dialect, KeyColumn, Purpose, TableFacts, TableKind, check_text},
    template::Values,
    value::{ParamType, Value},
};

/// A host's defaults.
const LIMITS: Limits = Limits { key_bytes_max: 512, payload_bytes_max: 4 << 20 };

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(2))
        .without_plots()
        .configure_from_args();
    let manifest = Manifest::parse(include_str!("../../../plugins/points-award/handler.toml"), "handler.toml").unwrap();
    identity(&mut criterion, &manifest);
    plan(&mut criterion, &manifest);
    criterion.final_summary();
}

/// From the message to its identity; `identify/all` is what a message with one handler costs.
fn identity(criterion: &mut Criterion, manifest: &Manifest) {
    let message = message();
    let source = EnvelopeRule::parse(
        EnvelopeFormat::Raw,
        Some("{header:event-type}"),
        Some("{amqp:message-id}"),
        None,
        TimeFormat::default(),
    )
    .unwrap();
    let rule = Rule::parse(&manifest.key, &manifest.fingerprint, None).unwrap();
    let opened = envelope::open(&message, &source, &LIMITS).unwrap();
    let json = opened.json(&message).unwrap();

    let mut group = criterion.benchmark_group("identify");
    group.throughput(Throughput::Elements(1));
    group.bench_function("all", |bencher| {
        bencher.iter(|| {
            let message = black_box(&message);
            let opened = envelope::open(message, &source, &LIMITS).unwrap();
            identify(&opened, message, &rule, &LIMITS).unwrap()
        });
    });
    group.bench_function("envelope", |bencher| {
        bencher.iter(|| envelope::open(black_box(&message), &source, &LIMITS).unwrap());
    });
    group.bench_function("key", |bencher| {
        let values = Values { message: &message, json: Some(json), attributes: &[] };
        bencher.iter(|| rule.key().render(black_box(values), LIMITS.key_bytes_max).unwrap());
    });
    group.finish();

    let mut group = criterion.benchmark_group("fingerprint");
    group.throughput(Throughput::Elements(1));
    for (name, spec) in [("pointers", rule.fingerprint()), ("payload", &FingerprintSpec::Payload)] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| fingerprint(spec, black_box(PayloadForm::Json(json))).unwrap());
        });
    }
    group.finish();
}

/// A batch in which each event writes what the example writes, for an account of its own.
fn plan(criterion: &mut Criterion, manifest: &Manifest) {
    let catalogue = catalogue();
    let award = facts(manifest, "award", &catalogue);
    let record = facts(manifest, "record", &catalogue);
    let mut group = criterion.benchmark_group("plan");
    for events in [100_u32, 256] {
        let staged: Vec<([Value; 2], [Value; 4])> = (0..events).map(staged).collect();
        let writes: Vec<Write<'_, (i64, &str)>> = staged
            .iter()
            .flat_map(|(awarded, recorded)| {
                [
                    Write { statement: (1, "award"), facts: &award, params: awarded },
                    Write { statement: (1, "record"), facts: &record, params: recorded },
                ]
            })
            .collect();
        let steps = fold::plan(&writes).unwrap();
        assert!(matches!(*steps, [Step::Folded(_), Step::Folded(_)]), "two statements for the whole batch: {steps:?}");
        group.throughput(Throughput::Elements(events.into()));
        group.bench_function(BenchmarkId::from_parameter(events), |bencher| {
            bencher.iter(|| fold::plan(black_box(&writes)));
        });
    }
    group.finish();
}

/// As it comes from RabbitMQ.
fn message() -> Message {
    let named = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let property = |name: &str, value: &str| (name.to_owned(), value.as_bytes().to_vec());
    Message {
        body: br#"{"orderId": 17, "userId": 3, "amount": 2, "receiptNo": "R-17"}"#.to_vec(),
        headers: vec![Header::new("event-type", "order.paid")],
        content_type: None,
        properties: vec![
            property("amqp:routing-key", "orders"),
            property("amqp:message-id", "m-17"),
            property("amqp:delivery-mode", "2"),
        ],
        position: vec![named("queue", "orders"), named("exchange", ""), named("routing-key", "orders")],
    }
}

fn staged(n: u32) -> ([Value; 2], [Value; 4]) {
    let number = u64::from(n);
    (
        [Value::Signed(1), Value::Unsigned(number)],
        [Value::Text(format!("R-{n}")), Value::Unsigned(number), Value::Unsigned(number), Value::Signed(1)],
    )
}

/// As the host learns them when the handler is deployed.
fn facts(manifest: &Manifest, statement: &str, catalogue: &Catalogue) -> Facts {
    let statement = &manifest.statements[statement];
    let declared = Declared {
        tables: &manifest.tables,
        params: statement.params.len(),
        purpose: Purpose::Statement { rows: statement.rows },
    };
    let accepted = check_text(&statement.sql, Dialect::MySql, &declared).unwrap();
    let params: Vec<ParamType> = statement.params.iter().map(|param| param.kind).collect();
    fold::facts(&accepted, statement.rows, &params, catalogue)
}

/// The example's tables.
fn catalogue() -> Catalogue {
    let table = |key: &str, is_integer| TableFacts {
        kind: TableKind::Base,
        engine: Some("InnoDB".to_owned()),
        triggers: Vec::new(),
        referenced_by: Vec::new(),
        primary_key: vec![KeyColumn { name: key.to_owned(), is_integer }],
        unique: [key.to_owned()].into(),
    };
    let tables = BTreeMap::from([
        ("points_account".to_owned(), table("user_id", true)),
        ("points_ledger".to_owned(), table("receipt_no", false)),
    ]);
    Catalogue { tables, complete: true }
}
