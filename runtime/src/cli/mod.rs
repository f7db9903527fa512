//! The command line: one file a command; arguments in `args.rs`, failures and exit codes in `failed.rs`.

mod args;
mod arrivals;
mod build;
mod check;
mod dead;
mod deploy;
mod failed;
mod logs;
mod migrate;
mod open;
mod output;
mod rollout;
mod run;
mod send;
mod tally;
mod trace;

use std::process::ExitCode;

use clap::Parser as _;

pub use self::{args::reference, failed::Wrong};
use self::{
    args::{Args, Command},
    failed::Failed,
};
use crate::{code::Exit, failpoint, planted};

/// Runs the command that the process's arguments ask for.
#[must_use]
pub fn main() -> ExitCode {
    if let Err(message) = failpoint::check().and_then(|()| planted::check()) {
        return Failed::new(Wrong::Usage, message).report(false);
    }
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return not_understood(&error),
    };
    if matches!(args.command, Command::Compile) {
        return crate::plugin::compile_child_main();
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return Failed::new(Wrong::Bug, format!("cannot start the runtime: {error}")).report(args.json);
        }
    };
    let json = args.json;
    let result = runtime.block_on(command(args));
    // A blocking read of standard input must not hold up the end.
    runtime.shutdown_background();
    match result {
        Ok(exit) => exit.into(),
        Err(failed) => failed.report(json),
    }
}

/// `--help` and `--version` come here too, and are no failure.
fn not_understood(error: &clap::Error) -> ExitCode {
    // What could not be parsed cannot say whether `--json` was meant as an option; most likely it was.
    let json = std::env::args_os().any(|arg| arg == "--json");
    if error.use_stderr() && json {
        let text = error.render().to_string();
        return Failed::new(Wrong::Usage, text.trim_start_matches("error: ").trim_end()).report(true);
    }
    let _ = error.print();
    if error.use_stderr() { Exit::Usage.into() } else { ExitCode::SUCCESS }
}

async fn command(args: Args) -> Result<Exit, Failed> {
    let Args { config, json, command } = args;
    let output = output::Output { json };
    match command {
        Command::Run => run::run(&config, json).await,
        Command::Build(args) => build::build(output, &args).await,
        Command::Inspect(args) => build::inspect(output, &args).await,
        Command::Check(args) => check::check(output, &config, args).await,
        Command::Deploy(args) => deploy::deploy(output, &config, &args).await,
        Command::Migrate(args) => migrate::migrate(output, &config, &args).await,
        Command::Send(args) => send::send(output, &config, &args).await,
        Command::Trace(args) => trace::trace(output, &config, &args).await,
        Command::Dead(args) => dead::dead(output, &config, args).await,
        Command::Tally(args) => tally::tally(output, &config, &args).await,
        Command::Compile => Ok(Exit::Done),
    }
}
