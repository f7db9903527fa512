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

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        "name = \"a\"\nversion = \"1.0.0\"\ncontract = \"1.0\"\nkey = \"{/id}\"\nfingerprint = \"payload\"\n";

    /// The functions as text, without white space, which is the printer's own affair.
    fn made(rest: &str) -> String {
        let manifest =
            Manifest::parse(&format!("{HEAD}{rest}"), "handler.toml").unwrap_or_else(|errors| panic!("{errors}"));
        of(&manifest).unwrap().to_string().split_whitespace().collect()
    }

    #[test]
    fn a_parameter_of_each_declared_type_takes_its_type_of_rust() {
        let types = [
            ("boolean", "bool"),
            ("signed", "i64"),
            ("unsigned", "u64"),
            ("float", "f64"),
            ("decimal", "::oncebox_sdk::Decimal"),
            ("text", "str"),
            ("bytes", "[u8]"),
            ("date", "::oncebox_sdk::Date"),
            ("time", "::oncebox_sdk::Time"),
            ("datetime", "::oncebox_sdk::Datetime"),
            ("json", "::oncebox_sdk::Json"),
        ];
        for (declared, rust) in types {
            let made = made(&format!(
                "[tables]\nt = \"write\"\n[statements.set-it]\nsql = \"INSERT INTO t (a, b) VALUES (?, ?)\"\nrows = 1\n\
                 params = [{{ name = \"a\", type = \"{declared}\" }}, {{ name = \"type\", type = \"text\" }}]\n"
            ));
            let function = format!(
                "pub(crate)fnset_it(a:impl::oncebox_sdk::Arg<{rust}>,r#type:impl::oncebox_sdk::Arg<str>,)\
                 {{::oncebox_sdk::generated::stage(\"set-it\",&[::oncebox_sdk::Arg::<{rust}>::into_value(a),"
            );
            assert!(made.contains(&function), "{declared}: no {function} in {made}");
        }
    }

    #[test]
    fn a_destination_with_order_asks_for_its_key_and_one_without_does_not() {
        let made = made("[destinations.out]\n[destinations.in-order]\nordering = true\n");
        assert!(made.contains("pub(crate)fnout()->::oncebox_sdk::Outgoing"), "{made}");
        assert!(made.contains("pub(crate)fnin_order(ordering_key:impl::core::convert::AsRef<[u8]>)"), "{made}");
    }

    #[test]
    fn a_value_that_is_always_there_is_a_text_and_another_is_optional() {
        let made = made("[config.must]\nrequired = true\n[config.may]\n[config.has]\ndefault = \"3\"\n");
        assert!(made.contains("fnmust()->::std::string::String{"), "{made}");
        assert!(made.contains("fnhas()->::std::string::String{"), "{made}");
        assert!(made.contains("fnmay()->::core::option::Option<::std::string::String>{"), "{made}");
    }

    #[test]
    fn the_docs_of_a_function_show_its_statement_and_what_a_mismatch_means() {
        let manifest = format!(
            "{HEAD}[tables]\nt = \"write\"\n[statements.set]\nsql = \"UPDATE t SET a = 1 WHERE b = 2\"\nrows = 1\nmismatch = \"obsolete\"\n"
        );
        let made = of(&Manifest::parse(&manifest, "handler.toml").unwrap()).unwrap().to_string();
        assert!(made.contains(r"```sql\nUPDATE t SET a = 1 WHERE b = 2\n```"), "{made}");
        assert!(made.contains("Must match one row, else the event is skipped as older than the state."), "{made}");
    }
}
