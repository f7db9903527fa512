//! The forms of texts that manifest and configuration share, and the nearest of some known words.

use super::{key::grouped, shape::Form};
use crate::{
    template::{TEMPLATE_BYTES_MAX, Template, TemplateUse},
    text::quoted,
};

/// Bytes of a JSON pointer.
const POINTER_BYTES_MAX: usize = 512;

/// Bytes of an event type.
const EVENT_TYPE_BYTES_MAX: usize = 255;

/// Characters of a name, and of a table's name (MySQL 8.4 manual, 11.2.1: 64 characters).
const NAME_CHARS_MAX: usize = 64;

/// Names of handlers, statements, queries, destinations, sources, tenants, and codes.
pub(crate) static NAME: Form = Form {
    shown: "name, `[a-z0-9-]{1,64}`",
    check: |text| of_characters(text, |c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-', "a-z, 0-9 and -"),
};

/// Names of configuration values.
pub(crate) static CONFIG_NAME: Form = Form {
    shown: "name, `[a-z0-9_-]{1,64}`",
    check: |text| {
        of_characters(
            text,
            |c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-',
            "a-z, 0-9, _ and -",
        )
    },
};

/// Names of parameters, which become arguments in the guest's language.
pub(crate) static PARAM_NAME: Form = Form {
    shown: "name, `[a-z][a-z0-9_]*`, up to 64 characters",
    check: |text| {
        of_characters(text, |c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_', "a-z, 0-9 and _")?;
        match text.starts_with(|c: char| c.is_ascii_lowercase()) {
            true => Ok(()),
            false => Err(format!("is {}, which does not begin with a letter", quoted(text))),
        }
    },
};

/// Names of business tables.
pub(crate) static TABLE_NAME: Form = Form {
    shown: "table name, `[A-Za-z0-9_$]{1,64}`, never `ob_…`",
    check: |text| {
        of_characters(text, |c| c.is_ascii_alphanumeric() || c == '_' || c == '$', "A-Z, a-z, 0-9, _ and $")?;
        // MySQL and SQLite may both compare names of tables without regard to case.
        match text.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("ob_")) {
            true => Err(format!("is {}, and tables ob_* belong to oncebox", quoted(text))),
            false => Ok(()),
        }
    },
};

/// A trigger with its table.
pub(crate) static TRIGGER: Form = Form {
    shown: "trigger, `TABLE.TRIGGER`",
    check: |text| {
        let Some((table, trigger)) = text.split_once('.') else {
            return Err(format!("is {}, which names no table", quoted(text)));
        };
        (TABLE_NAME.check)(table)?;
        of_characters(trigger, |c| c.is_ascii_alphanumeric() || c == '_' || c == '$', "A-Z, a-z, 0-9, _ and $")
    },
};

/// An event type, or the beginning of some.
pub(crate) static EVENT_TYPE: Form = Form {
    shown: "event type; a trailing `*` matches any rest",
    check: |text| {
        bytes_in(text, EVENT_TYPE_BYTES_MAX)?;
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(format!("is {}, which has a space or control character", quoted(text)));
        }
        match text.find('*') {
            Some(index) if index + 1 < text.len() => Err(format!("is {}, with a * before the end", quoted(text))),
            Some(_) | None => Ok(()),
        }
    },
};

/// A template of a business or ordering key.
pub(crate) static KEY_TEMPLATE: Form = Form {
    shown: "template, 1 to 512 bytes, with at least one placeholder",
    check: |text| check_template(text, TemplateUse::Key),
};

/// A template of a fact of an envelope.
pub(crate) static ENVELOPE_TEMPLATE: Form =
    Form { shown: "template, 1 to 512 bytes", check: |text| check_template(text, TemplateUse::Envelope) };

/// A JSON pointer to a part of the payload (RFC 6901).
pub(crate) static POINTER: Form = Form {
    shown: "JSON pointer, such as `/userId`, up to 512 bytes",
    check: |text| {
        bytes_in(text, POINTER_BYTES_MAX)?;
        if !text.starts_with('/') {
            return Err(format!("is {}, which does not begin with /", quoted(text)));
        }
        match text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1'])) {
            true => Ok(()),
            false => Err(format!("is {}, where ~ is not followed by 0 or 1", quoted(text))),
        }
    },
};

/// Any text up to 255 bytes: owners and the like.
pub(crate) static LINE: Form = Form { shown: "text, 1 to 255 bytes, one line", check: |text| line_in(text, 255) };

