//! Reads the configuration and opens what it names.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use oncebox_core::config::{self, Config, Warning};

use super::{
    args::Pair,
    failed::{Failed, Wrong},
};
use crate::store::{Migrated, Store, Use};

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
        let mut files = vec![read(file, "`--config FILE` names another one")?];
        let folder = file.parent().unwrap_or(Path::new("")).to_path_buf();
        for path in tenant_files(&folder.join("tenants.d"))? {
            files.push(read(&path, "a file of tenants.d is one tenant")?);
        }
        let (mut config, warnings) = config::read(&files).map_err(Failed::config)?;
        config.start_access_paths_at(&absolute(&folder)?);
        refuse_missing_features(&config)?;
        Ok(Self { config, warnings, folder })
    }

    /// `host.data_dir`, made if it is not there.
    pub(super) fn data_dir(&self) -> Result<PathBuf, Failed> {
        let dir = self.folder.join(&self.config.host.data_dir);
        match std::fs::create_dir_all(&dir) {
            Ok(()) => Ok(dir),
            Err(error) => {
                let message = format!("cannot make the folder {} (host.data_dir): {error}", dir.display());
                Err(Failed::new(Wrong::DataDir, message))
            }
        }
    }

    /// A tenant by name.
    pub(super) fn tenant(&self, name: &str) -> Result<&config::Tenant, Failed> {
        self.config.tenants.get(name).ok_or_else(|| {
            let known = known(self.config.tenants.keys());
            Failed::new(Wrong::Tenant, format!("there is no tenant `{}`; the configuration has: {known}", safe(name)))
        })
    }

    /// A handler by tenant and name.
    pub(super) fn handler(&self, place: &Pair) -> Result<(&config::Tenant, &config::Handler), Failed> {
        let tenant = self.tenant(&place.tenant)?;
        let handler = tenant.handlers.get(&place.name).ok_or_else(|| no_handler(&place.tenant, tenant, &place.name))?;
        Ok((tenant, handler))
    }

    /// The tenants that a command is about: one, or all.
    pub(super) fn tenants(&self, only: Option<&str>) -> Result<Vec<(&str, &config::Tenant)>, Failed> {
        if let Some(name) = only {
            self.tenant(name)?;
        }
        let tenants = self.config.tenants.iter().map(|(name, tenant)| (name.as_str(), tenant));
        Ok(tenants.filter(|(name, _)| only.is_none_or(|only| only == *name)).collect())
    }

    /// Opens a tenant's store; the embedded one is made if it is not there.
    pub(super) async fn store(
        &self,
        name: &str,
        tenant: &config::Tenant,
        usage: Use,
    ) -> Result<Arc<dyn Store>, Failed> {
        let path = self.data_dir()?.join(file_of(tenant));
        self.store_at(&path, name, tenant, usage).await
    }

    /// Opens a tenant's store to read from it: a command that asks makes nothing.
    pub(super) async fn store_made(&self, name: &str, tenant: &config::Tenant) -> Result<Arc<dyn Store>, Failed> {
        match self.made(tenant) {
            Some(path) => self.store_at(&path, name, tenant, Use::Command).await,
            None => {
                let path = self.folder.join(&self.config.host.data_dir).join(file_of(tenant));
                let message = format!(
                    "tenant `{name}` has no store yet: {} is not there (host.data_dir and [tenants.{name}.store] path); \
                     `oncebox migrate`, `deploy`, `send` or `run` makes it",
                    path.display()
                );
                Err(Failed::new(Wrong::StoreMissing, message))
            }
        }
    }

    /// The stores of the tenants that a command asks about: of one, or of all that have a store yet.
    pub(super) async fn stores_made(
        &self,
        only: Option<&str>,
    ) -> Result<Vec<(&str, &config::Tenant, Arc<dyn Store>)>, Failed> {
        let (mut stores, mut missing) = (Vec::new(), None);
        for (name, tenant) in self.tenants(only)? {
            match self.store_made(name, tenant).await {
                Ok(store) => stores.push((name, tenant, store)),
                Err(failed) if failed.is_store_missing() => drop(missing.get_or_insert(failed)),
                Err(failed) => return Err(failed),
            }
        }
        match missing {
            Some(failed) if stores.is_empty() => Err(failed),
            Some(_) | None => Ok(stores),
        }
    }

    /// Brings a tenant's tables up to date, on a server as the user of `migrate_url`.
    pub(super) async fn migrated(&self, name: &str, tenant: &config::Tenant) -> Result<Migrated, Failed> {
        let migrated = match &tenant.store {
            config::Store::Sqlite { .. } => {
                let store = self.store(name, tenant, Use::Command).await?;
                let to = store.migrate().await?;
                return Ok(Migrated { from: to, to, is_procedure_made: false, missing: None });
            }
            config::Store::Mysql(own) => migrate_mysql(own).await,
        };
        migrated.map_err(|failed| failed.after(&format!("tenant `{name}`: ")))
    }

    /// What a host would warn of when it opens a tenant's store; why it would not, as an error.
    pub(super) async fn store_warnings(&self, name: &str, tenant: &config::Tenant) -> Result<Vec<String>, Failed> {
        match &tenant.store {
            config::Store::Sqlite { .. } => self.store_made(name, tenant).await.map(|_| Vec::new()),
            config::Store::Mysql(own) => {
                mysql_warnings(own).await.map_err(|failed| failed.after(&format!("tenant `{name}`: ")))
            }
        }
    }

    /// Opens a tenant's store to check something against it; one that is not there is made in the scratch folder.
    pub(super) async fn store_or_scratch(
        &self,
        name: &str,
        tenant: &config::Tenant,
        scratch: &Path,
    ) -> Result<Arc<dyn Store>, Failed> {
        let path = self.made(tenant).unwrap_or_else(|| scratch.join("scratch.db"));
        self.store_at(&path, name, tenant, Use::Command).await
    }

    /// The text that `store.schema` names.
    pub(super) fn schema(&self, tenant: &config::Tenant) -> Result<Option<String>, Failed> {
        let read = |schema: &PathBuf| read(&self.folder.join(schema), "store.schema names it").map(|(_, text)| text);
        match &tenant.store {
            config::Store::Sqlite { schema, .. } => schema.as_ref().map(read).transpose(),
            config::Store::Mysql(_) => Ok(None),
        }
    }

    /// The file of a tenant's store, if it is there; a store on a server has none, and only the server knows.
    fn made(&self, tenant: &config::Tenant) -> Option<PathBuf> {
        let path = self.folder.join(&self.config.host.data_dir).join(file_of(tenant));
        match &tenant.store {
            config::Store::Sqlite { .. } => path.exists().then_some(path),
            config::Store::Mysql(_) => Some(path),
        }
    }

    async fn store_at(
        &self,
        path: &Path,
        name: &str,
        tenant: &config::Tenant,
        usage: Use,
    ) -> Result<Arc<dyn Store>, Failed> {
        let opened = match &tenant.store {
            config::Store::Sqlite { .. } => embedded(path, self.schema(tenant)?.as_deref(), usage).await,
            config::Store::Mysql(own) => mysql(own, tenant, usage).await,
        };
        opened.map_err(|failed| failed.after(&format!("tenant `{name}`: ")))
    }
}

