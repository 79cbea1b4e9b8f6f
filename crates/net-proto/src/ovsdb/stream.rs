//! Messages of OVSDB: JSON values, one behind the other on a stream without frames. Knows no table.

use serde_json::{Value, json};

use crate::fault::{Code, Fault};

/// Bytes of a value for each element of the value: a value in memory is larger than its text, and a lie could be elements only.
const BYTES_PER_ELEMENT: usize = 12;
/// Elements that an object counts as, which takes a node of a tree even where it is empty.
const ELEMENTS_OF_OBJECT: usize = 20;

/// Values out of a stream of bytes, in any pieces. Bounded: a longer value than `limit`, one with too many elements for that, and more than twice
/// `limit` altogether end the stream.
#[derive(Debug)]
pub struct OvsdbStream {
    limit: usize,
    /// Bytes so far.
    total: usize,
    bytes: Vec<u8>,
    /// Begin of the present value, and the next byte to look at.
    start: usize,
    at: usize,
    depth: usize,
    /// Elements of the present value.
    elements: usize,
    is_quoted: bool,
    is_escaped: bool,
}

/// A message of the server.
#[derive(Debug, PartialEq)]
pub enum OvsdbMessage {
    /// Answer to the request of this number.
    Answer {
        id: u64,
        result: Result<Value, String>,
    },
    /// Question for a sign of life, with the answer to send.
    Echo(String),
    Other,
}

impl OvsdbStream {
    /// A stream whose values have at most `limit` bytes.
    pub const fn new(limit: usize) -> Self {
        Self { limit, total: 0, bytes: Vec::new(), start: 0, at: 0, depth: 0, elements: 0, is_quoted: false, is_escaped: false }
    }

    /// Takes further bytes.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(bytes.len());
        if self.start > 0 {
            self.bytes.drain(..self.start);
            (self.start, self.at) = (0, self.at - self.start);
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message; `None` until more bytes came.
    ///
    /// # Errors
    /// -32082: the bytes are no JSON objects, or an object is too long.
    pub fn message(&mut self) -> Result<Option<OvsdbMessage>, Fault> {
        if self.total > self.limit.saturating_mul(2) {
            return Err(broken(&format!("it sends more than {} bytes for one request", self.limit.saturating_mul(2))));
        }
        while let Some(byte) = self.bytes.get(self.at).copied() {
            self.at += 1;
            if self.at - self.start > self.limit || self.elements > self.limit / BYTES_PER_ELEMENT {
                return Err(broken(&format!("a message is longer than {} bytes, or has too many elements", self.limit)));
            }
            if self.is_quoted {
                (self.is_quoted, self.is_escaped) = (self.is_escaped || byte != b'"', !self.is_escaped && byte == b'\\');
                continue;
            }
            self.elements += match byte {
                b'{' => ELEMENTS_OF_OBJECT,
                b'[' | b',' | b':' => 1,
                _ => 0,
            };
            match byte {
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth > 1 => self.depth -= 1,
                b'}' | b']' if self.depth == 1 => return self.taken().map(Some),
                b'"' if self.depth > 0 => self.is_quoted = true,
                _ if self.depth > 0 => {}
                b' ' | b'\n' | b'\r' | b'\t' => self.start = self.at,
                _ => return Err(broken("it sends no JSON")),
            }
        }
        Ok(None)
    }

    fn taken(&mut self) -> Result<OvsdbMessage, Fault> {
        let value: Value = serde_json::from_slice(&self.bytes[self.start..self.at])
            .map_err(|error| broken(&format!("a message can't be read: {error}")))?;
        (self.start, self.depth, self.elements) = (self.at, 0, 0);
        Ok(read(value))
    }
}

/// A request.
pub fn request(id: u64, method: &str, params: &Value) -> String {
    json!({ "id": id, "method": method, "params": params }).to_string()
}

fn read(mut value: Value) -> OvsdbMessage {
    if value["method"] == "echo" {
        return OvsdbMessage::Echo(json!({ "id": value["id"], "result": value["params"], "error": null }).to_string());
    }
    match value["id"].as_u64() {
        Some(id) if value.get("method").is_none() => {
            let error = value.get("error").filter(|error| !error.is_null()).map(Value::to_string);
            let result = error.map_or_else(|| Ok(value["result"].take()), Err);
            OvsdbMessage::Answer { id, result }
        }
        _ => OvsdbMessage::Other,
    }
}

fn broken(why: &str) -> Fault {
    Fault::new(Code::Unreachable, format!("the database of the switch can't be understood: {why}"))
}
