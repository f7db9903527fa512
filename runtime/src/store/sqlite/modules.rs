//! Modules and deployments.

use oncebox_core::{ids::ModuleDigest, rule::Rule};
use sqlx::{Connection as _, Row as _, SqliteConnection, sqlite::SqliteRow};

use super::errors::store_error;
use crate::store::{
    Deployment, DeploymentId, DeploymentOffer, DeploymentState, HandlerId, RuleId, StoreError, StoredRule,
};

const CHUNK_BYTES: usize = 1 << 20;

pub(super) async fn rule_current(
    connection: &mut SqliteConnection,
    handler: HandlerId,
) -> Result<Option<StoredRule>, StoreError> {
    let wrap = |error| store_error("rule current", &error);
    let row = sqlx::query(
        "SELECT r.rule_id, r.key_template, r.fingerprint, r.ordering_template
         FROM ob_deployment AS d JOIN ob_rule AS r ON r.rule_id = d.rule_id
         WHERE d.handler_id = ? AND d.state <> ? ORDER BY d.deployment_id DESC LIMIT 1",
    )
    .bind(handler.0)
    .bind(DeploymentState::Refused.number())
    .fetch_optional(connection)
    .await
    .map_err(wrap)?;
    row.as_ref().map(stored_rule).transpose()
}

pub(super) async fn rules(
    connection: &mut SqliteConnection,
    handler: HandlerId,
) -> Result<Vec<StoredRule>, StoreError> {
    let rows = sqlx::query(
        "SELECT rule_id, key_template, fingerprint, ordering_template FROM ob_rule WHERE handler_id = ? ORDER BY rule_id",
    )
    .bind(handler.0)
    .fetch_all(connection)
    .await
    .map_err(|error| store_error("rules", &error))?;
    rows.iter().map(stored_rule).collect()
}

fn stored_rule(row: &SqliteRow) -> Result<StoredRule, StoreError> {
    let wrap = |error| store_error("rule row", &error);
    let (key, fingerprint): (String, String) = (row.try_get(1).map_err(wrap)?, row.try_get(2).map_err(wrap)?);
    let ordering: Option<String> = row.try_get(3).map_err(wrap)?;
    let rule = Rule::from_kept(&key, &fingerprint, ordering.as_deref())
        .map_err(|error| StoreError::Corrupt { table: "ob_rule", message: error.to_string() })?;
    Ok((RuleId(row.try_get(0).map_err(wrap)?), rule))
}