#[cfg(feature = "embedded")]
async fn embedded(path: &Path, schema: Option<&str>, usage: Use) -> Result<Arc<dyn Store>, Failed> {
    Ok(crate::store::sqlite::SqliteStore::open(path, schema, usage).await?)
}

#[cfg(not(feature = "embedded"))]
#[expect(clippy::unused_async, reason = "the same call with the feature waits for the database")]
async fn embedded(_path: &Path, _schema: Option<&str>, _usage: Use) -> Result<Arc<dyn Store>, Failed> {
    Err(lacking("store kind \"sqlite\"", "embedded"))
}

#[cfg(feature = "mysql")]
async fn mysql(own: &config::Mysql, tenant: &config::Tenant, usage: Use) -> Result<Arc<dyn Store>, Failed> {
    let lanes = crate::store::mysql::MysqlLanes { lanes: tenant.lanes, slow_lanes: tenant.slow_lanes };
    Ok(crate::store::mysql::MysqlStore::open(own, lanes, usage).await?)
}

#[cfg(feature = "mysql")]
async fn migrate_mysql(own: &config::Mysql) -> Result<Migrated, Failed> {
    Ok(crate::store::mysql::MysqlStore::migrated(own).await?)
}

#[cfg(feature = "mysql")]
async fn mysql_warnings(own: &config::Mysql) -> Result<Vec<String>, Failed> {
    Ok(crate::store::mysql::MysqlStore::warnings(own).await?)
}

