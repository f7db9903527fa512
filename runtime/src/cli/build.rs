//! `oncebox build` and `oncebox inspect`.

use std::path::Path;

use serde_json::json;

use super::{
    args::{BuildArgs, InspectArgs},
    failed::{Exit, Failed},
    output::Output,
};
use crate::module;

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
    let inspection = module::inspect(&read(&args.module).await?)?;
    output.answer(|| json!(inspection), || inspection.to_string());
    Ok(Exit::Done)
}

/// A module's bytes.
pub(super) async fn read(path: &Path) -> Result<Vec<u8>, Failed> {
    tokio::fs::read(path)
        .await
        .map_err(|error| Failed::new(Exit::NotFound, "module-file", format!("cannot read {}: {error}", path.display())))
}
