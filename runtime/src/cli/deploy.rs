//! `oncebox deploy`.

use std::{path::Path, sync::Arc};

use oncebox_core::{rollout::Rollout, rule::Rule};
use serde_json::json;

use super::{
    args::{DeployArgs, Pair},
    build::read,
    failed::{Failed, Wrong},
    open::Opened,
    output::Output,
    rollout::{Offer, json as hosts, line},
};
use crate::{
    clock::shown,
    code::Exit,
    failpoint,
    host::admission::{AdmissionError, Admitted, Place, admit},
    module,
    plugin::{Engine, EngineLimits, Module},
    store::{Deployment, DeploymentOffer, DeploymentState, Store, Use},
};

/// A module that may serve its handler.
pub(super) struct Checked {
    pub(super) module: Arc<Module>,
    pub(super) admitted: Admitted,
}

pub(super) async fn deploy(output: Output, config: &Path, args: &DeployArgs) -> Result<Exit, Failed> {
    let opened = Opened::read(config)?;
    let (tenant, _) = opened.handler(&args.place)?;
    let bytes = read(&args.module).await?;
    let store = opened.store(&args.place.tenant, tenant, Use::Command).await?;
    let cache_dir = opened.data_dir()?.join("modules");
    let checked = checked(&opened, &args.place, &bytes, store.as_ref(), &cache_dir).await?;
    let handler = store.handler_ensure(&args.place.name).await?;
    let current = store.rule_current(handler).await?.map(|(_, rule)| rule);
    let changed = current.as_ref().is_some_and(|current| current.hash() != checked.admitted.rule.hash());
    if changed && !args.new_rule {
        return Err(rule_changed(&args.place, current.as_ref(), &checked.admitted.rule));
    }
    let manifest = checked.module.manifest();
    let manifest_text = module::manifest_section(&bytes)?.unwrap_or_default();
    let offer = DeploymentOffer {
        handler,
        module: &bytes,
        digest: checked.module.digest(),
        manifest,
        manifest_text: &manifest_text,
        rule: &checked.admitted.rule,
        actor: &actor(),
        action: match (changed, args.force) {
            (false, false) => "deploy",
            (true, false) => "deploy --new-rule",
            (false, true) => "deploy --force",
            (true, true) => "deploy --new-rule --force",
        },
    };
    let deployment = store.deployment_offer(offer).await?;
    failpoint::reach(failpoint::Place::OfferWritten);
    let (deployment, rollout) = if args.no_wait || !store.host_is_live().await? {
        (deployment, Rollout::default())
    } else {
        let (place, store, boot_timeout) = (&args.place, store.as_ref(), opened.config.host.boot_timeout);
        Offer { output, place, store, deployment, boot_timeout, force: args.force }.rolled_out().await?
    };
    print(output, &args.place, &deployment, &rollout);
    Ok(Exit::Done)
}

/// Everything that is checked before a module is stored: taken in, compiled, instantiated, held against the manifest, the
/// configuration and the database.
pub(super) async fn checked(
    opened: &Opened,
    pair: &Pair,
    bytes: &[u8],
    store: &dyn Store,
    cache_dir: &Path,
) -> Result<Checked, Failed> {
    let (tenant, handler) = opened.handler(pair)?;
    let engine = Engine::new(&EngineLimits::from(&opened.config.host.limits))?;
    let module = engine.load(bytes, cache_dir).await?;
    let place =
        Place { host_limits: &opened.config.host.limits, tenant_name: &pair.tenant, tenant, name: &pair.name, handler };
    let catalogue = store.catalogue().await?;
    let admitted = admit(place, module.manifest(), store, &catalogue).await.map_err(|error| match error {
        AdmissionError::Refused(refused) => Failed::module(refused, Some(pair)),
        AdmissionError::Store(error) => error.into(),
    })?;
    module.dry_run().await?;
    Ok(Checked { module, admitted })
}

fn rule_changed(place: &Pair, old: Option<&Rule>, new: &Rule) -> Failed {
    let told = |rule: &Rule| {
        let ordering = rule.ordering().map_or("none", oncebox_core::template::Template::source);
        format!("key `{}`, fingerprint {}, ordering {ordering}", rule.key().source(), rule.fingerprint_text())
    };
    let old = old.map_or_else(String::new, told);
    let message = format!(
        "{place} is bound to another rule:\n  now: {old}\n  new: {}\n\
         Old inbox rows keep their rule and are compared by it; a fact whose key is made anew is not recognised as a \
         duplicate of one applied under the old rule. If that is meant: --new-rule",
        told(new)
    );
    Failed::new(Wrong::Rule, message)
}

fn print(output: Output, place: &Pair, deployment: &Deployment, rollout: &Rollout) {
    output.answer(
        || {
            json!({
                "place": place.to_string(),
                "deployment": deployment.id,
                "state": deployment.state,
                "version": deployment.version,
                "module": deployment.digest.to_string(),
                "created_at": shown(deployment.created_us),
                "active_from": deployment.active_from_us.map(shown),
                "hosts": hosts(rollout),
            })
        },
        || {
            let state = match deployment.state {
                DeploymentState::Active => "active",
                DeploymentState::Offered => "offered: the next `oncebox run` serves it",
                DeploymentState::Replaced => "replaced",
                DeploymentState::Refused => "refused",
            };
            // Of a single host there is nothing more to tell.
            let on = match (rollout.ready.len(), rollout.refusing.len() + rollout.awaited.len()) {
                (0 | 1, 0) => String::new(),
                _ => format!(" ({})", line(rollout)),
            };
            format!(
                "{place}: deployment {} of {}, sha256:{}: {state}{on}",
                deployment.id, deployment.version, deployment.digest
            )
        },
    );
}

/// Who deploys, for the audit row.
fn actor() -> String {
    let name = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_else(|_| "unknown".to_owned());
    let mut actor = oncebox_core::ids::shown(name.as_bytes());
    actor.truncate(128);
    actor
}
