//! Lines for the host's log, which adds tenant, handler, business key and attempt to each.
//!
//! ```no_run
//! use oncebox_sdk::prelude::*;
//!
//! let points = 10;
//! log::info!("awarded {points} points");
//! log::warn!(user = 7, points = points; "the account is new");
//! ```
//! Past `log_lines_max` lines of one run the host drops and counts them.

pub use crate::bindings::oncebox::handler::log::Level;
#[doc(inline)]
pub use crate::{
    __log_debug as debug, __log_error as error, __log_info as info, __log_trace as trace, __log_warn as warn,
};

/// Writes one line with named fields; the macros of this module are the shorter way.
pub fn write(level: Level, message: &str, fields: &[(String, String)]) {
    crate::host::log(level, message, fields);
}

/// Writes one line at the level; for the macros below.
#[doc(hidden)]
#[macro_export]
macro_rules! __log {
    ($level:ident, $($field:ident = $value:expr),+ ; $($message:tt)+) => {
        $crate::log::write(
            $crate::log::Level::$level,
            &::std::format!($($message)+),
            &[$((::std::string::String::from(::core::stringify!($field)), ::std::string::ToString::to_string(&$value))),+],
        )
    };
    ($level:ident, $($message:tt)+) => {
        $crate::log::write($crate::log::Level::$level, &::std::format!($($message)+), &[])
    };
}

/// Writes a line that only someone following each step wants.
#[doc(hidden)]
#[macro_export]
macro_rules! __log_trace {
    ($($line:tt)+) => { $crate::__log!(Trace, $($line)+) };
}

/// Writes a line for someone who looks for a fault.
#[doc(hidden)]
#[macro_export]
macro_rules! __log_debug {
    ($($line:tt)+) => { $crate::__log!(Debug, $($line)+) };
}

/// Writes a line about what was done.
#[doc(hidden)]
#[macro_export]
macro_rules! __log_info {
    ($($line:tt)+) => { $crate::__log!(Info, $($line)+) };
}

/// Writes a line about something that is not right, though the event could be handled.
#[doc(hidden)]
#[macro_export]
macro_rules! __log_warn {
    ($($line:tt)+) => { $crate::__log!(Warn, $($line)+) };
}

/// Writes a line about something that a person should look at.
#[doc(hidden)]
#[macro_export]
macro_rules! __log_error {
    ($($line:tt)+) => { $crate::__log!(Error, $($line)+) };
}
