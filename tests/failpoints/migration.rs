//! A migration that dies between two statements, or has to wait for a table.

use oncebox_tests::{
    database::Tables as _,
    host::Site,
    patience::{PATIENCE, eventually},
    services::Server,
    tenant_database::TenantDatabase,
};

/// All that a migration makes, told apart from what another migration makes by nothing but the database's name.
const MADE: &str = "SELECT CONCAT_WS(' ', table_name, column_name, ordinal_position, column_type, is_nullable,
      column_default, collation_name, column_key, extra)
    FROM information_schema.columns WHERE table_schema = DATABASE() ORDER BY table_name, ordinal_position";

fn site(tenant: &TenantDatabase) -> Site {
    tenant.documented("CREATE DATABASE");
    let (own, migrate) = (tenant.database.runtime_url(), tenant.database.migrate_url());
    Site::new(&format!(
        "[host]\ndata_dir = \"data\"\n[tenants.t.store]\nkind = \"mysql\"\nurl = \"{own}\"\nmigrate_url = \"{migrate}\"\n"
    ))
}

/// The number of the last migration that was done whole, once there is any table.
fn number(tenant: &TenantDatabase) -> i64 {
    let any =
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'ob_meta'";
    let last = "SELECT COALESCE(MAX(CAST(value AS SIGNED)), 0) FROM ob_meta WHERE name = 'schema'";
    if tenant.database.number(any) == 0 { 0 } else { tenant.database.number(last) }
}

/// Migrates until the statement `nth` of this try is done; whether it died there.
fn dies(site: &Site, nth: usize) -> bool {
    let at = format!("migration-statement@{nth}=kill");
    let ended = site.run_armed(&["migrate"], &[("ONCEBOX_FAILPOINTS", &at)]);
    assert!(matches!(ended.code, None | Some(0)), "{at}: {}{}", ended.out, ended.err);
    ended.code.is_none()
}

#[test]
fn killed_behind_each_of_its_statements_a_migration_is_run_again_to_the_same_tables() {
    let [killed, whole] = [(), ()].map(|()| TenantDatabase::on(&Server::mysql()));
    let (site, other) = (site(&killed), site(&whole));
    other.ok(&["migrate"]);
    let tables = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()";
    let (mut deaths, mut last, mut nth) = (0, 0, 1);
    while dies(&site, nth) {
        deaths += 1;
        let number = number(&killed);
        // What is done whole is not begun again.
        nth = if number == last { nth + 1 } else { 1 };
        last = number;
        if number == 0 {
            assert_eq!(killed.database.number(tables), deaths, "each statement of the first one makes a table");
        }
    }
    assert!(deaths > whole.database.number(tables), "{deaths}: later ones change tables as well");
    assert_eq!((number(&killed), killed.database.lines(MADE)), (number(&whole), whole.database.lines(MADE)));
    killed.documented("CREATE USER 'shop'@'%'");
    assert_eq!(site.run(&["check", "store", "t"]).code, Some(0));
}

#[test]
fn a_migration_waits_for_a_transaction_that_uses_the_table_it_changes_and_goes_on_behind_it() {
    let tenant = TenantDatabase::on(&Server::mysql());
    let site = site(&tenant);
    let mut nth = 1;
    while number(&tenant) == 0 {
        assert!(dies(&site, nth));
        nth += 1;
    }
    let (list, user) = (tenant.database.server().kind.process_list(), &tenant.database.migrate.name);
    let other = tenant.database.session();
    other.execute("BEGIN");
    assert_eq!(other.number("SELECT COUNT(*) FROM ob_held"), 0);
    let waiting =
        format!("SELECT COUNT(*) FROM {list} WHERE user = '{user}' AND state = 'Waiting for table metadata lock'");
    std::thread::scope(|scope| {
        let migration = scope.spawn(|| site.run(&["migrate"]));
        eventually("it waits for the table", PATIENCE, || (tenant.database.number(&waiting) == 1).then_some(()));
        assert_eq!(number(&tenant), 1);
        other.execute("COMMIT");
        let ended = migration.join().unwrap();
        assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    });
    tenant.documented("CREATE USER 'shop'@'%'");
    assert_eq!(site.run(&["check", "store", "t"]).code, Some(0));
}
