//! The command line: one file a command; arguments in `args.rs`, failures and exit codes in `failed.rs`.

mod args;
mod build;
mod check;
mod dead;
mod deploy;
mod failed;
mod logs;
mod migrate;
mod open;
mod output;
mod run;
mod send;
mod tally;
mod trace;

use std::process::ExitCode;

use clap::Parser as _;

pub use self::{args::reference, failed::EXIT_CODES};
use self::{
    args::{Args, Command},
    failed::{Exit, Failed},
};

/// Runs the command that the process's arguments ask for.
#[must_use]
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // `--help` and `--version` come here too, and are no failure.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage.into() } else { ExitCode::SUCCESS };
        }
    };
    if matches!(args.command, Command::Compile) {
        return crate::plugin::compile_child_main();
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return Failed::new(Exit::Bug, "runtime", format!("cannot start the runtime: {error}")).report(args.json);
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

async fn command(args: Args) -> Result<Exit, Failed> {
    let Args { config, json, command } = args;
    let output = output::Output { json };
    match command {
        Command::Run => run::run(&config).await,
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
