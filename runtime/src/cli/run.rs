//! `oncebox run`.

use std::path::Path;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{
    failed::{Exit, Failed},
    logs,
    open::Opened,
};
use crate::{
    host::{Ended, Host, OpenTenant},
    store::Use,
};

pub(super) async fn run(config: &Path) -> Result<Exit, Failed> {
    let opened = Opened::read(config)?;
    logs::begin(opened.config.host.log);
    for warning in &opened.warnings {
        tracing::warn!("{}", warning.0.message);
    }
    let mut signals = Signals::new()?;
    let data_dir = opened.data_dir()?;
    let mut tenants = Vec::new();
    for (name, settings) in opened.tenants(None)? {
        let store = opened.store(settings, Use::Host).await?;
        tenants.push(OpenTenant { name: name.to_owned(), settings: settings.clone(), store });
    }
    let mut host = Host::start(opened.config.host.clone(), &data_dir, tenants).await?;
    let listening = host.listening().map(|address| address.to_string());
    tracing::info!(version = env!("CARGO_PKG_VERSION"), listening, "started");
    let mut ready = host.health().ready();
    loop {
        tokio::select! {
            () = signals.next() => break,
            why = host.broken() => {
                tracing::error!(why, "stopping: this is a bug");
                return Err(Failed::new(Exit::Bug, "task-ended", why));
            }
            Ok(()) = ready.changed() => {
                if *ready.borrow_and_update() {
                    tracing::info!("ready");
                }
            }
        }
    }
    tracing::info!("stopping: takes nothing new, finishes what runs");
    tokio::select! {
        ended = host.stop() => {
            let Ended { undecided, out_of_time } = ended;
            tracing::info!(undecided, out_of_time, "stopped; what is undecided is kept and taken again");
            Ok(Exit::Done)
        }
        () = signals.next() => {
            tracing::warn!("ended at once by a second signal; what was not committed is taken again");
            Ok(Exit::SecondSignal)
        }
    }
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> Result<Self, Failed> {
        let wanted = |kind| {
            signal(kind)
                .map_err(|error| Failed::new(Exit::Bug, "signals", format!("cannot listen for signals: {error}")))
        };
        Ok(Self { terminate: wanted(SignalKind::terminate())?, interrupt: wanted(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
