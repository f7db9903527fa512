//! The servers that `cargo services up` brings, and what the test crate makes on them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{io::Read as _, net::TcpStream, time::Duration};

use oncebox_tests::{
    patience::{PATIENCE, eventually},
    services::{Counts, Kind, MysqlDatabase, PrivateServer, Server, Vhost},
};
use serde_json::json;
use sqlx::{Connection as _, MySqlConnection};

#[test]
fn a_database_has_a_user_that_migrates_and_one_that_may_nothing_and_is_gone_afterwards() {
    for server in [Server::mysql(), Server::mariadb()] {
        let database = MysqlDatabase::create(&server);
        let migrate = database.migrate_url();
        let runtime = database.runtime_url();
        let may = |url: &str, sql: &'static str| {
            blocking(async || {
                let mut connection = MySqlConnection::connect(url).await?;
                sqlx::raw_sql(sql).execute(&mut connection).await?;
                Ok::<_, sqlx::Error>(())
            })
        };
        may(&migrate, "CREATE TABLE a (id BIGINT PRIMARY KEY) ENGINE=InnoDB").unwrap();
        may(&migrate, "CREATE PROCEDURE p() SQL SECURITY DEFINER SELECT COUNT(*) FROM a").unwrap();
        // Without any privilege in a database one may not even enter it.
        assert!(may(&runtime, "SELECT 1").unwrap_err().to_string().contains("denied"));
        database.grant(&format!("SELECT ON {}.a", database.name));
        may(&runtime, "SELECT * FROM a").unwrap();
        assert!(may(&runtime, "INSERT INTO a VALUES (1)").unwrap_err().to_string().contains("denied"));
        database.execute("INSERT INTO a VALUES (7)");
        assert_eq!(database.number("SELECT id FROM a"), 7);
        assert_eq!(database.lines("SELECT CAST(id AS CHAR) FROM a"), ["7"]);

        let name = database.name.clone();
        drop(database);
        let other = MysqlDatabase::create(&server);
        let left = format!("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = '{name}'");
        assert_eq!(other.number(&left), 0);
        assert_eq!(other.number(&format!("SELECT COUNT(*) FROM mysql.user WHERE user LIKE '{name}%'")), 0);
    }
}

#[test]
fn the_sessions_of_a_user_can_be_cut_and_an_open_one_does_not_keep_the_database() {
    for server in [Server::mysql(), Server::mariadb()] {
        let database = MysqlDatabase::create(&server);
        let url = database.migrate_url();
        let (open, cut) = blocking(async || {
            let mut connection = MySqlConnection::connect(&url).await.unwrap();
            let open = database.sessions_of(&database.migrate).len();
            database.kill_sessions_of(&database.migrate);
            (open, sqlx::raw_sql("SELECT 1").execute(&mut connection).await.is_err())
        });
        assert_eq!((open, cut), (1, true));
        assert!(database.sessions_of(&database.runtime).is_empty());
        let name = database.name.clone();
        blocking(async move || {
            let mut connection = MySqlConnection::connect(&url).await.unwrap();
            sqlx::raw_sql("CREATE TABLE a (id INT); BEGIN; INSERT INTO a VALUES (1)")
                .execute(&mut connection)
                .await
                .unwrap();
            drop(database);
        });
        let other = MysqlDatabase::create(&server);
        let left = format!("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = '{name}'");
        assert_eq!(other.number(&left), 0);
    }
}

#[test]
fn a_virtual_host_has_queues_and_users_of_its_own_and_is_gone_afterwards() {
    let server = Server::rabbitmq();
    let mut vhost = Vhost::create(&server);
    vhost.declare_queue("q/1", &json!({ "x-queue-type": "quorum" }));
    assert_eq!(vhost.queue("q/1").unwrap()["type"], "quorum");
    vhost.publish("q/1", "hello", &json!({ "message_id": "m1" }));
    vhost.publish("q/1", "hello", &json!({}));
    vhost.wait_for("q/1", Counts { ready: 2, unacked: 0 });
    vhost.purge_queue("q/1");
    vhost.wait_for("q/1", Counts::EMPTY);
    vhost.delete_queue("q/1");
    assert_eq!(vhost.queue("q/1"), None);

    let user = vhost.add_user("^$");
    let name = vhost.name.clone();
    drop(vhost);
    let gone = |path: String| server.api().try_ask("GET", &path, None).unwrap().0 == 404;
    assert!(gone(format!("/vhosts/{name}")));
    assert!(gone(format!("/users/{}", user.name)));
}

#[test]
fn connections_to_a_virtual_host_are_closed_from_the_servers_side() {
    let vhost = Vhost::create(&Server::rabbitmq());
    blocking(async || {
        let options = lapin::ConnectionProperties::default();
        let connection = lapin::Connection::connect(&vhost.url(), options).await.unwrap();
        vhost.close_connections();
        eventually("the connection is closed", PATIENCE, || (!connection.status().connected()).then_some(()));
    });
}

#[test]
fn a_killed_mysql_has_what_was_committed_when_it_is_started_again() {
    for kind in [Kind::Mysql, Kind::Mariadb] {
        let mut own = PrivateServer::of(kind);
        assert_ne!(own.server.url, Server::of(kind).url);
        let database = MysqlDatabase::create(&own.server);
        database.execute("CREATE TABLE a (id INT PRIMARY KEY) ENGINE=InnoDB");
        database.execute("INSERT INTO a VALUES (1)");
        own.kill9();
        own.start_again();
        assert_eq!(database.number("SELECT CAST(COUNT(*) AS SIGNED) FROM a"), 1);
        let durable = "SELECT @@sync_binlog = 1 AND @@innodb_flush_log_at_trx_commit = 1 AND @@log_bin = 1";
        assert_eq!(database.number(durable), 1);
        own.stop();
    }
}

#[test]
fn a_frozen_server_accepts_and_says_nothing_until_it_is_thawed() {
    let own = PrivateServer::mariadb();
    own.freeze();
    let mut stream = TcpStream::connect(own.server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let mut byte = [0];
    assert!(stream.read(&mut byte).is_err());
    own.thaw();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(stream.read(&mut byte).unwrap(), 1);
}

#[test]
fn a_killed_rabbitmq_has_its_persistent_messages_when_it_is_started_again() {
    let mut own = PrivateServer::rabbitmq();
    let vhost = Vhost::create(&own.server);
    vhost.declare_queue("classic", &json!({ "x-queue-type": "classic" }));
    vhost.declare_queue("quorum", &json!({ "x-queue-type": "quorum" }));
    for queue in ["classic", "quorum"] {
        vhost.publish(queue, "hello", &json!({}));
        vhost.wait_for(queue, Counts { ready: 1, unacked: 0 });
    }
    own.kill9();
    own.start_again();
    for queue in ["classic", "quorum"] {
        vhost.wait_for(queue, Counts { ready: 1, unacked: 0 });
    }
    own.stop();
    own.start_again();
    assert!(own.ctl(&["--quiet", "list_vhosts"]).contains(&vhost.name));
}

/// Waits for something async. A connection is read by another thread, as the helpers of the test crate block this one.
fn blocking<T>(work: impl AsyncFnOnce() -> T) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap().block_on(work())
}
