//! Tools as a part lists them: numbers and kinds of values. Names, schemas and annotations are never a part's to give.

use alloc::vec::Vec;

use crate::cbor::Value;

/// Arguments of a tool at most (B.2).
pub const MOST_ARGUMENTS: usize = 4;

/// Kind of a value: a major type of CBOR, or the first byte of a simple value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    Uint,
    /// A whole number with a sign.
    Int,
    Bytes,
    Text,
    Array,
    Map,
    Bool,
    Null,
    Float,
}

/// Kinds with their codes on the wire and their words in a configuration.
const KINDS: [(ValueKind, u8, &str); 9] = [
    (ValueKind::Uint, 0, "uint"),
    (ValueKind::Int, 1, "int"),
    (ValueKind::Bytes, 2, "bytes"),
    (ValueKind::Text, 3, "text"),
    (ValueKind::Array, 4, "array"),
    (ValueKind::Map, 5, "map"),
    (ValueKind::Bool, 0xf4, "bool"),
    (ValueKind::Null, 0xf6, "null"),
    (ValueKind::Float, 0xfa, "float"),
];

impl ValueKind {
    /// Kind behind a code.
    pub fn from_code(code: u8) -> Option<Self> {
        KINDS.iter().find(|(_, known, _)| *known == code).map(|(kind, ..)| *kind)
    }

    /// Kind behind a word.
    pub fn from_word(word: &str) -> Option<Self> {
        KINDS.iter().find(|(.., known)| *known == word).map(|(kind, ..)| *kind)
    }

    /// Code on the wire.
    pub fn code(self) -> u8 {
        self.entry().1
    }

    /// Word in a configuration.
    pub fn word(self) -> &'static str {
        self.entry().2
    }

    /// Checks if a value is of the kind.
    pub fn fits(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Uint, Value::Int(number)) => *number >= 0,
            (Self::Int, Value::Int(_)) | (Self::Bytes, Value::Bytes(_)) | (Self::Text, Value::Text(_)) => true,
            (Self::Array, Value::Array(_)) | (Self::Map, Value::Map(_)) | (Self::Bool, Value::Bool(_)) => true,
            (Self::Float, Value::Float(number)) => number.is_finite(),
            (kind, Value::Null) => kind == Self::Null,
            (_, Value::Int(_) | Value::Bytes(_) | Value::Text(_) | Value::Array(_)) => false,
            (_, Value::Map(_) | Value::Bool(_) | Value::Float(_)) => false,
        }
    }

    fn entry(self) -> (Self, u8, &'static str) {
        KINDS.into_iter().find(|(kind, ..)| *kind == self).unwrap_or(KINDS[0])
    }
}

/// A tool in a part's table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRow {
    /// Number of the tool, never 0.
    pub tool: u8,
    pub answer: ValueKind,
    pub arguments: Vec<ValueKind>,
}

impl TableRow {
    /// Reads `[id, answer, argument ...]`.
    pub fn read(value: &Value) -> Option<Self> {
        let Value::Array(items) = value else { return None };
        let [tool, answer, arguments @ ..] = items.as_slice() else { return None };
        let kind = |value: &Value| value.byte().and_then(ValueKind::from_code);
        let tool = tool.byte().filter(|tool| *tool != 0)?;
        let arguments: Vec<ValueKind> = arguments.iter().map(kind).collect::<Option<_>>()?;
        (arguments.len() <= MOST_ARGUMENTS).then_some(Self { tool, answer: kind(answer)?, arguments })
    }

    /// Writes `[id, answer, argument ...]`.
    pub fn value(&self) -> Value {
        let codes = core::iter::once(self.answer).chain(self.arguments.iter().copied()).map(ValueKind::code);
        Value::Array(core::iter::once(self.tool).chain(codes).map(|number| Value::Int(number.into())).collect())
    }
}

/// The tools of a part, as the part lists them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartTable {
    /// Bytes of the longest message for the part.
    pub most_bytes: u8,
    pub rows: Vec<TableRow>,
    /// Name of the part in its own bytes; empty without.
    pub device: Vec<u8>,
}

impl PartTable {
    /// Row of a tool.
    pub fn row(&self, tool: u8) -> Option<&TableRow> {
        self.rows.iter().find(|row| row.tool == tool)
    }

    /// Takes a row, unless the tool is there already.
    pub fn add(&mut self, row: TableRow) -> bool {
        let is_new = self.row(row.tool).is_none();
        if is_new {
            self.rows.push(row);
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn ax_73_rows_of_a_table_are_read_as_written() {
        let row = TableRow { tool: 2, answer: ValueKind::Map, arguments: vec![ValueKind::Uint, ValueKind::Float] };
        assert_eq!(row.value().encode(), [0x84, 2, 5, 0, 0x18, 0xfa]);
        assert_eq!(TableRow::read(&row.value()), Some(row));
        let refused: [&[i64]; 6] = [&[], &[1], &[0, 5], &[1, 99], &[1, 5, 0, 0, 0, 0, 0], &[256, 5]];
        for numbers in refused {
            let value = Value::Array(numbers.iter().map(|number| Value::Int(*number)).collect());
            assert_eq!(TableRow::read(&value), None, "{numbers:?}");
        }
        assert_eq!(TableRow::read(&Value::Null), None);
    }

    #[test]
    fn ax_43_a_value_of_another_kind_does_not_fit() {
        assert!(ValueKind::Uint.fits(&Value::Int(0)) && !ValueKind::Uint.fits(&Value::Int(-1)));
        assert!(ValueKind::Float.fits(&Value::Float(1.5)) && !ValueKind::Float.fits(&Value::Float(f32::NAN)));
        assert!(ValueKind::Null.fits(&Value::Null) && !ValueKind::Map.fits(&Value::Null));
        for (kind, code, word) in KINDS {
            assert_eq!((ValueKind::from_code(code), ValueKind::from_word(word)), (Some(kind), Some(kind)));
            assert_eq!((kind.code(), kind.word()), (code, word));
        }
    }
}
