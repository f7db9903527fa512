//! `oncebox send`.

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Error, Read, stdin},
    path::Path,
};

use oncebox_core::message::{Header, Message};
use serde_json::json;
use tokio::sync::mpsc;

use super::{
    args::SendArgs,
    failed::{Failed, Wrong},
    open::{Opened, known, safe},
    output::Output,
};
use crate::{code::Exit, store::Use};

/// Lines in one transaction, at most.
const LINES_MAX: usize = 1_000;

pub(super) async fn send(output: Output, config: &Path, args: &SendArgs) -> Result<Exit, Failed> {
    let opened = Opened::read(config)?;
    let tenant = opened.tenant(&args.source.tenant)?;
    if !tenant.sources.contains_key(&args.source.name) {
        let (known, name) = (known(tenant.sources.keys()), safe(&args.source.name));
        let message = format!("tenant `{}` has no source `{name}`; it has: {known}", args.source.tenant);
        return Err(Failed::new(Wrong::Source, message));
    }
    // Before the store is made: a wrong file name leaves nothing behind.
    let mut lines = lines(&args.file, opened.config.host.limits.payload_bytes_max)?;
    let store = opened.store(&args.source.tenant, tenant, Use::Command).await?;
    let mut sent = 0;
    let mut batch = Vec::new();
    // What is there now goes in one transaction; nothing waits for more to come.
    while lines.recv_many(&mut batch, LINES_MAX).await > 0 {
        let mut messages = Vec::with_capacity(batch.len());
        let mut broken = None;
        for line in batch.drain(..) {
            match line {
                Ok(body) => messages.push(message(body, &args.headers)),
                Err(error) => broken = Some(unreadable(&args.file, &error)),
            }
        }
        let offered = store.local_offer(&args.source.name, &messages).await;
        sent += offered.map_err(|error| after(sent, error.into()))?;
        if let Some(failed) = broken {
            return Err(after(sent, failed));
        }
    }
    output.answer(
        || json!({ "source": args.source.to_string(), "sent": sent }),
        || format!("{}: {sent} sent", args.source),
    );
    Ok(Exit::Done)
}

fn message(body: Vec<u8>, headers: &[(String, String)]) -> Message {
    let content_type = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    Message {
        body,
        content_type: content_type.map(|(_, value)| value.clone()),
        headers: headers
            .iter()
            .filter(|(name, _)| !name.eq_ignore_ascii_case("content-type"))
            .map(|(name, value)| Header::new(name.as_str(), value.as_bytes()))
            .collect(),
        ..Message::default()
    }
}

type Lines = mpsc::Receiver<Result<Vec<u8>, Error>>;

/// Reads lines on a thread of their own: a terminal or a pipe may be slow. A line above `bytes_max` ends it: the host
/// would keep it as poison, and a file without lines must not fill the memory.
fn lines(file: &Path, bytes_max: u64) -> Result<Lines, Failed> {
    let input: Box<dyn Read + Send> = if file == Path::new("-") {
        Box::new(stdin())
    } else {
        Box::new(File::open(file).map_err(|error| unreadable(file, &error))?)
    };
    let (sender, receiver) = mpsc::channel(LINES_MAX);
    std::thread::spawn(move || {
        let mut input = BufReader::new(input);
        loop {
            let mut line = Vec::new();
            let read = match input.by_ref().take(bytes_max.saturating_add(1)).read_until(b'\n', &mut line) {
                Ok(0) => return,
                Ok(_) => {
                    let ended = line.pop_if(|last| *last == b'\n').is_some();
                    if ended || line.len() as u64 <= bytes_max { Ok(line) } else { Err(too_long(bytes_max)) }
                }
                Err(error) => Err(error),
            };
            let failed = read.is_err();
            if sender.blocking_send(read).is_err() || failed {
                return;
            }
        }
    });
    Ok(receiver)
}

fn too_long(bytes_max: u64) -> Error {
    Error::other(format!("the next line has more than {bytes_max} bytes (host.limits.payload_bytes_max)"))
}

fn unreadable(file: &Path, error: &Error) -> Failed {
    Failed::new(Wrong::InputFile, format!("cannot read {}: {error}", file.display()))
}

/// Whoever sends the rest must know where it begins.
fn after(sent: u64, failed: Failed) -> Failed {
    if sent == 0 { failed } else { failed.after(&format!("{sent} lines were sent, then: ")) }
}
