//! Messages of profile B as JSON, for parts behind a broker of MQTT: members with names, kinds with words. Says nothing about topics.

use serde_json::{Map, Value as Json, json};
use stub_proto::cbor::Value;
use stub_proto::message::{PartMessage, TablePage};
use stub_proto::table::{PartTable, TableRow, ValueKind};

/// Bytes of a text for a part or from a part, at most: 255 of CBOR, each as an escape of six, with the names of all members.
pub const MOST_TEXT: usize = 2048;
/// Bytes of CBOR that such a text makes, at most: a float of three letters and a comma takes five.
pub const MOST_MADE: usize = 2 * MOST_TEXT;

/// Writes a message of the gate. `None`: the message is none, or holds bytes, which JSON does not.
pub fn to_part(message: &[u8]) -> Option<String> {
    let written = match PartMessage::from_gate(message).ok()? {
        PartMessage::Call { tool, seq, arguments } => {
            let arguments: Vec<Json> = arguments.iter().map(to_json).collect::<Option<_>>()?;
            json!({ "call": tool, "seq": seq, "arguments": arguments })
        }
        PartMessage::Ask { seq, first, boot } => {
            let mut written = json!({ "ask": first });
            for (name, number) in [("seq", seq), ("boot", boot)] {
                if let Some(number) = number {
                    written[name] = number.into();
                }
            }
            written
        }
        PartMessage::Heartbeat { seq, .. } => json!({ "heartbeat": seq }),
        PartMessage::Answer { .. } | PartMessage::Failure { .. } | PartMessage::Table(_) => return None,
    };
    Some(written.to_string())
}

/// Reads a message of a part. `None`: the text is none.
pub fn from_part(text: &[u8]) -> Option<Vec<u8>> {
    if text.len() > MOST_TEXT {
        return None;
    }
    let Ok(Json::Object(members)) = serde_json::from_slice(text) else { return None };
    let message = if let Some(rows) = members.get("table") {
        PartMessage::Table(page(rows, &members)?)
    } else if members.contains_key("heartbeat") {
        PartMessage::Heartbeat { seq: number(&members, "heartbeat")?, boot: Some(number(&members, "boot")?) }
    } else if let Some(error) = members.get("error") {
        let text = members.get("text").map(|text| text.as_str().map(str::to_owned).ok_or(())).transpose().ok()?;
        PartMessage::Failure { seq: number(&members, "seq")?, code: error.as_i64()?, text }
    } else {
        PartMessage::Answer { seq: number(&members, "seq")?, result: from_json(members.get("result")?, 0)? }
    };
    let written = message.write();
    // The same rules as for CBOR: numbers from 1 on, depth, sizes.
    PartMessage::from_part(&written).is_ok().then_some(written)
}

/// Reads the number of an answer that is longer than a text may be. `None`: the text is no such answer.
pub fn overlong(text: &[u8]) -> Option<u8> {
    if text.len() <= MOST_TEXT {
        return None;
    }
    let Ok(Json::Object(members)) = serde_json::from_slice(text) else { return None };
    members.get("result").and_then(|_| number(&members, "seq")).filter(|seq| *seq != 0)
}

fn page(rows: &Json, members: &Map<String, Json>) -> Option<TablePage> {
    let rows: Vec<TableRow> = rows.as_array()?.iter().map(row).collect::<Option<_>>()?;
    let device = members.get("device").map_or(Some(""), Json::as_str)?.as_bytes().to_vec();
    Some(TablePage {
        last: optional(members, "seq")?,
        boot: number(members, "boot")?,
        first: optional(members, "first")?.unwrap_or(0),
        table: PartTable { most_bytes: u8::MAX, rows, device },
        next: optional(members, "next")?,
    })
}

/// Reads `[tool, kind of the answer, kind of an argument ...]`.
fn row(row: &Json) -> Option<TableRow> {
    let [tool, answer, arguments @ ..] = row.as_array()?.as_slice() else { return None };
    let kind = |word: &Json| ValueKind::from_word(word.as_str()?);
    let arguments = arguments.iter().map(kind).collect::<Option<_>>()?;
    Some(TableRow { tool: u8::try_from(tool.as_u64()?).ok()?, answer: kind(answer)?, arguments })
}

fn number(members: &Map<String, Json>, name: &str) -> Option<u8> {
    members.get(name)?.as_u64().and_then(|number| u8::try_from(number).ok())
}

/// Reads a number that may be absent; the outer `None` is a member that is no number.
fn optional(members: &Map<String, Json>, name: &str) -> Option<Option<u8>> {
    if members.contains_key(name) { number(members, name).map(Some) } else { Some(None) }
}

fn to_json(value: &Value) -> Option<Json> {
    Some(match value {
        Value::Int(number) => Json::from(*number),
        Value::Text(text) => Json::from(text.as_str()),
        Value::Bool(truth) => Json::Bool(*truth),
        Value::Null => Json::Null,
        // The shortest decimal of 32 bits.
        Value::Float(number) => Json::Number(number.to_string().parse().ok()?),
        Value::Array(items) => Json::Array(items.iter().map(to_json).collect::<Option<_>>()?),
        Value::Map(members) => {
            let member = |(key, value): &(i64, Value)| Some((key.to_string(), to_json(value)?));
            Json::Object(members.iter().map(member).collect::<Option<_>>()?)
        }
        Value::Bytes(_) => return None,
    })
}

