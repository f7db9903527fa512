//! How a handler makes key, fingerprint and ordering key: fixed by its first deployment, kept in `ob_rule`.

use sha2::{Digest as _, Sha256};

use crate::{
    config,
    fingerprint::{self, ALGORITHM, FingerprintSpecError, feed_bytes},
    ids::RuleHash,
    manifest::{FingerprintSpec, Manifest},
    template::{Template, TemplateError, TemplateUse},
};

/// A handler's rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    key: Template,
    fingerprint: FingerprintSpec,
    fingerprint_text: String,
    ordering: Option<Template>,
}

/// Why a rule cannot be used; says which of its three parts is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// `key`.
    #[error("key: {0}")]
    Key(#[source] TemplateError),
    /// `fingerprint`.
    #[error("fingerprint: {0}")]
    Fingerprint(#[source] FingerprintSpecError),
    /// `ordering`.
    #[error("ordering: {0}")]
    Ordering(#[source] TemplateError),
}

impl Rule {
    /// Parses a rule from its three parts.
    ///
    /// # Errors
    /// [`RuleError`]: the part that is wrong, and how.
    pub fn parse(key: &str, fingerprint: &FingerprintSpec, ordering: Option<&str>) -> Result<Self, RuleError> {
        let template = |source| Template::parse(source, TemplateUse::Key);
        Ok(Self {
            key: template(key).map_err(RuleError::Key)?,
            fingerprint: fingerprint.clone(),
            fingerprint_text: fingerprint::to_text(fingerprint).map_err(RuleError::Fingerprint)?,
            ordering: ordering.map(template).transpose().map_err(RuleError::Ordering)?,
        })
    }

    /// The rule of a handler: what its manifest says, where the operator does not say otherwise.
    ///
    /// # Errors
    /// [`RuleError`]: the part that is wrong, and how.
    pub fn of(manifest: &Manifest, handler: &config::Handler) -> Result<Self, RuleError> {
        Self::parse(
            handler.key.as_deref().unwrap_or(&manifest.key),
            handler.fingerprint.as_ref().unwrap_or(&manifest.fingerprint),
            handler.ordering.as_deref().or(manifest.ordering.as_deref()),
        )
    }

    /// Reads a rule back from the texts of its row in `ob_rule`.
    ///
    /// # Errors
    /// [`RuleError`]: the row was written by a version that knows more than this one.
    pub fn from_kept(key: &str, fingerprint: &str, ordering: Option<&str>) -> Result<Self, RuleError> {
        let fingerprint = fingerprint::from_text(fingerprint).map_err(RuleError::Fingerprint)?;
        Self::parse(key, &fingerprint, ordering)
    }

    /// The template of the business key.
    #[must_use]
    pub fn key(&self) -> &Template {
        &self.key
    }

    /// The parts of the payload that the fingerprint covers.
    #[must_use]
    pub fn fingerprint(&self) -> &FingerprintSpec {
        &self.fingerprint
    }

    /// The text of [`Rule::fingerprint`] for `ob_rule`; at most 2,048 bytes.
    #[must_use]
    pub fn fingerprint_text(&self) -> &str {
        &self.fingerprint_text
    }

    /// The template of the ordering key, when the handler asks for order.
    #[must_use]
    pub fn ordering(&self) -> Option<&Template> {
        self.ordering.as_ref()
    }

    /// Hash of all that makes up the rule, the algorithm included.
    #[must_use]
    pub fn hash(&self) -> RuleHash {
        let mut hash = Sha256::new();
        hash.update(b"oncebox rule\0");
        hash.update([ALGORITHM]);
        feed_bytes(&mut hash, self.key.source().as_bytes());
        feed_bytes(&mut hash, self.fingerprint_text.as_bytes());
        hash.update([u8::from(self.ordering.is_some())]);
        if let Some(ordering) = &self.ordering {
            feed_bytes(&mut hash, ordering.source().as_bytes());
        }
        RuleHash(hash.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pointers(pointers: &[&str]) -> FingerprintSpec {
        FingerprintSpec::Pointers(pointers.iter().map(|&p| p.to_owned()).collect())
    }

    #[test]
    fn a_rule_reads_back_from_its_texts_with_the_same_hash() {
        let rule = Rule::parse("order:{/id}", &pointers(&["/user", "/amount"]), Some("user:{/user}")).unwrap();
        let kept = Rule::from_kept(rule.key().source(), rule.fingerprint_text(), rule.ordering().map(Template::source));
        assert_eq!(kept.as_ref(), Ok(&rule));
        assert_eq!(kept.unwrap().hash(), rule.hash());
    }

    #[test]
    fn the_operator_overrides_each_part_of_the_rule_by_itself() {
        let manifest = Manifest::parse(
            "name = \"h\"\nversion = \"1.0.0\"\ncontract = \"1.0\"\nkey = \"m:{/id}\"\nfingerprint = [\"/m\"]\nordering = \"m:{/o}\"\n",
            "handler.toml",
        );
        let manifest = manifest.unwrap();
        let rule_with = |own: &str, manifest: &Manifest| {
            let text = format!(
                "[tenants.t]\nstore = {{ kind = \"sqlite\", path = \"t.db\" }}\n[tenants.t.handlers.h]\n{own}\n"
            );
            let config = config::read(&[("oncebox.toml".to_owned(), text)]).unwrap().0;
            Rule::of(manifest, &config.tenants["t"].handlers["h"]).unwrap()
        };
        for (own, key, fingerprint, ordering) in [
            ("", "m:{/id}", pointers(&["/m"]), "m:{/o}"),
            ("key = \"o:{/id}\"", "o:{/id}", pointers(&["/m"]), "m:{/o}"),
            ("fingerprint = \"payload\"", "m:{/id}", FingerprintSpec::Payload, "m:{/o}"),
            ("ordering = \"o:{/o}\"", "m:{/id}", pointers(&["/m"]), "o:{/o}"),
        ] {
            let rule = Rule::parse(key, &fingerprint, Some(ordering)).unwrap();
            assert_eq!(rule_with(own, &manifest), rule, "{own}");
        }
        let without = Manifest { ordering: None, ..manifest };
        assert_eq!(rule_with("", &without).ordering(), None);
        assert_eq!(rule_with("ordering = \"o:{/o}\"", &without).ordering().map(Template::source), Some("o:{/o}"));
    }

    #[test]
    fn any_change_of_a_rule_changes_its_hash() {
        let payload = FingerprintSpec::Payload;
        let rules = [
            Rule::parse("{/id}", &payload, None),
            Rule::parse("{/Id}", &payload, None),
            Rule::parse("{/id}", &payload, Some("{/id}")),
            Rule::parse("{/id}", &pointers(&["/a"]), None),
            Rule::parse("{/id}", &pointers(&["/a", "/b"]), None),
            Rule::parse("{/id}", &pointers(&["/b", "/a"]), None),
        ];
        let hashes: std::collections::HashSet<_> = rules.map(|rule| rule.unwrap().hash()).into();
        assert_eq!(hashes.len(), 6);
    }

    #[test]
    fn an_error_says_which_part_of_the_rule_is_wrong() {
        let error = |key, ordering| Rule::parse(key, &FingerprintSpec::Payload, ordering).unwrap_err().to_string();
        assert_eq!(error("", None), "key: the template is empty");
        assert_eq!(error("{/id}", Some("")), "ordering: the template is empty");
        let error = Rule::parse("{/id}", &pointers(&[]), None).unwrap_err();
        assert!(error.to_string().starts_with("fingerprint: the fingerprint names nothing"), "{error}");
    }
}
