//! What RabbitMQ says when a queue is declared with other properties than it has.

/// One property in which a queue differs, from the text of a 406:
/// `PRECONDITION_FAILED - inequivalent arg 'NAME' for queue 'Q' in vhost 'V': received X but current is Y`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    /// `durable`, `x-queue-type`, …
    pub(super) name: String,
    /// What the queue has.
    pub(super) current: Current,
}

/// What a queue has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Current {
    /// It does not have the argument.
    None,
    /// A value with the broker's name of its type; of `durable` and the like there is no type.
    Value {
        /// As text.
        text: String,
        /// `bool`, `longstr`, `long`, `signedint`, …
        kind: Option<String>,
    },
}

/// Reads the text of a 406; `None` if it says something else.
pub(super) fn difference(text: &str) -> Option<Difference> {
    let (_, rest) = text.split_once("inequivalent arg '")?;
    let (name, rest) = rest.split_once("' for queue '")?;
    // The last one: what was received may hold the words too, what is current comes from the queue's maker.
    let (_, current) = rest.rsplit_once(" but current is ")?;
    Some(Difference { name: name.to_owned(), current: read_current(current.trim())? })
}

fn read_current(text: &str) -> Option<Current> {
    if text == "none" {
        return Some(Current::None);
    }
    let text = text.strip_prefix("the value ").unwrap_or(text);
    let (value, kind) = match text.rsplit_once(" of type ") {
        Some((value, kind)) => (value, Some(unquoted(kind)?.to_owned())),
        None => (text, None),
    };
    Some(Current::Value { text: unquoted(value)?.to_owned(), kind })
}

fn unquoted(text: &str) -> Option<&str> {
    text.trim().strip_prefix('\'')?.strip_suffix('\'')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts are RabbitMQ 4.3's own.
    #[test]
    fn the_brokers_texts_are_understood() {
        let text = |rest: &str| format!("PRECONDITION_FAILED - inequivalent arg {rest}");
        let value =
            |text: &str, kind: Option<&str>| Current::Value { text: text.to_owned(), kind: kind.map(str::to_owned) };
        let rows = [
            (
                "'x-single-active-consumer' for queue 'q' in vhost '/': received the value 'true' of type 'bool' but current is none",
                "x-single-active-consumer",
                Current::None,
            ),
            (
                "'x-single-active-consumer' for queue 'q' in vhost '/': received none but current is the value 'true' of type 'bool'",
                "x-single-active-consumer",
                value("true", Some("bool")),
            ),
            (
                "'x-queue-type' for queue 'q' in vhost '/': received 'classic' but current is 'quorum'",
                "x-queue-type",
                value("quorum", None),
            ),
            (
                "'durable' for queue 'q' in vhost '/': received 'true' but current is 'false'",
                "durable",
                value("false", None),
            ),
            (
                "'x-max-length' for queue 'q' in vhost 'v': received none but current is the value '100' of type 'signedint'",
                "x-max-length",
                value("100", Some("signedint")),
            ),
            (
                "'x-dead-letter-exchange' for queue 'it's' in vhost '/': received the value ' but current is none' of type 'longstr' but current is the value 'a 'b'' of type 'longstr'",
                "x-dead-letter-exchange",
                value("a 'b'", Some("longstr")),
            ),
        ];
        for (rest, name, current) in rows {
            assert_eq!(difference(&text(rest)), Some(Difference { name: name.to_owned(), current }), "{rest}");
        }
        for other in ["PRECONDITION_FAILED - unknown delivery tag 9", "NOT_FOUND - no queue 'q' in vhost '/'", ""] {
            assert_eq!(difference(other), None, "{other}");
        }
    }
}
