//! `/livez`, `/readyz` and `/metrics`.

use std::sync::{Arc, PoisonError};

use axum::{Router, extract::State, http::StatusCode, response::IntoResponse, routing::get};
use tokio::{net::TcpListener, sync::watch};

use super::{Tenants, health::Health};
use crate::metrics::Metrics;

#[derive(Clone)]
struct Shared {
    tenants: Tenants,
    health: Arc<Health>,
    metrics: Arc<Metrics>,
}

/// Serves until the host stops.
pub(super) async fn serve(
    listener: TcpListener,
    tenants: Tenants,
    health: Arc<Health>,
    metrics: Arc<Metrics>,
    mut stopping: watch::Receiver<bool>,
) {
    let router = Router::new()
        .route("/livez", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        .route("/metrics", get(text))
        .with_state(Shared { tenants, health, metrics });
    let stop = async move { drop(stopping.wait_for(|stopping| *stopping).await) };
    if let Err(error) = axum::serve(listener, router).with_graceful_shutdown(stop).await {
        tracing::error!(%error, "cannot serve /livez, /readyz and /metrics any more");
    }
}

async fn readyz(State(shared): State<Shared>) -> impl IntoResponse {
    let reasons = shared.health.reasons();
    if reasons.is_empty() {
        return (StatusCode::OK, "ready\n".to_owned());
    }
    let lines = reasons.iter().map(|(what, reason)| format!("{what}: {reason}\n")).collect();
    (StatusCode::SERVICE_UNAVAILABLE, lines)
}

async fn text(State(shared): State<Shared>) -> impl IntoResponse {
    let tenants = shared.tenants.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for tenant in &tenants {
        match (tenant.store.gauges().await, tenant.store.now_us().await) {
            (Ok(gauges), Ok(now_us)) => shared.metrics.gauges(tenant, &gauges, now_us),
            (Err(error), _) | (_, Err(error)) => {
                tracing::warn!(tenant = %tenant.name, %error, "gauges are old: the database does not answer");
            }
        }
    }
    ([("content-type", "text/plain; version=0.0.4")], shared.metrics.text())
}
