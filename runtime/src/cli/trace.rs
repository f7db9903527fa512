//! `oncebox trace`: the story of a business key.

use std::path::Path;

use oncebox_core::{
    ids::BusinessKey,
    life::{HeldState, InboxState},
};
use serde_json::{Value as Json, json};

use super::{
    args::TraceArgs,
    dead::{attempt_json, held_json},
    failed::{Failed, Wrong},
    open::{Opened, no_handler},
    output::{Output, text},
};
use crate::{
    clock::shown,
    code::Exit,
    store::{DeploymentId, HeldStory, InboxStory, KeyStory},
};

pub(super) async fn trace(output: Output, config: &Path, args: &TraceArgs) -> Result<Exit, Failed> {
    let opened = Opened::read(config)?;
    let tenant = opened.tenant(&args.place.tenant)?;
    let store = opened.store_made(&args.place.tenant, tenant).await?;
    let key = BusinessKey::new(unescaped(&args.key));
    let unknown = || {
        let message = format!("{} has decided or held nothing with key {key}", args.place);
        Failed::new(Wrong::Key, message)
    };
    // A handler that the configuration has no more still has its story.
    let handler = match store.handlers().await?.get(&args.place.name) {
        Some(handler) => *handler,
        None if tenant.handlers.contains_key(&args.place.name) => return Err(unknown()),
        None => return Err(no_handler(&args.place.tenant, tenant, &args.place.name)),
    };
    let story = store.trace(handler, &key).await?;
    if story.inbox.is_none() && story.held.is_empty() {
        return Err(unknown());
    }
    output
        .answer(|| story_json(&args.place.to_string(), &key, &story), || human(&args.place.to_string(), &key, &story));
    Ok(Exit::Done)
}

/// `\xNN` stands for a byte, as keys are shown.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let byte = rest
            .strip_prefix(b"\\x")
            .and_then(|hex| hex.get(..2))
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(byte.unwrap_or(first));
        rest = if byte.is_some() { rest.get(4..).unwrap_or_default() } else { after };
    }
    bytes
}

fn module(deployment: Option<(DeploymentId, oncebox_core::ids::ModuleDigest)>) -> String {
    deployment.map_or_else(
        || "not run".to_owned(),
        |(id, digest)| format!("deployment {id}, module {}", digest.to_string().get(..12).unwrap_or_default()),
    )
}

/// An attempt has run on something; of one that ended its process nobody could write down on what.
fn ran_on(deployment: Option<(DeploymentId, oncebox_core::ids::ModuleDigest)>) -> String {
    if deployment.is_some() { module(deployment) } else { "module not known".to_owned() }
}

fn human(place: &str, key: &BusinessKey, story: &KeyStory) -> String {
    let mut lines = Vec::new();
    for held in &story.held {
        held_lines(held, &mut lines);
    }
    if let Some(inbox) = &story.inbox {
        inbox_lines(inbox, duplicates(inbox, story), &mut lines);
    }
    for event in &story.outgoing {
        let state = json!(event.state);
        let what = format!(
            "sent        {} {} to `{}`: {}",
            event.event_type,
            event.event_id,
            event.destination,
            state.as_str().unwrap_or_default()
        );
        lines.push((event.created_us, what));
    }
    lines.sort_by_key(|(at, _)| *at);
    let state = story.inbox.as_ref().map_or("no inbox row", |inbox| inbox.state.name());
    let mut out = format!("{place}  {key}: {state}\n");
    for (at, line) in lines {
        // Ids, codes and sentences are the producer's and the plugin's.
        out += &format!("  {}  {}\n", shown(at), text(line.as_bytes()));
    }
    if let Some(result) = story.inbox.as_ref().and_then(|inbox| inbox.result.as_ref()) {
        out += &format!("  result: {}\n", text(result));
    }
    out
}

/// Further deliveries of the same fact: the row counts every one that found it, conflicts have rows of their own.
fn duplicates(inbox: &InboxStory, story: &KeyStory) -> u64 {
    let conflicts = story.held.iter().filter(|held| held.row.state == HeldState::Conflict);
    inbox.duplicates.saturating_sub(conflicts.map(|held| u64::from(held.row.times)).sum())
}

