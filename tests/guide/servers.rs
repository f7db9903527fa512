//! A page's script with a database and a virtual host of its own.

use std::{net::TcpListener, time::Duration};

use oncebox::clock;
use oncebox_tests::{
    patience::pass,
    script::{self, Block, LOOK_TIME, Shell, shows},
    services::{MysqlDatabase, Server, User, Vhost},
};

/// Between two looks.
const PACE: Duration = Duration::from_millis(100);

/// What pages call their servers; none of these may be left in what is run.
const DEFAULTS: [&str; 5] = ["127.0.0.1:3306", "127.0.0.1:5672", "127.0.0.1:15672", "127.0.0.1:8420", "127.0.0.1:8421"];

/// What a page's names stand for here.
pub(crate) struct Servers {
    pub(crate) database: MysqlDatabase,
    pub(crate) vhost: Vhost,
    broker_user: User,
    listen: String,
}

impl Servers {
    /// An empty database with two users, a virtual host without any queue and a user without any right there.
    pub(crate) fn new() -> Self {
        let mut vhost = Vhost::create(&Server::rabbitmq());
        let broker_user = vhost.add_user("^$");
        let listen = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        Self { database: MysqlDatabase::create(&Server::mysql()), vhost, broker_user, listen }
    }

    /// The same without the database and its users: a page makes them.
    pub(crate) fn without_database() -> Self {
        let servers = Self::new();
        let MysqlDatabase { name, migrate, runtime, .. } = &servers.database;
        servers.database.execute_on_server(&format!("DROP DATABASE {name}"));
        servers.database.execute_on_server(&format!("DROP USER '{}'@'%', '{}'@'%'", migrate.name, runtime.name));
        servers
    }

    /// A text with the names of this test for those of a page whose tenant is `tenant`.
    pub(crate) fn own(&self, text: &str, tenant: &str) -> String {
        let MysqlDatabase { name, migrate, runtime, .. } = &self.database;
        let (migrate, runtime) = (&migrate.name, &runtime.name);
        let (vhost, user, listen) = (&self.vhost.name, &self.broker_user.name, &self.listen);
        let (mysql, broker) = (self.database.server().address(), self.vhost.server().address());
        let names = [
            ("http://guest:guest@127.0.0.1:15672/api", self.api()),
            ("$API/vhosts/{}", format!("$API/vhosts/{vhost}")),
            ("$API/queues/{}/", format!("$API/queues/{vhost}/")),
            ("$API/exchanges/{}/", format!("$API/exchanges/{vhost}/")),
            ("$API/bindings/{}/", format!("$API/bindings/{vhost}/")),
            ("$API/policies/{}/", format!("$API/policies/{vhost}/")),
            ("$API/permissions/{}/{}", format!("$API/permissions/{vhost}/{user}")),
            ("$API/users/{}", format!("$API/users/{user}")),
            ("DATABASE {} ", format!("DATABASE {name} ")),
            (" {}.", format!(" {name}.")),
            ("'{}_migrate'@", format!("'{migrate}'@")),
            ("'{}'@", format!("'{runtime}'@")),
            ("mysql://{}@127.0.0.1:3306/{}", format!("mysql://{runtime}@{mysql}/{name}")),
            ("mysql://{}_migrate:", format!("mysql://{migrate}:")),
            ("@127.0.0.1:3306/{}", format!("@{mysql}/{name}")),
            ("amqp://{}@127.0.0.1:5672/{}", format!("amqp://{user}@{broker}/{vhost}")),
            ("127.0.0.1:8420", listen.clone()),
            ("127.0.0.1:8421", listen.clone()),
        ];
        let own =
            names.iter().fold(text.to_owned(), |text, (name, own)| text.replace(&name.replace("{}", tenant), own));
        let left: Vec<_> = DEFAULTS.iter().filter(|default| own.contains(*default)).collect();
        assert!(left.is_empty(), "what is {left:?} here?\n{own}");
        own
    }

    /// The blocks of a page.
    pub(crate) fn page(&self, text: &str, tenant: &str) -> Vec<Block> {
        script::blocks(&self.own(text, tenant))
    }

    /// Where the management API is, for curl.
    pub(crate) fn api(&self) -> String {
        format!("{}/api", self.vhost.server().api.as_deref().unwrap())
    }

    /// The virtual host, as the user whose rights a test chooses.
    pub(crate) fn broker_url(&self) -> String {
        self.vhost.url_of(&self.broker_user)
    }

    pub(crate) fn broker_user(&self) -> &str {
        &self.broker_user.name
    }

    /// Where a host of the page listens.
    pub(crate) fn listen(&self) -> &str {
        &self.listen
    }

    /// Does what the blocks say, in order, and holds what they show against the page.
    #[track_caller]
    pub(crate) fn run(&self, shell: &mut Shell, blocks: &[Block]) {
        for (at, block) in blocks.iter().enumerate() {
            let shown = blocks.get(at + 1).filter(|next| next.language.is_empty());
            match (block.language.as_str(), &block.file, shown) {
                (_, Some(file), _) => shell.write(file, &block.text),
                ("sh", None, None) => drop(shell.run(&block.text)),
                ("sh", None, Some(shown)) => until_shown(shown, || (shell.look(&block.text), shell.errors())),
                ("sql", None, None) => block.text.split(";\n").filter(|sql| !sql.trim().is_empty()).for_each(|sql| {
                    self.database.execute_on_server(sql);
                }),
                ("sql", None, Some(shown)) => {
                    let sql = block.text.trim().trim_end_matches(';');
                    until_shown(shown, || (self.database.shown(sql), shell.errors()));
                }
                (other, None, _) => assert!(other.is_empty(), "line {}: who runs {other}?", block.line),
            }
        }
    }
}

/// Looks until a look shows what it should; a look is what is seen, and what was said on standard error so far.
#[track_caller]
fn until_shown(expected: &Block, mut look: impl FnMut() -> (String, String)) {
    let began = clock::monotonic();
    loop {
        let (seen, errors) = look();
        if shows(&seen, &expected.text) {
            return;
        }
        let (line, text) = (expected.line, &expected.text);
        let is_late = began.elapsed() >= LOOK_TIME;
        assert!(!is_late, "line {line}: the page shows\n{text}\nand this is\n{seen}\nafter\n{errors}");
        pass(PACE);
    }
}
