//! Members to add to a definition, so that the annotation is complete (AX-33, AX-34). Replaces no member of the definition except hops, a
//! raised latency class, and the availability of a lost server's tools.

use serde_json::Value;

use super::{Annotation, Availability, IRREVERSIBLE_MUTABLE, key};

const KEYS: [&str; 12] = [
    key::AUTH_SCOPE,
    key::AVAILABILITY,
    key::CONSISTENCY,
    key::COST_CLASS,
    key::HOPS,
    key::IDEMPOTENT,
    key::LATENCY_CLASS,
    key::MUTABLE,
    key::REVERSIBLE,
    key::SAFETY,
    key::SCHEMA_VERSION,
    key::TRANSPORT,
];

// Bits by the places of the keys in `KEYS`.
pub(super) const HOPS: u16 = 1 << 4;
pub(super) const LATENCY_CLASS: u16 = 1 << 6;
pub(super) const SAFETY: u16 = 1 << 9;

/// Gives the bit of a key of the schema.
pub(super) fn of_key(key: &str) -> Option<u16> {
    KEYS.iter().position(|known| *known == key).map(|at| 1 << at)
}

impl Annotation {
    /// Gives the members to set in the `_meta` of the original definition: key and raw value.
    ///
    /// `lost` marks tools of a lost server, which are listed as degraded (AX-61).
    pub fn additions(&self, lost: bool) -> Vec<(&'static str, String)> {
        let word = |text: &str| Some(Value::from(text));
        let availability = if lost { Availability::Degraded } else { self.availability };
        let values = [
            word(self.auth_scope.as_str()),
            word(availability.as_str()),
            word(self.consistency.as_str()),
            word(self.cost_class.as_str()),
            Some(self.hops.into()),
            Some(self.idempotent.into()),
            word(self.latency_class.as_str()),
            Some(self.mutable.into()),
            Some(self.reversible.into()),
            self.is_irreversible_mutable().then(|| IRREVERSIBLE_MUTABLE.into()),
            self.schema_version.clone().map(Value::from),
            word(self.transport.as_str()),
        ];
        let kept = |key: &str| of_key(key).is_some_and(|bit| self.said.0 & bit != 0) && !(lost && key == key::AVAILABILITY);
        let all = KEYS.into_iter().zip(values).filter(|(key, _)| !kept(key));
        all.filter_map(|(key, value)| Some((key, value?.to_string()))).collect()
    }
}
