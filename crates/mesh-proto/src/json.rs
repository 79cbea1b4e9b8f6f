//! Small JSON objects of peers, read strictly: no duplicate members, a bound on bytes, right types. Not for messages in transit: whole
//! messages are never read into a tree here.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::refusal::Refusal;

/// An object with typed access to members.
pub(crate) struct Object(Map<String, Value>);

/// Reads an object of at most `most` bytes.
pub(crate) fn object(text: &[u8], most: usize) -> Result<Object, Refusal> {
    if text.len() > most {
        return Err(invalid("params", format!("must have at most {most} bytes")));
    }
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Strict.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    match value {
        Ok(Value::Object(map)) => Ok(Object(map)),
        Ok(_) => Err(invalid("params", "must be an object".into())),
        Err(error) => Err(invalid("params", format!("cannot be read: {error}"))),
    }
}

/// Makes a refusal with the member and the fault.
pub(crate) fn invalid(member: &str, why: String) -> Refusal {
    Refusal::ParamsInvalid { member: member.to_owned(), why }
}

impl Object {
    /// Gives the member's value; `null` counts as absent.
    pub(crate) fn get(&self, member: &str) -> Option<&Value> {
        self.0.get(member).filter(|value| !value.is_null())
    }

    /// Reads a required member.
    pub(crate) fn required<'a, T>(&'a self, member: &'static str, read: impl Fn(&'a Value) -> Option<T>, kind: &str) -> Result<T, Refusal> {
        self.optional(member, read, kind)?.ok_or_else(|| invalid(member, format!("is missing; it is {kind}")))
    }

    /// Reads an optional member by `read`.
    pub(crate) fn optional<'a, T>(
        &'a self,
        member: &'static str,
        read: impl Fn(&'a Value) -> Option<T>,
        kind: &str,
    ) -> Result<Option<T>, Refusal> {
        let Some(value) = self.get(member) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| invalid(member, format!("must be {kind}")))
    }

    /// Reads an optional text of at most `most` bytes.
    pub(crate) fn text(&self, member: &'static str, most: usize) -> Result<Option<&str>, Refusal> {
        self.optional(member, |v| v.as_str().filter(|t| t.len() <= most), &format!("a text of at most {most} bytes"))
    }

    /// Reads an optional object.
    pub(crate) fn object(&self, member: &'static str) -> Result<Option<Self>, Refusal> {
        let map = self.optional(member, Value::as_object, "an object")?;
        Ok(map.map(|map| Self(map.clone())))
    }
}

/// Reads a value with the same strictness, for members kept as a tree.
pub(crate) fn strict<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    Strict.deserialize(deserializer)
}

/// Builder of a [`Value`] that refuses duplicate members.
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON without a member twice")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = seq.next_element_seed(Self)? {
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                let shown: String = key.chars().take(40).collect();
                return Err(serde::de::Error::custom(format_args!("the member `{shown}` stands there twice")));
            }
            let value = entries.next_value_seed(Self)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicate_members_are_refused_at_any_depth_and_spelling() {
        for twice in [r#"{"a":1,"a":1}"#, r#"{"a":1,"\u0061":2}"#, r#"{"x":[{"b":{},"b":1}]}"#] {
            assert!(object(twice.as_bytes(), 100).is_err(), "{twice}");
        }
        assert!(object(br#"{"x":[{"b":{}},{"b":1}],"y":1.5e3,"z":null}"#, 100).is_ok());
    }

    #[test]
    fn what_is_no_object_or_too_long_is_refused() {
        for bad in ["[]", "1", "", "{} x", "{", "\u{feff}{}"] {
            assert!(object(bad.as_bytes(), 100).is_err(), "{bad}");
        }
        assert!(object(b"{     }", 6).is_err());
        assert!(object(&[b"{\"a\":", "[".repeat(200).as_bytes()].concat(), 1000).is_err());
    }
}
