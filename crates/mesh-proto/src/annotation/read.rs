//! Reading of a definition's annotation: from the members of `_meta`, from MCP's hints, and else the careful values (AX-33). Does not apply
//! the configuration.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::additions::{self, of_key};
use super::{
    Annotation, AuthScope, Availability, Consistency, CostClass, IRREVERSIBLE_MUTABLE, LatencyClass, SpelledFields, Transport, key,
};
use crate::json::strict;

impl Annotation {
    /// Reads the annotation of a listed tool, and adds the hop to the listing aggregator.
    ///
    /// `definition` is the raw tool object. Anything but an object, and values outside of the schema, count as silence: careful values take
    /// their place, while the original values travel on unchanged.
    pub fn of_tool(definition: &[u8], transport: &Transport) -> Self {
        // A list would be read member by member as well.
        let object = definition.trim_ascii_start().starts_with(b"{");
        let read: Definition = if object { serde_json::from_slice(definition).unwrap_or_default() } else { Definition::default() };
        let empty = Map::new();
        let (meta, hints) = (read.meta.as_object().unwrap_or(&empty), read.annotations.as_object().unwrap_or(&empty));
        let stated = in_one_spelling(meta, hints);
        let (meta, stated, hints) = (Meta(meta), Meta(&stated), Hints(hints));
        let mut annotation = from_hints(&hints, transport);
        stated.overlay(&mut annotation, &hints);
        annotation.hops = meta.hops().saturating_add(1);
        annotation.said = meta.spelled_fields(&stated);
        annotation
    }
}

/// Members by their names in the schema of MCP-AX 9.1, which some tools put into `_meta` or among the hints.
const SCHEMA: [(&str, &str); 10] = [
    (key::AUTH_SCOPE, "auth_scope"),
    (key::AVAILABILITY, "availability"),
    (key::CONSISTENCY, "consistency"),
    (key::COST_CLASS, "cost_class"),
    (key::IDEMPOTENT, "idempotent"),
    (key::LATENCY_CLASS, "latency_class"),
    (key::MUTABLE, "mutable"),
    (key::REVERSIBLE, "reversible"),
    (key::SCHEMA_VERSION, "schema_version"),
    (key::TRANSPORT, "transport"),
];

/// Members of `_meta`, with those under a name of the schema under the name of [`key`]. Two different values of a member are none.
fn in_one_spelling<'a>(meta: &'a Map<String, Value>, hints: &Map<String, Value>) -> Cow<'a, Map<String, Value>> {
    let mut stated = Cow::Borrowed(meta);
    for (key, name) in SCHEMA {
        for value in [meta.get(name), hints.get(name)].into_iter().flatten() {
            let agreed = stated.get(key).is_none_or(|other| other == value);
            stated.to_mut().insert(key.to_owned(), if agreed { value.clone() } else { Value::Null });
        }
    }
    stated
}

/// Members read of a definition. Schemas, the bulk of the bytes, are skipped. A duplicate member would be ambiguous, so that nothing of
/// such a definition is believed.
#[derive(Default, Deserialize)]
struct Definition {
    #[serde(default, deserialize_with = "strict")]
    annotations: Value,
    #[serde(default, rename = "_meta", deserialize_with = "strict")]
    meta: Value,
}

/// MCP's own annotations. Only an explicit value counts.
struct Hints<'a>(&'a Map<String, Value>);

impl Hints<'_> {
    fn says(&self, hint: &str) -> Option<bool> {
        self.0.get(hint).and_then(Value::as_bool)
    }

    fn read_only(&self) -> bool {
        self.says("readOnlyHint") == Some(true)
    }
}

