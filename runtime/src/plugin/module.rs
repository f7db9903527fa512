//! One module ready to run, and one run of it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use oncebox_core::{
    failure::{Class, Failure},
    ids::ModuleDigest,
    manifest::Manifest,
};
use wasmtime::Store;

use super::{
    Attempt, Context, Engine, Event, Outcome, PluginError, RunLimits,
    contract::{Handler, HandlerPre, types},
    fault,
    host::{Host, Phase},
    text::{MESSAGE_BYTES_MAX, tamed},
};

/// Wall time of a dry run.
const DRY_RUN_TIME_MAX: Duration = Duration::from_secs(5);

/// A component that fits and is linked; [`Module::run`] makes an instance for each attempt.
pub struct Module {
    engine: Arc<Engine>,
    digest: ModuleDigest,
    manifest: Arc<Manifest>,
    handler: HandlerPre<Host>,
}

impl Module {
    pub(super) fn new(
        engine: Arc<Engine>,
        digest: ModuleDigest,
        manifest: Manifest,
        handler: HandlerPre<Host>,
    ) -> Self {
        Self { engine, digest, manifest: Arc::new(manifest), handler }
    }

    /// The sha256 of the packed component.
    #[must_use]
    pub fn digest(&self) -> ModuleDigest {
        self.digest
    }

    /// What the module declares about itself.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Makes an instance under a deadline and the host's memory ceiling, and calls nothing.
    ///
    /// # Errors
    /// `handle` is not of the contract's shape, or the instance cannot be made: a start function that traps, loops or calls an import, or too much memory.
    pub async fn dry_run(&self) -> Result<(), PluginError> {
        let refused = |failure: &Failure| PluginError::DryRun {
            reason: format!("{}: {}", failure.class.name(), failure.message),
        };
        let _permit = self.permit().await.map_err(|failure| refused(&failure))?;
        let _ticking = self.engine.ticker().run();
        let mut store =
            self.engine.store(Host::new(dry_attempt(self.engine.limits().memory_bytes_max), &self.manifest));
        let instance = self.handler.instance_pre().instantiate_async(&mut store).await;
        // The types of the export are compared only when it is looked up in an instance.
        let looked_up = instance.map(|instance| Handler::new(&mut store, &instance).map(drop));
        let host = store.into_data();
        host.close();
        match looked_up {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(PluginError::VersionSkew { chain: fault::chain(&error) }),
            Err(error) => Err(refused(&host.failure(&error))),
        }
    }

    /// Runs one attempt in a fresh instance.
    ///
    /// The future owns all it needs and may be moved, but not dropped before it is over if its outcome is wanted; a drop
    /// ends the run and frees the instance. It waits for a free instance without a limit: that is not the plugin's fault
    /// and not counted into its time.
    pub fn run(self: &Arc<Self>, attempt: Attempt) -> impl Future<Output = Outcome> + Send + 'static {
        let module = Arc::clone(self);
        async move { module.attempt(attempt).await }
    }

    async fn attempt(&self, mut attempt: Attempt) -> Outcome {
        let _permit = match self.permit().await {
            Ok(permit) => permit,
            Err(failure) => return Outcome::Failed(failure),
        };
        let ceiling = self.engine.limits().memory_bytes_max;
        if attempt.limits.memory_bytes_max > ceiling {
            attempt.limits = Arc::new(RunLimits { memory_bytes_max: ceiling, ..RunLimits::clone(&attempt.limits) });
        }
        let event = types::Event::from(&*attempt.event);
        let _ticking = self.engine.ticker().run();
        let mut store = self.engine.store(Host::new(attempt, &self.manifest));
        let answer = self.call(&mut store, &event).await;
        let host = store.into_data();
        host.close();
        match answer {
            Ok(answer) => outcome(host, answer),
            Err(error) => Outcome::Failed(host.failure(&error)),
        }
    }

    async fn call(
        &self,
        store: &mut Store<Host>,
        event: &types::Event,
    ) -> wasmtime::Result<Result<types::Done, types::Failure>> {
        let handler = self.handler.instantiate_async(&mut *store).await?;
        store.data_mut().enter(Phase::Handling);
        let answer = handler.oncebox_handler_guest().call_handle(&mut *store, event).await;
        store.data_mut().enter(Phase::Sealed);
        answer
    }

    async fn permit(&self) -> Result<tokio::sync::SemaphorePermit<'_>, Failure> {
        let closed = |_| Failure::new(Class::Infrastructure, "engine-closed", "the engine is shutting down");
        self.engine.permits().acquire().await.map_err(closed)
    }
}

fn outcome(host: Host, answer: Result<types::Done, types::Failure>) -> Outcome {
    match answer {
        Ok(types::Done::Applied(result)) => host.applied(result),
        Ok(types::Done::Skipped(reason)) => Outcome::Skipped { reason: tamed(&reason, MESSAGE_BYTES_MAX) },
        Err(types::Failure::Retry(wish)) => {
            let mut failure = Failure::new(Class::GuestRetry, "guest-retry", tamed(&wish.reason, MESSAGE_BYTES_MAX));
            failure.after = wish.after_ms.map(|after| Duration::from_millis(after.into()));
            Outcome::Failed(failure)
        }
        Err(types::Failure::Reject(rejection)) => Outcome::Failed(rejected(&rejection)),
    }
}

fn rejected(rejection: &types::Rejection) -> Failure {
    let code = &rejection.code;
    let message = tamed(&rejection.message, MESSAGE_BYTES_MAX);
    let well_formed = (1..=64).contains(&code.len())
        && code.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if well_formed {
        return Failure::new(Class::GuestReject, code, message);
    }
    let code = tamed(code, 128);
    let text = format!("reject with code `{code}`, which is not of [a-z0-9-]{{1,64}}; its message: {message}");
    Failure::new(Class::Abi, "reject-code", tamed(&text, MESSAGE_BYTES_MAX))
}

/// An attempt that never begins: the dry run stops before `handle`.
fn dry_attempt(memory_bytes_max: u64) -> Attempt {
    let limits = RunLimits {
        run_time_max: DRY_RUN_TIME_MAX,
        memory_bytes_max,
        staged_rows_max: 0,
        staged_bytes_max: 0,
        events_max: 0,
        host_calls_max: 1000,
        log_lines_max: 100,
        result_bytes_max: 0,
    };
    let context = Context {
        now_us: 0,
        attempt: 1,
        generation: 0,
        tenant: String::new(),
        handler: "dry-run".into(),
        traceparent: None,
        random_key: [0; 32],
    };
    Attempt {
        event: Arc::new(Event::default()),
        limits: Arc::new(limits),
        config: Arc::new(BTreeMap::new()),
        context,
        queries: None,
    }
}

impl Host {
    fn failure(&self, error: &wasmtime::Error) -> Failure {
        fault::failure(error, self.memory_ref(), self.last_error())
    }
}
