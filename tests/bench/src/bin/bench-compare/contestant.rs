//! Who takes part.

use std::path::PathBuf;

use oncebox_tests::{host::binary, script::checkout};

use crate::options::Options;

/// What a contestant is measured for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// Oncebox on its defaults.
    Ours,
    /// One transaction per message, in Rust.
    Naive,
    /// A hundred per transaction, in Rust.
    HandBatched,
    /// Spring Boot, one by one.
    SpringSingle,
    /// Spring Boot, in batches.
    SpringBatch,
    /// Go, one by one.
    Go,
    /// The database alone.
    FloorDatabase,
    /// The broker alone.
    FloorBroker,
}

impl Role {
    pub(crate) const ALL: [Self; 8] = [
        Self::Ours,
        Self::Naive,
        Self::HandBatched,
        Self::SpringSingle,
        Self::SpringBatch,
        Self::Go,
        Self::FloorDatabase,
        Self::FloorBroker,
    ];

    /// Its name in the figures.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Naive => "naive_best",
            Self::HandBatched => "hand_batched",
            Self::SpringSingle => "spring_single",
            Self::SpringBatch => "spring_batch",
            Self::Go => "go_single",
            Self::FloorDatabase => "floor_database",
            Self::FloorBroker => "floor_broker",
        }
    }

    /// What it is, for people.
    pub(crate) const fn about(self) -> &'static str {
        match self {
            Self::Ours => "Oncebox",
            Self::Naive => "Rust, one by one",
            Self::HandBatched => "Rust, in batches",
            Self::SpringSingle => "Spring Boot, one by one",
            Self::SpringBatch => "Spring Boot, in batches",
            Self::Go => "Go, one by one",
            Self::FloorDatabase => "the database alone",
            Self::FloorBroker => "the broker alone",
        }
    }

    /// Whether it does the whole job, so that a ratio to it means something.
    pub(crate) const fn is_rival(self) -> bool {
        match self {
            Self::Naive | Self::HandBatched | Self::SpringSingle | Self::SpringBatch | Self::Go => true,
            Self::Ours | Self::FloorDatabase | Self::FloorBroker => false,
        }
    }
}

/// Somebody who drains a queue.
#[derive(Debug, Clone)]
pub(crate) struct Contestant {
    pub(crate) role: Role,
    /// The program and its arguments; of Oncebox the host's binary.
    pub(crate) command: Vec<PathBuf>,
    /// Messages of one transaction.
    pub(crate) batch: u16,
    /// In flight; searched among `choices`.
    pub(crate) concurrency: u16,
    pub(crate) choices: Vec<u16>,
    /// Events of a drain that is to find out how fast it is.
    pub(crate) trial: u32,
    /// Events of a drain that counts.
    pub(crate) events: u32,
}

impl Contestant {
    fn new(role: Role, command: Vec<PathBuf>, batch: u16, choices: &[u16]) -> Self {
        let trial = if batch == 1 { 4_000 } else { 20_000 };
        let concurrency = choices.first().copied().unwrap_or(1);
        Self { role, command, batch, concurrency, choices: choices.to_vec(), trial, events: trial }
    }

    /// Its name and how it is tuned.
    pub(crate) fn name(&self) -> String {
        let about = self.role.about();
        match (self.role, self.batch) {
            (Role::Ours | Role::FloorBroker, _) => about.to_owned(),
            (_, 1) => format!("{about}, {} in flight", self.concurrency),
            (_, batch) => format!("{about} of {batch}, {} in flight", self.concurrency),
        }
    }
}

/// All that are asked for and can run here; of the others a line says why they do not.
pub(crate) fn all(options: &Options) -> Vec<Contestant> {
    let peers = std::env::current_exe().ok().and_then(|own| Some(own.parent()?.to_owned())).unwrap_or_default();
    let rust = |name: &str| vec![peers.join(name)];
    // A quick run does not search: these are the best on two cores.
    let singles: &[u16] = if options.quick { &[16] } else { &[1, 4, 16, 64] };
    let batches: &[u16] = if options.quick { &[2] } else { &[1, 2, 4] };
    let go = built("go/bench-go");
    let spring = built("spring/target/bench-spring.jar");
    let java = |jar: PathBuf| vec![PathBuf::from("java"), "-jar".into(), jar];
    let everybody = [
        Some(Contestant::new(Role::Ours, vec![binary().to_owned()], 256, &[1])),
        Some(Contestant::new(Role::Naive, rust("bench-naive"), 1, singles)),
        Some(Contestant::new(Role::HandBatched, rust("bench-batched"), 100, batches)),
        told(options, Role::SpringSingle, spring.clone())
            .map(|jar| Contestant::new(Role::SpringSingle, java(jar), 1, singles)),
        told(options, Role::SpringBatch, spring).map(|jar| Contestant::new(Role::SpringBatch, java(jar), 100, batches)),
        told(options, Role::Go, go).map(|program| Contestant::new(Role::Go, vec![program], 1, singles)),
        Some(Contestant::new(Role::FloorDatabase, rust("bench-floor-database"), 100, batches)),
        Some(Contestant::new(Role::FloorBroker, rust("bench-floor-broker"), 100, &[1])),
    ];
    everybody.into_iter().flatten().filter(|contestant| options.has(contestant.role)).collect()
}

/// What was built of a contestant in another language.
fn built(path: &str) -> Option<PathBuf> {
    let path = checkout().join("tests/bench/peers").join(path);
    path.is_file().then_some(path)
}

fn told(options: &Options, role: Role, built: Option<PathBuf>) -> Option<PathBuf> {
    if built.is_none() && options.has(role) {
        println!("   {:<34} is left out: it is not built, its toolchain is not here", role.about());
    }
    built
}
