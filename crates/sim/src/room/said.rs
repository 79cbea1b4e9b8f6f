//! Messages to a connection, as a reader of the specification takes them. Their justification is not known here.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use serde_json::Value;

/// A message to a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SentMessage {
    /// A refusal of the connection's own message: the code, and the id if readable.
    Error(String, Option<String>),
    /// Somebody is present, with these capabilities.
    Joined(String, BTreeSet<String>),
    /// Somebody is gone.
    Left(String),
    /// A message, unchanged.
    Relayed(Bytes),
    /// The welcome: name and capabilities of the connection, and those of the others.
    Welcome(String, BTreeSet<String>, BTreeMap<String, BTreeSet<String>>),
}

impl SentMessage {
    /// Reads a message to `to`.
    pub(super) fn read(bytes: &Bytes, to: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_slice(bytes).map_err(|error| format!("no JSON was sent: {error}"))?;
        if value["from"] != "system:gateway" {
            return Ok(Self::Relayed(bytes.clone()));
        }
        let payload = &value["payload"];
        let kind = value["kind"].as_str().unwrap_or_default();
        let addressed = value["to"] == serde_json::json!([to]);
        match (kind, addressed) {
            ("system/error", true) => Ok(Self::Error(text(&payload["error"]), value["correlation_id"].as_str().map(str::to_owned))),
            ("system/presence", false) if payload["event"] == "join" => {
                let (id, capabilities) = participant(&payload["participant"]);
                Ok(Self::Joined(id, capabilities))
            }
            ("system/presence", false) if payload["event"] == "leave" => Ok(Self::Left(text(&payload["participant"]["id"]))),
            ("system/welcome", true) => {
                let (id, capabilities) = participant(&payload["you"]);
                let others = payload["participants"].as_array().into_iter().flatten().map(participant).collect();
                Ok(Self::Welcome(id, capabilities, others))
            }
            _ => Err(format!("what is this to {to}? {value}")),
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn participant(value: &Value) -> (String, BTreeSet<String>) {
    (text(&value["id"]), value["capabilities"].as_array().into_iter().flatten().map(text).collect())
}
