//! Values of CBOR as parts send them: RFC 8949 4.2.1, without tags, four levels deep at most. Knows no message.
//!
//! A text is taken only if it is the one way to write its value, so that no two readers see two things in it.

use alloc::string::String;
use alloc::vec::Vec;
use core::convert::Infallible;

use minicbor::data::Type;
use minicbor::{Decoder, Encoder};

/// Levels of arrays and maps, the value itself included.
pub const DEEPEST: usize = 4;

/// A value of a part or for a part.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Int(i64),
    Bytes(Vec<u8>),
    Text(String),
    Array(Vec<Value>),
    /// Members by a small number, ascending in the order of CBOR.
    Map(Vec<(i64, Value)>),
    Bool(bool),
    Null,
    Float(f32),
}

/// Refusal of a text without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CborError {
    /// No CBOR, or cut off.
    Syntax,
    /// Nested deeper than [`DEEPEST`].
    TooDeep,
    /// A kind of value that parts do not use: tags, long floats, numbers beyond 64 bits, lengths left open.
    Unused,
    /// A value written in another way than the shortest, or with members out of order or twice.
    OtherForm,
}

impl CborError {
    /// Sentence for people.
    pub fn text(self) -> &'static str {
        match self {
            Self::Syntax => "no CBOR, or cut off",
            Self::TooDeep => "nested deeper than four levels",
            Self::Unused => "of a kind that parts do not use",
            Self::OtherForm => "not in the deterministic form",
        }
    }
}

impl From<minicbor::decode::Error> for CborError {
    fn from(_: minicbor::decode::Error) -> Self {
        Self::Syntax
    }
}

impl Value {
    /// Reads a value from a whole text.
    pub fn decode(text: &[u8]) -> Result<Self, CborError> {
        let value = read(&mut Decoder::new(text), DEEPEST)?;
        if value.encode() == text { Ok(value) } else { Err(CborError::OtherForm) }
    }

    /// Writes the value in its deterministic form.
    pub fn encode(&self) -> Vec<u8> {
        let mut encoder = Encoder::new(Vec::new());
        // A vector takes every byte.
        drop(self.write(&mut encoder));
        encoder.into_writer()
    }

    /// Member of a map.
    pub fn member(&self, key: i64) -> Option<&Self> {
        let Self::Map(members) = self else { return None };
        members.iter().find(|(known, _)| *known == key).map(|(_, value)| value)
    }

    /// Small number, if the value is such a number.
    pub fn byte(&self) -> Option<u8> {
        let Self::Int(number) = self else { return None };
        u8::try_from(*number).ok()
    }

    fn write(&self, encoder: &mut Encoder<Vec<u8>>) -> Result<(), minicbor::encode::Error<Infallible>> {
        match self {
            Self::Int(number) => drop(encoder.i64(*number)?),
            Self::Bytes(bytes) => drop(encoder.bytes(bytes)?),
            Self::Text(text) => drop(encoder.str(text)?),
            Self::Array(items) => {
                encoder.array(items.len() as u64)?;
                return items.iter().try_for_each(|item| item.write(encoder));
            }
            Self::Map(members) => {
                encoder.map(members.len() as u64)?;
                return members.iter().try_for_each(|(key, value)| {
                    encoder.i64(*key)?;
                    value.write(encoder)
                });
            }
            Self::Bool(truth) => drop(encoder.bool(*truth)?),
            Self::Null => drop(encoder.null()?),
            Self::Float(number) => drop(encoder.f32(*number)?),
        }
        Ok(())
    }
}

fn read(decoder: &mut Decoder<'_>, levels: usize) -> Result<Value, CborError> {
    let below = levels.checked_sub(1).ok_or(CborError::TooDeep)?;
    match decoder.datatype()? {
        Type::U8 | Type::U16 | Type::U32 | Type::U64 | Type::I8 | Type::I16 | Type::I32 | Type::I64 | Type::Int => {
            decoder.i64().map(Value::Int).map_err(|error| if error.is_end_of_input() { CborError::Syntax } else { CborError::Unused })
        }
        Type::Bytes => Ok(Value::Bytes(decoder.bytes()?.to_vec())),
        Type::String => Ok(Value::Text(decoder.str()?.into())),
        Type::Array => read_items(decoder, below),
        Type::Map => read_members(decoder, below),
        Type::Bool => Ok(Value::Bool(decoder.bool()?)),
        Type::Null => {
            decoder.null()?;
            Ok(Value::Null)
        }
        Type::F32 => Ok(Value::Float(decoder.f32()?)),
        Type::Undefined | Type::F16 | Type::F64 | Type::Simple | Type::BytesIndef | Type::StringIndef => Err(CborError::Unused),
        Type::ArrayIndef | Type::MapIndef | Type::Tag | Type::Break | Type::Unknown(_) => Err(CborError::Unused),
    }
}

