//! What an error of a run means: from wasmtime's error to a [`Failure`] with its class.

use std::time::Duration;

use oncebox_core::failure::{Class, Failure};
use thiserror::Error;
use wasmtime::{PoolConcurrencyLimitError, Trap, WasmBacktrace};

use super::{
    limiter::{MemoryLimiter, Refusal},
    text::{BACKTRACE_BYTES_MAX, MESSAGE_BYTES_MAX, cut, tamed},
};

/// A rule broken, or an answer that does not come: raised in an import, ends the attempt as a trap of the guest.
#[derive(Debug, Error)]
#[error("{}", .0.message)]
pub(super) struct Breach(pub(super) Failure);

impl Breach {
    /// A quota is used up.
    pub(super) fn quota(code: &str, message: impl AsRef<str>) -> wasmtime::Error {
        Self::of(Class::Quota, code, message.as_ref())
    }

    /// The contract is broken.
    pub(super) fn abi(code: &str, message: impl AsRef<str>) -> wasmtime::Error {
        Self::of(Class::Abi, code, message.as_ref())
    }

    /// The time is over.
    pub(super) fn time(run_time_max: Duration) -> wasmtime::Error {
        let limit = run_time_max.as_millis();
        Self::of(Class::TimeLimit, "run-time", &format!("the run was not over after {limit} ms (run_time_ms_max)"))
    }

    /// The host cannot serve the call.
    pub(super) fn infrastructure(code: &str, message: impl AsRef<str>) -> wasmtime::Error {
        Self::of(Class::Infrastructure, code, message.as_ref())
    }

    fn of(class: Class, code: &str, message: &str) -> wasmtime::Error {
        wasmtime::Error::from(Self(Failure::new(class, code, tamed(message, MESSAGE_BYTES_MAX))))
    }
}

/// The traps that are lies in the ABI or calls where none may be, not faults of the guest's own code.
const ABI_TRAPS: [Trap; 7] = [
    Trap::CannotEnterComponent,
    Trap::CannotLeaveComponent,
    Trap::InvalidChar,
    Trap::StringOutOfBounds,
    Trap::ListOutOfBounds,
    Trap::InvalidDiscriminant,
    Trap::UnalignedPointer,
];

/// The traps that guests' compilers emit, by the names that people group them by; any other is `trap`.
const TRAP_CODES: [(Trap, &str); 9] = [
    (Trap::UnreachableCodeReached, "unreachable"),
    (Trap::StackOverflow, "stack-overflow"),
    (Trap::MemoryOutOfBounds, "memory-out-of-bounds"),
    (Trap::TableOutOfBounds, "table-out-of-bounds"),
    (Trap::IndirectCallToNull, "indirect-call"),
    (Trap::BadSignature, "indirect-call"),
    (Trap::IntegerOverflow, "integer-overflow"),
    (Trap::IntegerDivisionByZero, "division-by-zero"),
    (Trap::BadConversionToInteger, "bad-conversion"),
];

/// Text of wasmtime's private error for data beyond the fuel of a host call; a hostile test pins it.
const FUEL_EXHAUSTED: &str = "fuel allocated for hostcalls has been exhausted";

/// Classifies the error of a run.
///
/// Order matters: what the host itself raised comes first, and a refused growth explains the trap that follows it.
/// Lies in the ABI carry neither a [`Trap`] nor a [`WasmBacktrace`], so they are what is left.
pub(super) fn failure(error: &wasmtime::Error, memory: &MemoryLimiter, last_error: Option<&str>) -> Failure {
    let mut failure = if let Some(Breach(failure)) = error.downcast_ref::<Breach>() {
        failure.clone()
    } else if let Some(exhausted) = error.downcast_ref::<PoolConcurrencyLimitError>() {
        Failure::new(Class::Infrastructure, "no-instance", format!("{exhausted} (host.limits.instances_max)"))
    } else if error.root_cause().to_string().contains(FUEL_EXHAUSTED) {
        let message = "one call handed over more bytes than staged_bytes_max and result_bytes_max allow";
        Failure::new(Class::Quota, "transfer-bytes", message)
    } else if let Some(refusal) = memory.refused() {
        memory_limit(refusal, memory.bytes_max(), error)
    } else if let Some(trap) = error.downcast_ref::<Trap>() {
        trapped(*trap, last_error)
    } else {
        Failure::new(Class::Abi, "malformed-value", tamed(&chain(error), MESSAGE_BYTES_MAX))
    };
    failure.backtrace = error.downcast_ref::<WasmBacktrace>().and_then(backtrace);
    failure
}

