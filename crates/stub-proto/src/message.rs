//! Messages of profile B: a type byte and a map. Does not say which message may follow which.

use alloc::string::String;
use alloc::vec::Vec;

use crate::cbor::{CborError, Value};
use crate::table::{MOST_ARGUMENTS, PartTable, TableRow};

/// Version of the messages.
pub const VERSION: i64 = 1;

/// Code by which a part says that it has started anew and runs nothing before it is asked for its table.
pub const ASK_FIRST: i64 = -1;

/// Bytes of a text with an error.
const MOST_TEXT: usize = 200;
/// Bytes of a part's own name.
const MOST_DEVICE: usize = 32;

/// First bytes of messages (B.1).
mod kind {
    pub(super) const CALL: u8 = 1;
    pub(super) const RESPONSE: u8 = 2;
    pub(super) const TABLE: u8 = 3;
    pub(super) const HEARTBEAT: u8 = 4;
}

/// Keys of the map.
mod key {
    pub(super) const TOOL: i64 = 1;
    pub(super) const SEQ: i64 = 2;
    pub(super) const PARAMS: i64 = 3;
    pub(super) const RESULT: i64 = 4;
    pub(super) const ERROR: i64 = 5;
    pub(super) const MOST_BYTES: i64 = 6;
    pub(super) const TOOLS: i64 = 7;
    pub(super) const VERSION: i64 = 8;
    pub(super) const DEVICE: i64 = 9;
    pub(super) const NEXT: i64 = 10;
    pub(super) const BOOT: i64 = 11;
    pub(super) const FIRST: i64 = 12;
}

/// A message from the gate or a part.
#[derive(Clone, Debug, PartialEq)]
pub enum PartMessage {
    /// Gate to part.
    Call { tool: u8, seq: u8, arguments: Vec<Value> },
    /// Part to gate.
    Answer { seq: u8, result: Value },
    /// Part to gate: a negative code, and a text.
    Failure { seq: u8, code: i64, text: Option<String> },
    /// Gate to part: shows the table from this row on. A part whose mark is `boot` takes `seq` for the last number, unless its own is newer.
    Ask { seq: Option<u8>, first: u8, boot: Option<u8> },
    /// Part to gate: a page of the table.
    Table(TablePage),
    /// Either way. The part's own has the mark of its start, and so is no echo of the gate's.
    Heartbeat { seq: u8, boot: Option<u8> },
}

/// A page of a part's table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablePage {
    /// Number of the last call that the part has taken; `None` from a part that has started anew and was not asked yet.
    pub last: Option<u8>,
    /// Mark of the start, never 0: pages and questions from before have another.
    pub boot: u8,
    /// Rows before the page: a late page is never taken for another.
    pub first: u8,
    pub table: PartTable,
    /// First row of the next page.
    pub next: Option<u8>,
}

/// Refusal of bytes without a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartMessageError {
    /// The map is none that parts write.
    Cbor(CborError),
    /// The first byte is no type of a message.
    Kind(u8),
    /// A member is absent, or has a value that it must not have.
    Member(&'static str),
    /// The version is another.
    Version,
}

impl PartMessageError {
    /// Sentence for people.
    pub fn text(self) -> String {
        match self {
            Self::Cbor(why) => alloc::format!("its map is {}", why.text()),
            Self::Kind(kind) => alloc::format!("it begins with {kind:#04x}, which is no type of a message"),
            Self::Member(member) => alloc::format!("its {member} is missing or wrong"),
            Self::Version => alloc::format!("it is of another version than {VERSION}"),
        }
    }
}

impl PartMessage {
    /// Reads a message of a part.
    pub fn from_part(bytes: &[u8]) -> Result<Self, PartMessageError> {
        let (kind, map) = parts(bytes)?;
        match kind {
            kind::RESPONSE => response(&map),
            kind::TABLE => page(&map).map(Self::Table),
            kind::HEARTBEAT => Ok(Self::Heartbeat { seq: seq(&map)?, boot: Some(marked(&map)?) }),
            other => Err(PartMessageError::Kind(other)),
        }
    }

