//! TLS to a server.

use oncebox::store::{
    Store as _, StoreError, Use,
    mysql::{MysqlLanes, MysqlStore},
};
use oncebox_core::{
    config::{Mysql, Tls, TlsClient, TlsMode},
    value::Value,
};

use crate::bench::Bench;

/// The cipher of a session; empty: none.
async fn cipher(settings: &Mysql) -> Result<String, StoreError> {
    let store = MysqlStore::open(settings, MysqlLanes { lanes: 1, slow_lanes: 1 }, Use::Command).await?;
    let mut lane = store.lane().await?;
    let mut unit = lane.begin().await?;
    let answer = unit.query(&"SHOW STATUS LIKE 'Ssl_cipher'".into(), &[], 1).await.unwrap();
    unit.rollback().await?;
    let Value::Text(cipher) = &answer.rows[0][1] else { panic!("{answer:?}") };
    Ok(cipher.clone())
}

pub(crate) async fn a_server_is_trusted_as_far_as_its_tls_mode_says(bench: Bench) {
    let database = &bench.tenant().database;
    // Those of `cargo services up` have certificates; of a server that a person gave nobody knows.
    let Some(files) = database.server().tls.clone() else { return };
    let client = TlsClient { cert_file: files.client_cert_file, key_file: files.client_key_file };
    let (known, other) = (Some(files.ca_file), Some(files.other_ca_file));
    let settings = |mode, ca_file: &Option<_>, client: Option<&TlsClient>| Mysql {
        tls: Tls { mode, ca_file: ca_file.clone(), client: client.cloned() },
        ..bench.tenant().settings()
    };
    assert_eq!(cipher(&settings(TlsMode::Off, &None, None)).await.unwrap(), "");
    for (mode, ca_file, is_trusted) in [
        (TlsMode::Required, &None, true),
        (TlsMode::Required, &other, true),
        (TlsMode::VerifyCa, &known, true),
        (TlsMode::VerifyCa, &other, false),
        (TlsMode::VerifyIdentity, &known, true),
        (TlsMode::VerifyIdentity, &other, false),
        // The system's authorities have not signed it.
        (TlsMode::VerifyCa, &None, false),
    ] {
        match cipher(&settings(mode, ca_file, None)).await {
            Ok(cipher) => assert!(is_trusted && !cipher.is_empty(), "{mode:?} {ca_file:?}: {cipher}"),
            Err(error) => assert!(!is_trusted && error.is_away(), "{mode:?} {ca_file:?}: {error}"),
        }
    }
    // From now on who has no certificate is not let in.
    database.execute(&format!("ALTER USER '{}'@'%' REQUIRE X509", database.runtime.name));
    let error = cipher(&settings(TlsMode::VerifyIdentity, &known, None)).await.unwrap_err();
    assert!(matches!(error, StoreError::Denied { .. }), "{error}");
    assert_ne!(cipher(&settings(TlsMode::VerifyIdentity, &known, Some(&client))).await.unwrap(), "");
}
