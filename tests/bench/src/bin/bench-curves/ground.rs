//! Where a drain takes place: the tenants' databases and queues, and a host's folder with every handler deployed.

use std::{
    collections::VecDeque,
    fmt::Write as _,
    sync::{Mutex, PoisonError},
    thread,
};

use anyhow::{Context as _, Result, ensure};
use lapin::{
    BasicProperties, Connection, ConnectionProperties,
    options::{BasicPublishOptions, ConfirmSelectOptions},
    types::{AMQPValue, FieldTable},
};
use oncebox::clock;
use oncebox_bench::stage::{Kit, QUEUE, Stage};
use oncebox_tests::{
    fleet::SCHEMA,
    host::Site,
    probe::{ledger, with_change},
};

use crate::scenario::{Plugin, Scenario};

/// Confirms that may be awaited at once.
const AWAITED_MAX: usize = 1_000;
/// Of those, bodies of so many bytes.
const AWAITED_BYTES_MAX: usize = 16 << 20;
/// What is made at the same time: databases, deployments.
const AT_ONCE: usize = 4;

/// Gone when it is dropped.
pub(crate) struct Ground {
    /// One for each tenant.
    pub(crate) stages: Vec<Stage>,
    pub(crate) site: Site,
}

impl Ground {
    /// Makes all of it but the messages.
    pub(crate) fn set(kit: &Kit, scenario: &Scenario) -> Result<Self> {
        let tenants = 0..scenario.tenants;
        let stages = at_once(tenants, |_| {
            let stage = Stage::set(kit)?;
            if scenario.plugin == Plugin::Probe {
                make_ledger(&stage, &scenario.handler(0));
            }
            Ok(stage)
        })?;
        let site = Site::new(&config(scenario, &stages));
        let ground = Self { stages, site };
        let places = (0..scenario.tenants).flat_map(|tenant| (0..scenario.modules).map(move |module| (tenant, module)));
        let began = clock::monotonic();
        let deployed = at_once(places, |(tenant, module)| ground.deploy(kit, scenario, tenant, module))?.len();
        if deployed > 1 {
            println!("   {deployed} handlers were deployed in {:.0} s", began.elapsed().as_secs_f64());
        }
        Ok(ground)
    }

    fn deploy(&self, kit: &Kit, scenario: &Scenario, tenant: u32, module: u32) -> Result<()> {
        let file = format!("{tenant}-{module}.wasm");
        match scenario.plugin {
            Plugin::Probe => {
                let takes = "event_types = [\"entry\"]";
                self.site.write(&file, with_change(ledger(), "event_types = [\"entry\", \"entered\"]", takes));
            }
            Plugin::Points if scenario.modules == 1 => self.site.write(&file, &kit.module),
            Plugin::Points => {
                // Another manifest makes another module: nothing of it is shared with its neighbours.
                let takes = format!("event_types = [\"{}\"]", scenario.event_type(module));
                self.site.write(&file, with_change(&kit.module, "event_types = [\"order.paid\"]", &takes));
            }
        }
        let place = format!("t{tenant}/{}", scenario.handler(module));
        let ended = self.site.run(&["deploy", "--no-wait", &file, &place]);
        ensure!(ended.code == Some(0), "{place} cannot be deployed: {}", ended.err);
        Ok(())
    }

    /// Puts each tenant's messages of these numbers into its queue.
    pub(crate) fn fill(&self, kit: &Kit, scenario: &Scenario, numbers: &[u32]) -> Result<()> {
        for stage in &self.stages {
            kit.runtime.block_on(publish(&stage.vhost.url(), scenario, numbers))?;
        }
        Ok(())
    }
}

fn make_ledger(stage: &Stage, handler: &str) {
    let database = &stage.tenant.database;
    SCHEMA.iter().for_each(|sql| database.execute(sql));
    for table in ["ledger", "counter"] {
        database.grant(&format!("SELECT, INSERT, UPDATE, DELETE ON {}.{table}", database.name));
    }
    database.execute(&format!("INSERT INTO counter VALUES ('{handler}', 0, 0)"));
}

