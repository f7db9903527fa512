//! The arguments of every command, with their help.

use std::path::PathBuf;

use clap::{Args as ClapArgs, CommandFactory as _, Parser, Subcommand, ValueEnum};

/// Host runtime for event handlers: each business key is applied once.
#[derive(Debug, Parser)]
#[command(
    name = "oncebox",
    version,
    max_term_width = 100,
    after_help = "\
Exit codes: 0 done, 1 bug, 2 usage, 3 config, 4 refused, 5 not found,
6 dependency away, 7 changed meanwhile, 8 findings, 9 unsafe or migration due,
130 second signal

Examples:
  oncebox build plugins/points-award --out points-award.wasm
  oncebox deploy points-award.wasm shop/points-award
  oncebox run
  oncebox send shop/orders events.jsonl
  oncebox trace shop/points-award order:42:paid"
)]
pub(super) struct Args {
    /// The configuration; tenants.d/*.toml beside it too.
    #[arg(long, global = true, default_value = "oncebox.toml", value_name = "FILE")]
    pub(super) config: PathBuf,
    /// Print JSON, for programs.
    #[arg(long, global = true)]
    pub(super) json: bool,
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run the host: consume, run handlers, commit, settle.
    ///
    /// SIGTERM or Ctrl-C: takes nothing new, finishes what runs, exits 0 within `drain_time_ms`; a second one ends at
    /// once (130). Both lose nothing.
    #[command(after_help = "Examples:\n  oncebox run\n  oncebox --config /etc/oncebox/oncebox.toml run")]
    Run,
    /// Build a plugin's folder into a packed module.
    #[command(after_help = "Examples:\n  oncebox build plugins/points-award\n  oncebox build . --out handler.wasm")]
    Build(BuildArgs),
    /// Show all that a module may ever do, without running it.
    #[command(
        after_help = "Examples:\n  oncebox inspect points-award.wasm\n  oncebox --json inspect points-award.wasm"
    )]
    Inspect(InspectArgs),
    /// Check a configuration or a module, changing nothing.
    #[command(after_help = "Examples:\n  oncebox check config\n  \
        oncebox check module points-award.wasm shop/points-award")]
    Check(CheckArgs),
    /// Check a module and let it serve a handler.
    ///
    /// The manifest and every statement are held against the tenant's configuration and database, the module is compiled
    /// in a child process and instantiated once; only then is it stored, as an offer. Every live host loads it within 2 s
    /// and says whether it is ready; when all are, it becomes active, and the old one serves until then. Exits 4 when a
    /// host refuses it, 6 when one does not answer.
    #[command(after_help = "Examples:\n  oncebox deploy points-award.wasm shop/points-award\n  \
        oncebox deploy points-award.wasm shop/points-award --new-rule\n  \
        oncebox deploy points-award.wasm shop/points-award --force")]
    Deploy(DeployArgs),
    /// Make a tenant's tables, or bring them up to date.
    #[command(after_help = "Examples:\n  oncebox migrate\n  oncebox migrate shop")]
    Migrate(TenantArgs),
    /// Put messages into a local source, one a line.
    ///
    /// Each line is one message's body, byte for byte, without the line's end. What was read is sent at once, a thousand
    /// lines in one transaction at most; an error says how many lines were sent before it.
    #[command(after_help = "Examples:\n  oncebox send shop/orders events.jsonl\n  \
        tail -f orders.log | oncebox send shop/orders -\n  \
        echo '{\"orderId\":42}' | oncebox send shop/orders --header x-event-type=order.paid")]
    Send(SendArgs),
    /// Tell all that happened to a business key, in order.
    #[command(after_help = "Examples:\n  oncebox trace shop/points-award order:42:paid")]
    Trace(TraceArgs),
    /// List and show dead letters, conflicts, poison and parked events.
    #[command(after_help = "Examples:\n  oncebox dead list shop --state conflict\n  oncebox dead show shop 17")]
    Dead(DeadArgs),
    /// Show the books: verdicts by handler, what is held and waiting now.
    #[command(after_help = "Examples:\n  oncebox tally\n  oncebox --json tally shop")]
    Tally(TenantArgs),
    /// Compiles one module; started by oncebox itself.
    #[command(name = "__compile", hide = true)]
    Compile,
}

#[derive(Debug, ClapArgs)]
pub(super) struct BuildArgs {
    /// The folder with handler.toml.
    #[arg(default_value = ".")]
    pub(super) dir: PathBuf,
    /// Where the module goes; default: DIR/NAME.wasm.
    #[arg(long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(super) struct InspectArgs {
    /// The packed module.
    pub(super) module: PathBuf,
}

#[derive(Debug, ClapArgs)]
pub(super) struct CheckArgs {
    #[command(subcommand)]
    pub(super) what: CheckWhat,
}

#[derive(Debug, Subcommand)]
pub(super) enum CheckWhat {
    /// Read the configuration; exits 3 when a host would not start with it, 8 when it would, with warnings.
    #[command(after_help = "Examples:\n  oncebox check config\n  oncebox --config new.toml check config")]
    Config,
    /// Hold a module against the contract and the SQL gate; with a handler, against all that `deploy` checks.
    #[command(after_help = "Examples:\n  oncebox check module points-award.wasm\n  \
        oncebox check module points-award.wasm shop/points-award")]
    Module(CheckModuleArgs),
    /// Ask each tenant's database whether a host would start on it: version, settings, migrations, rights. Exits 8 when it
    /// would, with warnings; else as the host would.
    #[command(after_help = "Examples:\n  oncebox check store\n  oncebox check store shop")]
    Store(TenantArgs),
}