fn is_number(kind: Type) -> bool {
    matches!(kind, Type::U8 | Type::U16 | Type::U32 | Type::U64 | Type::I8 | Type::I16 | Type::I32 | Type::I64 | Type::Int)
}

fn read_items(decoder: &mut Decoder<'_>, below: usize) -> Result<Value, CborError> {
    let count = decoder.array()?.ok_or(CborError::Unused)?;
    // A text has a byte for each item, so the loop ends with the text.
    let mut items = Vec::new();
    for _ in 0..count {
        items.push(read(decoder, below)?);
    }
    Ok(Value::Array(items))
}

fn read_members(decoder: &mut Decoder<'_>, below: usize) -> Result<Value, CborError> {
    let count = decoder.map()?.ok_or(CborError::Unused)?;
    let mut members: Vec<(i64, Value)> = Vec::new();
    for _ in 0..count {
        if !is_number(decoder.datatype()?) {
            return Err(CborError::Unused);
        }
        let key = decoder.i64().map_err(|_| CborError::Unused)?;
        if members.last().is_some_and(|(last, _)| place(*last) >= place(key)) {
            return Err(CborError::OtherForm);
        }
        members.push((key, read(decoder, below)?));
    }
    Ok(Value::Map(members))
}

/// Place of a key in the order of RFC 8949 4.2.1: by the bytes, so that negative numbers come behind, and -1 first of these.
fn place(key: i64) -> (bool, i64) {
    if key < 0 { (true, -1 - key) } else { (false, key) }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn values_are_read_and_written() {
        let cases: [(&[u8], Value); 8] = [
            (&[0x00], Value::Int(0)),
            (&[0x19, 0x01, 0x2c], Value::Int(300)),
            (&[0x39, 0x7f, 0x59], Value::Int(-32602)),
            (&[0xa2, 0x00, 0x00, 0x20, 0xf5], Value::Map(vec![(0, Value::Int(0)), (-1, Value::Bool(true))])),
            (&[0x82, 0x41, 0xff, 0x61, 0x61], Value::Array(vec![Value::Bytes(vec![255]), Value::Text("a".into())])),
            (&[0xf6], Value::Null),
            (&[0xfa, 0x3f, 0x80, 0, 0], Value::Float(1.0)),
            (&[0xa0], Value::Map(vec![])),
        ];
        for (text, value) in cases {
            assert_eq!(Value::decode(text).as_ref(), Ok(&value));
            assert_eq!(value.encode(), text);
        }
    }

    #[test]
    fn another_spelling_of_a_value_is_refused() {
        let cases: [(&[u8], CborError); 12] = [
            (&[], CborError::Syntax),
            (&[0x18, 0x05], CborError::OtherForm),
            (&[0x00, 0x00], CborError::OtherForm),
            (&[0xa2, 0x01, 0x00, 0x00, 0x00], CborError::OtherForm),
            (&[0xa2, 0x01, 0x00, 0x01, 0x00], CborError::OtherForm),
            (&[0x9f, 0xff], CborError::Unused),
            (&[0xc0, 0x00], CborError::Unused),
            (&[0xfb, 0, 0, 0, 0, 0, 0, 0, 0], CborError::Unused),
            (&[0x1b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], CborError::Unused),
            (&[0xa1, 0x61, 0x61, 0x00], CborError::Unused),
            (&[0x81, 0x81, 0x81, 0x81, 0x00], CborError::TooDeep),
            (&[0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], CborError::Syntax),
        ];
        for (text, why) in cases {
            assert_eq!(Value::decode(text), Err(why), "{text:x?}");
            assert!(!why.text().is_empty());
        }
    }
}
