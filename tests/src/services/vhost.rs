//! A virtual host of one test's own, on a RabbitMQ that all tests share.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking, its helpers too")]

use std::time::Duration;

use serde_json::{Value, json};

use super::{Api, Server, User, api::encoded, fresh_name, process};
use crate::patience::{PATIENCE, eventually};

/// How many messages a queue holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Waiting to be delivered.
    pub ready: u64,
    /// Delivered, and not settled.
    pub unacked: u64,
}

impl Counts {
    /// None.
    pub const EMPTY: Self = Self { ready: 0, unacked: 0 };
}

/// A fresh virtual host, until it is dropped.
#[derive(Debug)]
pub struct Vhost {
    /// Its name, `ob_t_…`.
    pub name: String,
    server: Server,
    api: Api,
    users: Vec<String>,
}

impl Vhost {
    /// Makes the virtual host; the user of the server's URL may do everything in it.
    ///
    /// # Panics
    /// The server does not answer or refuses.
    #[must_use]
    pub fn create(server: &Server) -> Self {
        let vhost = Self { name: fresh_name(), server: server.clone(), api: server.api(), users: Vec::new() };
        vhost.api.ask("PUT", &format!("/vhosts/{}", vhost.name), Some(&json!({})));
        // The user that asks the API is permitted by making it; the one of the URL may be another.
        let user = server.url.split_once("://").unwrap().1.split(':').next().unwrap();
        vhost.permit(user, ".*");
        vhost
    }