#[derive(Debug, ClapArgs)]
pub(super) struct CheckModuleArgs {
    /// The packed module.
    pub(super) module: PathBuf,
    /// The handler that it would serve.
    #[arg(value_name = "TENANT/HANDLER")]
    pub(super) place: Option<Pair>,
}

#[derive(Debug, ClapArgs)]
pub(super) struct DeployArgs {
    /// The packed module.
    pub(super) module: PathBuf,
    /// The handler that it is to serve.
    #[arg(value_name = "TENANT/HANDLER")]
    pub(super) place: Pair,
    /// Allow another key, fingerprint or ordering than before. Old inbox rows keep their rule and are compared by it; a
    /// fact whose key is made anew is not recognised as a duplicate of one applied under the old rule.
    #[arg(long)]
    pub(super) new_rule: bool,
    /// Do not wait for the live hosts' answers: it becomes active by itself when all are ready.
    #[arg(long)]
    pub(super) no_wait: bool,
    /// Let it serve although some live hosts refuse it or do not answer, if at least one is ready. A host that refuses it
    /// takes nothing for the handler any more and says so in /readyz.
    #[arg(long, conflicts_with = "no_wait")]
    pub(super) force: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct TenantArgs {
    /// Only this tenant.
    pub(super) tenant: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(super) struct SendArgs {
    /// The source.
    #[arg(value_name = "TENANT/SOURCE")]
    pub(super) source: Pair,
    /// The lines; `-`: standard input.
    #[arg(default_value = "-")]
    pub(super) file: PathBuf,
    /// A header of every message; may be given several times. `content-type` is the content type.
    #[arg(long = "header", value_name = "K=V", value_parser = parse_header)]
    pub(super) headers: Vec<(String, String)>,
}

#[derive(Debug, ClapArgs)]
pub(super) struct TraceArgs {
    /// The handler.
    #[arg(value_name = "TENANT/HANDLER")]
    pub(super) place: Pair,
    /// The business key, as `dead list` and the logs show it; `\xNN` stands for a byte.
    pub(super) key: String,
}

#[derive(Debug, ClapArgs)]
pub(super) struct DeadArgs {
    #[command(subcommand)]
    pub(super) what: DeadWhat,
}

#[derive(Debug, Subcommand)]
pub(super) enum DeadWhat {
    /// List held rows, oldest first.
    #[command(after_help = "Examples:\n  oncebox dead list\n  oncebox dead list shop/points-award --state conflict")]
    List(DeadListArgs),
    /// Show one held row with its message and its attempts.
    #[command(after_help = "Examples:\n  oncebox dead show shop 17")]
    Show(DeadShowArgs),
}

#[derive(Debug, ClapArgs)]
pub(super) struct DeadListArgs {
    /// Only this tenant, or this handler.
    #[arg(value_name = "TENANT[/HANDLER]")]
    pub(super) place: Option<String>,
    /// Only rows in this state; default: dead, poison and conflict.
    #[arg(long, value_enum)]
    pub(super) state: Vec<StateArg>,
    /// At most so many rows of each tenant.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) limit: u32,
    /// Only rows after this one.
    #[arg(long, default_value_t = 0, value_name = "ID", value_parser = parse_id)]
    pub(super) after: i64,
}

#[derive(Debug, ClapArgs)]
pub(super) struct DeadShowArgs {
    /// The tenant.
    pub(super) tenant: String,
    /// The row's number, as `dead list` shows it.
    #[arg(value_parser = parse_id)]
    pub(super) id: i64,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum StateArg {
    /// Given up on.
    Dead,
    /// Undecodable, keyless or without a route.
    Poison,
    /// Same key, other fingerprint.
    Conflict,
    /// Waiting for the next attempt.
    Parked,
    /// Over.
    Resolved,
}

/// `TENANT/NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) tenant: String,
    pub(super) name: String,
}

impl std::str::FromStr for Pair {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('/') {
            Some((tenant, name)) if !tenant.is_empty() && !name.is_empty() => {
                Ok(Self { tenant: tenant.to_owned(), name: name.to_owned() })
            }
            _ => Err("expected a tenant and a name, as in shop/points-award".to_owned()),
        }
    }
}

impl std::fmt::Display for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.tenant, self.name)
    }
}

fn parse_header(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, _)) if name.is_empty() || !name.bytes().all(|b| b.is_ascii_graphic()) => {
            Err("a header's name is of visible ASCII characters, without spaces".to_owned())
        }
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => Err("expected NAME=VALUE, as in x-event-type=order.paid".to_owned()),
    }
}

fn parse_id(text: &str) -> Result<i64, String> {
    text.parse().ok().filter(|id| *id >= 0).ok_or_else(|| "expected a row's number, as `dead list` shows it".to_owned())
}

/// The page `docs/reference/cli.md`: the help of every command.
#[must_use]
pub fn reference() -> String {
    let mut page = String::from("# Command line\n\n<!-- generated; `cargo bless` rewrites it -->\n");
    let mut command = Args::command().term_width(100);
    command.build();
    add(&mut page, &mut command, "oncebox");
    page
}

fn add(page: &mut String, command: &mut clap::Command, path: &str) {
    use std::fmt::Write as _;
    let _ = write!(page, "\n## `{path}`\n\n```text\n{}\n```\n", command.render_long_help().to_string().trim_end());
    for sub in command.get_subcommands_mut().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
        let path = format!("{path} {}", sub.get_name());
        add(page, sub, &path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_place_is_a_tenant_and_a_name() {
        assert_eq!("shop/a".parse::<Pair>(), Ok(Pair { tenant: "shop".into(), name: "a".into() }));
        for wrong in ["shop", "/a", "shop/", ""] {
            assert!(wrong.parse::<Pair>().is_err(), "{wrong}");
        }
    }
}
