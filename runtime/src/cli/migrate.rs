//! `oncebox migrate`.

use std::path::Path;

use serde_json::json;

use super::{args::TenantArgs, failed::Failed, open::Opened, output::Output};
use crate::{code::Exit, store::Use};

pub(super) async fn migrate(output: Output, config: &Path, args: &TenantArgs) -> Result<Exit, Failed> {
    let opened = Opened::read(config)?;
    let mut done = Vec::new();
    for (name, tenant) in opened.tenants(args.tenant.as_deref())? {
        let store = opened.store(name, tenant, Use::Command).await?;
        done.push((name, store.migrate().await?));
    }
    output.answer(
        || json!({ "tenants": done.iter().map(|(name, number)| (*name, *number)).collect::<std::collections::BTreeMap<_, _>>() }),
        || done.iter().map(|(name, number)| format!("{name}: tables are at migration {number}\n")).collect(),
    );
    Ok(Exit::Done)
}
