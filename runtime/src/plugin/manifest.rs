//! Reads the manifest that `oncebox build` packed into a component.

use oncebox_core::manifest::Manifest;

use super::PluginError;

/// Reads the bytes of custom section `oncebox:manifest`.
pub(super) fn read(section: &[u8]) -> Result<Manifest, PluginError> {
    let invalid = |reason: String| PluginError::ManifestInvalid { reason };
    let text = std::str::from_utf8(section).map_err(|error| invalid(format!("not UTF-8: {error}")))?;
    stand_in::parse(text).map_err(|reason| invalid(super::text::tamed(&reason, super::text::MESSAGE_BYTES_MAX)))
}

/// As much of the manifest as a run needs, until the core's own parser is merged.
mod stand_in {
    use std::collections::BTreeMap;

    use oncebox_core::manifest::{
        Build, ConfigEntry, Destination, FingerprintSpec, Integers, Limits, Manifest, Param, Query, Reaction, Retry,
        RowExpectation, Statement,
    };
    use serde::Deserialize;

    #[derive(Deserialize)]
    struct File {
        name: String,
        #[serde(default)]
        key: String,
        #[serde(default)]
        statements: BTreeMap<String, Text>,
        #[serde(default)]
        queries: BTreeMap<String, Text>,
        #[serde(default)]
        config: BTreeMap<String, ConfigEntry>,
        #[serde(default)]
        destinations: BTreeMap<String, Destination>,
        #[serde(default)]
        limits: Limits,
    }

    #[derive(Deserialize)]
    struct Text {
        sql: String,
        #[serde(default)]
        params: Vec<Param>,
    }

    pub(super) fn parse(text: &str) -> Result<Manifest, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        Ok(Manifest {
            name: file.name,
            version: String::new(),
            contract: "1.0".into(),
            description: String::new(),
            event_types: Vec::new(),
            key: file.key,
            fingerprint: FingerprintSpec::Payload,
            ordering: None,
            tables: BTreeMap::new(),
            queries: file.queries.into_iter().map(|(name, text)| (name, query(text))).collect(),
            statements: file.statements.into_iter().map(|(name, text)| (name, statement(text))).collect(),
            config: file.config,
            destinations: file.destinations,
            limits: file.limits,
            retry: Retry::default(),
            build: Build::default(),
        })
    }

    fn query(text: Text) -> Query {
        Query {
            sql: text.sql,
            params: text.params,
            sqlite: None,
            rows_max: 1,
            bytes_max: 65_536,
            lock: false,
            integers: Integers::Number,
        }
    }

    fn statement(text: Text) -> Statement {
        Statement {
            sql: text.sql,
            params: text.params,
            sqlite: None,
            rows: RowExpectation::Any,
            mismatch: Reaction::Retry,
            errors: BTreeMap::new(),
        }
    }
}