    /// Reads a message of the gate, as a part does: its own word is none.
    pub fn from_gate(bytes: &[u8]) -> Result<Self, PartMessageError> {
        let (kind, map) = parts(bytes)?;
        match kind {
            kind::CALL => call(&map),
            kind::TABLE => {
                only(&map, &[key::SEQ, key::NEXT, key::BOOT])?;
                let first = map.member(key::NEXT).map_or(Some(0), Value::byte).ok_or(PartMessageError::Member("first row"))?;
                let seq = map.member(key::SEQ).map(|_| seq(&map)).transpose()?;
                Ok(Self::Ask { seq, first, boot: boot(&map)? })
            }
            kind::HEARTBEAT => {
                only(&map, &[key::SEQ])?;
                Ok(Self::Heartbeat { seq: seq(&map)?, boot: None })
            }
            other => Err(PartMessageError::Kind(other)),
        }
    }

    /// Writes the message.
    pub fn write(&self) -> Vec<u8> {
        let number = |number: u8| Value::Int(number.into());
        let (kind, members) = match self {
            Self::Call { tool, seq, arguments } => {
                let mut members = alloc::vec![(key::TOOL, number(*tool)), (key::SEQ, number(*seq))];
                if !arguments.is_empty() {
                    members.push((key::PARAMS, Value::Map((0..).zip(arguments.iter().cloned()).collect())));
                }
                (kind::CALL, members)
            }
            Self::Answer { seq, result } => (kind::RESPONSE, alloc::vec![(key::SEQ, number(*seq)), (key::RESULT, result.clone())]),
            Self::Failure { seq, code, text } => {
                let code = Value::Int(*code);
                let error = match text {
                    Some(text) => Value::Array(alloc::vec![code, Value::Text(text.clone())]),
                    None => code,
                };
                (kind::RESPONSE, alloc::vec![(key::SEQ, number(*seq)), (key::ERROR, error)])
            }
            Self::Ask { seq: None, first: 0, boot: None } => return alloc::vec![kind::TABLE],
            Self::Ask { seq, first, boot } => {
                let mut members: Vec<(i64, Value)> = seq.iter().map(|seq| (key::SEQ, number(*seq))).collect();
                if *first != 0 {
                    members.push((key::NEXT, number(*first)));
                }
                members.extend(boot.iter().map(|boot| (key::BOOT, number(*boot))));
                (kind::TABLE, members)
            }
            Self::Table(page) => (kind::TABLE, page.members()),
            Self::Heartbeat { seq, boot } => {
                let boot = boot.iter().map(|boot| (key::BOOT, number(*boot)));
                (kind::HEARTBEAT, core::iter::once((key::SEQ, number(*seq))).chain(boot).collect())
            }
        };
        let mut bytes = alloc::vec![kind];
        bytes.extend(Value::Map(members).encode());
        bytes
    }
}

impl TablePage {
    fn members(&self) -> Vec<(i64, Value)> {
        let rows = self.table.rows.iter().map(TableRow::value).collect();
        let mut members: Vec<(i64, Value)> = self.last.iter().map(|last| (key::SEQ, Value::Int((*last).into()))).collect();
        members.push((key::MOST_BYTES, Value::Int(self.table.most_bytes.into())));
        members.push((key::TOOLS, Value::Array(rows)));
        if !self.table.device.is_empty() {
            members.push((key::DEVICE, Value::Bytes(self.table.device.clone())));
        }
        members.extend(self.next.iter().map(|next| (key::NEXT, Value::Int((*next).into()))));
        members.push((key::BOOT, Value::Int(self.boot.into())));
        if self.first != 0 {
            members.push((key::FIRST, Value::Int(self.first.into())));
        }
        members
    }
}

/// Checks that a number comes after another, on the circle of numbers.
pub fn is_newer(seq: u8, last: u8) -> bool {
    matches!(seq.wrapping_sub(last), 1..=127)
}

/// Splits a message into its type and its map; a type alone has an empty map.
fn parts(bytes: &[u8]) -> Result<(u8, Value), PartMessageError> {
    let (kind, map) = bytes.split_first().ok_or(PartMessageError::Kind(0))?;
    if map.is_empty() {
        return Ok((*kind, Value::Map(Vec::new())));
    }
    match Value::decode(map).map_err(PartMessageError::Cbor)? {
        map @ Value::Map(_) => Ok((*kind, map)),
        Value::Int(_) | Value::Bytes(_) | Value::Text(_) | Value::Array(_) => Err(PartMessageError::Member("map")),
        Value::Bool(_) | Value::Null | Value::Float(_) => Err(PartMessageError::Member("map")),
    }
}

