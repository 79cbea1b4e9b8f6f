//! JSON as CBOR and back, for values that both can say. Knows no payload.

use std::collections::BTreeSet;

use json::tree::{self, Json};
use minicbor::data::Type;
use minicbor::{Decoder, Encoder};

use crate::raw::array;
use crate::reader::MOST_DEPTH;

/// Writes a value in CBOR; `None`: the value would come back as another.
pub(super) fn from_json(raw: &[u8]) -> Option<Vec<u8>> {
    let value = tree::read(raw).ok()?.value;
    let mut encoder = Encoder::new(Vec::new());
    write(&value, &mut encoder)?;
    let bytes = encoder.into_writer();
    let back = to_json(&bytes)?;
    (tree::read(&back).ok()?.value == value).then_some(bytes)
}

fn write(value: &Json<'_>, out: &mut Encoder<Vec<u8>>) -> Option<()> {
    match value {
        Json::Null => out.null().ok()?,
        Json::Bool(truth) => out.bool(*truth).ok()?,
        Json::Number(digits) => number(digits, out)?,
        Json::String(text) => out.str(text).ok()?,
        Json::Array(items) => {
            out.array(items.len() as u64).ok()?;
            items.iter().try_for_each(|item| write(item, out))?;
            out
        }
        Json::Object(members) => {
            out.map(members.len() as u64).ok()?;
            members.iter().try_for_each(|(key, value)| {
                out.str(key).ok()?;
                write(value, out)
            })?;
            out
        }
    };
    Some(())
}

fn number<'e>(digits: &str, out: &'e mut Encoder<Vec<u8>>) -> Option<&'e mut Encoder<Vec<u8>>> {
    if let Ok(whole) = digits.parse::<u64>() {
        return out.u64(whole).ok();
    }
    match digits.parse::<i64>() {
        Ok(whole) => out.i64(whole).ok(),
        Err(_) => out.f64(digits.parse().ok()?).ok(),
    }
}

/// Writes a value in JSON; `None`: JSON has no such value, or a key stands twice.
pub(super) fn to_json(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut decoder = Decoder::new(bytes);
    let value = read(&mut decoder, MOST_DEPTH)?;
    (decoder.position() == bytes.len()).then_some(value)
}

fn read(from: &mut Decoder<'_>, deeper: usize) -> Option<Vec<u8>> {
    let text = match from.datatype().ok()? {
        Type::Null => return from.null().ok().map(|()| b"null".to_vec()),
        Type::Bool => from.bool().ok()?.to_string(),
        Type::U8 | Type::U16 | Type::U32 | Type::U64 | Type::I8 | Type::I16 | Type::I32 | Type::I64 | Type::Int => {
            i128::from(from.int().ok()?).to_string()
        }
        Type::F32 => float(from.f32().ok()?.into())?,
        Type::F64 => float(from.f64().ok()?)?,
        Type::String => json::quote(from.str().ok()?),
        Type::Array => return items(from, deeper.checked_sub(1)?),
        Type::Map => return members(from, deeper.checked_sub(1)?),
        Type::Undefined
        | Type::F16
        | Type::Simple
        | Type::Bytes
        | Type::BytesIndef
        | Type::StringIndef
        | Type::ArrayIndef
        | Type::MapIndef
        | Type::Tag
        | Type::Break
        | Type::Unknown(_) => return None,
    };
    Some(text.into_bytes())
}

fn float(number: f64) -> Option<String> {
    number.is_finite().then(|| format!("{number:?}"))
}

fn items(from: &mut Decoder<'_>, deeper: usize) -> Option<Vec<u8>> {
    let count = from.array().ok()??;
    let mut found = Vec::new();
    for _ in 0..count {
        found.push(read(from, deeper)?);
    }
    Some(array(found))
}

fn members(from: &mut Decoder<'_>, deeper: usize) -> Option<Vec<u8>> {
    let count = from.map().ok()??;
    let (mut keys, mut out) = (BTreeSet::new(), vec![b'{']);
    for _ in 0..count {
        let key = from.str().ok()?;
        if !keys.insert(key.to_owned()) {
            return None;
        }
        if keys.len() > 1 {
            out.push(b',');
        }
        json::push_quoted(&mut out, key);
        out.push(b':');
        out.extend(read(from, deeper)?);
    }
    out.push(b'}');
    Some(out)
}