#[cfg(not(feature = "mysql"))]
#[expect(clippy::unused_async, reason = "the same call with the feature waits for the server")]
async fn mysql(_own: &config::Mysql, _tenant: &config::Tenant, _usage: Use) -> Result<Arc<dyn Store>, Failed> {
    Err(lacking("store kind \"mysql\"", "mysql"))
}

#[cfg(not(feature = "mysql"))]
#[expect(clippy::unused_async, reason = "the same call with the feature waits for the server")]
async fn migrate_mysql(_own: &config::Mysql) -> Result<Migrated, Failed> {
    Err(lacking("store kind \"mysql\"", "mysql"))
}

#[cfg(not(feature = "mysql"))]
#[expect(clippy::unused_async, reason = "the same call with the feature waits for the server")]
async fn mysql_warnings(_own: &config::Mysql) -> Result<Vec<String>, Failed> {
    Err(lacking("store kind \"mysql\"", "mysql"))
}

/// A source whose feature was left out of the build would never bring a message.
fn refuse_missing_features(config: &Config) -> Result<(), Failed> {
    if cfg!(feature = "rabbitmq") {
        return Ok(());
    }
    for (tenant, own) in &config.tenants {
        for (name, source) in &own.sources {
            if let config::SourceKind::Rabbitmq(_) = source.kind {
                let what = format!("tenant `{tenant}`: source `{name}`: source kind \"rabbitmq\"");
                return Err(lacking(&what, "rabbitmq"));
            }
        }
    }
    Ok(())
}

fn lacking(what: &str, feature: &str) -> Failed {
    let message = format!("{what} needs the feature \"{feature}\", which this build of oncebox does not have");
    Failed::new(Wrong::Config, message)
}

/// The folder itself, wherever the process may be later.
fn absolute(folder: &Path) -> Result<PathBuf, Failed> {
    let here = std::env::current_dir().map(|here| here.join(folder));
    here.map_err(|error| {
        Failed::new(Wrong::ConfigFile, format!("cannot find out in which folder the command runs: {error}"))
    })
}

fn file_of(tenant: &config::Tenant) -> &Path {
    match &tenant.store {
        config::Store::Sqlite { path, .. } => path,
        config::Store::Mysql(_) => Path::new(""),
    }
}

/// The names that a message offers in place of a wrong one.
pub(super) fn known<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<&str> = names.map(String::as_str).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// A tenant has no such handler, neither in the configuration nor, where that was looked at, in its database.
pub(super) fn no_handler(tenant_name: &str, tenant: &config::Tenant, name: &str) -> Failed {
    let known = known(tenant.handlers.keys());
    Failed::new(Wrong::Handler, format!("tenant `{tenant_name}` has no handler `{}`; it has: {known}", safe(name)))
}

/// An argument as a message may repeat it.
pub(super) fn safe(argument: &str) -> String {
    oncebox_core::ids::shown(argument.as_bytes())
}

fn read(path: &Path, help: &str) -> Result<(String, String), Failed> {
    let failed = |why: String| {
        let message = format!("cannot read {}: {why}; {help}", path.display());
        Failed::new(Wrong::ConfigFile, message)
    };
    let bytes = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok((path.display().to_string(), text)),
        Err(error) => Err(failed(format!("it is not UTF-8 from byte {} on", error.utf8_error().valid_up_to()))),
    }
}

fn tenant_files(dir: &Path) -> Result<Vec<PathBuf>, Failed> {
    let failed =
        |error: std::io::Error| Failed::new(Wrong::ConfigFile, format!("cannot read {}: {error}", dir.display()));
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