/// Any text up to 1,024 bytes: descriptions.
pub(crate) static DESCRIPTION: Form = Form {
    shown: "text, up to 1_024 bytes",
    check: |text| if text.is_empty() { Ok(()) } else { bytes_in(text, 1_024) },
};

/// A path of a file or folder.
pub(crate) static PATH: Form = Form { shown: "path, 1 to 4_096 bytes", check: |text| line_in(text, 4_096) };

/// A secret written where others can read it; no message repeats it.
pub(crate) static SECRET_TEXT: Form = Form { shown: "text, 1 to 1_024 bytes", check: |text| line_in(text, 1_024) };

/// The name of a variable of the environment (POSIX, Base Definitions, 8.1).
pub(crate) static ENV_NAME: Form = Form {
    shown: "name of a variable, `[A-Za-z_][A-Za-z0-9_]*`, up to 255 bytes",
    check: |text| {
        bytes_in(text, 255)?;
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
        match text.chars().all(allowed) && !text.starts_with(|c: char| c.is_ascii_digit()) {
            true => Ok(()),
            // Somebody may have written the secret itself: it is not repeated.
            false => Err("is no name of a variable of the environment".to_owned()),
        }
    },
};

/// The name of a queue (AMQP 0-9-1, short string).
pub(crate) static QUEUE: Form = Form { shown: "name, 1 to 255 bytes", check: |text| line_in(text, 255) };

/// The name of a host.
pub(crate) static HOST_NAME: Form = Form {
    shown: "name, `[A-Za-z0-9._-]{1,64}`",
    check: |text| {
        of_characters(text, |c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'), "A-Z, a-z, 0-9, ., _ and -")
    },
};

/// A command of the shell.
pub(crate) static COMMAND: Form =
    Form { shown: "shell command, 1 to 4_096 bytes", check: |text| bytes_in(text, 4_096) };

/// Any text up to 64 KiB: values for plugins.
pub(crate) static VALUE: Form = Form {
    shown: "text, up to 65_536 bytes",
    check: |text| if text.is_empty() { Ok(()) } else { bytes_in(text, 65_536) },
};

/// The nearest known word, if one is near, and all of them.
pub(crate) fn nearest(word: &str, what: &str, known: impl Iterator<Item = &'static str>) -> String {
    let known: Vec<_> = known.collect();
    let list = format!("known {what}s: {}", known.join(", "));
    let characters = word.chars().count();
    if characters > NAME_CHARS_MAX {
        // The distance costs time and memory by the product of both lengths, and a module's author chose the word.
        return list;
    }
    // A word further off than half of its letters is no slip of the pen.
    let far = characters / 2 + 1;
    let distances = known.iter().map(|name| (strsim::damerau_levenshtein(word, name), *name));
    match distances.min_by_key(|(distance, _)| *distance) {
        Some((distance, name)) if distance <= far => format!("the nearest known {what} is \"{name}\"; {list}"),
        Some(_) | None => list,
    }
}

/// Accepts a text of 1 to `bytes_max` bytes.
pub(crate) fn bytes_in(text: &str, bytes_max: usize) -> Result<(), String> {
    match text.len() {
        0 => Err("is empty".to_owned()),
        length if length > bytes_max => {
            Err(format!("has {} bytes, above the limit of {}", grouped(length as u64), grouped(bytes_max as u64)))
        }
        _ => Ok(()),
    }
}

/// Accepts a text of 1 to `bytes_max` bytes without control characters.
fn line_in(text: &str, bytes_max: usize) -> Result<(), String> {
    bytes_in(text, bytes_max)?;
    match text.chars().any(char::is_control) {
        true => Err("has a control character".to_owned()),
        false => Ok(()),
    }
}

fn check_template(text: &str, usage: TemplateUse) -> Result<(), String> {
    bytes_in(text, TEMPLATE_BYTES_MAX)?;
    Template::parse(text, usage).map(drop).map_err(|error| format!("cannot be used: {error}"))
}

fn of_characters(text: &str, allowed: fn(char) -> bool, words: &str) -> Result<(), String> {
    let characters = text.chars().count();
    if characters == 0 {
        return Err("is empty".to_owned());
    }
    if characters > NAME_CHARS_MAX {
        return Err(format!("has {characters} characters, above the limit of {NAME_CHARS_MAX}"));
    }
    match text.chars().find(|c| !allowed(*c)) {
        Some(other) => {
            Err(format!("is {}, and only {words} may stand in it, not {}", quoted(text), quoted(&other.to_string())))
        }
        None => Ok(()),
    }
}