/// Checks that a message of the gate has no members but these. More is the word of a part, which a line may bring back to the part itself.
fn only(map: &Value, keys: &[i64]) -> Result<(), PartMessageError> {
    let is_known = matches!(map, Value::Map(members) if members.iter().all(|(key, _)| keys.contains(key)));
    is_known.then_some(()).ok_or(PartMessageError::Member("list of members"))
}

fn seq(map: &Value) -> Result<u8, PartMessageError> {
    map.member(key::SEQ).and_then(Value::byte).filter(|seq| *seq != 0).ok_or(PartMessageError::Member("number"))
}

fn boot(map: &Value) -> Result<Option<u8>, PartMessageError> {
    map.member(key::BOOT).map(|boot| boot.byte().filter(|boot| *boot != 0).ok_or(PartMessageError::Member("mark of the start"))).transpose()
}

fn marked(map: &Value) -> Result<u8, PartMessageError> {
    boot(map)?.ok_or(PartMessageError::Member("mark of the start"))
}

fn call(map: &Value) -> Result<PartMessage, PartMessageError> {
    let tool = map.member(key::TOOL).and_then(Value::byte).filter(|tool| *tool != 0).ok_or(PartMessageError::Member("tool"))?;
    let arguments = match map.member(key::PARAMS) {
        None => Vec::new(),
        Some(Value::Map(members)) if (0..).zip(members).all(|(place, (key, _))| *key == place) => {
            members.iter().map(|(_, value)| value.clone()).collect()
        }
        Some(_) => return Err(PartMessageError::Member("arguments")),
    };
    if arguments.len() > MOST_ARGUMENTS {
        return Err(PartMessageError::Member("arguments"));
    }
    Ok(PartMessage::Call { tool, seq: seq(map)?, arguments })
}

fn response(map: &Value) -> Result<PartMessage, PartMessageError> {
    let seq = seq(map)?;
    match (map.member(key::RESULT), map.member(key::ERROR)) {
        (Some(result), None) => Ok(PartMessage::Answer { seq, result: result.clone() }),
        (None, Some(error)) => {
            let (code, text) = failure(error).ok_or(PartMessageError::Member("error"))?;
            Ok(PartMessage::Failure { seq, code, text })
        }
        _ => Err(PartMessageError::Member("result or error")),
    }
}

fn failure(error: &Value) -> Option<(i64, Option<String>)> {
    let (code, text) = match error {
        Value::Int(code) => (*code, None),
        Value::Array(items) => match items.as_slice() {
            [Value::Int(code), Value::Text(text)] if text.len() <= MOST_TEXT => (*code, Some(text.clone())),
            _ => return None,
        },
        Value::Bytes(_) | Value::Text(_) | Value::Map(_) | Value::Bool(_) | Value::Null | Value::Float(_) => return None,
    };
    (code < 0).then_some((code, text))
}

