//! What can go wrong with a database, sorted by what must be done about it.

use oncebox_core::failure::{Class, Failure};

use crate::code::codes;

/// A call to the store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database is away, busy, full or read-only: again later, nothing is lost and nothing counted.
    #[error("failed to reach the tenant's database: {message}")]
    Away {
        /// The server's words.
        message: String,
    },
    /// A deadlock, or a lock that was waited for too long: the same again, in smaller units; nothing is counted.
    #[error("failed to get a lock in the tenant's database: {message}")]
    Busy {
        /// The server's words.
        message: String,
    },
    /// A write under a lease did not find its token: the row is no longer ours.
    #[error("failed to write held row {held}: its lease is gone")]
    LeaseLost {
        /// The row.
        held: i64,
    },
    /// Another host has this embedded store open.
    #[error("failed to open {path}: another `oncebox run` has it open; the embedded store serves one host")]
    Taken {
        /// The file.
        path: String,
    },
    /// The tables are older or newer than this binary.
    #[error("failed to use the tables: they are at migration {found}, this oncebox needs {needed}; {mend}")]
    Migration {
        /// Number found.
        found: i64,
        /// Number needed.
        needed: i64,
        /// What to do.
        mend: &'static str,
    },
    /// The server's settings, version or engines are such that no promise holds.
    #[error("failed to trust the database server: {message}")]
    Unsafe {
        /// Every setting, with what it breaks and how to mend it.
        message: String,
    },
    /// The server does not let the user do what oncebox must.
    #[error("failed for want of a right: {message}")]
    Denied {
        /// The server's words, and where the rights are listed.
        message: String,
    },
    /// The procedure that tells the SQL gate of triggers and foreign keys cannot be used.
    #[error("failed to see triggers and foreign keys through the procedure ob_catalogue: {message}")]
    Catalogue {
        /// Why, and how to mend it.
        message: String,
    },
    /// The tenant's schema file does not run.
    #[error("failed to run the tenant's schema file (store.schema): {message}")]
    Schema {
        /// The server's words.
        message: String,
    },
    /// The file is no SQLite database.
    #[error("failed to open {path}: it is no SQLite database; name another file in store.path, or move this one away")]
    NotADatabase {
        /// The file.
        path: String,
    },
    /// The file is a database that cannot be read any more.
    #[error("failed at {what}: {message}; the file is damaged, restore it from a copy")]
    Damaged {
        /// The verb.
        what: &'static str,
        /// The server's words.
        message: String,
    },
    /// A row of our own tables does not read as what we wrote.
    #[error("failed to read {table}: {message}")]
    Corrupt {
        /// The table.
        table: &'static str,
        /// What is wrong with it.
        message: String,
    },
    /// A statement of our own failed for a reason that is neither of these: a bug.
    #[error("failed at {what}: {message}")]
    Statement {
        /// The verb.
        what: &'static str,
        /// The server's words.
        message: String,
    },
}

impl StoreError {
    /// Whether a lock is in the way: the same again, in smaller units.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Busy { .. })
    }

    /// Whether the same call may succeed later without anybody's help.
    #[must_use]
    pub fn is_away(&self) -> bool {
        match self {
            Self::Away { .. } => true,
            Self::Busy { .. }
            | Self::LeaseLost { .. }
            | Self::Taken { .. }
            | Self::Migration { .. }
            | Self::Unsafe { .. }
            | Self::Denied { .. }
            | Self::Catalogue { .. }
            | Self::Schema { .. }
            | Self::NotADatabase { .. }
            | Self::Damaged { .. }
            | Self::Corrupt { .. }
            | Self::Statement { .. } => false,
        }
    }
}

codes! { StoreError {
    Away "store-away" Away
        "the tenant's database is away, busy, full or read-only"
        "bring it back, or free space; nothing is lost and nothing was counted"
    Busy "store-busy" Away
        "a deadlock in the tenant's database, or a lock that somebody else holds too long"
        "nothing to mend if it passes; else see who holds the lock: nothing is lost and nothing was counted"
    LeaseLost "lease-lost" Changed
        "a row was taken over by another claim while it was worked on"
        "nothing to mend: the other one goes on with it"
    Taken "store-taken" Away
        "another `oncebox run` has the embedded store open"
        "end the other host, or give this one a data_dir of its own"
    Migration "migration-due" Unsafe
        "the tables are older or newer than this oncebox"
        "run `oncebox migrate`, or the newer oncebox that wrote them"
    Unsafe "store-unsafe" Unsafe
        "the database server's settings, version or engines are such that a committed unit of work could be lost or undone"
        "mend what the message lists; docs/mysql.md says what is looked at and why"
    Denied "store-denied" Unsafe
        "the database server does not let oncebox's user in, or do what it must"
        "see url and password of [store], and grant what docs/mysql.md lists"
    Catalogue "store-catalogue" Unsafe
        "the SQL gate cannot be shown triggers and foreign keys: the procedure ob_catalogue is missing or may not be used"
        "do what the message says: run `oncebox migrate`, or grant the right that it names"
    Schema "schema-file" Config
        "the tenant's schema file does not run; nothing of it was kept"
        "mend the file that store.schema names"
    NotADatabase "store-not-a-database" Config
        "the file that store.path names is no SQLite database"
        "name another file, or move this one away; oncebox does not touch it"
    Damaged "store-damaged" Away
        "the embedded store's file is damaged"
        "restore it from a copy, and see what the disk says"
    Corrupt "store-corrupt" Bug
        "a row of the ob_ tables does not read as what was written"
        "see who else writes to these tables; report it with the message"
    Statement "store-statement" Bug
        "a statement of oncebox itself failed"
        "report it with the message"
} }

/// MySQL's number of a lock that was waited for too long; its statement is undone, the transaction lives.
pub const LOCK_WAIT: u32 = 1205;
/// MySQL's number of a deadlock; the transaction is undone.
pub const DEADLOCK: u32 = 1213;

/// A plugin's statement or query failed: the class decides, the number lets a manifest decide otherwise.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StatementError {
    /// What the failure means by default.
    pub class: Class,
    /// MySQL's error number, or the number that MySQL has for the same thing.
    pub number: Option<u32>,
    /// Short name, e.g. `duplicate-key`.
    pub code: &'static str,
    /// The server's words.
    pub message: String,
}

impl StatementError {
    /// The failure of an event whose own statement waited too long for a lock: only the statement is undone.
    #[must_use]
    pub fn lock_wait(&self, what: &str) -> Option<Failure> {
        let waited = self.class == Class::Infrastructure && self.number == Some(LOCK_WAIT);
        waited.then(|| Failure::new(Class::Infrastructure, "lock-wait", format!("{what}: {}", self.message)))
    }

    /// What an infrastructure fault means for the whole unit.
    #[must_use]
    pub fn store_error(&self, what: &str) -> StoreError {
        let message = format!("{what}: {}", self.message);
        match self.number {
            Some(DEADLOCK | LOCK_WAIT) => StoreError::Busy { message },
            _ => StoreError::Away { message },
        }
    }

    /// The attempt's failure, naming the statement.
    #[must_use]
    pub fn failure(&self, statement: &str) -> Failure {
        Failure::new(self.class, self.code, format!("statement `{statement}`: {}", self.message))
    }
}
