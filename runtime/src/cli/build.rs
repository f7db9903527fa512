//! `oncebox build` and `oncebox inspect`.

use std::path::Path;

use serde_json::json;

use super::{
    args::{BuildArgs, InspectArgs},
    failed::{Failed, Wrong},
    output::Output,
};
use crate::{code::Exit, module};

pub(super) async fn build(output: Output, args: &BuildArgs) -> Result<Exit, Failed> {
    let built = module::build(&args.dir, args.out.as_deref()).await?;
    let (path, digest) = (built.path.display().to_string(), built.digest.to_string());
    output.answer(
        || json!({ "name": built.name, "version": built.version, "path": path, "digest": digest, "bytes": built.bytes }),
        || format!("{} {}  {path}  {} bytes  sha256:{digest}", built.name, built.version, built.bytes),
    );
    Ok(Exit::Done)
}

pub(super) async fn inspect(output: Output, args: &InspectArgs) -> Result<Exit, Failed> {
    let bytes = read(&args.module).await?;
    crate::plugin::sniff(&bytes, u64::MAX)?;
    let inspection = module::inspect(&bytes)?;
    output.answer(|| json!(inspection), || inspection.to_string());
    Ok(Exit::Done)
}

/// A module's bytes.
pub(super) async fn read(path: &Path) -> Result<Vec<u8>, Failed> {
    tokio::fs::read(path)
        .await
        .map_err(|error| Failed::new(Wrong::ModuleFile, format!("cannot read {}: {error}", path.display())))
}
