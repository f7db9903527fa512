//! Modules and deployments.
//!
//! Two hosts, or two people, may do the same at once. Whatever changes a handler's deployments locks the handler's row
//! first, so that one of them is the first and the other sees what it has done.

use oncebox_core::{ids::ModuleDigest, rule::Rule};
use sqlx::mysql::MySqlRow;

use super::{
    admin::{ended, only},
    columns::Columns,
    session::Session,
};
use crate::store::{
    Deployment, DeploymentId, DeploymentOffer, DeploymentState, HandlerId, RuleId, StoreError, StoredRule, cut,
};

const CHUNK_BYTES: usize = 1 << 20;

pub(super) async fn rule_current(session: &mut Session, handler: HandlerId) -> Result<Option<StoredRule>, StoreError> {
    let sql = "SELECT r.rule_id, r.key_template, r.fingerprint, r.ordering_template
               FROM ob_deployment AS d JOIN ob_rule AS r ON r.rule_id = d.rule_id
               WHERE d.handler_id = ? AND d.state <> ? ORDER BY d.deployment_id DESC LIMIT 1";
    let args = args![handler.0, DeploymentState::Refused.number()];
    let rows = session.rows("rule current", sql, args).await?;
    rows.first().map(stored_rule).transpose()
}

pub(super) async fn rules(session: &mut Session, handler: HandlerId) -> Result<Vec<StoredRule>, StoreError> {
    let sql = "SELECT rule_id, key_template, fingerprint, ordering_template FROM ob_rule WHERE handler_id = ?
               ORDER BY rule_id";
    let rows = session.rows("rules", sql, args![handler.0]).await?;
    rows.iter().map(stored_rule).collect()
}

fn stored_rule(row: &MySqlRow) -> Result<StoredRule, StoreError> {
    let row = Columns::of("ob_rule", row);
    let ordering = row.text_or_null(3)?;
    let rule = Rule::from_kept(&row.text(1)?, &row.text(2)?, ordering.as_deref())
        .map_err(|error| row.corrupt(error.to_string()))?;
    Ok((RuleId(row.integer(0)?), rule))
}

pub(super) async fn deployment_offer(
    session: &mut Session,
    offer: DeploymentOffer<'_>,
) -> Result<Deployment, StoreError> {
    session.begin().await?;
    let offered = offered(session, &offer).await;
    let id = ended(session, offered).await?;
    let gone = || StoreError::Corrupt { table: "ob_deployment", message: format!("deployment {id} is gone again") };
    deployment_read(session, id).await?.ok_or_else(gone)
}

async fn offered(session: &mut Session, offer: &DeploymentOffer<'_>) -> Result<DeploymentId, StoreError> {
    // The module goes first: while it is on its way, the handler's row is still free.
    module_insert(session, offer).await?;
    lock(session, offer.handler).await?;
    let rule = rule_ensure(session, offer).await?;
    // A deployment that nobody has served yet is overtaken by the newer one.
    let overtake = "UPDATE ob_deployment SET state = ? WHERE handler_id = ? AND state = ?";
    let (offered, active) = (DeploymentState::Offered.number(), DeploymentState::Active.number());
    let args = args![DeploymentState::Replaced.number(), offer.handler.0, offered];
    session.execute("deployment overtake", overtake, args).await?;
    let active_now = "SELECT deployment_id FROM ob_deployment WHERE handler_id = ? AND state = ?";
    let rows = session.rows("deployment active", active_now, args![offer.handler.0, active]).await?;
    let replaces = rows.first().map(|row| Columns::of("ob_deployment", row).integer::<i64>(0)).transpose()?;
    let insert = "INSERT INTO ob_deployment (handler_id, digest, rule_id, state, replaces, created_at, created_by)
                  VALUES (?, ?, ?, ?, ?, UTC_TIMESTAMP(6), ?)";
    let actor = cut(offer.actor, 128);
    let args = args![offer.handler.0, offer.digest.as_bytes(), rule.0, offered, replaces, actor];
    let done = session.execute("deployment insert", insert, args).await?;
    let id = DeploymentId(i64::try_from(done.last_insert_id).unwrap_or(i64::MAX));
    let audit = "INSERT INTO ob_audit (at, actor, via, action, handler_id, subject)
                 VALUES (UTC_TIMESTAMP(6), ?, 'command', ?, ?, ?)";
    let subject = format!("deployment {id}, module {}", offer.digest);
    session.execute("audit insert", audit, args![actor, cut(offer.action, 64), offer.handler.0, subject]).await?;
    Ok(id)
}

