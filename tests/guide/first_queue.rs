//! `docs/first-queue.md`, from an empty database and an empty virtual host on.

use std::net::TcpListener;

use oncebox_tests::script::Shell;

use crate::servers::{Servers, steps};

#[test]
fn a_stranger_comes_from_a_queue_and_a_table_to_applied_events_by_the_page_alone() {
    let servers = Servers::new();
    let (name, migrate, runtime) =
        (&servers.database.name, &servers.database.migrate.name, &servers.database.runtime.name);
    // The page makes them itself.
    servers.database.execute(&format!("DROP DATABASE {name}"));
    servers.database.execute_on_server(&format!("DROP USER '{migrate}'@'%', '{runtime}'@'%'"));
    let listen = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (mysql, broker) = (servers.database.server().address(), servers.vhost.server().address());
    let mut names = servers.paths();
    names.extend([
        ("$API/vhosts/shop", format!("$API/vhosts/{}", servers.vhost.name)),
        ("DATABASE shop ", format!("DATABASE {name} ")),
        (" shop.", format!(" {name}.")),
        ("'shop_migrate'@", format!("'{migrate}'@")),
        ("'shop'@", format!("'{runtime}'@")),
        ("mysql://shop@127.0.0.1:3306/shop", format!("mysql://{runtime}@{mysql}/{name}")),
        ("mysql://shop_migrate:", format!("mysql://{migrate}:")),
        ("@127.0.0.1:3306/shop", format!("@{mysql}/{name}")),
        (
            "amqp://shop@127.0.0.1:5672/shop",
            format!("amqp://{}@{broker}/{}", servers.broker_user(), servers.vhost.name),
        ),
        ("http://127.0.0.1:8420/", format!("http://{listen}/")),
    ]);
    let blocks = servers.page("first-queue.md", &names);
    let mut shell = Shell::start("");
    for (block, shown) in steps(&blocks) {
        if block.file.as_deref() == Some("oncebox.toml") {
            let text = format!("[host]\nlisten = \"{listen}\"\n{}", block.text);
            shell.write("oncebox.toml", &text);
        } else {
            servers.run(&mut shell, block, shown);
        }
    }
}
