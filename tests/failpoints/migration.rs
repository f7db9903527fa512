//! A migration that dies between two statements.

use oncebox_tests::{host::Site, services::Server, tenant_database::TenantDatabase};

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

#[test]
fn killed_behind_each_of_its_statements_a_migration_is_run_again_to_the_same_tables() {
    let [killed, whole] = [(), ()].map(|()| TenantDatabase::on(&Server::mysql()));
    let (site, other) = (site(&killed), site(&whole));
    other.ok(&["migrate"]);
    let tables = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()";
    let mut statements = 0;
    loop {
        let at = format!("migration-statement@{}=kill", statements + 1);
        let ended = site.run_armed(&["migrate"], &[("ONCEBOX_FAILPOINTS", &at)]);
        if ended.code == Some(0) {
            break;
        }
        assert_eq!(ended.code, None, "{at}: {}{}", ended.out, ended.err);
        statements += 1;
        assert_eq!(killed.database.number(tables), statements, "each statement makes a table");
    }
    assert_eq!(statements, whole.database.number(tables));
    assert_eq!(killed.database.lines(MADE), whole.database.lines(MADE));
    killed.documented("CREATE USER 'shop'@'%'");
    assert_eq!(site.run(&["check", "store", "t"]).code, Some(0));
}