/// All causes in one line, outermost first, without the backtrace that wasmtime puts among them.
pub(super) fn chain(error: &wasmtime::Error) -> String {
    let causes = error.chain().map(ToString::to_string).filter(|text| !text.starts_with(BACKTRACE_HEAD));
    causes.collect::<Vec<_>>().join(": ")
}

/// First line of a [`WasmBacktrace`], which is no error type and so cannot be told by its type.
const BACKTRACE_HEAD: &str = "error while executing at wasm backtrace:";

fn memory_limit(refusal: Refusal, bytes_max: u64, error: &wasmtime::Error) -> Failure {
    let asked = match refusal {
        Refusal::Bytes(bytes) => format!("{bytes} bytes of memories and tables, memory_bytes_max is {bytes_max}"),
        Refusal::TableElements(elements) => {
            format!("a table of {elements} elements, the limit is {}", super::limiter::TABLE_ELEMENTS_MAX)
        }
    };
    let message = format!("the plugin asked for {asked}; then: {}", chain(error));
    Failure::new(Class::MemoryLimit, "memory", tamed(&message, MESSAGE_BYTES_MAX))
}

fn trapped(trap: Trap, last_error: Option<&str>) -> Failure {
    if ABI_TRAPS.contains(&trap) {
        return Failure::new(Class::Abi, "component-abi", trap.to_string());
    }
    let code = TRAP_CODES.iter().find(|(known, _)| *known == trap).map_or("trap", |(_, code)| code);
    let message = match last_error {
        Some(line) => format!("{trap}; last error line: {line}"),
        None => trap.to_string(),
    };
    Failure::new(Class::Trap, code, tamed(&message, MESSAGE_BYTES_MAX))
}

fn backtrace(trace: &WasmBacktrace) -> Option<String> {
    if trace.frames().is_empty() {
        return None;
    }
    let lines: Vec<String> = trace.to_string().lines().skip(1).map(|line| tamed(line, 512)).collect();
    Some(cut(lines.join("\n"), BACKTRACE_BYTES_MAX))
}

#[cfg(test)]
mod tests {
    use wasmtime::{Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store, component};

    use super::*;

    #[tokio::test]
    async fn a_full_pool_is_no_fault_of_the_plugin() {
        let mut pool = PoolingAllocationConfig::new();
        pool.total_component_instances(0);
        let mut config = Config::new();
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
        let engine = Engine::new(&config).unwrap();
        let empty = component::Component::from_binary(&engine, b"\0asm\x0d\0\x01\0").unwrap();
        let linker = component::Linker::new(&engine);
        let error = linker.instantiate_async(Store::new(&engine, ()), &empty).await.unwrap_err();
        let failure = failure(&error, &MemoryLimiter::new(0), None);
        assert_eq!((failure.class, failure.code.as_str()), (Class::Infrastructure, "no-instance"));
        assert!(failure.message.ends_with("reached (host.limits.instances_max)"), "{}", failure.message);
    }

    #[test]
    fn an_error_that_is_no_trap_is_a_breach_of_the_abi_with_its_whole_chain() {
        let error = wasmtime::format_err!("unexpected discriminant: 9").context("reading \x1b the result");
        let failure = failure(&error, &MemoryLimiter::new(0), Some("panicked"));
        assert_eq!((failure.class, failure.code.as_str()), (Class::Abi, "malformed-value"));
        assert_eq!(failure.message, "reading \\x1b the result: unexpected discriminant: 9");
    }
}
