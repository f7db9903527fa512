//! The functions that a manifest gives to its plugin.

use oncebox_core::{
    manifest::{ConfigEntry, Destination, Manifest, Param, Query, Reaction, RowExpectation, Statement},
    value::ParamType,
};
use proc_macro2::TokenStream;
use quote::quote;

use crate::names::Taken;

/// Modules `db`, `events` and `config`.
pub(crate) fn of(manifest: &Manifest) -> Result<TokenStream, String> {
    let mut taken = Taken::default();
    let mut db = Vec::new();
    for (name, statement) in &manifest.statements {
        db.push(stage(&taken.take("statement", name)?, name, statement)?);
    }
    for (name, query) in &manifest.queries {
        db.push(ask(&taken.take("query", name)?, name, query)?);
    }
    let mut taken = Taken::default();
    let mut events = Vec::new();
    for (name, destination) in &manifest.destinations {
        events.push(begin(&taken.take("destination", name)?, name, destination));
    }
    let mut taken = Taken::default();
    let mut config = Vec::new();
    for (name, entry) in &manifest.config {
        config.push(value(&taken.take("configuration entry", name)?, name, entry));
    }
    Ok(quote! {
        /// Declared statements and queries.
        pub(crate) mod db { #(#db)* }
        /// Declared destinations.
        pub(crate) mod events { #(#events)* }
        /// Declared configuration values.
        pub(crate) mod config { #(#config)* }
    })
}

fn stage(ident: &proc_macro2::Ident, name: &str, statement: &Statement) -> Result<TokenStream, String> {
    let (arguments, values) = parameters(&statement.params)?;
    let docs = docs(&[
        format!("Stages statement `{name}`: written after `handle` has returned applied, in call order."),
        sql(&statement.sql),
        expectation(statement),
    ]);
    Ok(quote! {
        #docs
        pub(crate) fn #ident(#arguments) {
            ::oncebox_sdk::generated::stage(#name, &[#values]);
        }
    })
}

fn ask(ident: &proc_macro2::Ident, name: &str, query: &Query) -> Result<TokenStream, String> {
    let (arguments, values) = parameters(&query.params)?;
    let docs = docs(&[
        format!("Asks query `{name}`: sees earlier events of the batch, not what this event has staged."),
        sql(&query.sql),
        format!("At most {} rows and {} bytes; more end the attempt.", query.rows_max, query.bytes_max),
    ]);
    Ok(quote! {
        #docs
        #[must_use]
        pub(crate) fn #ident(#arguments) -> ::oncebox_sdk::Rows {
            ::oncebox_sdk::generated::rows(#name, &[#values])
        }
    })
}

fn begin(ident: &proc_macro2::Ident, name: &str, destination: &Destination) -> TokenStream {
    let types = if destination.event_types.is_empty() {
        "It may carry any event type.".to_owned()
    } else {
        format!("It may carry `{}`.", destination.event_types.join("`, `"))
    };
    let docs = docs(&[format!("Begins an event for destination `{name}`; `emit` ends it."), types]);
    let (argument, key) = if destination.ordering {
        (
            quote! { ordering_key: impl ::core::convert::AsRef<[u8]> },
            quote! { ::core::option::Option::Some(ordering_key.as_ref()) },
        )
    } else {
        (TokenStream::new(), quote! { ::core::option::Option::None })
    };
    quote! {
        #docs
        pub(crate) fn #ident(#argument) -> ::oncebox_sdk::Outgoing {
            ::oncebox_sdk::generated::outgoing(#name, #key)
        }
    }
}

fn value(ident: &proc_macro2::Ident, name: &str, entry: &ConfigEntry) -> TokenStream {
    let always = entry.required || entry.default.is_some();
    let fallback =
        entry.default.as_ref().map(|default| format!("Without a value of the operator's it is `{default}`."));
    let docs =
        docs(&[format!("Configuration value `{name}`."), entry.description.clone(), fallback.unwrap_or_default()]);
    let (returned, call) = if always {
        (quote! { ::std::string::String }, quote! { config_required })
    } else {
        (quote! { ::core::option::Option<::std::string::String> }, quote! { config })
    };
    quote! {
        #docs
        #[must_use]
        pub(crate) fn #ident() -> #returned {
            ::oncebox_sdk::generated::#call(#name)
        }
    }
}

/// The arguments of a function, and the values that it passes on.
fn parameters(params: &[Param]) -> Result<(TokenStream, TokenStream), String> {
    let mut taken = Taken::default();
    let mut arguments = TokenStream::new();
    let mut values = TokenStream::new();
    for param in params {
        let ident = taken.take("parameter", &param.name)?;
        let declared = rust_type(param.kind);
        arguments.extend(quote! { #ident: impl ::oncebox_sdk::Arg<#declared>, });
        values.extend(quote! { ::oncebox_sdk::Arg::<#declared>::into_value(#ident), });
    }
    Ok((arguments, values))
}

fn rust_type(kind: ParamType) -> TokenStream {
    match kind {
        ParamType::Boolean => quote! { bool },
        ParamType::Signed => quote! { i64 },
        ParamType::Unsigned => quote! { u64 },
        ParamType::Float => quote! { f64 },
        ParamType::Decimal => quote! { ::oncebox_sdk::Decimal },
        ParamType::Text => quote! { str },
        ParamType::Bytes => quote! { [u8] },
        ParamType::Date => quote! { ::oncebox_sdk::Date },
        ParamType::Time => quote! { ::oncebox_sdk::Time },
        ParamType::Datetime => quote! { ::oncebox_sdk::Datetime },
        ParamType::Json => quote! { ::oncebox_sdk::Json },
    }
}

/// One paragraph for each text that is not empty.
fn docs(paragraphs: &[String]) -> TokenStream {
    let text = paragraphs.iter().filter(|text| !text.is_empty()).cloned().collect::<Vec<_>>().join("\n\n");
    quote! { #[doc = #text] }
}

fn sql(text: &str) -> String {
    format!("```sql\n{}\n```", text.trim())
}

fn expectation(statement: &Statement) -> String {
    let rows = match statement.rows {
        RowExpectation::Any => return String::new(),
        RowExpectation::Between { min: 1, max: 1 } => "one row".to_owned(),
        RowExpectation::Between { min, max } => format!("{min} to {max} rows"),
        RowExpectation::OneKey => "one key".to_owned(),
    };
    let otherwise = match &statement.mismatch {
        Reaction::Reject(code) => format!("rejected as `{code}`"),
        Reaction::Retry => "tried again later".to_owned(),
        Reaction::Obsolete => "skipped as older than the state".to_owned(),
    };
    format!("Must match {rows}, else the event is {otherwise}.")
}