/// Reads a value; a number with a fraction or an exponent is a float, and the members of an object go by place.
fn from_json(value: &Json, depth: usize) -> Option<Value> {
    if depth > stub_proto::cbor::DEEPEST {
        return None;
    }
    Some(match value {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::String(text) => Value::Text(text.clone()),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => Value::Int(whole),
            None => Value::Float(number.to_string().parse().ok()?),
        },
        Json::Array(items) => Value::Array(items.iter().map(|item| from_json(item, depth + 1)).collect::<Option<_>>()?),
        Json::Object(members) => {
            let member = |(key, value): (&String, &Json)| Some((i64::from(key.parse::<u8>().ok()?), from_json(value, depth + 1)?));
            let mut members: Vec<(i64, Value)> = members.iter().map(member).collect::<Option<_>>()?;
            members.sort_by_key(|(key, _)| *key);
            Value::Map(members)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ax_70_messages_of_a_gate_are_json() {
        let shown = |message: PartMessage| to_part(&message.write()).and_then(|text| serde_json::from_str::<Json>(&text).ok());
        let arguments = vec![Value::Int(-5), Value::Bool(true), Value::Text("a\"b".into()), Value::Float(21.3)];
        let call = shown(PartMessage::Call { tool: 3, seq: 9, arguments });
        assert_eq!(call, Some(json!({ "call": 3, "seq": 9, "arguments": [-5, true, "a\"b", 21.3] })));
        assert_eq!(shown(PartMessage::Ask { seq: Some(4), first: 0, boot: Some(7) }), Some(json!({ "ask": 0, "seq": 4, "boot": 7 })));
        assert_eq!(shown(PartMessage::Ask { seq: None, first: 0, boot: None }), Some(json!({ "ask": 0 })));
        assert_eq!(shown(PartMessage::Heartbeat { seq: 4, boot: None }), Some(json!({ "heartbeat": 4 })));
        assert_eq!(shown(PartMessage::Call { tool: 3, seq: 9, arguments: vec![Value::Bytes(vec![1])] }), None);
    }

    #[test]
    fn ax_70_messages_of_a_part_are_json() {
        let read = |text: &str| from_part(text.as_bytes()).and_then(|message| PartMessage::from_part(&message).ok());
        let result = Value::Map(vec![(0, Value::Int(300)), (1, Value::Float(-4.5))]);
        assert_eq!(read(r#"{"seq":9,"result":{"1":-4.5,"0":300}}"#), Some(PartMessage::Answer { seq: 9, result }));
        assert_eq!(read(r#"{"seq":9,"error":-32602}"#), Some(PartMessage::Failure { seq: 9, code: -32602, text: None }));
        assert_eq!(read(r#"{"heartbeat":4,"boot":7}"#), Some(PartMessage::Heartbeat { seq: 4, boot: Some(7) }));
        let rows = vec![TableRow { tool: 2, answer: ValueKind::Bool, arguments: vec![ValueKind::Bool] }];
        let table = PartTable { most_bytes: 255, rows, device: vec![] };
        let page = TablePage { last: Some(3), boot: 7, first: 0, table, next: None };
        assert_eq!(read(r#"{"table":[[2,"bool","bool"]],"seq":3,"boot":7,"later":1}"#), Some(PartMessage::Table(page)));
    }

    #[test]
    fn ax_43_a_text_has_2048_bytes_at_most() {
        let answer = |bytes: usize| format!(r#"{{"seq":9,"result":"{}"}}"#, "a".repeat(bytes - 21)).into_bytes();
        let (longest, longer) = (answer(MOST_TEXT), answer(MOST_TEXT + 1));
        assert_eq!((longest.len(), from_part(&longest).is_some(), overlong(&longest)), (MOST_TEXT, true, None));
        assert_eq!((from_part(&longer), overlong(&longer)), (None, Some(9)));
        let floats = format!(r#"{{"seq":9,"result":[{}1e1]}}"#, "1e1,".repeat((MOST_TEXT - 24) / 4));
        assert!(from_part(floats.as_bytes()).is_some_and(|made| (MOST_TEXT..MOST_MADE).contains(&made.len())));
        for other in [r#"{"seq":0,"result":""#, r#"{"seq":9,"late":""#] {
            assert_eq!(overlong(format!(r#"{other}{}"}}"#, "a".repeat(MOST_TEXT)).as_bytes()), None);
        }
    }

    #[test]
    fn ax_43_a_text_that_is_no_message_is_refused() {
        let deep = format!(r#"{{"seq":9,"result":{}1{}}}"#, "[".repeat(9), "]".repeat(9));
        let long = format!(r#"{{"seq":9,"result":"{}"}}"#, "a".repeat(MOST_TEXT));
        let texts = [
            "",
            "[]",
            "{}",
            r#"{"seq":0,"result":1}"#,
            r#"{"seq":256,"result":1}"#,
            r#"{"seq":9,"error":5}"#,
            r#"{"heartbeat":4}"#,
            r#"{"seq":9,"result":{"name":1}}"#,
            r#"{"seq":9,"result":{"1":1,"01":2}}"#,
            r#"{"table":[[2]],"boot":7}"#,
            r#"{"table":[[2,"colour"]],"boot":7}"#,
            r#"{"call":3,"seq":9,"arguments":[]}"#,
            r#"{"ask":0}"#,
            &deep,
            &long,
        ];
        for text in texts {
            assert_eq!(from_part(text.as_bytes()), None, "{text}");
        }
    }
}
