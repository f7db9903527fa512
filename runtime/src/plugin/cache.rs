//! Native code kept between starts: one file an entry, never changed once it has its name.
//!
//! An entry is believed only if its digest fits, over its key too, so that no file can pass for another. Whatever is
//! wrong with an entry or the folder is a miss and a warning, never a refusal of the module.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    hash::{Hash, Hasher},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use oncebox_core::ids::ModuleDigest;
use sha2::{Digest, Sha256};
use tracing::warn;

use super::inspect::LIMITS_VERSION;

/// First bytes of an entry, with the version of its form.
const MAGIC: &[u8; 8] = b"obnativ1";
const DIGEST_BYTES: usize = 32;

/// The place of one module's native code.
#[derive(Debug, Clone)]
pub(super) struct Cache {
    dir: PathBuf,
    key: [u8; DIGEST_BYTES],
}

impl Cache {
    /// The entry of a module for this engine: version of wasmtime, target and every setting that decides the code.
    pub(super) fn new(dir: &Path, engine: &wasmtime::Engine, module: &ModuleDigest) -> Self {
        let mut hash = Sha256::new();
        hash.update(module.as_bytes());
        hash.update(LIMITS_VERSION.to_be_bytes());
        engine.precompile_compatibility_hash().hash(&mut Into256(&mut hash));
        Self { dir: dir.to_owned(), key: hash.finalize().into() }
    }

    fn path(&self) -> PathBuf {
        self.dir.join(format!("{}.native", hex(&self.key)))
    }

    /// The native code, its digest checked over these very bytes.
    pub(super) fn read(&self) -> Option<Vec<u8>> {
        let path = self.path();
        let entry = match self.own_dir().and_then(|()| fs::read(&path)) {
            Ok(entry) => entry,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                warn!(path = %path.display(), %error, "the module cache cannot be read; the module is compiled again");
                return None;
            }
        };
        let native = self.open(entry);
        if native.is_none() {
            self.discard("its digest does not fit");
        }
        native
    }

    /// Removes the entry.
    pub(super) fn discard(&self, reason: &str) {
        let path = self.path();
        warn!(path = %path.display(), reason, "a module cache entry is removed; the module is compiled again");
        if let Err(error) = fs::remove_file(&path) {
            warn!(path = %path.display(), %error, "the module cache entry cannot be removed");
        }
    }

    /// Keeps the native code; a failure costs a compilation at the next start and is warned of.
    pub(super) fn write(&self, native: &[u8]) {
        if let Err(error) = self.try_write(native) {
            let dir = self.dir.display();
            warn!(%dir, %error, "the module cache cannot be written; the module is compiled again at each start");
        }
    }

    fn try_write(&self, native: &[u8]) -> io::Result<()> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
        self.own_dir()?;
        let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let unfinished = self.dir.join(format!("{}.{process}.{number}.tmp", hex(&self.key)));
        let written = self.write_file(&unfinished, native).and_then(|()| fs::rename(&unfinished, self.path()));
        if written.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        written?;
        File::open(&self.dir)?.sync_all()
    }

    fn write_file(&self, path: &Path, native: &[u8]) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(MAGIC)?;
        file.write_all(&self.digest(native))?;
        file.write_all(native)?;
        file.sync_all()
    }

    /// Shuts others out of the folder. Only its owner may do so, which proves that it is ours.
    fn own_dir(&self) -> io::Result<()> {
        fs::set_permissions(&self.dir, Permissions::from_mode(0o700))
    }

    fn open(&self, mut entry: Vec<u8>) -> Option<Vec<u8>> {
        let rest = entry.strip_prefix(MAGIC.as_slice())?;
        let (digest, native) = rest.split_at_checked(DIGEST_BYTES)?;
        if digest != self.digest(native) {
            return None;
        }
        entry.drain(..MAGIC.len() + DIGEST_BYTES);
        Some(entry)
    }

    fn digest(&self, native: &[u8]) -> [u8; DIGEST_BYTES] {
        Sha256::new().chain_update(self.key).chain_update(native).finalize().into()
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Lets anything that hashes itself be part of a SHA-256.
struct Into256<'a>(&'a mut Sha256);

impl Hasher for Into256<'_> {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}
