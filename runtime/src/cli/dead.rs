//! `oncebox dead list` and `oncebox dead show`.

use std::{collections::BTreeMap, path::Path};

use oncebox_core::life::HeldState;
use serde_json::{Value as Json, json};

use super::{
    args::{DeadArgs, DeadListArgs, DeadShowArgs, DeadWhat, StateArg},
    failed::{Failed, Wrong},
    open::{Opened, no_handler},
    output::{Output, table, text},
};
use crate::{
    clock::shown,
    code::Exit,
    store::{AttemptRow, HandlerId, HeldFilter, HeldId, HeldRow, HeldStory},
};

pub(super) async fn dead(output: Output, config: &Path, args: DeadArgs) -> Result<Exit, Failed> {
    match args.what {
        DeadWhat::List(args) => list(output, config, &args).await,
        DeadWhat::Show(args) => show(output, config, &args).await,
    }
}

impl From<StateArg> for HeldState {
    fn from(state: StateArg) -> Self {
        match state {
            StateArg::Dead => Self::Dead,
            StateArg::Poison => Self::Poison,
            StateArg::Conflict => Self::Conflict,
            StateArg::Parked => Self::Parked,
            StateArg::Resolved => Self::Resolved,
        }
    }
}

async fn list(output: Output, config: &Path, args: &DeadListArgs) -> Result<Exit, Failed> {
    let opened = Opened::read(config)?;
    let (tenant, handler) =
        match args.place.as_deref().map(|place| place.split_once('/').map_or((place, None), |(t, h)| (t, Some(h)))) {
            Some((tenant, handler)) => (Some(tenant), handler),
            None => (None, None),
        };
    let states = if args.state.is_empty() {
        vec![HeldState::Dead, HeldState::Late, HeldState::Poison, HeldState::Conflict]
    } else {
        args.state.iter().map(|state| HeldState::from(*state)).collect()
    };
    let mut found = Vec::new();
    for (name, settings, store) in opened.stores_made(tenant).await? {
        let names: BTreeMap<HandlerId, String> =
            store.handlers().await?.into_iter().map(|(name, id)| (id, name)).collect();
        let id = match handler.map(|handler| (handler, names.iter().find(|(_, own)| *own == handler))) {
            None => None,
            Some((_, Some((id, _)))) => Some(*id),
            // Configured, and no host or deployment has met it yet: nothing of it can be held.
            Some((handler, None)) if settings.handlers.contains_key(handler) => continue,
            Some((handler, None)) => return Err(no_handler(name, settings, handler)),
        };
        let filter = HeldFilter { handler: id, states: states.clone(), after: args.after, limit: args.limit };
        for row in store.held_list(&filter).await? {
            let handler = names.get(&row.handler).cloned().unwrap_or_else(|| "-".to_owned());
            let owner = settings.handlers.get(&handler).and_then(|handler| handler.owner.clone());
            found.push((name.to_owned(), handler, owner, row));
        }
    }
    output.answer(
        || {
            found
                .iter()
                .map(|(tenant, handler, owner, row)| {
                    let mut json = held_json(row);
                    json["tenant"] = json!(tenant);
                    json["handler"] = json!(handler);
                    json["owner"] = json!(owner);
                    json
                })
                .collect()
        },
        || {
            if found.is_empty() {
                return "nothing is held".to_owned();
            }
            let rows: Vec<Vec<String>> =
                found.iter().map(|(tenant, handler, _, row)| line(tenant, handler, row)).collect();
            let table = table(&["ID", "STATE", "TENANT/HANDLER", "KEY", "TIMES", "WHY"], &rows);
            table
                + &more(args.limit, &found.iter().map(|(tenant, _, _, row)| (tenant.as_str(), row)).collect::<Vec<_>>())
        },
    );
    Ok(Exit::Done)
}

/// Where the list goes on, for every tenant that has filled its share of it.
fn more(limit: u32, found: &[(&str, &HeldRow)]) -> String {
    let mut last: BTreeMap<&str, (usize, HeldId)> = BTreeMap::new();
    for (tenant, row) in found {
        let entry = last.entry(tenant).or_insert((0, row.held));
        *entry = (entry.0 + 1, row.held);
    }
    let full = last.into_iter().filter(|(_, (count, _))| u32::try_from(*count).is_ok_and(|count| count >= limit));
    full.map(|(tenant, (_, id))| format!("there may be more of {tenant}: --after {id}\n")).collect()
}

