//! Settings of the server.

use oncebox::store::{StoreError, Use, mysql::MysqlStore};
use oncebox_core::config::{Durability, Mysql};
use oncebox_tests::services::PrivateServer;

use crate::bench::{Bench, open};

pub(crate) async fn a_server_as_the_tests_have_it_is_trusted(bench: Bench) {
    bench.ready().await;
    bench.host().await.close().await;
}

pub(crate) async fn a_table_of_another_engine_is_refused(bench: Bench) {
    bench.ready().await;
    bench.database.execute("ALTER TABLE ob_audit ENGINE = MyISAM");
    let error = open(&bench.settings(), Use::Host).await.err().unwrap();
    assert!(matches!(error, StoreError::Unsafe { .. }), "{error}");
    assert!(error.to_string().contains("the engine of ob_audit is MyISAM"), "{error}");
    assert_eq!((error.code(), error.exit().number()), ("store-unsafe", 9));
    // A command may look all the same.
    bench.command().await.unwrap();
}

/// On a server of its own, whose settings it may change for all.
pub(crate) async fn every_setting_is_read_and_judged(bench: Bench) {
    let server = PrivateServer::of(bench.database.server().kind);
    let own = Bench::on(&server.server);
    own.ready().await;
    let set = |sql: &str| own.database.execute(&format!("SET GLOBAL {sql}"));
    own.host().await;
    let strict = own.settings();
    let lenient = Mysql { durability: Durability::Warn, ..own.settings() };
    // What may be accepted is a warning then.
    for (bad, good) in [
        ("innodb_flush_log_at_trx_commit = 2", "innodb_flush_log_at_trx_commit = 1"),
        ("sync_binlog = 0", "sync_binlog = 1"),
    ] {
        set(bad);
        let error = open(&strict, Use::Host).await.err().unwrap();
        assert!(matches!(error, StoreError::Unsafe { .. }), "{bad}: {error}");
        let said = bad.replace('=', "is");
        assert!(error.to_string().contains(&said) && error.to_string().contains("durability"), "{bad}: {error}");
        open(&lenient, Use::Host).await.unwrap();
        let warnings = MysqlStore::warnings(&lenient).await.unwrap();
        assert!(warnings.len() == 1 && warnings[0].starts_with(&said), "{warnings:?}");
        // A command beside it is not kept from working.
        own.command().await.unwrap();
        set(good);
    }
    for (bad, good) in [
        ("binlog_format = 'STATEMENT'", "binlog_format = 'ROW'"),
        ("max_allowed_packet = 1048576", "max_allowed_packet = 16777216"),
    ] {
        set(bad);
        for settings in [&strict, &lenient] {
            let error = open(settings, Use::Host).await.err().unwrap();
            assert!(matches!(error, StoreError::Unsafe { .. }), "{bad}: {error}");
            assert!(error.to_string().contains(bad.split(' ').next().unwrap()), "{bad}: {error}");
        }
        set(good);
    }
    set("read_only = 1");
    let error = open(&strict, Use::Host).await.err().unwrap();
    assert!(error.is_away() && error.to_string().contains("read_only is ON"), "{error}");
    set("read_only = 0");
    own.host().await;
}
