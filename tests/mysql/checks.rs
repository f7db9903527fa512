//! Settings of the server.

use oncebox::store::{StoreError, Use};

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