fn inbox_lines(inbox: &InboxStory, duplicates: u64, lines: &mut Vec<(i64, String)>) {
    lines.push((inbox.received_us, format!("received    event {} from source `{}`", inbox.event_id, inbox.source)));
    // Of what is parked or dead, the held row tells more.
    if matches!(inbox.state, InboxState::Applied | InboxState::Skipped | InboxState::Discarded) {
        let code = inbox.code.as_ref().map_or_else(String::new, |code| format!(": {code}"));
        let module = module(inbox.deployment);
        lines
            .push((inbox.decided_us, format!("{:<11} attempt {}, {module}{code}", inbox.state.name(), inbox.attempts)));
    }
    if let Some(at) = inbox.duplicate_us.filter(|_| duplicates > 0) {
        let times = if duplicates == 1 { "once".to_owned() } else { format!("{duplicates} times") };
        lines.push((at, format!("duplicate   {times} since the first; this was the last")));
    }
}

fn held_lines(held: &HeldStory, lines: &mut Vec<(i64, String)>) {
    for attempt in &held.attempts {
        let what = format!(
            "failed      attempt {}, {}: {} [{}]: {}",
            attempt.attempt,
            ran_on(attempt.deployment),
            attempt.class.name(),
            attempt.code,
            attempt.message
        );
        lines.push((attempt.ended_us, what));
    }
    let row = &held.row;
    let times = if row.times > 1 { format!(", {} times", row.times) } else { String::new() };
    let what = match row.state {
        HeldState::Conflict => format!("conflict    {}{times} (dead show ID {})", row.message, row.held),
        HeldState::Parked => {
            let due = row.due_us.map_or_else(|| "a person".to_owned(), shown);
            format!("parked      until {due} (ID {})", row.held)
        }
        HeldState::Dead | HeldState::Late | HeldState::Poison => {
            format!(
                "{:<11} {} [{}]: {} (dead show ID {})",
                row.state.name(),
                row.class.name(),
                row.code,
                row.message,
                row.held
            )
        }
        HeldState::Resolved => format!("resolved    held row {} is over", row.held),
    };
    lines.push((row.changed_us, what));
}

fn story_json(place: &str, key: &BusinessKey, story: &KeyStory) -> Json {
    let deployment = |deployment: Option<(DeploymentId, oncebox_core::ids::ModuleDigest)>| {
        deployment.map(|(id, digest)| json!({ "id": id, "module": digest.to_string() }))
    };
    json!({
        "place": place,
        "key": key.to_string(),
        "inbox": story.inbox.as_ref().map(|inbox| json!({
            "state": inbox.state,
            "generation": inbox.generation,
            "fingerprint": inbox.fingerprint.to_string(),
            "deployment": deployment(inbox.deployment),
            "attempts": inbox.attempts,
            "duplicates": duplicates(inbox, story),
            "duplicate_at": inbox.duplicate_us.map(shown),
            "event_id": inbox.event_id,
            "source": inbox.source,
            "traceparent": inbox.traceparent,
            "received_at": shown(inbox.received_us),
            "decided_at": shown(inbox.decided_us),
            "code": inbox.code,
            "result": inbox.result.as_deref().map(text),
        })),
        "held": story.held.iter().map(|held| {
            let mut json = held_json(&held.row);
            json["runs"] = held.attempts.iter().map(attempt_json).collect();
            json
        }).collect::<Vec<_>>(),
        "outgoing": story.outgoing.iter().map(|event| json!({
            "event_id": event.event_id,
            "destination": event.destination,
            "state": event.state,
            "event_type": event.event_type,
            "created_at": shown(event.created_us),
        })).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_can_be_asked_for_as_it_is_shown() {
        for key in [&b"order:42:paid"[..], b"a\0", b"\xff\x1b", b"back\\slash", "\u{e1}".as_bytes()] {
            assert_eq!(unescaped(&oncebox_core::ids::shown(key)), key);
        }
    }
}
