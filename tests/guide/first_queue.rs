//! `docs/first-queue.md`, from an empty database server and an empty virtual host on.

use oncebox_tests::script::{self, Shell};

use crate::servers::Servers;

#[test]
fn a_stranger_comes_from_a_queue_and_a_table_to_applied_events_by_the_page_alone() {
    let servers = Servers::without_database();
    let mut blocks = servers.page(&script::page("docs/first-queue.md"), "shop");
    let config = blocks.iter_mut().find(|block| block.file.as_deref() == Some("oncebox.toml")).unwrap();
    // Two of these tests may run at once, and the port of the page is one.
    config.text.insert_str(0, &format!("[host]\nlisten = \"{}\"\n", servers.listen()));
    servers.run(&mut Shell::start(""), &blocks);
}
