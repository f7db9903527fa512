//! `oncebox tally`: the books.

use std::{collections::BTreeMap, path::Path};

use oncebox_core::{config::SourceKind, life::Verdict};
use serde_json::json;

use super::{
    args::TenantArgs,
    failed::Failed,
    open::Opened,
    output::{Output, table},
};
use crate::{code::Exit, store::Store};

/// Counts by handler and then by verdict or state.
type Counts = BTreeMap<String, BTreeMap<String, u64>>;

struct Books {
    verdicts: Counts,
    held: Counts,
    waiting: BTreeMap<String, u64>,
}

pub(super) async fn tally(output: Output, config: &Path, args: &TenantArgs) -> Result<Exit, Failed> {
    let opened = Opened::read(config)?;
    let mut tenants = BTreeMap::new();
    for (name, settings, store) in opened.stores_made(args.tenant.as_deref()).await? {
        let mut books = books(store.as_ref()).await?;
        // What waits in a broker's queue is the broker's to tell: a 0 here would be believed.
        for (source, _) in settings.sources.iter().filter(|(_, source)| source.kind == SourceKind::Local) {
            books.waiting.entry(source.clone()).or_default();
        }
        tenants.insert(name.to_owned(), books);
    }
    output.answer(
        || {
            let tenants: BTreeMap<_, _> = tenants
                .iter()
                .map(|(name, b)| (name, json!({ "verdicts": b.verdicts, "held": b.held, "waiting": b.waiting })))
                .collect();
            json!({ "tenants": tenants })
        },
        || tenants.iter().map(|(name, books)| human(name, books)).collect::<Vec<_>>().join("\n"),
    );
    Ok(Exit::Done)
}

async fn books(store: &dyn Store) -> Result<Books, Failed> {
    let names: BTreeMap<_, _> = store.handlers().await?.into_iter().map(|(name, id)| (id, name)).collect();
    let name = |id| names.get(&id).cloned().unwrap_or_else(|| "-".to_owned());
    let (mut verdicts, mut held) = (Counts::new(), Counts::new());
    for (handler, verdict, n) in store.tallies().await? {
        verdicts.entry(name(handler)).or_default().insert(verdict.name().to_owned(), n);
    }
    let gauges = store.gauges().await?;
    for (handler, state, n) in gauges.held {
        held.entry(name(handler)).or_default().insert(state.name().to_owned(), n);
    }
    Ok(Books { verdicts, held, waiting: gauges.local.into_iter().collect() })
}

fn human(tenant: &str, books: &Books) -> String {
    let verdicts: Vec<&str> = Verdict::ALL.into_iter().filter(|v| *v != Verdict::Late).map(Verdict::name).collect();
    let heading: Vec<&str> = [tenant].into_iter().chain(verdicts.iter().copied()).chain(["held now"]).collect();
    let handlers: std::collections::BTreeSet<&String> = books.verdicts.keys().chain(books.held.keys()).collect();
    let rows: Vec<Vec<String>> = handlers
        .into_iter()
        .map(|handler| {
            let count = |verdict: &&str| {
                books.verdicts.get(handler).and_then(|counts| counts.get(*verdict)).map_or(0, |n| *n).to_string()
            };
            let held = books.held.get(handler).map_or_else(String::new, |held| {
                held.iter().map(|(state, n)| format!("{n} {state}")).collect::<Vec<_>>().join(", ")
            });
            [handler.clone()].into_iter().chain(verdicts.iter().map(count)).chain([held]).collect()
        })
        .collect();
    let waiting: Vec<String> = books.waiting.iter().map(|(source, n)| format!("{source} {n}")).collect();
    let waiting = if waiting.is_empty() { String::new() } else { format!("waiting: {}\n", waiting.join(", ")) };
    table(&heading, &rows) + &waiting
}
