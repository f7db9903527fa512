//! The way into a handler.

use std::panic::{self, PanicHookInfo};

use crate::{Done, Event, Failure, host, log::Level};

/// An event handler: one function, called once for each attempt, in an instance of its own.
///
/// Nothing survives from one event to the next; what the function needs it finds in the event, its declared queries,
/// its configuration and [`crate::context`].
pub trait Handler {
    /// Decides what an event means.
    ///
    /// # Errors
    /// [`Failure::retry`] for what is not so yet, [`Failure::reject`] for what never will be. Either way nothing that
    /// was staged or emitted is done. A panic counts as a failed attempt too, with its message in the log.
    fn handle(event: &Event) -> Result<Done, Failure>;
}

/// Makes the crate a component that handles events with the given type, which implements [`Handler`].
///
/// Once in a crate, of crate type `cdylib`. Natively it only checks the type, so that the crate's tests link.
#[macro_export]
macro_rules! export {
    ($handler:ty) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            struct Component;

            impl $crate::bindings::exports::oncebox::handler::guest::Guest for Component {
                fn handle(event: $crate::Event) -> ::core::result::Result<$crate::Done, $crate::Failure> {
                    $crate::generated::run::<$handler>(&event)
                }
            }

            $crate::bindings::__export_component! { Component with_types_in $crate::bindings }
        };
        #[cfg(not(target_arch = "wasm32"))]
        const _: fn(&$crate::Event) -> ::core::result::Result<$crate::Done, $crate::Failure> =
            <$handler as $crate::Handler>::handle;
    };
}

/// Runs a handler, with its panics reported to the host's log before they trap.
///
/// # Errors
/// The handler's own.
pub fn run<H: Handler>(event: &Event) -> Result<Done, Failure> {
    panic::set_hook(Box::new(report));
    H::handle(event)
}

/// A trap shows the host a stack and no message, so the message goes ahead of it.
fn report(info: &PanicHookInfo<'_>) {
    let place = info.location().map(|place| format!(" at {}:{}", place.file(), place.line())).unwrap_or_default();
    let message = info.payload_as_str().unwrap_or("a value that is not text");
    host::log(Level::Error, &format!("panicked{place}: {message}"), &[]);
}
