//! Messages of OVSDB: JSON values, one behind the other on a stream without frames. Knows no table.

use serde_json::{Value, json};

use crate::fault::{Code, Fault};

/// Values out of a stream of bytes, in any pieces. Bounded: a longer value than `limit` ends the stream.
#[derive(Debug)]
pub struct OvsdbStream {
    limit: usize,
    bytes: Vec<u8>,
    /// Begin of the present value, and the next byte to look at.
    start: usize,
    at: usize,
    depth: usize,
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
        Self { limit, bytes: Vec::new(), start: 0, at: 0, depth: 0, is_quoted: false, is_escaped: false }
    }

    /// Takes further bytes.
    pub fn receive(&mut self, bytes: &[u8]) {
        if self.start == self.bytes.len() {
            self.bytes.clear();
            (self.start, self.at) = (0, 0);
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message; `None` until more bytes came.
    ///
    /// # Errors
    /// -32082: the bytes are no JSON objects, or an object is too long.
    pub fn message(&mut self) -> Result<Option<OvsdbMessage>, Fault> {
        while let Some(byte) = self.bytes.get(self.at).copied() {
            self.at += 1;
            if self.at - self.start > self.limit {
                return Err(broken(&format!("a message is longer than {} bytes", self.limit)));
            }
            if self.is_quoted {
                (self.is_quoted, self.is_escaped) = (self.is_escaped || byte != b'"', !self.is_escaped && byte == b'\\');
                continue;
            }
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
        (self.start, self.depth) = (self.at, 0);
        Ok(read(&value))
    }
}

/// A request.
pub fn request(id: u64, method: &str, params: &Value) -> String {
    json!({ "id": id, "method": method, "params": params }).to_string()
}

fn read(value: &Value) -> OvsdbMessage {
    if value["method"] == "echo" {
        return OvsdbMessage::Echo(json!({ "id": value["id"], "result": value["params"], "error": null }).to_string());
    }
    match value["id"].as_u64() {
        Some(id) if value.get("method").is_none() => {
            let error = value.get("error").filter(|error| !error.is_null());
            let result = error.map_or_else(|| Ok(value["result"].clone()), |error| Err(error.to_string()));
            OvsdbMessage::Answer { id, result }
        }
        _ => OvsdbMessage::Other,
    }
}

fn broken(why: &str) -> Fault {
    Fault::new(Code::Unreachable, format!("the database of the switch can't be understood: {why}"))
}
