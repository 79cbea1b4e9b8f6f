//! Values of JSON to values of a part and back, each checked against the tool in the configuration. Sends nothing.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Number, Value as Json};
use stub_proto::cbor::Value;
use stub_proto::session::{CallEnd, Content, Profile};
use stub_proto::table::ValueKind;

use crate::settings::{StubTool, StubValue};

/// Largest whole number that all readers of JSON read alike.
const EXACT: i64 = (1 << 53) - 1;

/// Reads the arguments of a call. The refusal is a sentence for the caller.
pub fn content(tool: &StubTool, profile: Profile, arguments: &Map<String, Json>) -> Result<Content, String> {
    if let Some(unknown) = arguments.keys().find(|name| tool.arguments.iter().all(|known| known.name != **name)) {
        let known: Vec<&str> = tool.arguments.iter().map(|value| value.name.as_str()).collect();
        return Err(format!("`{}` has no argument {unknown:?}; it has: {}", tool.name, known.join(", ")));
    }
    let mut values = Vec::new();
    for value in &tool.arguments {
        let given = arguments.get(&value.name).ok_or_else(|| format!("the argument `{}` is missing", value.name))?;
        let read = from_json(value, given).ok_or_else(|| format!("the argument `{}` is no {}", value.name, value.kind.word()))?;
        within(value, &read).map_err(|why| format!("the argument `{}` {why}", value.name))?;
        values.push(read);
    }
    match profile {
        Profile::Described | Profile::Can(_) | Profile::Mqtt => Ok(Content::Values(values)),
        Profile::Fixed(_) => {
            let mut raw = Vec::new();
            for (value, read) in tool.arguments.iter().zip(&values) {
                push(value, read, &mut raw).ok_or_else(|| format!("the argument `{}` does not fit {} bytes", value.name, value.bytes))?;
            }
            Ok(Content::Raw(raw))
        }
    }
}

/// Reads the result of a call, checked against the tool. The refusal is a sentence about the part's answer.
pub fn result(tool: &StubTool, end: &CallEnd) -> Result<Map<String, Json>, String> {
    let values = match end {
        CallEnd::Values(value) => described(tool, value)?,
        CallEnd::Raw(raw) => fixed(tool, raw)?,
        CallEnd::Failed { .. } | CallEnd::TooLong | CallEnd::NeverRan(_) | CallEnd::Unknown(_) => return Err("is none".into()),
    };
    let mut result = Map::new();
    for (value, read) in tool.results.iter().zip(values) {
        let read = &widened(value.kind, read);
        if !value.kind.fits(read) {
            return Err(format!("has no {} as `{}`", value.kind.word(), value.name));
        }
        within(value, read).map_err(|why| format!("has a `{}` that {why}", value.name))?;
        let json = to_json(read).ok_or_else(|| format!("has a `{}` that JSON can't hold exactly", value.name))?;
        result.insert(value.name.clone(), json);
    }
    Ok(result)
}

/// Makes a float of a whole number: JSON writes a float without a fraction as a whole number.
fn widened(kind: ValueKind, read: Value) -> Value {
    if let (ValueKind::Float, Value::Int(number)) = (kind, &read) {
        return Value::Float(*number as f32);
    }
    read
}

/// Gives the results by place. Members beyond them are dropped.
fn described(tool: &StubTool, value: &Value) -> Result<Vec<Value>, String> {
    if tool.answer != ValueKind::Map {
        return Ok(vec![value.clone()]);
    }
    if !ValueKind::Map.fits(value) {
        return Err("is no map".into());
    }
    let find =
        |(place, wanted): (i64, &StubValue)| value.member(place).cloned().ok_or_else(|| format!("lacks `{}` (key {place})", wanted.name));
    (0..).zip(&tool.results).map(find).collect()
}

fn fixed(tool: &StubTool, raw: &[u8]) -> Result<Vec<Value>, String> {
    let wanted: usize = tool.results.iter().map(|value| usize::from(value.bytes)).sum();
    if raw.len() != wanted {
        return Err(format!("has {} bytes, and the configuration says {wanted}", raw.len()));
    }
    let (mut values, mut rest) = (Vec::new(), raw);
    for value in &tool.results {
        let (bytes, behind) = rest.split_at_checked(usize::from(value.bytes)).ok_or("is cut off")?;
        values.push(from_bytes(value.kind, bytes).ok_or_else(|| format!("has no {} as `{}`", value.kind.word(), value.name))?);
        rest = behind;
    }
    Ok(values)
}

