//! `oncebox check config` and `oncebox check module`.

use std::path::Path;

use oncebox_core::{
    manifest::Manifest,
    sql::{Declared, Dialect, Purpose, check_text},
};
use serde_json::json;

use super::{
    args::{CheckArgs, CheckModuleArgs, CheckWhat},
    build::read,
    deploy,
    failed::{Exit, Failed},
    open::Opened,
    output::Output,
};
use crate::{
    host::admission::{Reason, Refused},
    plugin::{Engine, EngineLimits},
    store::Use,
};

pub(super) async fn check(output: Output, config: &Path, args: CheckArgs) -> Result<Exit, Failed> {
    match args.what {
        CheckWhat::Config => check_config(output, config),
        CheckWhat::Module(args) => check_module(output, config, &args).await,
    }
}

fn check_config(output: Output, config: &Path) -> Result<Exit, Failed> {
    let opened = Opened::read(config)?;
    let warnings: Vec<String> = opened.warnings.iter().map(ToString::to_string).collect();
    output.answer(
        || json!({ "tenants": opened.config.tenants.keys().collect::<Vec<_>>(), "warnings": warnings }),
        || {
            let tenants = opened.config.tenants.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            let mut text = warnings.join("\n");
            text += &format!("\n{}: a host would start with it; tenants: {tenants}", config.display());
            text.trim_start().to_owned()
        },
    );
    Ok(if warnings.is_empty() { Exit::Done } else { Exit::Findings })
}

async fn check_module(output: Output, config: &Path, args: &CheckModuleArgs) -> Result<Exit, Failed> {
    let module = read(&args.module).await?;
    let manifest = match &args.place {
        Some(place) => {
            let opened = Opened::read(config)?;
            let (tenant, _) = opened.handler(place)?;
            let store = opened.store(tenant, Use::Command).await?;
            let checked = deploy::checked(&opened, place, &module, store.as_ref()).await?;
            checked.module.manifest().clone()
        }
        None => alone(&module).await?,
    };
    let against = args.place.as_ref().map(ToString::to_string);
    output.answer(
        || json!({ "name": manifest.name, "version": manifest.version, "place": against, "accepted": true }),
        || {
            let against = against.as_ref().map_or_else(
                || "by itself; name a TENANT/HANDLER to check it against a configuration and a database".to_owned(),
                |place| format!("for {place}"),
            );
            format!("{} {}: accepted {against}", manifest.name, manifest.version)
        },
    );
    Ok(Exit::Done)
}

/// All that can be said of a module without a configuration and a database.
async fn alone(module: &[u8]) -> Result<Manifest, Failed> {
    let limits = EngineLimits { memory_bytes_max: 64 << 20, instances_max: 1, module_bytes_max: 32 << 20 };
    let engine = Engine::new(&limits)?;
    let cache = std::env::temp_dir().join(format!("oncebox-check-{}", std::process::id()));
    let loaded = engine.load(module, &cache).await;
    let _ = std::fs::remove_dir_all(&cache);
    let loaded = loaded?;
    loaded.dry_run().await?;
    let manifest = loaded.manifest();
    let reasons = texts(manifest);
    if reasons.is_empty() { Ok(manifest.clone()) } else { Err(Refused(reasons).into()) }
}

/// Every text of the manifest in its dialects.
fn texts(manifest: &Manifest) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let mut gate = |what: String, sql: &str, dialect: Dialect, params: usize, purpose: Purpose| {
        let declared = Declared { tables: &manifest.tables, params, purpose };
        if let Err(refusal) = check_text(sql, dialect, &declared) {
            reasons.push(Reason { code: refusal.rule.code(), message: format!("{what}: {refusal}") });
        }
    };
    for (name, statement) in &manifest.statements {
        let purpose = || Purpose::Statement { rows: statement.rows };
        gate(format!("[statements.{name}]"), &statement.sql, Dialect::MySql, statement.params.len(), purpose());
        if let Some(sqlite) = &statement.sqlite {
            gate(format!("[statements.{name}] sqlite"), sqlite, Dialect::Sqlite, statement.params.len(), purpose());
        }
    }
    for (name, query) in &manifest.queries {
        let purpose = || Purpose::Query { lock: query.lock };
        gate(format!("[queries.{name}]"), &query.sql, Dialect::MySql, query.params.len(), purpose());
        if let Some(sqlite) = &query.sqlite {
            gate(format!("[queries.{name}] sqlite"), sqlite, Dialect::Sqlite, query.params.len(), purpose());
        }
    }
    reasons
}