    /// Its URL, as the user of the server's.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}/{}", self.server.url, self.name)
    }

    /// Its URL with TLS.
    ///
    /// # Panics
    /// The server is one of an environment variable.
    #[must_use]
    pub fn tls_url(&self) -> String {
        format!("{}/{}", self.server.tls_url.as_ref().expect("`cargo services up` knows the URL with TLS"), self.name)
    }

    /// Its URL for somebody.
    #[must_use]
    pub fn url_of(&self, user: &User) -> String {
        format!("amqp://{}:{}@{}/{}", user.name, user.password, self.server.address(), self.name)
    }

    /// The server that it is on.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Makes a user that may configure, write and read what matches a regular expression (`^$`: nothing).
    ///
    /// # Panics
    /// The server refuses.
    pub fn add_user(&mut self, pattern: &str) -> User {
        let name = fresh_name();
        let user = User { password: format!("pw{}", &name[5..]), name };
        let body = json!({ "password": user.password, "tags": "" });
        self.api.ask("PUT", &format!("/users/{}", user.name), Some(&body));
        self.users.push(user.name.clone());
        self.permit(&user.name, pattern);
        user
    }

    /// Lets a user configure, write and read what matches a regular expression.
    ///
    /// # Panics
    /// The server refuses.
    pub fn permit(&self, user: &str, pattern: &str) {
        let path = format!("/permissions/{}/{}", self.name, encoded(user));
        self.api.ask("PUT", &path, Some(&json!({ "configure": pattern, "write": pattern, "read": pattern })));
    }

    /// Declares a durable queue; `arguments` as AMQP has them, `{"x-queue-type": "quorum"}`.
    ///
    /// # Panics
    /// The server refuses.
    pub fn declare_queue(&self, queue: &str, arguments: &Value) {
        let body = json!({ "durable": true, "auto_delete": false, "arguments": arguments });
        self.api.ask("PUT", &self.queue_path(queue), Some(&body));
    }

    /// Deletes a queue under its consumers.
    ///
    /// # Panics
    /// The server refuses, or there is none.
    pub fn delete_queue(&self, queue: &str) {
        self.api.ask("DELETE", &self.queue_path(queue), None);
    }

    /// Removes the messages of a queue that wait.
    ///
    /// # Panics
    /// The server refuses.
    pub fn purge_queue(&self, queue: &str) {
        self.api.ask("DELETE", &format!("{}/contents", self.queue_path(queue)), None);
    }

    /// What the API says of a queue: its arguments and policies are exact, its numbers a second old or more.
    ///
    /// # Panics
    /// The server does not answer.
    #[must_use]
    pub fn queue(&self, queue: &str) -> Option<Value> {
        let (status, answer) = self.api.try_ask("GET", &self.queue_path(queue), None).unwrap();
        (status == 200).then_some(answer)
    }

    /// Publishes a persistent text message to a queue, with more properties where a test needs them.
    ///
    /// # Panics
    /// The server refuses, or no queue takes it.
    pub fn publish(&self, queue: &str, payload: &str, properties: &Value) {
        let mut properties = properties.clone();
        properties["delivery_mode"] = json!(2);
        let body = json!({
            "properties": properties, "routing_key": queue, "payload": payload, "payload_encoding": "string",
        });
        let answer = self.api.ask("POST", &format!("/exchanges/{}/amq.default/publish", self.name), Some(&body));
        assert_eq!(answer["routed"], true, "no queue `{queue}` took the message");
    }

    /// How many messages a queue holds (half a second). A quorum queue's numbers are those of its last tick, and the two of
    /// them may be of two ticks: [`Vhost::TELLS_AFTER`]. On a server of an environment variable they are the API's.
    ///
    /// # Panics
    /// The server does not answer, or there is no such queue.
    #[must_use]
    pub fn counts(&self, queue: &str) -> Counts {
        counts_in(&self.listed(queue, &["messages_ready", "messages_unacknowledged"]))
    }

    /// How many messages a queue holds, ready or not, at one time within [`Vhost::TELLS_AFTER`] before the answer.
    ///
    /// # Panics
    /// As [`Vhost::counts`].
    #[must_use]
    pub fn held(&self, queue: &str) -> u64 {
        self.listed(queue, &["messages"])["messages"].as_u64().unwrap_or(0)
    }

    /// The age of what a quorum queue says of itself, at most: it counts at a tick, every 5 s
    /// (`rabbit_quorum_queue.erl`, `TICK_INTERVAL`).
    pub const TELLS_AFTER: Duration = Duration::from_secs(6);

    fn listed(&self, queue: &str, columns: &[&str]) -> Value {
        if self.server.ctl.is_empty() {
            return self.queue(queue).unwrap_or_else(|| panic!("there is no queue `{queue}`"));
        }
        let list = ["--quiet", "--formatter", "json", "list_queues", "--vhost", &self.name];
        let text = self.ctl(&[&list[..], &["name"], columns].concat());
        let rows: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let row = rows.as_array().into_iter().flatten().find(|row| row["name"] == queue);
        row.unwrap_or_else(|| panic!("there is no queue `{queue}`: {text}")).clone()
    }

    /// Waits until a queue holds so many.
    ///
    /// # Panics
    /// It never does.
    #[track_caller]
    pub fn wait_for(&self, queue: &str, wanted: Counts) {
        let mut last = None;
        let found = eventually("a known number of messages", PATIENCE, || {
            last = Some(self.counts(queue));
            (last == Some(wanted)).then_some(true)
        });
        assert!(found, "`{queue}` holds {last:?}, not {wanted:?}");
    }

    /// Closes all connections of this virtual host from the server's side; how many there were is not said.
    ///
    /// # Panics
    /// The server does not answer.
    pub fn close_connections(&self) {
        if !self.server.ctl.is_empty() {
            self.ctl(&["--quiet", "close_all_connections", "--vhost", &self.name, "closed by a test"]);
            return;
        }
        let answer = self.api.ask("GET", &format!("/vhosts/{}/connections", self.name), None);
        for connection in answer.as_array().into_iter().flatten() {
            let name = encoded(connection["name"].as_str().unwrap());
            // One may have ended by itself meanwhile.
            let _ = self.api.try_ask("DELETE", &format!("/connections/{name}"), None);
        }
    }

    /// Connections of hosts now, as the API knows them: seconds old.
    ///
    /// # Panics
    /// The server does not answer.
    #[must_use]
    pub fn connections(&self) -> usize {
        let answer = self.api.ask("GET", &format!("/vhosts/{}/connections", self.name), None);
        let name = |connection: &Value| connection["client_properties"]["connection_name"].as_str().map(str::to_owned);
        let names = answer.as_array().into_iter().flatten().filter_map(name);
        names.filter(|name| name.starts_with("oncebox ")).count()
    }

    /// Closes, from the server's side, the connections that show themselves under this name; how many there were.
    ///
    /// # Panics
    /// The server does not answer.
    pub fn close_connections_of(&self, shown_as: &str) -> usize {
        let answer = self.api.ask("GET", &format!("/vhosts/{}/connections", self.name), None);
        let all = answer.as_array().into_iter().flatten();
        let own = all.filter(|connection| connection["client_properties"]["connection_name"] == shown_as);
        let names: Vec<_> = own.filter_map(|connection| connection["name"].as_str().map(encoded)).collect();
        for name in &names {
            // One may have ended by itself meanwhile.
            let _ = self.api.try_ask("DELETE", &format!("/connections/{name}"), None);
        }
        names.len()
    }

    /// Runs `rabbitmqctl` and returns what it says.
    ///
    /// # Panics
    /// It fails, or the server is one of an environment variable.
    #[track_caller]
    pub fn ctl(&self, args: &[&str]) -> String {
        assert!(!self.server.ctl.is_empty(), "rabbitmqctl needs a server of `cargo services up`");
        process::output(&self.server.ctl, args)
    }

    /// The management API.
    #[must_use]
    pub fn api(&self) -> &Api {
        &self.api
    }

    fn queue_path(&self, queue: &str) -> String {
        format!("/queues/{}/{}", self.name, encoded(queue))
    }
}

impl Drop for Vhost {
    fn drop(&mut self) {
        // Best effort: the server may be gone.
        let _ = self.api.try_ask("DELETE", &format!("/vhosts/{}", self.name), None);
        for user in &self.users {
            let _ = self.api.try_ask("DELETE", &format!("/users/{user}"), None);
        }
    }
}

fn counts_in(row: &Value) -> Counts {
    let number = |name: &str| row[name].as_u64().unwrap_or(0);
    Counts { ready: number("messages_ready"), unacked: number("messages_unacknowledged") }
}
