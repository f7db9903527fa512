//! What `cargo chaos` runs: two hosts over three tenants on a MySQL and a RabbitMQ of their own, while everything dies,
//! hangs and is cut off in an order drawn from a seed; then the checker.

mod end;
mod options;
mod pace;
mod schedule;
mod stage;
mod traffic;

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    process::ExitCode,
    thread,
    time::Duration,
};

use oncebox::clock;
use oncebox_tests::{
    checker::{Broken, live, sent::Sent},
    fleet::{QUEUE, Tenant},
    services::Vhost,
};

use options::{Asked, Options};
use pace::Pace;
use schedule::{Fault, schedule};
use stage::{ORDERED_TENANT, Stage};
use traffic::Traffic;

/// Between two looks at the hosts.
const LOOK: Duration = Duration::from_secs(2);
/// A node that was just started may not know all of its queues.
const AFTER_BROKER: Duration = Duration::from_secs(20);
/// Counting a queue costs a second of a processor.
const BETWEEN_QUEUES: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args == ["__compile"] {
        return oncebox::plugin::compile_child_main();
    }
    match Options::parse(&args, clock::now_us()) {
        Ok(Asked::Help) => {
            print!("{}", options::USAGE);
            ExitCode::SUCCESS
        }
        Ok(Asked::Run(options)) => chaos(&options),
        Err(message) => {
            eprint!("error: {message}\n\n{}", options::USAGE);
            ExitCode::from(2)
        }
    }
}

fn chaos(options: &Options) -> ExitCode {
    println!("== {}", options.command());
    let mut stage = Stage::set(options.failpoints.clone());
    let tried = catch_unwind(AssertUnwindSafe(|| run(&mut stage, options)));
    let why = match tried {
        Ok(Ok(sentence)) => {
            println!("\n{sentence}");
            return ExitCode::SUCCESS;
        }
        Ok(Err(broken)) => broken.iter().map(|(tenant, broken)| format!("\n  tenant {tenant}: {broken}")).collect(),
        Err(_) => "it did not come to its end, see above".to_owned(),
    };
    let folder = stage.fleet.site.path("").display().to_string();
    // It stays, with the hosts' logs.
    std::mem::forget(stage.fleet.clone());
    println!("\nerror: seed {}: {why}\nlogs: {folder}host-*.log\nagain: {}", options.seed, options.command());
    ExitCode::FAILURE
}

/// What is broken, and of which tenant.
pub(crate) type Violations = Vec<(&'static str, Broken)>;

/// The one sentence of a run that went well.
fn run(stage: &mut Stage, options: &Options) -> Result<String, Violations> {
    let fleet = stage.fleet.clone();
    let traffic: Vec<Traffic> =
        (0..).zip(&fleet.tenants).map(|(number, tenant)| traffic(options, number, tenant.name)).collect();
    let steps = schedule(options.seed, options.time(), fleet.tenants.len());
    println!("== {} messages, {} steps in {} min", options.messages() * traffic.len(), steps.len(), options.minutes);
    let pace = &Pace::begin();
    let (broken, again) = thread::scope(|scope| {
        let publish = |(tenant, traffic)| {
            let (tenant, traffic): (&Tenant, &Traffic) = (tenant, traffic);
            scope.spawn(move || traffic.publish(tenant, options.time(), pace))
        };
        let publishing: Vec<_> = fleet.tenants.iter().zip(&traffic).map(publish).collect();
        let broken = play(stage, &traffic, steps, pace);
        let joined = publishing.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        (broken, joined.sum())
    });
    // What is broken on the way is looked at in the end, too: whether it is lost for good.
    end::end(stage, &traffic, pace.elapsed(), again, broken)
}

/// Does everything when it is due, and looks around in between.
fn play(stage: &mut Stage, traffic: &[Traffic], steps: Vec<(Duration, Fault)>, pace: &Pace) -> Violations {
    let mut broken = Violations::new();
    let mut quiet_since = Duration::ZERO;
    let mut looked = Duration::ZERO;
    let mut noted: Option<Noted<'_>> = None;
    for (number, (at, fault)) in steps.into_iter().enumerate() {
        while pace.now() < at {
            pace.until(at.min(pace.now() + LOOK));
            stage.sample();
        }
        let now = pace.elapsed();
        if let Some(noted) = noted.take_if(|noted| now > noted.at + Vhost::TELLS_AFTER) {
            broken.extend(at_broker_or_decided(stage, traffic, &noted));
        } else if noted.is_none() && now > quiet_since + AFTER_BROKER && now > looked + BETWEEN_QUEUES {
            looked = now;
            let tenant = number % traffic.len();
            noted = Some(Noted { at: now, tenant, confirmed: traffic[tenant].confirmed() });
        }
        println!("{:>7.1} s  {fault}", pace.elapsed().as_secs_f64());
        stage.apply(fault);
        pace.took(pace.elapsed().saturating_sub(now));
        if matches!(fault, Fault::KillBroker | Fault::RestartBroker | Fault::KillDatabase) {
            quiet_since = pace.elapsed();
            noted = None;
        }
    }
    broken
}

/// Keys of a tenant's messages that were confirmed at a time.
struct Noted<'t> {
    at: Duration,
    tenant: usize,
    confirmed: Vec<&'t str>,
}

/// Whatever was confirmed before the queue has counted is there or in the tables.
fn at_broker_or_decided(stage: &Stage, traffic: &[Traffic], noted: &Noted<'_>) -> Option<(&'static str, Broken)> {
    let (tenant, traffic) = (&stage.fleet.tenants[noted.tenant], &traffic[noted.tenant]);
    // In this order: what is acked after the count was decided before it.
    let at_broker = tenant.vhost.held(QUEUE);
    let undecided = Sent::of("a", &traffic.feed).undecided(&tenant.session(), noted.confirmed.iter().copied());
    live::ack_after_commit(undecided, at_broker).map(|broken| (tenant.name, broken))
}

fn traffic(options: &Options, number: u64, tenant: &str) -> Traffic {
    let seed = options.seed.wrapping_add(number);
    let make = if tenant == ORDERED_TENANT { Traffic::ordered } else { Traffic::mixed };
    make(seed, options.messages(), tenant)
}
