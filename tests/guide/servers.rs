//! A page's script with a database and a virtual host of its own.

use std::time::Duration;

use oncebox::clock;
use oncebox_tests::{
    patience::pass,
    script::{self, Block, LOOK_TIME, Shell, shows, with_names},
    services::{MysqlDatabase, Server, User, Vhost},
};

/// Between two looks.
const PACE: Duration = Duration::from_millis(100);

/// The names that pages use, and what they are called here.
pub(crate) struct Servers {
    pub(crate) database: MysqlDatabase,
    pub(crate) vhost: Vhost,
    broker_user: User,
}

impl Servers {
    /// A database without any table and a virtual host without any queue.
    pub(crate) fn new() -> Self {
        let mut vhost = Vhost::create(&Server::rabbitmq());
        let broker_user = vhost.add_user("^$");
        Self { database: MysqlDatabase::create(&Server::mysql()), vhost, broker_user }
    }

    /// A page of `docs/`, with the names of this test for those of the page.
    pub(crate) fn page(&self, name: &str, names: &[(&str, String)]) -> Vec<Block> {
        script::blocks(&with_names(&script::page(name), names))
    }

    /// Where the management API is, for curl.
    pub(crate) fn api(&self) -> String {
        format!("{}/api", self.vhost.server().api.as_deref().unwrap())
    }

    /// The names in paths of the management API.
    pub(crate) fn paths(&self) -> Vec<(&'static str, String)> {
        let (vhost, user) = (&self.vhost.name, &self.broker_user.name);
        vec![
            ("http://guest:guest@127.0.0.1:15672/api", self.api()),
            ("$API/queues/shop/", format!("$API/queues/{vhost}/")),
            ("$API/exchanges/shop/", format!("$API/exchanges/{vhost}/")),
            ("$API/permissions/shop/shop", format!("$API/permissions/{vhost}/{user}")),
            ("$API/users/shop", format!("$API/users/{user}")),
        ]
    }

    /// The virtual host, as the user whose rights a test chooses.
    pub(crate) fn broker_url(&self) -> String {
        self.vhost.url_of(&self.broker_user)
    }

    pub(crate) fn broker_user(&self) -> &str {
        &self.broker_user.name
    }

    /// Does what a block says, and holds what it shows against the block behind it.
    #[track_caller]
    pub(crate) fn run(&self, shell: &mut Shell, block: &Block, shown: Option<&Block>) {
        match (block.language.as_str(), &block.file, shown) {
            (_, Some(file), _) => shell.write(file, &block.text),
            ("sh", None, None) => drop(shell.run(&block.text)),
            ("sql", None, None) => block.text.split(";\n").filter(|sql| !sql.trim().is_empty()).for_each(|sql| {
                self.database.execute_on_server(sql);
            }),
            ("sh", None, Some(shown)) => self.until_shown(shown, || shell.look(&block.text)),
            ("sql", None, Some(shown)) => {
                let sql = block.text.trim().trim_end_matches(';');
                self.until_shown(shown, || self.database.shown(sql));
            }
            (other, None, _) => assert!(other.is_empty() || other == "toml", "line {}: {other}", block.line),
        }
    }

    #[track_caller]
    fn until_shown(&self, expected: &Block, mut look: impl FnMut() -> String) {
        let began = clock::monotonic();
        let own = [(&self.database.name, "shop"), (&self.vhost.name, "shop")];
        loop {
            let seen = own.iter().fold(look(), |text, (own, name)| text.replace(*own, name));
            if shows(&seen, &expected.text) {
                return;
            }
            let (line, text) = (expected.line, &expected.text);
            assert!(began.elapsed() < LOOK_TIME, "line {line}: the page shows\n{text}\nand this is\n{seen}");
            pass(PACE);
        }
    }
}

/// Blocks with what they show.
pub(crate) fn steps(blocks: &[Block]) -> Vec<(&Block, Option<&Block>)> {
    let shown = |at: usize| blocks.get(at + 1).filter(|next| next.language.is_empty());
    blocks.iter().enumerate().filter(|(_, block)| !block.language.is_empty()).map(|(at, b)| (b, shown(at))).collect()
}
