//! `oncebox run`.

use std::{future::pending, path::Path, time::Duration};

use oncebox_core::{config, text::TextError};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{
    failed::{Failed, Wrong},
    logs,
    open::Opened,
};
use crate::{
    code::Exit,
    host::{Ended, Health, Host, OpenTenant},
    store::Use,
};

/// Between two tries to open the database of a tenant that is not served.
const TRY_AGAIN: Duration = Duration::from_secs(5);

pub(super) async fn run(config: &Path, json: bool) -> Result<Exit, Failed> {
    let opened = Opened::read(config)?;
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

async fn serve(opened: &Opened) -> Result<Exit, Failed> {
    let mut signals = Signals::new()?;
    let data_dir = opened.data_dir()?;
    let (tenants, mut absent) = Absent::begin(opened).await?;
    let mut host = Host::start(opened.config.host.clone(), &data_dir, tenants).await?;
    absent.tell(host.health());
    let listening = host.listening().map(|address| address.to_string());
    tracing::info!(version = env!("CARGO_PKG_VERSION"), listening, "started");
    let health = host.health().clone();
    let mut ready = health.ready();
    loop {
        tokio::select! {
            () = signals.next() => return stop(host, &mut signals).await,
            why = host.broken() => {
                tracing::error!(why, "stopping: this is a bug");
                return Err(Failed::new(Wrong::Bug, why));
            }
            tenant = absent.next(&health) => {
                let name = tenant.name.clone();
                match host.add(tenant).await {
                    Ok(()) => {
                        tracing::info!(tenant = name, "is served now");
                        health.mended(&reason(&name));
                    }
                    Err(error) => absent.put_back(&name, error.into()),
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

/// Tenants whose database could not be opened: tried again while the others work.
struct Absent<'a> {
    opened: &'a Opened,
    tenants: Vec<(&'a str, &'a config::Tenant, Failed)>,
}

impl<'a> Absent<'a> {
    /// Opens what can be opened; a host without any tenant does not start.
    async fn begin(opened: &'a Opened) -> Result<(Vec<OpenTenant>, Self), Failed> {
        let (mut open, mut absent) = (Vec::new(), Vec::new());
        for (name, settings) in opened.tenants(None)? {
            match opened.store(name, settings, Use::Host).await {
                Ok(store) => open.push(OpenTenant { name: name.to_owned(), settings: settings.clone(), store }),
                Err(failed) => absent.push((name, settings, failed)),
            }
        }
        if open.is_empty() && !absent.is_empty() {
            return Err(absent.swap_remove(0).2);
        }
        Ok((open, Self { opened, tenants: absent }))
    }

    fn tell(&self, health: &Health) {
        for (name, _, failed) in &self.tenants {
            if health.missing(reason(name), &failed.message) {
                tracing::error!(tenant = name, code = failed.code, error = failed.message, "is not served");
            }
        }
    }

    fn put_back(&mut self, name: &str, failed: Failed) {
        let known = self.opened.config.tenants.get_key_value(name);
        self.tenants.extend(known.map(|(name, settings)| (name.as_str(), settings, failed)));
    }

    /// Waits for the next one that can be opened. Nothing is lost when this is not waited for to its end.
    async fn next(&mut self, health: &Health) -> OpenTenant {
        if self.tenants.is_empty() {
            return pending().await;
        }
        loop {
            tokio::time::sleep(TRY_AGAIN).await;
            for at in 0..self.tenants.len() {
                match self.opened.store(self.tenants[at].0, self.tenants[at].1, Use::Host).await {
                    Ok(store) => {
                        let (name, settings, _) = self.tenants.swap_remove(at);
                        return OpenTenant { name: name.to_owned(), settings: settings.clone(), store };
                    }
                    Err(failed) => self.tenants[at].2 = failed,
                }
            }
            self.tell(health);
        }
    }
}

/// The tenant's name as a reason of [`Health`].
fn reason(tenant: &str) -> String {
    format!("tenant {tenant}")
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
