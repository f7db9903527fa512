//! `oncebox check config` and `oncebox check module`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use oncebox_core::{
    manifest::Manifest,
    sql::{Declared, Dialect, Purpose, check_text},
};
use serde_json::json;

use super::{
    args::{CheckArgs, CheckModuleArgs, CheckWhat, TenantArgs},
    build::read,
    deploy,
    failed::{Failed, Wrong},
    open::{Opened, known},
    output::Output,
};
use crate::{
    code::Exit,
    host::admission::{Reason, Refused},
    plugin::{Engine, EngineLimits},
};

pub(super) async fn check(output: Output, config: &Path, args: CheckArgs) -> Result<Exit, Failed> {
    match args.what {
        CheckWhat::Config => check_config(output, config),
        CheckWhat::Module(args) => check_module(output, config, &args).await,
        CheckWhat::Store(args) => check_store(output, config, &args).await,
    }
}

fn check_config(output: Output, config: &Path) -> Result<Exit, Failed> {
    let opened = Opened::read(config)?;
    for tenant in opened.config.tenants.values() {
        opened.schema(tenant)?;
    }
    let warnings = &opened.warnings;
    output.answer(
        || {
            let warnings: Vec<_> = warnings.iter().map(|warning| &warning.0).collect();
            json!({ "tenants": opened.config.tenants.keys().collect::<Vec<_>>(), "warnings": warnings })
        },
        || {
            let mut text: String = warnings.iter().map(|warning| format!("{warning}\n\n")).collect();
            let tenants = known(opened.config.tenants.keys());
            text += &format!("{}: a host would start with it; tenants: {tenants}", config.display());
            text
        },
    );
    Ok(if warnings.is_empty() { Exit::Done } else { Exit::Findings })
}

async fn check_store(output: Output, config: &Path, args: &TenantArgs) -> Result<Exit, Failed> {
    let opened = Opened::read(config)?;
    let mut asked = Vec::new();
    for (name, tenant) in opened.tenants(args.tenant.as_deref())? {
        asked.push((name, opened.store_warnings(name, tenant).await));
    }
    output.answer(
        || {
            let told = |answer: &Result<Vec<String>, Failed>| match answer {
                Ok(warnings) => json!({ "starts": true, "warnings": warnings }),
                Err(failed) => json!({ "starts": false, "code": failed.code, "message": failed.message }),
            };
            json!({ "tenants": asked.iter().map(|(name, answer)| (*name, told(answer))).collect::<BTreeMap<_, _>>() })
        },
        || {
            let told = |(name, answer): &(&str, Result<Vec<String>, Failed>)| match answer {
                Ok(warnings) => {
                    let warnings: String = warnings.iter().map(|warning| format!("\n  warning: {warning}")).collect();
                    format!("{name}: a host would start on its database{warnings}\n")
                }
                Err(failed) => format!("{name}: a host would not start on its database\n  {}\n", failed.human()),
            };
            asked.iter().map(told).collect()
        },
    );
    let first = asked.iter().find_map(|(_, answer)| answer.as_ref().err());
    let warned = asked.iter().any(|(_, answer)| answer.as_ref().is_ok_and(|warnings| !warnings.is_empty()));
    Ok(match first {
        Some(failed) => failed.exit,
        None if warned => Exit::Findings,
        None => Exit::Done,
    })
}

async fn check_module(output: Output, config: &Path, args: &CheckModuleArgs) -> Result<Exit, Failed> {
    let scratch = Scratch::new()?;
    let manifest = match &args.place {
        Some(place) => {
            let opened = Opened::read(config)?;
            let (tenant, _) = opened.handler(place)?;
            let module = read(&args.module).await?;
            let store = opened.store_or_scratch(&place.tenant, tenant, &scratch.0).await?;
            let checked = deploy::checked(&opened, place, &module, store.as_ref(), &scratch.0).await?;
            checked.module.manifest().clone()
        }
        None => alone(&read(&args.module).await?, &scratch.0).await?,
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

/// A folder of this check alone; it is gone afterwards.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, Failed> {
        let dir = std::env::temp_dir().join(format!("oncebox-check-{:016x}", rand::random::<u64>()));
        match std::fs::create_dir(&dir) {
            Ok(()) => Ok(Self(dir)),
            Err(error) => {
                let message = format!("cannot make the folder {} (TMPDIR): {error}", dir.display());
                Err(Failed::new(Wrong::DataDir, message))
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// All that can be said of a module without a configuration and a database.
async fn alone(module: &[u8], scratch: &Path) -> Result<Manifest, Failed> {
    let limits = EngineLimits { memory_bytes_max: 64 << 20, instances_max: 1, module_bytes_max: 32 << 20 };
    let loaded = Engine::new(&limits)?.load(module, scratch).await?;
    loaded.dry_run().await?;
    let manifest = loaded.manifest();
    let reasons = texts(manifest);
    if reasons.is_empty() { Ok(manifest.clone()) } else { Err(Failed::module(Refused(reasons), None)) }
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
