//! `cargo demo`: both examples on the embedded store, fed with a stream that has every kind of trouble in it.
//!
//! Everything is done by the `oncebox` command, as a person would do it; nothing here knows its tables.

mod books;
mod keeper;
mod progress;
mod stage;
mod stream;

use self::{
    books::{Books, thousands},
    progress::Progress,
    stage::{HANDLERS, Stage},
    stream::{Stream, TRACED, Wave},
};
use crate::{
    run::{Failed, Repo, Result, Stopwatch, run},
    target,
};

/// Lines handed to one `oncebox send`.
const CHUNK: usize = 250;

/// Runs the demo; fails where the books differ from what was expected.
pub(crate) fn demo(repo: &Repo, args: &[&str]) -> Result {
    let Options { keep, seed } = Options::parse(args)?;
    let watch = Stopwatch::start();
    println!("== building oncebox and {} plugins", HANDLERS.len());
    target::ensure_wasm(repo)?;
    let oncebox = repo.build_oncebox()?;
    let mut stage = Stage::set(repo, oncebox, keep)?;
    stage.build_plugins(repo)?;
    println!("== built in {watch}");

    let watch = Stopwatch::start();
    let stream = Stream::generate(seed);
    println!("\n== deploying, and starting the host");
    stage.deploy()?;
    let books = play(&mut stage, &stream, watch).map_err(|failed| stage.told(failed))?;
    let (table, differing) = books.compare(&stream.expected);
    println!("\n== what became of {} messages (seed {seed})\n\n{table}", thousands(stream.len()));
    println!("== one key's story\n\n$ oncebox trace campaign/coupon-grant {TRACED}");
    run(stage.oncebox().args(["trace", "campaign/coupon-grant", TRACED]))?;
    stage.close()?;
    println!("\n== done in {watch} after building");
    if differing > 0 {
        return Err(Failed::Step(format!(
            "{differing} lines of the table differ; `cargo demo --keep` keeps the folder"
        )));
    }
    println!("\n{}", stage.farewell());
    Ok(())
}

struct Options {
    keep: bool,
    seed: u64,
}

impl Options {
    fn parse(args: &[&str]) -> Result<Self> {
        let mut options = Self { keep: false, seed: 42 };
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            match *arg {
                "--keep" => options.keep = true,
                "--seed" => {
                    let seed = rest.next().and_then(|seed| seed.parse().ok());
                    options.seed = seed.ok_or_else(|| Failed::Usage("--seed takes a whole number".to_owned()))?;
                }
                unknown => return Err(Failed::Usage(format!("`cargo demo` has no argument `{unknown}`"))),
            }
        }
        Ok(options)
    }
}

/// Starts the host, sends every wave and waits until it is settled; returns the books at the end.
fn play(stage: &mut Stage, stream: &Stream, watch: Stopwatch) -> Result<Books> {
    stage.open()?;
    let mut progress = Progress::new(watch, stream.len());
    for (number, wave) in stream.waves.iter().enumerate() {
        progress.line(&format!("wave {}: {}", number + 1, wave.title));
        let chunks = side_by_side(wave);
        for (turn, (source, lines)) in chunks.iter().enumerate() {
            stage.send(source, lines)?;
            progress.sent(lines.len());
            progress.show(&stage.tally()?);
            if wave.crash && turn == chunks.len() / 2 {
                progress.line("the host is killed in the midst of it: kill -9");
                stage.crash()?;
                stage.open()?;
            }
        }
        stage.wait(&format!("wave {} is settled", number + 1), || {
            let books = stage.tally()?;
            progress.show(&books);
            Ok(books.waiting == 0 && books.parked == wave.parked)
        })?;
    }
    progress.end();
    // Read once more: what was read with the last look may be older than its count of what waits.
    stage.tally()
}

/// The wave's messages in chunks, the sources in turn.
fn side_by_side(wave: &Wave) -> Vec<(&'static str, &[String])> {
    let mut chunks: Vec<(usize, &'static str, &[String])> = Vec::new();
    for (source, lines) in &wave.lines {
        chunks.extend(lines.chunks(CHUNK).enumerate().map(|(turn, chunk)| (turn, *source, chunk)));
    }
    chunks.sort_by_key(|(turn, ..)| *turn);
    chunks.into_iter().map(|(_, source, chunk)| (source, chunk)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_fed_in_turn_and_each_in_its_own_order() {
        let lines = |n: usize| (0..n).map(|i| i.to_string()).collect::<Vec<_>>();
        let wave = Wave {
            title: "",
            lines: vec![("a", lines(CHUNK * 2 + 1)), ("b", lines(CHUNK + 1))],
            parked: 0,
            crash: false,
        };
        let fed: Vec<(&str, &str)> = side_by_side(&wave).iter().map(|(source, lines)| (*source, &*lines[0])).collect();
        assert_eq!(fed, [("a", "0"), ("b", "0"), ("a", "250"), ("b", "250"), ("a", "500")]);
    }

    #[test]
    fn an_argument_that_is_not_known_is_named() {
        let unknown = Options::parse(&["--keep", "--sead"]);
        assert!(matches!(unknown, Err(Failed::Usage(message)) if message.contains("--sead")));
        let options = Options::parse(&["--seed", "7"]).unwrap();
        assert_eq!((options.seed, options.keep), (7, false));
    }
}