fn line(tenant: &str, handler: &str, row: &HeldRow) -> Vec<String> {
    let key = row.key.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
    let mut why = text(format!("{}: {}", row.code, row.message).as_bytes());
    if why.chars().count() > 100 {
        why = why.chars().take(99).chain(['\u{2026}']).collect();
    }
    vec![
        row.held.to_string(),
        row.state.name().to_owned(),
        format!("{tenant}/{handler}"),
        key,
        row.times.to_string(),
        why,
    ]
}

async fn show(output: Output, config: &Path, args: &DeadShowArgs) -> Result<Exit, Failed> {
    let opened = Opened::read(config)?;
    let store = opened.store_made(&args.tenant, opened.tenant(&args.tenant)?).await?;
    let Some(story) = store.held_show(HeldId(args.id)).await? else {
        let message =
            format!("tenant `{}` has no held row {}; `oncebox dead list {0}` shows them", args.tenant, args.id);
        return Err(Failed::new(Wrong::HeldRow, message));
    };
    let handlers = store.handlers().await?;
    let handler = handlers.iter().find(|(_, id)| **id == story.row.handler).map_or("-", |(name, _)| name);
    output.answer(|| story_json(handler, &story), || human(&args.tenant, handler, &story));
    Ok(Exit::Done)
}

fn human(tenant: &str, handler: &str, story: &HeldStory) -> String {
    let row = &story.row;
    let mut out = format!("{} {}  {tenant}/{handler}\n", row.state.name(), row.held);
    let mut add = |name: &str, value: &str| out += &format!("  {name:<12} {value}\n");
    if let Some(key) = &row.key {
        add("key", &key.to_string());
    }
    add("why", &text(format!("{} [{}]: {}", row.class.name(), row.code, row.message).as_bytes()));
    add("seen", &format!("{} times", row.times));
    add("attempts", &row.attempts.to_string());
    add("received", &format!("{} from source `{}`", shown(row.received_us), row.source));
    add("changed", &shown(row.changed_us));
    if let Some(due) = row.due_us {
        add("due", &shown(due));
    }
    if let Some(id) = &row.event_id {
        add("event", &text(format!("{id} {}", row.event_type.as_deref().unwrap_or_default()).as_bytes()));
    }
    if let Some(fingerprint) = &row.fingerprint {
        add("fingerprint", &fingerprint.to_string());
    }
    for attempt in &story.attempts {
        let what =
            format!("{} {} [{}]: {}", shown(attempt.ended_us), attempt.class.name(), attempt.code, attempt.message);
        add(&format!("attempt {}", attempt.attempt), &text(what.as_bytes()));
        for frame in attempt.backtrace.iter().flat_map(|backtrace| backtrace.lines()) {
            add("", &text(frame.as_bytes()));
        }
    }
    for header in &story.body.headers {
        add("header", &format!("{}: {}", text(header.name.as_bytes()), text(&header.value)));
    }
    add("body", &format!("{} bytes", story.body.body.len()));
    out += &text(&story.body.body);
    out
}

fn story_json(handler: &str, story: &HeldStory) -> Json {
    let mut json = held_json(&story.row);
    json["handler"] = json!(handler);
    json["runs"] = story.attempts.iter().map(attempt_json).collect();
    json["headers"] = story.body.headers.iter().map(|h| json!([h.name, text(&h.value)])).collect();
    json["content_type"] = json!(story.body.content_type);
    match std::str::from_utf8(&story.body.body) {
        Ok(body) => json["body"] = json!(body),
        Err(_) => {
            json["body_hex"] = json!(story.body.body.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        }
    }
    json
}

/// A held row for programs.
pub(super) fn held_json(row: &HeldRow) -> Json {
    json!({
        "id": row.held,
        "state": row.state,
        "key": row.key.as_ref().map(ToString::to_string),
        "due_at": row.due_us.map(shown),
        "attempts": row.attempts,
        "times": row.times,
        "class": row.class,
        "code": row.code,
        "message": row.message,
        "fingerprint": row.fingerprint.map(|fingerprint| fingerprint.to_string()),
        "source": row.source,
        "event_id": row.event_id,
        "event_type": row.event_type,
        "received_at": shown(row.received_us),
        "changed_at": shown(row.changed_us),
    })
}

/// An attempt for programs.
pub(super) fn attempt_json(attempt: &AttemptRow) -> Json {
    json!({
        "attempt": attempt.attempt,
        "deployment": attempt.deployment.map(|(id, _)| id),
        "module": attempt.deployment.map(|(_, digest)| digest.to_string()),
        "started_at": shown(attempt.started_us),
        "ended_at": shown(attempt.ended_us),
        "class": attempt.class,
        "code": attempt.code,
        "message": attempt.message,
        "backtrace": attempt.backtrace,
    })
}