/// Some at the same time; the answers are in any order.
fn at_once<T: Send, A: Send>(
    these: impl Iterator<Item = T> + Send,
    make: impl Fn(T) -> Result<A> + Sync,
) -> Result<Vec<A>> {
    let these = Mutex::new(these);
    let next = || these.lock().unwrap_or_else(PoisonError::into_inner).next();
    let worker = || -> Result<Vec<A>> {
        let mut made = Vec::new();
        while let Some(one) = next() {
            made.push(make(one)?);
        }
        Ok(made)
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(worker)).collect();
        let mut all = Vec::new();
        for worker in workers {
            all.extend(worker.join().ok().context("something could not be made")??);
        }
        Ok(all)
    })
}

async fn publish(url: &str, scenario: &Scenario, numbers: &[u32]) -> Result<()> {
    let connection = Connection::connect(url, ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    channel.confirm_select(ConfirmSelectOptions::default()).await?;
    let awaited_max = (AWAITED_BYTES_MAX / scenario.payload_bytes.max(1)).clamp(1, AWAITED_MAX);
    let mut awaited = VecDeque::new();
    for n in numbers {
        let (event_type, body) = scenario.message(*n);
        let mut headers = FieldTable::default();
        headers.insert("event-type".into(), AMQPValue::LongString(event_type.into()));
        let properties = BasicProperties::default()
            .with_delivery_mode(2)
            .with_message_id(format!("m-{n}").into())
            .with_headers(headers);
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        awaited.push_back(channel.basic_publish("".into(), QUEUE.into(), options, body.as_bytes(), properties).await?);
        if awaited.len() >= awaited_max
            && let Some(confirm) = awaited.pop_front()
        {
            confirm.await?;
        }
    }
    for confirm in awaited {
        confirm.await?;
    }
    Ok(connection.close(200, "OK".into()).await?)
}

/// A host on its defaults, but for what the scenario says.
fn config(scenario: &Scenario, stages: &[Stage]) -> String {
    let host = "[host]\ndata_dir = \"data\"\nlisten = \"127.0.0.1:0\"\nlog = \"json\"\n".to_owned();
    stages.iter().enumerate().fold(host, |text, (tenant, stage)| text + &tenant_config(scenario, stage, tenant))
}

fn tenant_config(scenario: &Scenario, stage: &Stage, tenant: usize) -> String {
    let (tables, handler) = match scenario.plugin {
        Plugin::Points => (
            "\"points_account\", \"points_ledger\"",
            "config = { points_per_yuan = \"1\" }\ndestinations = { points-awarded = \"kept\" }",
        ),
        Plugin::Probe => (
            "\"ledger\", \"counter\"",
            // Tried again at once: the wait itself is no cost.
            "destinations = { out = \"kept\" }\nretry = { first_ms = 20, delay_ms_max = 50 }",
        ),
    };
    let setting = |name, value: Option<u32>| value.map_or_else(String::new, |value| format!("{name} = {value}\n"));
    let mut text = format!(
        r#"
[tenants.t{tenant}]
tables = [{tables}]
{}{}store = {{ kind = "mysql", url = "{}" }}
connections.broker = {{ kind = "rabbitmq", url = "{}" }}
destinations.kept = {{ kind = "table" }}

[tenants.t{tenant}.sources.orders]
kind = "rabbitmq"
connection = "broker"
queue = "{QUEUE}"
envelope = {{ format = "raw", event_type = "{{header:event-type}}", id = "{{amqp:message-id}}" }}
"#,
        setting("batch_max", scenario.batch_max),
        setting("lanes", scenario.lanes),
        stage.tenant.database.runtime_url(),
        stage.vhost.url(),
    );
    for module in 0..scenario.modules {
        let (name, event_type) = (scenario.handler(module), scenario.event_type(module));
        // A String takes everything.
        let _ = write!(
            text,
            "\n[tenants.t{tenant}.handlers.{name}]\n{handler}\n\n[[tenants.t{tenant}.routes]]\n\
             source = \"orders\"\nevent_types = [\"{event_type}\"]\nhandlers = [\"{name}\"]\n"
        );
    }
    text
}
