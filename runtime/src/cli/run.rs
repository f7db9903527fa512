//! `oncebox run`.

use std::{path::Path, sync::Arc};

use oncebox_core::text::TextError;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{
    arrivals::Arrivals,
    failed::{Failed, Wrong},
    logs,
    open::Opened,
};
use crate::{
    code::Exit,
    host::{Ended, Health, Host},
};

pub(super) async fn run(config: &Path, json: bool) -> Result<Exit, Failed> {
    let opened = Arc::new(Opened::read(config)?);
    let form = logs::begin(opened.config.host.log, json);
    for warning in &opened.warnings {
        let TextError { file, line, message, help, .. } = &warning.0;
        tracing::warn!(place = format!("{file}:{line}"), help, "{message}");
    }
    match (serve(&opened).await, form) {
        // Whoever reads the log by program shall find this line too, and no other form among them.
        (Err(failed), logs::Form::Json) => {
            tracing::error!(code = failed.code, exit = failed.exit.number(), "{}", failed.message);
            Ok(failed.exit)
        }
        (ended, logs::Form::Json | logs::Form::Human) => ended,
    }
}

async fn serve(opened: &Arc<Opened>) -> Result<Exit, Failed> {
    let mut signals = Signals::new()?;
    let data_dir = opened.data_dir()?;
    let (tenants, mut arrivals) = Arrivals::begin(opened).await?;
    let mut has_begun = !tenants.is_empty() || opened.config.tenants.is_empty();
    let health = Arc::new(Health::default());
    arrivals.tell_awaited(&health);
    arrivals.tell(&health);
    let mut host = Host::start(opened.config.host.clone(), &data_dir, tenants, health.clone()).await?;
    let listening = host.listening().map(|address| address.to_string());
    let started = || tracing::info!(version = env!("CARGO_PKG_VERSION"), listening, "started");
    if has_begun {
        started();
    }
    let mut ready = health.ready();
    loop {
        tokio::select! {
            () = signals.next() => return stop(host, &mut signals).await,
            why = host.broken() => {
                tracing::error!(why, "stopping: this is a bug");
                return Err(Failed::new(Wrong::Bug, why));
            }
            arrived = arrivals.next(&health) => {
                if let Some(tenant) = arrived? {
                    let name = tenant.name.clone();
                    match host.add(tenant).await {
                        Ok(()) => {
                            tracing::info!(tenant = name, "is served now");
                            arrivals.served(&name, &health);
                        }
                        Err(error) => arrivals.failed(&name, error.into(), &health)?,
                    }
                }
                // Not before: what ends the start shall not stand behind a word that it has succeeded.
                if !std::mem::replace(&mut has_begun, true) {
                    started();
                }
            }
            Ok(()) = ready.changed() => {
                if *ready.borrow_and_update() {
                    tracing::info!(listening, "ready");
                }
            }
        }
    }
}

async fn stop(host: Host, signals: &mut Signals) -> Result<Exit, Failed> {
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
        let wanted =
            |kind| signal(kind).map_err(|error| Failed::new(Wrong::Bug, format!("cannot listen for signals: {error}")));
        Ok(Self { terminate: wanted(SignalKind::terminate())?, interrupt: wanted(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
