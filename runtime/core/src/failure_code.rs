//! The codes of failed attempts and of messages without an identity: the page of the docs says of each what it means and
//! how it is mended. A test of the test crate compares the list with what the host's source says.

use crate::failure::Class;

/// One code that the host itself gives to a failure; a plugin's own codes stand in its manifest and its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailureCode {
    /// Its name, kebab-case; kept in `ob_held` and `ob_attempt`, so it never changes.
    pub name: &'static str,
    /// The class by default; a manifest may map a server's error otherwise.
    pub class: Class,
    /// What has happened.
    pub means: &'static str,
    /// What to do about it.
    pub mend: &'static str,
}

/// Declares every code once, by class.
macro_rules! failure_codes {
    ($($class:ident { $($name:literal $means:literal $mend:literal)* })*) => {
        /// Every code, in the order of the documentation.
        pub const FAILURE_CODES: &[FailureCode] = &[$($(FailureCode {
            name: $name,
            class: Class::$class,
            means: $means,
            mend: $mend,
        }),*),*];
    };
}

failure_codes! {
    Infrastructure {
        "no-instance" "no instance of the sandbox is free" "raise host.limits.instances_max, or add a host"
        "engine-closed" "the host is ending" "nothing: it is run again"
        "run-broke" "a task of the host that held the run is gone" "nothing: it is run again; report it with the log"
        "no-query-port" "the lane of the open unit of work is gone" "nothing: it is run again"
        "database-away" "the tenant's database is away, busy, full or read-only" "bring it back; nothing is counted"
    }
    Blocked {
        "handler-blocked" "the handler is blocked: a table or a right that its statements need is gone" "mend the schema or the grants, or deploy a module that fits; then its events run"
        "schema-changed" "a statement that was prepared at deployment is refused now" "mend the table or deploy a module that fits it; what is parked runs then"
    }
    Unrun {
        "lock-wait" "a statement of the event waited too long for a lock, several times; the event was put aside, uncounted" "see who holds the row; it runs again by itself"
        "behind" "an earlier event of the same ordering key is parked or dead; this one waits for it, uncounted" "nothing, as long as that one is tried again; if it is dead, decide it"
        "redelivered" "the broker has handed it over so often without an ack that it would drop it soon; it was put aside without a run" "find out why hosts end before they commit; it runs when its turn comes"
        "slow-backlog" "a slow handler has too many events waiting; this one was put aside without a run" "make the handler faster; it runs when its turn comes"
    }
    GuestRetry {
        "guest-retry" "the plugin asked for another attempt" "see the attempt's message, which is the plugin's own"
    }
    Mismatch {
        "rows-mismatch" "a statement matched another number of rows than the manifest expects" "see which row is missing; the manifest says whether that rejects (the default) or is tried again"
    }
    DuplicateKey {
        "duplicate-key" "a unique key of a business table holds the value already" "see the row of the business table; this is never taken for a duplicate of the event"
    }
    ForeignKey {
        "foreign-key" "a row that the statement refers to is not there" "see that what makes the row comes before; it is tried again"
    }
    Trap {
        "unreachable" "the plugin panicked or aborted" "mend the plugin; the last error line and the stack are with the attempt"
        "stack-overflow" "the plugin ran out of stack" "bound its recursion"
        "memory-out-of-bounds" "the plugin touched memory that it does not have" "mend the plugin's unsafe code"
        "table-out-of-bounds" "the plugin called a function that is not there" "mend the plugin's unsafe code"
        "indirect-call" "the plugin called through a wrong pointer" "mend the plugin's unsafe code"
        "integer-overflow" "a division of the plugin overflowed" "check the operands before"
        "division-by-zero" "the plugin divided by zero" "check the divisor before"
        "bad-conversion" "the plugin made an integer of a number that has none" "check the number before"
        "trap" "the plugin trapped for another reason" "see the attempt's message"
    }
    TimeLimit {
        "run-time" "the run was not over in time" "make it faster, or raise run_time_ms_max"
    }
    MemoryLimit {
        "memory" "the plugin asked for more memory than it may have" "make it need less, or raise memory_bytes_max"
    }
    Data {
        "wrong-type" "the database does not take the value for this column" "send a value of the column's type"
        "out-of-range" "the value is beyond what the column or the embedded store can hold" "send a smaller one, or use MySQL"
        "null-refused" "NULL where none may be" "stage a value"
        "constraint" "a CHECK of a business table refuses the row" "see the table's constraints"
        "too-long" "the value is longer than the column" "send a shorter one, or widen the column"
        "refused" "the database refuses the data for another reason" "see the attempt's message"
    }
    Quota {
        "result-bytes" "the result has more bytes than result_bytes_max" "return less, or raise the limit"
        "host-calls" "the run called the host more often than host_calls_max" "call less often, or raise the limit"
        "staged-bytes" "what was staged and emitted has more bytes than staged_bytes_max" "stage less, or raise the limit"
        "staged-rows" "more statements were staged than staged_rows_max" "stage fewer, or raise the limit"
        "events" "more events were emitted than events_max" "emit fewer, or raise the limit"
        "transfer-bytes" "one call handed over more bytes than it may" "hand over less at once"
        "random-bytes" "one call asked for more random bytes than it may" "ask for fewer at once"
        "query-rows" "a query has more rows than its rows_max" "add a LIMIT, or raise rows_max in the manifest"
        "query-bytes" "a query has more bytes than its bytes_max" "ask for fewer columns, or raise bytes_max in the manifest"
        "hop-limit" "the event went from handler to handler over `local` too often" "break the cycle of handlers, or raise host.limits.hops_max"
    }
    Abi {
        "outside-handle" "the plugin called the host when no event was being handled" "call it from handle only"
        "param-count" "a statement was staged with another number of parameters than declared" "make params of the manifest and the call agree"
        "param-type" "a parameter has another type than declared" "make params of the manifest and the call agree"
        "unknown-statement" "the statement is not in the manifest" "declare it under [statements]"
        "unknown-query" "the query is not in the manifest" "declare it under [queries]"
        "unknown-destination" "the destination is not in the manifest" "declare it under [destinations]"
        "unknown-config" "the configuration value is not in the manifest" "declare it under [config]"
        "event-type" "the emitted event's type is empty, or not one that the destination declares" "mend event_types of the destination in the manifest"
        "ordering-key" "the emitted event's ordering key is missing, not declared, or too long" "make `ordering` of the destination in the manifest and the call agree"
        "reject-code" "the plugin rejected with a code that is not of [a-z0-9-]{1,64}" "give it such a code"
        "component-abi" "the plugin's bindings broke the rules of the component model" "build it with current bindings"
        "malformed-value" "the plugin answered something that the host does not understand" "build it with current bindings"
    }
    Poison {
        "payload-too-large" "the body is over host.limits.payload_bytes_max" "send a smaller one, or raise the limit"
        "bad-payload" "the payload should be JSON and is not, or two readers could understand it differently" "mend the producer"
        "bad-envelope" "the CloudEvents envelope, or what the source's `envelope` points at, is unusable" "mend the producer, or the source's `envelope`"
        "event-batch" "a batch of CloudEvents, which is no event" "send one event a message"
        "bad-time" "the event's time is not of the declared form, or beyond what the stores can hold" "mend the producer, or the source's `envelope`"
        "not-json" "the rule points into a payload that is not JSON" "mend the producer, or the route"
        "no-key" "a part of the business key is missing, null or empty" "mend the producer, or the handler's key"
        "bad-key" "a part of the business key is neither integer nor text, or there are several" "mend the producer, or the handler's key"
        "key-too-long" "the business key is over host.limits.key_bytes_max" "make the key of fewer or shorter parts"
        "no-ordering-key" "a part of the ordering key is missing, null or empty" "mend the producer, or the handler's ordering"
        "bad-ordering-key" "a part of the ordering key is neither integer nor text, or there are several" "mend the producer, or the handler's ordering"
        "ordering-key-too-long" "the ordering key is over host.limits.key_bytes_max" "make the ordering key of fewer or shorter parts"
    }
    NoRoute {
        "no-route" "no route of the source takes the event" "add a route, or say unrouted = \"ignore\""
        "ignored" "no route of the source takes the event, and the source ignores such" "nothing: it is settled and counted"
    }
    Conflict {
        "conflict" "the business key is there with another fingerprint" "see both payloads with `oncebox dead show`, and find out which one is right"
    }
    DeathAlone {
        "death-alone" "the host's process ended each time that nothing but this event ran: `deaths_max` times" "see what the plugin does with this event (a host function that aborts, memory); replayed, it runs alone again"
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::identify::PoisonCode;

    #[test]
    fn every_code_of_a_poison_is_listed_and_no_other() {
        let listed: BTreeSet<_> =
            FAILURE_CODES.iter().filter(|code| code.class == Class::Poison).map(|code| code.name).collect();
        let given: BTreeSet<_> = PoisonCode::ALL.into_iter().map(PoisonCode::name).collect();
        assert_eq!(listed, given);
    }

    #[test]
    fn a_code_stands_once_and_its_words_are_those_of_a_message() {
        let names: BTreeSet<_> = FAILURE_CODES.iter().map(|code| code.name).collect();
        assert_eq!(names.len(), FAILURE_CODES.len());
        for code in FAILURE_CODES {
            for words in [code.means, code.mend] {
                assert!(!words.ends_with('.') && !words.is_empty(), "{}", code.name);
            }
        }
    }
}