/// Whoever changes a handler's deployments holds its row.
async fn lock(session: &mut Session, handler: HandlerId) -> Result<(), StoreError> {
    let sql = "SELECT handler_id FROM ob_handler WHERE handler_id = ? FOR UPDATE";
    let rows = session.rows("handler lock", sql, args![handler.0]).await?;
    only("handler lock", &rows).map(|_| ())
}

async fn module_insert(session: &mut Session, offer: &DeploymentOffer<'_>) -> Result<(), StoreError> {
    let known = "SELECT COUNT(*) FROM ob_module WHERE digest = ?";
    let rows = session.rows("module known", known, args![offer.digest.as_bytes()]).await?;
    if only("module known", &rows)?.integer::<u64>(0)? > 0 {
        return Ok(());
    }
    // Another one who stores the same module now is waited for; what he has written is the same.
    let insert = "INSERT INTO ob_module (digest, name, version, contract, size, manifest, created_at, created_by)
                  VALUES (?, ?, ?, ?, ?, ?, UTC_TIMESTAMP(6), ?) ON DUPLICATE KEY UPDATE size = size";
    let size = u64::try_from(offer.module.len()).unwrap_or(u64::MAX);
    let args = args![
        offer.digest.as_bytes(),
        offer.manifest.name.as_str(),
        offer.manifest.version.as_str(),
        offer.manifest.contract.as_str(),
        size,
        offer.manifest_text,
        cut(offer.actor, 128),
    ];
    session.execute("module insert", insert, args).await?;
    let chunk_insert = "INSERT INTO ob_module_chunk (digest, n, bytes) VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE n = n";
    for (n, chunk) in (0u32..).zip(offer.module.chunks(CHUNK_BYTES)) {
        session.execute("module chunk insert", chunk_insert, args![offer.digest.as_bytes(), n, chunk]).await?;
    }
    Ok(())
}

async fn rule_ensure(session: &mut Session, offer: &DeploymentOffer<'_>) -> Result<RuleId, StoreError> {
    let hash = offer.rule.hash();
    let known = "SELECT rule_id FROM ob_rule WHERE handler_id = ? AND rule_hash = ?";
    let rows = session.rows("rule known", known, args![offer.handler.0, hash.as_bytes()]).await?;
    if let Some(row) = rows.first() {
        return Columns::of("ob_rule", row).integer(0).map(RuleId);
    }
    // Nobody else inserts one meanwhile: the handler's row is locked.
    let insert = "INSERT INTO ob_rule (handler_id, algorithm, key_template, fingerprint, ordering_template, rule_hash)
                  VALUES (?, 1, ?, ?, ?, ?)";
    let ordering = offer.rule.ordering().map(oncebox_core::template::Template::source);
    let fingerprint = offer.rule.fingerprint_text();
    let args = args![offer.handler.0, offer.rule.key().source(), fingerprint, ordering, hash.as_bytes()];
    let done = session.execute("rule insert", insert, args).await?;
    Ok(RuleId(i64::try_from(done.last_insert_id).unwrap_or(i64::MAX)))
}

