//! Turns a handler's manifest into typed functions, so that a name or a type that the manifest does not declare is an
//! error of the compiler and not of an event. Used as `oncebox_sdk::manifest!`.

mod functions;
mod names;
mod read;

use proc_macro2::TokenStream;
use quote::quote;

/// Makes modules `db`, `events` and `config` from the `handler.toml` beside the crate's Cargo.toml.
///
/// - `db::NAME(…)` for each `[statements.NAME]` stages it, and for each `[queries.NAME]` asks it and returns `Rows`.
///   Each parameter takes a value of its declared type, an `Option` of it, or `Null`.
/// - `events::NAME()` for each `[destinations.NAME]` begins an event for it; with `ordering = true` it takes the
///   ordering key.
/// - `config::NAME()` for each `[config.NAME]`: a `String` when the entry is required or has a default, else an
///   `Option<String>`.
///
/// A `-` in a name becomes `_`. A manifest that is wrong is a compile error that says where; when the file changes, the
/// crate is built again.
#[proc_macro]
pub fn manifest(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = TokenStream::from(input);
    let made =
        if input.is_empty() { expand() } else { Err("`manifest!` takes nothing; it reads handler.toml".to_owned()) };
    made.unwrap_or_else(|message| quote! { ::core::compile_error!(#message); }).into()
}

fn expand() -> Result<TokenStream, String> {
    let file = read::manifest_file()?;
    let functions = match read::manifest(&file) {
        Ok(manifest) => functions::of(&manifest)?,
        Err(message) => quote! { ::core::compile_error!(#message); },
    };
    let path = file.to_str().ok_or_else(|| format!("{} is not UTF-8", file.display()))?;
    // Nobody reads it, but the compiler then knows that the crate depends on the file.
    Ok(quote! {
        const _: &[u8] = ::core::include_bytes!(#path);
        #functions
    })
}
