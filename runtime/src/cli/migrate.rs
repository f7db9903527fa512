//! `oncebox migrate`.

use std::{collections::BTreeMap, path::Path};

use serde_json::json;

use super::{args::TenantArgs, failed::Failed, open::Opened, output::Output};
use crate::{code::Exit, store::Migrated};

pub(super) async fn migrate(output: Output, config: &Path, args: &TenantArgs) -> Result<Exit, Failed> {
    let opened = Opened::read(config)?;
    let mut done: BTreeMap<&str, Migrated> = BTreeMap::new();
    for (name, tenant) in opened.tenants(args.tenant.as_deref())? {
        done.insert(name, opened.migrated(name, tenant).await?);
    }
    output.answer(
        || {
            let numbers: BTreeMap<_, _> = done.iter().map(|(name, migrated)| (*name, migrated.to)).collect();
            let missing: BTreeMap<_, _> =
                done.iter().filter_map(|(name, migrated)| Some((*name, migrated.missing.as_ref()?))).collect();
            json!({ "tenants": numbers, "missing": missing })
        },
        || done.iter().map(|(name, migrated)| told(name, migrated)).collect(),
    );
    Ok(Exit::Done)
}

fn told(name: &str, Migrated { from, to, is_procedure_made, missing }: &Migrated) -> String {
    let mut line = format!("{name}: tables are at migration {to}");
    if from < to {
        line += &format!(", they were at {from}");
    }
    if *is_procedure_made {
        line += "; the procedure ob_catalogue is new";
    }
    if let Some(missing) = missing {
        line += &format!("\n  the host's own user cannot work yet: {missing}");
    }
    line + "\n"
}
