//! TLS to the broker, and the certificate of this side.

use oncebox_core::config::{Rabbitmq, Tls, TlsClient, TlsMode};

use crate::bench::{Bench, Settings, bodies, connection};

fn with(bench: &Bench, tls: Tls) -> Rabbitmq {
    Rabbitmq { tls, ..connection(&bench.vhost().tls_url()) }
}

pub(crate) async fn a_certificate_is_checked(bench: Bench) {
    let files = bench.vhost().server().tls.clone().unwrap();
    let trusting = |ca_file| Tls { mode: TlsMode::VerifyIdentity, ca_file: Some(ca_file), client: None };
    bench.send(&["a"]).await;
    let host = bench.host_at(Some(with(&bench, trusting(files.ca_file.clone()))), &Settings::default());
    assert_eq!(bodies(&host.take_all(1).await), ["a"]);
    host.stop().await;
    let strange = bench.host_at(Some(with(&bench, trusting(files.other_ca_file.clone()))), &Settings::default());
    let reason = strange.wait_for_reason("failed to connect").await;
    assert!(reason.to_lowercase().contains("certificate"), "{reason}");
    let nothing = bench.host_at(Some(with(&bench, trusting("/nowhere/ca.pem".into()))), &Settings::default());
    nothing.wait_for_reason("failed to use ca_file = \"/nowhere/ca.pem\"").await;
}

pub(crate) async fn a_client_shows_its_own_certificate(bench: Bench) {
    let files = bench.vhost().server().tls.clone().unwrap();
    let client = TlsClient { cert_file: files.client_cert_file.clone(), key_file: files.client_key_file.clone() };
    let tls = Tls { mode: TlsMode::VerifyIdentity, ca_file: Some(files.ca_file.clone()), client: Some(client) };
    let host = bench.host_at(Some(with(&bench, tls.clone())), &Settings::default());
    host.consumes().await;
    let shown = bench.peer_certificate().await;
    assert!(shown.contains("oncebox-tests"), "the broker has seen {shown:?}");
    let wrong = TlsClient { cert_file: files.client_cert_file.clone(), key_file: files.ca_file.clone() };
    let host = bench.host_at(Some(with(&bench, Tls { client: Some(wrong), ..tls })), &Settings::default());
    host.wait_for_reason("failed to use key_file").await;
}
