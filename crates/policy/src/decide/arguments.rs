//! Arguments read by policies, taken from a call's raw JSON, and no others. Their meaning is not known here.

use std::fmt;

use cedar_policy_core::ast::RestrictedExpr;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserializer, de};
use smol_str::SmolStr;

use super::infer::Node;

/// Bytes of texts read from the arguments of one call.
pub const MOST_BYTES: usize = 64 << 10;
const MOST_ELEMENTS: usize = 4096;
/// Numbers up to here are the same as a floating point number and as a whole one.
const MOST_EXACT: f64 = 9_007_199_254_740_992.0;

/// Arguments as policies see them.
#[derive(Clone, Debug)]
pub struct Arguments(pub(super) RestrictedExpr);

/// Arguments unfit for a question to policies.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the arguments that policies read can't be taken: {0}")]
pub struct BadArguments(String);

impl Arguments {
    /// Makes an empty set.
    pub fn none() -> Self {
        Self(record(Vec::new()))
    }

    /// Reads the arguments named by `wanted` from a raw JSON object. `null` counts as absent.
    pub(super) fn read(raw: &[u8], wanted: &Node) -> Result<Self, BadArguments> {
        let mut room = Room { bytes: MOST_BYTES, elements: MOST_ELEMENTS };
        // What no rule reads is passed over without a look at its bytes.
        let text = std::str::from_utf8(raw).map_err(|error| BadArguments(error.to_string()))?;
        let mut json = serde_json::Deserializer::from_str(text);
        let value = Read { wanted, room: &mut room }.deserialize(&mut json).and_then(|value| json.end().map(|()| value));
        let value = value.map_err(|error| BadArguments(error.to_string()))?;
        Ok(value.map_or_else(Self::none, Self))
    }
}

/// Room left for reading.
struct Room {
    bytes: usize,
    elements: usize,
}

/// Reads one value; `None` for `null`.
struct Read<'a> {
    wanted: &'a Node,
    room: &'a mut Room,
}

impl<'de> DeserializeSeed<'de> for Read<'_> {
    type Value = Option<RestrictedExpr>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Read<'_> {
    type Value = Option<RestrictedExpr>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Some(RestrictedExpr::val(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Some(RestrictedExpr::val(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Some(i64::try_from(value).map_or_else(|_| unlike_any_number(value), RestrictedExpr::val)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        let whole = value.fract() == 0.0 && value.abs() <= MOST_EXACT;
        #[expect(clippy::cast_possible_truncation, reason = "it is whole, and small enough")]
        let exact = value as i64;
        Ok(Some(if whole { RestrictedExpr::val(exact) } else { unlike_any_number(value) }))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Self::Value, E> {
        self.room.bytes =
            self.room.bytes.checked_sub(value.len()).ok_or_else(|| E::custom(format!("they are longer than {MOST_BYTES} bytes")))?;
        Ok(Some(RestrictedExpr::val(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut set = Vec::new();
        let (nothing, room) = (Node::default(), self.room);
        while let Some(element) = elements.next_element_seed(Read { wanted: &nothing, room: &mut *room })? {
            room.elements = room
                .elements
                .checked_sub(1)
                .ok_or_else(|| <A::Error as de::Error>::custom(format!("they have more than {MOST_ELEMENTS} elements")))?;
            set.extend(element);
        }
        Ok(Some(RestrictedExpr::set(set)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut found: Vec<(SmolStr, RestrictedExpr)> = Vec::new();
        let (children, room) = (&self.wanted.children, self.room);
        while let Some(key) = members.next_key::<std::borrow::Cow<'_, str>>()? {
            match children.get(&*key) {
                // Many servers do not look at case, and would take what no rule has seen.
                None if children.keys().any(|name| json::folded(name).eq(json::folded(&key))) => {
                    let key: String = key.chars().take(100).collect();
                    return Err(<A::Error as de::Error>::custom(format!("`{key}` may be taken for an argument that is spelt otherwise")));
                }
                None => drop(members.next_value::<IgnoredAny>()?),
                // What two readers could read in two ways is not read at all.
                Some(_) if found.iter().any(|(known, _)| *known == *key) => {
                    return Err(<A::Error as de::Error>::custom(format!("`{key}` stands there twice")));
                }
                Some(wanted) => {
                    let value = members.next_value_seed(Read { wanted, room: &mut *room })?;
                    found.extend(value.map(|value| (SmolStr::new(&*key), value)));
                }
            }
        }
        Ok(Some(record(found)))
    }
}

fn record(members: Vec<(SmolStr, RestrictedExpr)>) -> RestrictedExpr {
    // No member stands there twice.
    RestrictedExpr::record(members).unwrap_or_else(|_| RestrictedExpr::set([]))
}

/// A number beyond the numbers of policies. Equality with any of theirs is false, and a comparison by `<` is an error, which denies.
fn unlike_any_number(value: impl fmt::Display) -> RestrictedExpr {
    RestrictedExpr::set([RestrictedExpr::val(format!("number {value}"))])
}