pub(super) async fn deployment_offer(
    connection: &mut SqliteConnection,
    offer: DeploymentOffer<'_>,
) -> Result<Deployment, StoreError> {
    let wrap = |error| store_error("deployment offer", &error);
    let mut tx = connection.begin_with("BEGIN IMMEDIATE").await.map_err(wrap)?;
    module_insert(&mut tx, &offer).await.map_err(wrap)?;
    let rule = rule_ensure(&mut tx, &offer).await.map_err(wrap)?;
    // A deployment that nobody has served yet is overtaken by the newer one.
    sqlx::query("UPDATE ob_deployment SET state = ? WHERE handler_id = ? AND state = ?")
        .bind(DeploymentState::Replaced.number())
        .bind(offer.handler.0)
        .bind(DeploymentState::Offered.number())
        .execute(&mut *tx)
        .await
        .map_err(wrap)?;
    let insert = concat!(
        "INSERT INTO ob_deployment (handler_id, digest, rule_id, state, replaces, created_at, created_by)
         VALUES (?1, ?2, ?3, ?4, (SELECT deployment_id FROM ob_deployment WHERE handler_id = ?1 AND state = ?5), ",
        now_us!(),
        ", ?6)
         RETURNING deployment_id, created_at"
    );
    let row = sqlx::query(insert)
        .bind(offer.handler.0)
        .bind(offer.digest.as_bytes())
        .bind(rule.0)
        .bind(DeploymentState::Offered.number())
        .bind(DeploymentState::Active.number())
        .bind(offer.actor)
        .fetch_one(&mut *tx)
        .await
        .map_err(wrap)?;
    let id = DeploymentId(row.try_get(0).map_err(wrap)?);
    let audit = concat!(
        "INSERT INTO ob_audit (at, actor, via, action, handler_id, subject) VALUES (",
        now_us!(),
        ", ?, 'command', ?, ?, ?)"
    );
    sqlx::query(audit)
        .bind(offer.actor)
        .bind(offer.action)
        .bind(offer.handler.0)
        .bind(format!("deployment {id}, module {}", offer.digest))
        .execute(&mut *tx)
        .await
        .map_err(wrap)?;
    let created_us = row.try_get(1).map_err(wrap)?;
    tx.commit().await.map_err(wrap)?;
    Ok(Deployment {
        id,
        handler: offer.handler,
        digest: offer.digest,
        version: offer.manifest.version.clone(),
        rule,
        state: DeploymentState::Offered,
        reason: None,
        created_us,
        active_from_us: None,
    })
}

async fn module_insert(connection: &mut SqliteConnection, offer: &DeploymentOffer<'_>) -> Result<(), sqlx::Error> {
    let sql = concat!(
        "INSERT INTO ob_module (digest, name, version, contract, size, manifest, created_at, created_by)
         VALUES (?, ?, ?, ?, ?, ?, ",
        now_us!(),
        ", ?) ON CONFLICT (digest) DO NOTHING"
    );
    let done = sqlx::query(sql)
        .bind(offer.digest.as_bytes())
        .bind(&offer.manifest.name)
        .bind(&offer.manifest.version)
        .bind(&offer.manifest.contract)
        .bind(i64::try_from(offer.module.len()).unwrap_or(i64::MAX))
        .bind(offer.manifest_text)
        .bind(offer.actor)
        .execute(&mut *connection)
        .await?;
    if done.rows_affected() == 0 {
        return Ok(());
    }
    for (n, chunk) in (0i64..).zip(offer.module.chunks(CHUNK_BYTES)) {
        sqlx::query("INSERT INTO ob_module_chunk (digest, n, bytes) VALUES (?, ?, ?)")
            .bind(offer.digest.as_bytes())
            .bind(n)
            .bind(chunk)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

async fn rule_ensure(connection: &mut SqliteConnection, offer: &DeploymentOffer<'_>) -> Result<RuleId, sqlx::Error> {
    let hash = offer.rule.hash();
    sqlx::query(
        "INSERT INTO ob_rule (handler_id, algorithm, key_template, fingerprint, ordering_template, rule_hash)
         VALUES (?, 1, ?, ?, ?, ?) ON CONFLICT (handler_id, rule_hash) DO NOTHING",
    )
    .bind(offer.handler.0)
    .bind(offer.rule.key().source())
    .bind(offer.rule.fingerprint_text())
    .bind(offer.rule.ordering().map(oncebox_core::template::Template::source))
    .bind(hash.as_bytes())
    .execute(&mut *connection)
    .await?;
    sqlx::query("SELECT rule_id FROM ob_rule WHERE handler_id = ? AND rule_hash = ?")
        .bind(offer.handler.0)
        .bind(hash.as_bytes())
        .fetch_one(connection)
        .await?
        .try_get(0)
        .map(RuleId)
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

pub(super) async fn deployment_read(
    connection: &mut SqliteConnection,
    id: DeploymentId,
) -> Result<Option<Deployment>, StoreError> {
    let row = sqlx::query(deployments!("WHERE d.deployment_id = ?"))
        .bind(id.0)
        .fetch_optional(connection)
        .await
        .map_err(|error| store_error("deployment", &error))?;
    row.as_ref().map(deployment).transpose()
}

pub(super) async fn deployments(connection: &mut SqliteConnection) -> Result<Vec<Deployment>, StoreError> {
    let rows = sqlx::query(deployments!("WHERE d.state IN (?, ?) ORDER BY d.deployment_id"))
        .bind(DeploymentState::Offered.number())
        .bind(DeploymentState::Active.number())
        .fetch_all(connection)
        .await
        .map_err(|error| store_error("deployments", &error))?;
    rows.iter().map(deployment).collect()
}

fn deployment(row: &SqliteRow) -> Result<Deployment, StoreError> {
    let wrap = |error| store_error("deployment row", &error);
    let corrupt = |message: &str| StoreError::Corrupt { table: "ob_deployment", message: message.to_owned() };
    Ok(Deployment {
        id: DeploymentId(row.try_get(0).map_err(wrap)?),
        handler: HandlerId(row.try_get(1).map_err(wrap)?),
        digest: ModuleDigest::from_slice(row.try_get(2).map_err(wrap)?)
            .ok_or_else(|| corrupt("the digest is not 32 bytes"))?,
        version: row.try_get(3).map_err(wrap)?,
        rule: RuleId(row.try_get(4).map_err(wrap)?),
        state: DeploymentState::from_number(row.try_get(5).map_err(wrap)?).ok_or_else(|| corrupt("unknown state"))?,
        reason: row.try_get(6).map_err(wrap)?,
        created_us: row.try_get(7).map_err(wrap)?,
        active_from_us: row.try_get(8).map_err(wrap)?,
    })
}

pub(super) async fn deployment_activate(
    connection: &mut SqliteConnection,
    deployment: &Deployment,
) -> Result<(), StoreError> {
    let wrap = |error| store_error("deployment activate", &error);
    let mut tx = connection.begin_with("BEGIN IMMEDIATE").await.map_err(wrap)?;
    let activate = concat!(
        "UPDATE ob_deployment SET state = ?, active_from = ",
        now_us!(),
        " WHERE deployment_id = ? AND state = ?"
    );
    let done = sqlx::query(activate)
        .bind(DeploymentState::Active.number())
        .bind(deployment.id.0)
        .bind(DeploymentState::Offered.number())
        .execute(&mut *tx)
        .await
        .map_err(wrap)?;
    // 0: a newer one was offered meanwhile, or it is active already; then nothing is replaced.
    if done.rows_affected() == 1 {
        sqlx::query("UPDATE ob_deployment SET state = ? WHERE handler_id = ? AND state = ? AND deployment_id <> ?")
            .bind(DeploymentState::Replaced.number())
            .bind(deployment.handler.0)
            .bind(DeploymentState::Active.number())
            .bind(deployment.id.0)
            .execute(&mut *tx)
            .await
            .map_err(wrap)?;
    }
    tx.commit().await.map_err(wrap)
}

pub(super) async fn deployment_refuse(
    connection: &mut SqliteConnection,
    deployment: &Deployment,
    reason: &str,
) -> Result<(), StoreError> {
    sqlx::query("UPDATE ob_deployment SET state = ?, reason = ? WHERE deployment_id = ? AND state = ?")
        .bind(DeploymentState::Refused.number())
        .bind(reason)
        .bind(deployment.id.0)
        .bind(DeploymentState::Offered.number())
        .execute(connection)
        .await
        .map(|_| ())
        .map_err(|error| store_error("deployment refuse", &error))
}

pub(super) async fn module_read(
    connection: &mut SqliteConnection,
    digest: ModuleDigest,
) -> Result<Option<Vec<u8>>, StoreError> {
    let wrap = |error| store_error("module read", &error);
    let rows = sqlx::query("SELECT bytes FROM ob_module_chunk WHERE digest = ? ORDER BY n")
        .bind(digest.as_bytes())
        .fetch_all(connection)
        .await
        .map_err(wrap)?;
    let mut module = Vec::new();
    for row in &rows {
        module.extend_from_slice(row.try_get(0).map_err(wrap)?);
    }
    Ok((!rows.is_empty()).then_some(module))
}
