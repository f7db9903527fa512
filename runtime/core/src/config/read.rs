//! Reading the configuration: the files, the host, then each tenant.

use std::path::{Component, Path, PathBuf};

use super::{Address, Config, Server, ServerUrl, Warning, host, keys, secrets, tenant};
use crate::{
    document::{Document, Item, Spot, Table, form::NAME},
    text::{TextError, TextErrors, quoted},
};

/// Bytes of one file.
const FILE_BYTES_MAX: usize = 4_194_304;

/// Reads `oncebox.toml`, the first of the files, and `tenants.d/NAME.toml`, the others; each a name and a text.
///
/// Relative paths are left as they are written.
///
/// # Errors
/// All that is wrong with the files, up to a number each, with its place and how to mend it. When one of them is
/// not TOML, only the syntax is complained of.
pub fn read(files: &[(String, String)]) -> Result<(Config, Vec<Warning>), TextErrors> {
    let documents = parse(files)?;
    let config = {
        let [main, others @ ..] = documents.as_slice() else {
            return Err(TextError::of_file("oncebox.toml", "no configuration file is given").into());
        };
        read_documents(main, others)
    };
    let (mut errors, mut left_out, mut warnings) = (Vec::new(), 0, Vec::new());
    for document in documents {
        let (found, more, warned) = document.into_findings();
        errors.extend(found);
        left_out += more;
        warnings.extend(warned.into_iter().map(Warning));
    }
    TextErrors::collected(errors, left_out).map_or(Ok((config, warnings)), Err)
}

fn parse(files: &[(String, String)]) -> Result<Vec<Document<'_>>, TextErrors> {
    let (mut documents, mut errors, mut left_out) = (Vec::with_capacity(files.len()), Vec::new(), 0);
    for (file, text) in files {
        match Document::parse(file, text, FILE_BYTES_MAX, secrets::places) {
            Ok(document) => documents.push(document),
            Err(found) => {
                errors.extend_from_slice(found.errors());
                left_out += found.left_out();
            }
        }
    }
    TextErrors::collected(errors, left_out).map_or(Ok(documents), Err)
}

fn read_documents(main: &Document<'_>, others: &[Document<'_>]) -> Config {
    let root = main.root("");
    root.refuse_unknown(&keys::FILE);
    let host = host::read_host(&root.table_or_empty(&keys::HOST));
    let mut tables = root.named_tables(&keys::TENANTS, &NAME);
    for document in others {
        let Some(name) = tenant_name(document) else { continue };
        let table = document.root(format!("tenants.{name}"));
        match tables.iter().find(|(other, _)| *other == name) {
            Some((_, other)) => {
                let message = format!("tenant {} stands in {} too", quoted(&name), other.spot.file_and_line());
                table.spot.refuse(message, Some("leave one of them out, or give it another name".to_owned()));
            }
            None => tables.push((name, table)),
        }
    }
    if tables.is_empty() {
        root.spot.warn("no tenant is configured", "add [tenants.NAME], or a file tenants.d/NAME.toml");
    }
    refuse_shared_stores(&tables, &host.data_dir);
    let tenants = tables.iter().map(|(name, table)| (name.clone(), tenant::read_tenant(table, &host.limits)));
    Config { tenants: tenants.collect(), host }
}

/// The tenant's name by the name of its file.
fn tenant_name(document: &Document<'_>) -> Option<String> {
    let file = document.file();
    let base = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let complaint = match base.strip_suffix(".toml") {
        None => format!("the file name {} does not end in .toml", quoted(base)),
        Some(name) => match (NAME.check)(name) {
            Ok(()) => return Some(name.to_owned()),
            Err(complaint) => format!("the tenant's name by the file's name {complaint}"),
        },
    };
    let help = "name the file after the tenant: tenants.d/NAME.toml";
    document.root("").spot.refuse(complaint, Some(help.to_owned()));
    None
}

/// Two tenants in one database would share their inboxes.
fn refuse_shared_stores(tables: &[(String, Table<'_>)], data_dir: &Path) {
    let mut seen: Vec<(Place, &str, Spot<'_>)> = Vec::new();
    for (name, table) in tables {
        let Some(store) = table.item(keys::STORE.name).and_then(|item| item.as_table()) else { continue };
        let Some((place, item)) = Place::of(&store, data_dir) else { continue };
        match seen.iter().find(|(other, _, _)| other.is_same(&place)) {
            Some((_, other_name, spot)) => {
                let what = place.name();
                let complaint =
                    format!("is the {what} of tenant {} too, at {}", quoted(other_name), spot.file_and_line());
                item.refuse(complaint, format!("give each tenant a {what} of its own"));
            }
            None => seen.push((place, name, item.spot)),
        }
    }
}

/// What a store is in, as far as its text tells.
enum Place {
    File(PathBuf),
    Database(Address),
}

impl Place {
    fn of<'d>(store: &Table<'d>, data_dir: &Path) -> Option<(Self, Item<'d>)> {
        match store.item(keys::STORE_KIND.name)?.value.as_str()? {
            "sqlite" => {
                let path = store.item(keys::STORE_PATH.name)?;
                Some((Self::File(resolved(&data_dir.join(path.value.as_str()?))), path))
            }
            "mysql" => {
                let url = store.item(keys::STORE_URL.name)?;
                Some((Self::Database(ServerUrl::parse(url.value.as_str()?, Server::Mysql).ok()?.address), url))
            }
            _ => None,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::File(_) => "file",
            Self::Database(_) => "database",
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File(one), Self::File(other)) => one == other,
            (Self::Database(one), Self::Database(other)) => one.is_same_space(other),
            (Self::File(_), Self::Database(_)) | (Self::Database(_), Self::File(_)) => false,
        }
    }
}

/// The path without `.` and `..`, as far as its text tells.
fn resolved(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if out.file_name().is_some() => {
                out.pop();
            }
            Component::ParentDir | Component::Normal(_) | Component::RootDir | Component::Prefix(_) => {
                out.push(component)
            }
        }
    }
    out
}
