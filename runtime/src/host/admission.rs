//! Whether a module may serve a handler: its manifest against the tenant's configuration and database. The same checks
//! run at `oncebox deploy`, at the host's start and when a table's definition changes.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use oncebox_core::{
    config::{self, HostLimits, common_type},
    fold,
    manifest::{Manifest, RowExpectation},
    retry::RetryPolicy,
    rule::Rule,
    sql::{self, Catalogue, Declared, Dialect, Operator, Purpose},
};

use super::handler::{BoundDestination, ReadyQuery, ReadyStatement};
use crate::{
    code::codes,
    plugin::RunLimits,
    store::{Store, StoreError},
};

/// A handler's place in the configuration.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// Ceilings of the host.
    pub host_limits: &'a HostLimits,
    /// Name of the tenant.
    pub tenant_name: &'a str,
    /// What the operator says of the tenant.
    pub tenant: &'a config::Tenant,
    /// Name of the handler.
    pub name: &'a str,
    /// What the operator says of the handler.
    pub handler: &'a config::Handler,
}

/// All that a deployment needs beside its module.
#[derive(Debug, Clone)]
pub struct Admitted {
    /// Manifest and overrides.
    pub rule: Rule,
    /// Limits of a run.
    pub limits: RunLimits,
    /// What is done with failures.
    pub retry: RetryPolicy,
    /// Values for the plugin.
    pub config: BTreeMap<String, String>,
    /// Statements by name.
    pub statements: BTreeMap<String, ReadyStatement>,
    /// Queries by name.
    pub queries: BTreeMap<String, ReadyQuery>,
    /// Destinations by the manifest's name.
    pub destinations: BTreeMap<String, BoundDestination>,
}

/// Why a module may not serve a handler: every reason that was found, each with how to mend it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused(pub Vec<Reason>);

/// One reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// Its code, with a page in the docs.
    pub code: &'static str,
    /// What, where and how to mend.
    pub message: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, reason) in self.0.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "[{}] {}", reason.code, reason.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for Refused {}

/// The checks of a module against the configuration; those of its texts are the SQL gate's [`sql::Rule`].
#[derive(Debug, Clone, Copy)]
pub enum Check {
    /// The rule, overrides included.
    BadRule,
    /// Sources that cannot keep the order that the rule asks for.
    Ordering,
    /// Routes.
    EventTypes,
    /// Values for the plugin.
    Config,
    /// Destinations.
    Destinations,
    /// Ceilings.
    Limits,
    /// A table's own definition.
    UnfitTable,
    /// The database's own opinion of a text.
    NotPrepared,
}

codes! { Check {
    BadRule "bad-rule" Refused
        "key, fingerprint or ordering key cannot be made as the manifest or the override says"
        "mend the template in handler.toml, or the override in the handler's configuration"
    Ordering "ordering" Refused
        "the handler asks for order, and a source of its events cannot keep one"
        "take its events from a queue with a single active consumer, or remove `ordering`"
    EventTypes "event-types" Refused
        "a route gives the handler event types that the module does not take"
        "mend the route, or event_types in the manifest"
    Config "config-values" Refused
        "a value that the module needs is missing, or one is given that it does not declare"
        "mend config of the handler's configuration"
    Destinations "destinations" Refused
        "a destination of the module is not bound, or bound to one that does not fit"
        "mend destinations of the handler's configuration"
    Limits "limits" Refused
        "the module needs more than the operator's ceiling"
        "raise the ceiling, or make the module need less"
    UnfitTable "table-unfit" Refused
        "a table that the module names has a clause that would break the unit of work behind the host's back"
        "make the table anew without the clause that the message names"
    NotPrepared "not-prepared" Refused
        "the database does not prepare a statement or query"
        "mend the text as the database's own words say"
} }