fn within(value: &StubValue, read: &Value) -> Result<(), String> {
    // Bounds are far below the whole numbers that a float can't tell apart.
    let (number, shown) = match read {
        Value::Int(number) => (*number as f64, number.to_string()),
        Value::Float(number) => (f64::from(*number), number.to_string()),
        Value::Bool(_) | Value::Text(_) | Value::Bytes(_) | Value::Array(_) | Value::Map(_) | Value::Null => return Ok(()),
    };
    match (value.minimum, value.maximum) {
        (Some(least), _) if number.is_nan() || number < least as f64 => Err(format!("is {shown}, below {least}")),
        (_, Some(most)) if number.is_nan() || number > most as f64 => Err(format!("is {shown}, above {most}")),
        _ => Ok(()),
    }
}

fn from_json(value: &StubValue, given: &Json) -> Option<Value> {
    let read = match (value.kind, given) {
        (ValueKind::Uint | ValueKind::Int, Json::Number(number)) => Value::Int(whole(number)?),
        (ValueKind::Bool, Json::Bool(truth)) => Value::Bool(*truth),
        (ValueKind::Text, Json::String(text)) => Value::Text(text.clone()),
        (ValueKind::Bytes, Json::String(text)) => Value::Bytes(BASE64_STANDARD.decode(text).ok()?),
        // A part's float has 32 bits.
        (ValueKind::Float, Json::Number(number)) => Value::Float(number.to_string().parse().ok()?),
        _ => return None,
    };
    value.kind.fits(&read).then_some(read)
}

/// Whole number, also where JSON writes one with a fraction of zero.
fn whole(number: &Number) -> Option<i64> {
    number.as_i64().or_else(|| number.to_string().strip_suffix(".0").and_then(|whole| whole.parse().ok()))
}

fn to_json(value: &Value) -> Option<Json> {
    Some(match value {
        Value::Int(number) if (-EXACT..=EXACT).contains(number) => Json::from(*number),
        Value::Bool(truth) => Json::Bool(*truth),
        Value::Text(text) => Json::String(text.clone()),
        Value::Bytes(bytes) => Json::String(BASE64_STANDARD.encode(bytes)),
        // The shortest decimal of 32 bits, and not the long one of the same number in 64.
        Value::Float(number) => Json::Number(number.to_string().parse().ok()?),
        Value::Null => Json::Null,
        Value::Int(_) | Value::Array(_) | Value::Map(_) => return None,
    })
}

fn push(value: &StubValue, read: &Value, raw: &mut Vec<u8>) -> Option<()> {
    let width = usize::from(value.bytes);
    let number = match read {
        Value::Bool(truth) => i64::from(*truth),
        Value::Int(number) => *number,
        Value::Bytes(bytes) if bytes.len() == width => {
            raw.extend_from_slice(bytes);
            return Some(());
        }
        Value::Bytes(_) | Value::Text(_) | Value::Array(_) | Value::Map(_) | Value::Null | Value::Float(_) => return None,
    };
    let bits = 8 * u32::from(value.bytes.min(4));
    let range = if value.kind == ValueKind::Int { -(1_i64 << (bits - 1))..1 << (bits - 1) } else { 0..1 << bits };
    if !range.contains(&number) {
        return None;
    }
    raw.extend_from_slice(number.to_be_bytes().get(8_usize.checked_sub(width)?..)?);
    Some(())
}

fn from_bytes(kind: ValueKind, bytes: &[u8]) -> Option<Value> {
    if kind == ValueKind::Bytes {
        return Some(Value::Bytes(bytes.to_vec()));
    }
    let number = bytes.iter().fold(0_i64, |number, byte| number << 8 | i64::from(*byte));
    let bits = 8 * u32::try_from(bytes.len()).ok()?;
    match kind {
        ValueKind::Bool => (number <= 1).then_some(Value::Bool(number == 1)),
        ValueKind::Int if bits < 63 && number >> (bits.checked_sub(1)?) == 1 => Some(Value::Int(number - (1 << bits))),
        ValueKind::Uint | ValueKind::Int => Some(Value::Int(number)),
        ValueKind::Bytes | ValueKind::Text | ValueKind::Array | ValueKind::Map | ValueKind::Null | ValueKind::Float => None,
    }
}

#[cfg(test)]
mod tests;
