//! Reads the configuration and opens what it names.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use oncebox_core::config::{self, Config, Warning};

use super::{
    args::Pair,
    failed::{Exit, Failed},
};
use crate::store::{Store, Use};

/// A configuration and the folder that its paths start from.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) config: Config,
    pub(super) warnings: Vec<Warning>,
    folder: PathBuf,
}

impl Opened {
    /// Reads the file and `tenants.d/*.toml` beside it.
    pub(super) fn read(file: &Path) -> Result<Self, Failed> {
        let mut files = vec![read(file)?];
        let folder = match file.parent() {
            Some(folder) if folder != Path::new("") => folder.to_path_buf(),
            _ => PathBuf::from("."),
        };
        for path in tenant_files(&folder.join("tenants.d"))? {
            files.push(read(&path)?);
        }
        let (config, warnings) =
            config::read(&files).map_err(|errors| Failed::new(Exit::Config, "config", errors.to_string()))?;
        Ok(Self { config, warnings, folder })
    }

    /// `host.data_dir`, made if it is not there.
    pub(super) fn data_dir(&self) -> Result<PathBuf, Failed> {
        let dir = self.folder.join(&self.config.host.data_dir);
        std::fs::create_dir_all(&dir).map_err(|error| {
            let message = format!("cannot make {} (host.data_dir): {error}", dir.display());
            Failed::new(Exit::Config, "data-dir", message)
        })?;
        Ok(dir)
    }

    /// A tenant by name.
    pub(super) fn tenant(&self, name: &str) -> Result<&config::Tenant, Failed> {
        self.config.tenants.get(name).ok_or_else(|| {
            let known = self.config.tenants.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            Failed::new(
                Exit::NotFound,
                "tenant",
                format!("there is no tenant `{name}`; the configuration has: {known}"),
            )
        })
    }

    /// A handler by tenant and name.
    pub(super) fn handler(&self, place: &Pair) -> Result<(&config::Tenant, &config::Handler), Failed> {
        let tenant = self.tenant(&place.tenant)?;
        let handler = tenant.handlers.get(&place.name).ok_or_else(|| {
            let known = tenant.handlers.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            let message = format!("tenant `{}` has no handler `{}`; it has: {known}", place.tenant, place.name);
            Failed::new(Exit::NotFound, "handler", message)
        })?;
        Ok((tenant, handler))
    }

    /// The tenants that a command is about: one, or all.
    pub(super) fn tenants(&self, only: Option<&str>) -> Result<Vec<(&str, &config::Tenant)>, Failed> {
        match only {
            Some(name) => {
                let tenant = self.tenant(name)?;
                Ok(self
                    .config
                    .tenants
                    .iter()
                    .filter(|(own, _)| *own == name)
                    .map(|(own, _)| (own.as_str(), tenant))
                    .collect())
            }
            None => Ok(self.config.tenants.iter().map(|(name, tenant)| (name.as_str(), tenant)).collect()),
        }
    }

    /// Opens a tenant's store; the embedded one is made if it is not there.
    pub(super) async fn store(&self, tenant: &config::Tenant, usage: Use) -> Result<Arc<dyn Store>, Failed> {
        match &tenant.store {
            config::Store::Sqlite { path, schema } => {
                let path = self.data_dir()?.join(path);
                let schema = schema.as_ref().map(|schema| self.folder.join(schema));
                let schema = schema.as_deref().map(|schema| read(schema).map(|(_, text)| text)).transpose()?;
                embedded(&path, schema.as_deref(), usage).await
            }
        }
    }
}

#[cfg(feature = "embedded")]
async fn embedded(path: &Path, schema: Option<&str>, usage: Use) -> Result<Arc<dyn Store>, Failed> {
    Ok(crate::store::sqlite::SqliteStore::open(path, schema, usage).await?)
}

#[cfg(not(feature = "embedded"))]
#[expect(clippy::unused_async, reason = "the same call with the feature waits for the database")]
async fn embedded(_path: &Path, _schema: Option<&str>, _usage: Use) -> Result<Arc<dyn Store>, Failed> {
    let message = "store kind \"sqlite\" needs the feature \"embedded\", which this build of oncebox does not have";
    Err(Failed::new(Exit::Config, "feature", message))
}

fn read(path: &Path) -> Result<(String, String), Failed> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok((path.display().to_string(), text)),
        Err(error) => Err(Failed::new(Exit::Config, "config-file", format!("cannot read {}: {error}", path.display()))),
    }
}

fn tenant_files(dir: &Path) -> Result<Vec<PathBuf>, Failed> {
    let failed = |error: std::io::Error| {
        Failed::new(Exit::Config, "config-file", format!("cannot read {}: {error}", dir.display()))
    };
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
