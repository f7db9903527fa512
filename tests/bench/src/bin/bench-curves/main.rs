//! What `cargo bench-curves` runs: how the cost of one event grows with the size of messages, with the number of modules,
//! tenants, duplicates, failures and inbox rows, and with the host's own settings. One axis at a time; each point beside a
//! base, in turns.

mod axes;
mod check;
mod csv;
mod drain;
mod ground;
mod inbox;
mod measure;
mod options;
mod scenario;
mod svg;
mod table;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, Result};
use oncebox::clock;
use oncebox_bench::stage::Kit;

use crate::{
    axes::Axis,
    measure::{Line, measure},
    options::{Asked, Options, USAGE},
};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args == ["__compile"] {
        return oncebox::plugin::compile_child_main();
    }
    let options = match Asked::parse(&args) {
        Ok(Asked::Help) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Ok(Asked::Measure(options)) => options,
        Err(message) => {
            eprintln!("error: {message}");
            return ExitCode::from(2);
        }
    };
    match curves(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether every point was measured.
fn curves(options: &Options) -> Result<bool> {
    let began = clock::monotonic();
    let out = options.out.clone().or_else(beside_the_binaries).context("--out is needed here")?;
    // Not after minutes.
    fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    let kit = Kit::build().context("cannot build the handler")?;
    let points = options.axes.iter().flat_map(|axis| axis.points(options.quick)).collect();
    let lines = measure(&kit, points, options.seconds())?;
    write(&out, &options.axes, &lines)?;
    println!("\n{}", table::table(&lines));
    println!("{} points in {:.0} s, also in {}", lines.len(), began.elapsed().as_secs_f64(), out.display());
    Ok(lines.iter().all(|line| line.outcome.is_ok()))
}

/// `target/PROFILE/bench-curves`: `target/curves`.
fn beside_the_binaries() -> Option<PathBuf> {
    Some(std::env::current_exe().ok()?.ancestors().nth(2)?.join("curves"))
}

fn write(out: &Path, axes: &[Axis], lines: &[Line]) -> Result<()> {
    let file = |name: &str, text: String| {
        let path = out.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    file("curves.csv", csv::csv(lines))?;
    for axis in axes {
        let own: Vec<&Line> = lines.iter().filter(|line| line.point.axis == *axis).collect();
        file(&format!("{}.svg", axis.name()), svg::chart(*axis, &own))?;
    }
    Ok(())
}