fn page(map: &Value) -> Result<TablePage, PartMessageError> {
    if map.member(key::VERSION).is_some_and(|version| *version != Value::Int(VERSION)) {
        return Err(PartMessageError::Version);
    }
    let most_bytes =
        map.member(key::MOST_BYTES).and_then(Value::byte).filter(|most| *most >= 32).ok_or(PartMessageError::Member("size"))?;
    let Some(Value::Array(items)) = map.member(key::TOOLS) else { return Err(PartMessageError::Member("tools")) };
    let device = match map.member(key::DEVICE) {
        None => Vec::new(),
        Some(Value::Bytes(device)) if device.len() <= MOST_DEVICE => device.clone(),
        Some(_) => return Err(PartMessageError::Member("device")),
    };
    let mut table = PartTable { most_bytes, rows: Vec::new(), device };
    for item in items {
        let row = TableRow::read(item).ok_or(PartMessageError::Member("row of a tool"))?;
        if !table.add(row) {
            return Err(PartMessageError::Member("row of a tool, listed twice"));
        }
    }
    let next =
        map.member(key::NEXT).map(|next| next.byte().filter(|next| *next != 0).ok_or(PartMessageError::Member("next page"))).transpose()?;
    let first = map.member(key::FIRST).map_or(Some(0), Value::byte).ok_or(PartMessageError::Member("first row"))?;
    let last = map.member(key::SEQ).map(|_| seq(map)).transpose()?;
    Ok(TablePage { last, boot: marked(map)?, first, table, next })
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::table::ValueKind;

    #[test]
    fn ax_71_messages_are_those_that_firmware_sent() {
        let calls: [(&[u8], PartMessage); 3] = [
            (&[1, 0xa2, 1, 1, 2, 7], PartMessage::Call { tool: 1, seq: 7, arguments: vec![] }),
            (&[1, 0xa3, 1, 2, 2, 8, 3, 0xa1, 0, 1], PartMessage::Call { tool: 2, seq: 8, arguments: vec![Value::Int(1)] }),
            (&[3], PartMessage::Ask { seq: None, first: 0, boot: None }),
        ];
        for (bytes, message) in calls {
            assert_eq!(PartMessage::from_gate(bytes).as_ref(), Ok(&message));
            assert_eq!(message.write(), bytes);
        }
        let result = Value::Map(vec![(0, Value::Int(0)), (1, Value::Int(300))]);
        let answers: [(&[u8], PartMessage); 2] = [
            (&[2, 0xa2, 2, 7, 4, 0xa2, 0, 0, 1, 0x19, 0x01, 0x2c], PartMessage::Answer { seq: 7, result }),
            (&[2, 0xa2, 2, 9, 5, 0x39, 0x7f, 0x59], PartMessage::Failure { seq: 9, code: -32602, text: None }),
        ];
        for (bytes, message) in answers {
            assert_eq!(PartMessage::from_part(bytes).as_ref(), Ok(&message));
            assert_eq!(message.write(), bytes);
        }
    }

    #[test]
    fn ax_73_a_registration_of_firmware_is_read() {
        let bytes = [0x03, 0xa3, 6, 0x18, 0x60, 7, 0x82, 0x82, 1, 5, 0x83, 2, 5, 0, 11, 9];
        let rows = vec![
            TableRow { tool: 1, answer: ValueKind::Map, arguments: vec![] },
            TableRow { tool: 2, answer: ValueKind::Map, arguments: vec![ValueKind::Uint] },
        ];
        let page = TablePage { last: None, boot: 9, first: 0, table: PartTable { most_bytes: 96, rows, device: vec![] }, next: None };
        assert_eq!(PartMessage::from_part(&bytes), Ok(PartMessage::Table(page.clone())));
        assert_eq!(PartMessage::Table(page.clone()).write(), bytes);
        let page =
            TablePage { last: Some(9), boot: 5, first: 3, table: PartTable { device: b"lamp".to_vec(), ..page.table }, next: Some(2) };
        assert_eq!(PartMessage::from_part(&PartMessage::Table(page.clone()).write()), Ok(PartMessage::Table(page)));
    }

    #[test]
    fn ax_43_a_message_that_does_not_hold_together_is_refused() {
        let refused: [&[u8]; 14] = [
            &[],
            &[9],
            &[2],
            &[2, 0x01],
            &[2, 0xa1, 2, 7],
            &[2, 0xa2, 2, 0, 4, 0xa0],
            &[2, 0xa3, 2, 7, 4, 0xa0, 5, 0x20],
            &[2, 0xa2, 2, 7, 5, 0x01],
            &[3, 0xa3, 6, 0x01, 7, 0x80, 11, 9],
            &[3, 0xa3, 6, 0x18, 0x60, 7, 0x82, 0x82, 1, 5, 0x82, 1, 5, 11, 9],
            &[3, 0xa4, 6, 0x18, 0x60, 7, 0x80, 8, 2, 11, 9],
            &[3, 0xa2, 6, 0x18, 0x60, 7, 0x80],
            &[4, 0xa1, 2, 7],
            &[1, 0xa2, 1, 1, 2, 7],
        ];
        for bytes in refused {
            let why = PartMessage::from_part(bytes).expect_err("refused");
            assert!(!why.text().is_empty(), "{bytes:x?}");
        }
    }

    #[test]
    fn ax_74_a_part_takes_no_word_of_a_part() {
        let table = PartTable { most_bytes: 96, rows: vec![], device: vec![] };
        let page = |last, first| PartMessage::Table(TablePage { last, boot: 9, first, table: table.clone(), next: None });
        for own in [page(None, 0), page(Some(7), 0), page(Some(7), 3), PartMessage::Heartbeat { seq: 7, boot: Some(9) }] {
            assert!(PartMessage::from_gate(&own.write()).is_err(), "{own:?}");
        }
    }

    #[test]
    fn an_unknown_member_is_ignored() {
        let bytes = [2, 0xa3, 2, 7, 4, 0xa0, 0x18, 0x40, 0xf5];
        assert_eq!(PartMessage::from_part(&bytes), Ok(PartMessage::Answer { seq: 7, result: Value::Map(vec![]) }));
    }
}