/// What keeps a module from being admitted.
#[derive(Debug, thiserror::Error)]
pub enum AdmissionError {
    /// It may not serve this handler.
    #[error("{0}")]
    Refused(#[from] Refused),
    /// The database could not be asked.
    #[error(transparent)]
    Store(#[from] StoreError),
}

const RUN_TIME: Duration = Duration::from_secs(1);
const MEMORY_BYTES: u64 = 16 << 20;

/// Checks everything and collects every reason against it.
///
/// # Errors
/// [`AdmissionError::Refused`] with all reasons; [`AdmissionError::Store`] when the database could not be asked.
pub async fn admit(
    place: Place<'_>,
    manifest: &Manifest,
    store: &dyn Store,
    catalogue: &Catalogue,
) -> Result<Admitted, AdmissionError> {
    let mut reasons = Vec::new();
    routes(place, manifest, &mut reasons);
    let config = values(place, manifest, &mut reasons);
    let destinations = destinations(place, manifest, &mut reasons);
    let limits = limits(place, manifest, &mut reasons);
    let rule = Rule::of(manifest, place.handler);
    if let Err(error) = &rule {
        reasons.push(Reason {
            code: Check::BadRule.code(),
            message: format!("{error} (in the manifest, or overridden in {})", place.section()),
        });
    }
    if rule.as_ref().is_ok_and(|rule| rule.ordering().is_some()) {
        reasons.extend(without_order(place.tenant, place.name));
    }
    let tables: Vec<&str> = manifest.tables.keys().map(String::as_str).collect();
    for (table, clause) in store.unfit_tables(&tables).await? {
        let message = format!("table {table} is defined with {clause}: make it anew without that clause");
        reasons.push(Reason { code: Check::UnfitTable.code(), message });
    }
    let (statements, queries) = statements(place, manifest, store.dialect(), catalogue, &mut reasons);
    if reasons.is_empty() {
        prepared(store, &statements, &queries, &mut reasons).await?;
    }
    match rule {
        Ok(rule) if reasons.is_empty() => {
            Ok(Admitted { rule, limits, retry: retry(place, manifest), config, statements, queries, destinations })
        }
        _ => Err(Refused(reasons).into()),
    }
}

impl Place<'_> {
    fn section(&self) -> String {
        format!("[tenants.{}.handlers.{}]", self.tenant_name, self.name)
    }
}

/// Sources of the handler that give out what comes to several hosts at once: none of them knows what another one has.
/// That a queue of RabbitMQ has one consumer at a time is looked at when it is consumed.
fn without_order(tenant: &config::Tenant, handler: &str) -> Option<Reason> {
    let on_a_server = match tenant.store {
        config::Store::Mysql(_) => true,
        config::Store::Sqlite { .. } => false,
    };
    let is_local = |name: &&str| {
        tenant.sources.get(*name).is_some_and(|source| match source.kind {
            config::SourceKind::Local => true,
            config::SourceKind::Rabbitmq(_) => false,
        })
    };
    let routes = tenant.routes.iter().filter(|route| route.handlers.iter().any(|name| name == handler));
    let source = routes.map(|route| route.source.as_str()).find(is_local).filter(|_| on_a_server)?;
    let message = format!(
        "the handler asks for order (`ordering`), and source `{source}` of kind \"local\" keeps none on a server, where \
         several hosts take from it: give it its events from a queue with a single active consumer, or remove `ordering`"
    );
    Some(Reason { code: Check::Ordering.code(), message })
}

fn routes(place: Place<'_>, manifest: &Manifest, reasons: &mut Vec<Reason>) {
    let takes: Vec<&str> = manifest.event_types.iter().map(String::as_str).collect();
    for route in place.tenant.routes.iter().filter(|route| route.handlers.iter().any(|name| name == place.name)) {
        let gives: Vec<&str> = route.event_types.iter().map(String::as_str).collect();
        if common_type(&gives, &takes).is_none() {
            reasons.push(Reason {
                code: Check::EventTypes.code(),
                message: format!(
                    "a route of source `{}` gives it {}, the module takes {} (event_types in the manifest)",
                    route.source,
                    gives.join(", "),
                    takes.join(", ")
                ),
            });
        }
    }
}

fn values(place: Place<'_>, manifest: &Manifest, reasons: &mut Vec<Reason>) -> BTreeMap<String, String> {
    let mut values = place.handler.config.clone();
    for name in values.keys().filter(|name| !manifest.config.contains_key(*name)) {
        reasons.push(Reason {
            code: Check::Config.code(),
            message: format!("{}: config.{name} is not declared by the module: remove it", place.section()),
        });
    }
    for (name, entry) in &manifest.config {
        match (values.get(name), &entry.default, entry.required) {
            (Some(_), _, _) | (None, None, false) => {}
            (None, Some(default), _) => {
                values.insert(name.clone(), default.clone());
            }
            (None, None, true) => reasons.push(Reason {
                code: Check::Config.code(),
                message: format!("{}: config.{name} is missing: {}", place.section(), entry.description),
            }),
        }
    }
    values
}

fn destinations(
    place: Place<'_>,
    manifest: &Manifest,
    reasons: &mut Vec<Reason>,
) -> BTreeMap<String, BoundDestination> {
    let mut bound = BTreeMap::new();
    let mut refuse = |message: String| reasons.push(Reason { code: Check::Destinations.code(), message });
    for name in place.handler.destinations.keys().filter(|name| !manifest.destinations.contains_key(*name)) {
        refuse(format!("{}: destinations.{name} is not declared by the module: remove it", place.section()));
    }
    for (name, declared) in &manifest.destinations {
        let Some(own) = place.handler.destinations.get(name) else {
            refuse(format!(
                "{}: destinations.{name} is missing: bind it to one of [tenants.{}.destinations]",
                place.section(),
                place.tenant_name
            ));
            continue;
        };
        let Some(kind) = place.tenant.destinations.get(own) else {
            refuse(format!("{}: destinations.{name}: the tenant has no destination `{own}`", place.section()));
            continue;
        };
        let kind_name = match kind {
            config::Destination::Local { .. } => "local",
            config::Destination::Table => "table",
        };
        if !declared.kinds.is_empty() && !declared.kinds.iter().any(|allowed| allowed == kind_name) {
            refuse(format!(
                "{}: destinations.{name} is bound to `{own}` of kind {kind_name}, the module allows {}",
                place.section(),
                declared.kinds.join(", ")
            ));
            continue;
        }
        let source_uri = format!("/oncebox/{}/{}", place.tenant_name, place.name);
        bound.insert(name.clone(), BoundDestination { name: own.clone(), kind: kind.clone(), source_uri });
    }
    bound
}

fn limits(place: Place<'_>, manifest: &Manifest, reasons: &mut Vec<Reason>) -> RunLimits {
    let own = &place.handler.limits;
    let needs_memory = manifest.limits.memory_bytes_max;
    let needs_time = manifest.limits.run_time_ms_max.map(Duration::from_millis);
    let memory_ceiling = own.memory_bytes_max.unwrap_or(place.host_limits.memory_bytes_max);
    if let Some(needs) = needs_memory.filter(|needs| *needs > memory_ceiling) {
        reasons.push(Reason {
            code: Check::Limits.code(),
            message: format!(
                "the module needs memory_bytes_max = {needs}, the ceiling is {memory_ceiling} \
                 (memory_bytes_max in {} or [host.limits])",
                place.section()
            ),
        });
    }
    if let (Some(needs), Some(ceiling)) = (needs_time, own.run_time_max)
        && needs > ceiling
    {
        reasons.push(Reason {
            code: Check::Limits.code(),
            message: format!(
                "the module needs run_time_ms_max = {}, the ceiling is {} (limits.run_time_ms_max in {})",
                needs.as_millis(),
                ceiling.as_millis(),
                place.section()
            ),
        });
    }
    RunLimits {
        run_time_max: own.run_time_max.or(needs_time).unwrap_or(RUN_TIME),
        memory_bytes_max: own
            .memory_bytes_max
            .or(needs_memory)
            .unwrap_or(MEMORY_BYTES)
            .min(place.host_limits.memory_bytes_max),
        staged_rows_max: own.staged_rows_max,
        staged_bytes_max: own.staged_bytes_max,
        events_max: own.events_max,
        host_calls_max: own.host_calls_max,
        log_lines_max: own.log_lines_max,
        result_bytes_max: own.result_bytes_max,
    }
}

fn retry(place: Place<'_>, manifest: &Manifest) -> RetryPolicy {
    let (own, needs, base) = (&place.handler.retry, &manifest.retry, RetryPolicy::default());
    RetryPolicy {
        attempts_max: own.attempts_max.or(needs.attempts_max).unwrap_or(base.attempts_max),
        first: own.first.unwrap_or(base.first),
        factor: own.factor.unwrap_or(base.factor),
        delay_max: own.delay_max.unwrap_or(base.delay_max),
        deadline: own.deadline.or(needs.deadline_s.map(Duration::from_secs)).unwrap_or(base.deadline),
        short_attempts_max: own.short_attempts_max.unwrap_or(base.short_attempts_max),
        deaths_max: own.deaths_max.unwrap_or(base.deaths_max),
    }
}

type Texts = (BTreeMap<String, ReadyStatement>, BTreeMap<String, ReadyQuery>);

/// The SQL gate over every text that would run here. What it accepts is what runs, byte for byte.
fn statements(
    place: Place<'_>,
    manifest: &Manifest,
    dialect: Dialect,
    catalogue: &Catalogue,
    reasons: &mut Vec<Reason>,
) -> Texts {
    let operator = Operator { tables: &place.tenant.tables, triggers: &place.tenant.triggers };
    let mut gate = |what: &str, sql: &str, params: usize, purpose: Purpose| {
        let declared = Declared { tables: &manifest.tables, params, purpose };
        match sql::check(sql, dialect, &declared, &operator, catalogue) {
            Ok(accepted) => Some(accepted),
            Err(refusal) => {
                reasons.push(Reason { code: refusal.rule.code(), message: format!("{what}: {refusal}") });
                None
            }
        }
    };
    let statements = manifest.statements.iter().map(|(name, statement)| {
        let sql = text(dialect, &statement.sql, statement.sqlite.as_deref());
        let rows: RowExpectation = statement.rows;
        let params: Vec<_> = statement.params.iter().map(|param| param.kind).collect();
        let purpose = Purpose::Statement { rows };
        let accepted = gate(&format!("[statements.{name}]"), sql, params.len(), purpose);
        let ready = ReadyStatement {
            sql: sql.into(),
            marks: accepted.as_ref().map(|accepted| accepted.marks.clone()).unwrap_or_default(),
            last_insert_id: accepted.as_ref().is_some_and(|accepted| accepted.last_insert_id),
            rows,
            mismatch: statement.mismatch.clone(),
            errors: statement.errors.clone(),
            fold: accepted.map(|accepted| fold::facts(&accepted, rows, &params, catalogue)).unwrap_or_default(),
        };
        (name.clone(), ready)
    });
    let statements = statements.collect();
    let queries = manifest.queries.iter().map(|(name, query)| {
        let sql = text(dialect, &query.sql, query.sqlite.as_deref());
        let purpose = Purpose::Query { lock: query.lock };
        let accepted = gate(&format!("[queries.{name}]"), sql, query.params.len(), purpose);
        let ready = ReadyQuery {
            sql: sql.into(),
            last_insert_id: accepted.as_ref().is_some_and(|accepted| accepted.last_insert_id),
            rows_max: query.rows_max,
            bytes_max: query.bytes_max,
            integers: query.integers,
        };
        (name.clone(), ready)
    });
    (statements, queries.collect())
}

fn text<'a>(dialect: Dialect, sql: &'a str, sqlite: Option<&'a str>) -> &'a str {
    match dialect {
        Dialect::MySql => sql,
        Dialect::Sqlite => sqlite.unwrap_or(sql),
    }
}

/// The server's own opinion: names, syntax, parameters.
async fn prepared(
    store: &dyn Store,
    statements: &BTreeMap<String, ReadyStatement>,
    queries: &BTreeMap<String, ReadyQuery>,
    reasons: &mut Vec<Reason>,
) -> Result<(), StoreError> {
    let statements = statements.iter().map(|(name, ready)| (format!("[statements.{name}]"), &ready.sql));
    let queries = queries.iter().map(|(name, ready)| (format!("[queries.{name}]"), &ready.sql));
    let texts: Vec<(String, &Arc<str>)> = statements.chain(queries).collect();
    for (what, sql) in texts {
        if let Err(error) = store.prepare(sql).await {
            if error.class == oncebox_core::failure::Class::Infrastructure {
                return Err(StoreError::Away { message: error.message });
            }
            reasons.push(Reason {
                code: Check::NotPrepared.code(),
                message: format!("{what}: the database does not prepare it: {error}"),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(store: &str, source: &str) -> config::Tenant {
        let text = format!(
            "[tenants.t.store]\n{store}\n[tenants.t.sources.in]\n{source}\n[[tenants.t.routes]]\nsource = \"in\"\n\
             handlers = [\"a\"]\n[tenants.t.handlers.a]\n[tenants.t.handlers.b]\n\
             [tenants.t.connections.mq]\nkind = \"rabbitmq\"\nurl = \"amqp://u@h\"\n"
        );
        let (mut config, _) = config::read(&[("oncebox.toml".into(), text)]).unwrap();
        config.tenants.remove("t").unwrap()
    }

    #[test]
    fn order_is_asked_only_of_sources_that_one_consumer_at_a_time_takes_from() {
        let (sqlite, mysql) =
            ("kind = \"sqlite\"\npath = \"t.db\"", "kind = \"mysql\"\nurl = \"mysql://u@localhost/d\"");
        let (local, queue) = ("kind = \"local\"", "kind = \"rabbitmq\"\nconnection = \"mq\"\nqueue = \"q\"");
        for (store, source, handler, refused) in [
            (sqlite, local, "a", false),
            (sqlite, queue, "a", false),
            (mysql, queue, "a", false),
            (mysql, local, "a", true),
            (mysql, local, "b", false),
        ] {
            let reason = without_order(&tenant(store, source), handler);
            assert_eq!(reason.is_some(), refused, "{store} {source} {handler}");
        }
    }
}