fn from_hints(hints: &Hints<'_>, transport: &Transport) -> Annotation {
    let read_only = hints.read_only();
    let closed = hints.says("openWorldHint") == Some(false);
    // What was added to a closed world can be taken out again. What went out into the open one cannot be called back.
    let additive = hints.says("destructiveHint") == Some(false);
    Annotation {
        // Nobody knows how long such a call takes, and no class bounds it.
        latency_class: LatencyClass::Batch,
        names_class: false,
        consistency: if closed { Consistency::Eventual } else { Consistency::BestEffort },
        mutable: !read_only,
        reversible: read_only || (additive && closed),
        idempotent: read_only || hints.says("idempotentHint") == Some(true),
        transport: transport.clone(),
        auth_scope: if read_only { AuthScope::Read } else { AuthScope::Write },
        cost_class: CostClass::Metered,
        availability: Availability::BestEffort,
        schema_version: None,
        hops: 1,
        said: SpelledFields::default(),
    }
}

/// The members of `_meta`.
struct Meta<'a>(&'a Map<String, Value>);

impl Meta<'_> {
    fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(Value::as_str)
    }

    fn bool(&self, key: &str) -> Option<bool> {
        self.0.get(key).and_then(Value::as_bool)
    }

    fn hops(&self) -> u8 {
        let said = self.0.get(key::HOPS).and_then(Value::as_u64).unwrap_or_default();
        u8::try_from(said).unwrap_or(u8::MAX)
    }

    /// Lets the more careful value win where the tool and its hints contradict each other.
    fn overlay(&self, a: &mut Annotation, hints: &Hints<'_>) {
        if let Some(mutable) = self.bool(key::MUTABLE) {
            a.mutable = mutable || hints.says("readOnlyHint") == Some(false);
            a.reversible |= !a.mutable;
            a.idempotent |= !a.mutable;
            a.auth_scope = if a.mutable { AuthScope::Write } else { AuthScope::Read };
        } else if self.0.contains_key(key::MUTABLE) {
            a.mutable = true;
            a.auth_scope = AuthScope::Write;
        }
        let flag = |key, careful: bool, otherwise| if self.0.contains_key(key) { self.bool(key).unwrap_or(careful) } else { otherwise };
        a.reversible = flag(key::REVERSIBLE, false, a.reversible);
        a.idempotent = flag(key::IDEMPOTENT, false, a.idempotent);
        if a.mutable && hints.says("destructiveHint") == Some(true) {
            a.reversible = false;
        }
        if self.text(key::SAFETY) == Some(IRREVERSIBLE_MUTABLE) {
            (a.mutable, a.reversible) = (true, false);
        }
        self.overlay_words(a);
    }

    fn overlay_words(&self, a: &mut Annotation) {
        if let Some(class) = self.text(key::LATENCY_CLASS).and_then(LatencyClass::parse) {
            (a.latency_class, a.names_class) = (class, true);
        }
        if let Some(consistency) = self.text(key::CONSISTENCY).and_then(Consistency::parse) {
            a.consistency = consistency;
        }
        if let Some(cost) = self.text(key::COST_CLASS).and_then(CostClass::parse) {
            a.cost_class = cost;
        }
        if let Some(availability) = self.text(key::AVAILABILITY).and_then(Availability::parse) {
            a.availability = availability;
        }
        if let Some(transport) = self.text(key::TRANSPORT).and_then(Transport::parse) {
            a.transport = transport;
        }
        // A scope may ask for more than changing things does, never for less.
        if let Some(scope) = self.text(key::AUTH_SCOPE).and_then(AuthScope::parse) {
            a.auth_scope = if a.mutable { scope.max(AuthScope::Write) } else { scope };
        } else if a.mutable {
            a.auth_scope = AuthScope::Write;
        }
        a.schema_version = self.text(key::SCHEMA_VERSION).filter(|v| v.len() <= 64).map(str::to_owned);
    }

    /// Collects the members spelled out, whatever their values, unless they are `stated` otherwise.
    fn spelled_fields(&self, stated: &Self) -> SpelledFields {
        let kept = self.0.iter().filter(|(key, value)| stated.0.get(*key) == Some(value));
        let bits = kept.filter_map(|(key, _)| of_key(key)).fold(0, |bits, bit| bits | bit);
        SpelledFields(bits & !additions::HOPS)
    }
}