/// What [`deployment`] reads.
macro_rules! deployments {
    ($which:literal) => {
        concat!(
            "SELECT d.deployment_id, d.handler_id, d.digest, m.version, d.rule_id, d.state, d.reason, d.created_at,
               d.active_from
             FROM ob_deployment AS d JOIN ob_module AS m ON m.digest = d.digest ",
            $which
        )
    };
}

pub(super) async fn deployment_read(session: &mut Session, id: DeploymentId) -> Result<Option<Deployment>, StoreError> {
    let rows = session.rows("deployment", deployments!("WHERE d.deployment_id = ?"), args![id.0]).await?;
    rows.first().map(deployment).transpose()
}

pub(super) async fn deployments(session: &mut Session) -> Result<Vec<Deployment>, StoreError> {
    let sql = deployments!("WHERE d.state IN (?, ?) ORDER BY d.deployment_id");
    let args = args![DeploymentState::Offered.number(), DeploymentState::Active.number()];
    let rows = session.rows("deployments", sql, args).await?;
    rows.iter().map(deployment).collect()
}

fn deployment(row: &MySqlRow) -> Result<Deployment, StoreError> {
    let row = Columns::of("ob_deployment", row);
    Ok(Deployment {
        id: DeploymentId(row.integer(0)?),
        handler: HandlerId(row.integer(1)?),
        digest: ModuleDigest::from_slice(row.bytes(2)?).ok_or_else(|| row.corrupt("the digest is not 32 bytes"))?,
        version: row.text(3)?,
        rule: RuleId(row.integer(4)?),
        state: DeploymentState::from_number(row.integer(5)?).ok_or_else(|| row.corrupt("unknown state"))?,
        reason: row.text_or_null(6)?,
        created_us: row.time(7)?,
        active_from_us: row.time_or_null(8)?,
    })
}

pub(super) async fn deployment_activate(session: &mut Session, deployment: &Deployment) -> Result<(), StoreError> {
    session.begin().await?;
    let activated = activated(session, deployment).await;
    ended(session, activated).await
}

async fn activated(session: &mut Session, deployment: &Deployment) -> Result<(), StoreError> {
    lock(session, deployment.handler).await?;
    let (offered, active) = (DeploymentState::Offered.number(), DeploymentState::Active.number());
    let activate = "UPDATE ob_deployment SET state = ?, active_from = UTC_TIMESTAMP(6)
                    WHERE deployment_id = ? AND state = ?";
    let done = session.execute("deployment activate", activate, args![active, deployment.id.0, offered]).await?;
    // 0: a newer one was offered meanwhile, or it is active already; then nothing is replaced.
    if done.affected == 1 {
        let replace = "UPDATE ob_deployment SET state = ? WHERE handler_id = ? AND state = ? AND deployment_id <> ?";
        let args = args![DeploymentState::Replaced.number(), deployment.handler.0, active, deployment.id.0];
        session.execute("deployment replace", replace, args).await?;
    }
    Ok(())
}

pub(super) async fn deployment_refuse(
    session: &mut Session,
    deployment: &Deployment,
    reason: &str,
) -> Result<(), StoreError> {
    let sql = "UPDATE ob_deployment SET state = ?, reason = ? WHERE deployment_id = ? AND state = ?";
    let (refused, offered) = (DeploymentState::Refused.number(), DeploymentState::Offered.number());
    session.execute("deployment refuse", sql, args![refused, reason, deployment.id.0, offered]).await?;
    Ok(())
}

pub(super) async fn module_read(session: &mut Session, digest: ModuleDigest) -> Result<Option<Vec<u8>>, StoreError> {
    let sql = "SELECT bytes FROM ob_module_chunk WHERE digest = ? ORDER BY n";
    let rows = session.rows("module read", sql, args![digest.as_bytes()]).await?;
    let mut module = Vec::new();
    for row in &rows {
        module.extend_from_slice(Columns::of("ob_module_chunk", row).bytes(0)?);
    }
    Ok((!rows.is_empty()).then_some(module))
}
