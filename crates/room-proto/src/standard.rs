//! Answers of every participant to MCP's own requests (MCPx v0.1, 2.1): `initialize`, and without anything to offer also `ping` and an empty
//! list of tools. Makes no calls.

use banyan_model::Now;
use bytes::Bytes;
use json::{Members, quote};

use crate::chain;
use crate::envelope::Envelope;
use crate::participant::{Event, Participant};
use crate::voice::{Answer, Utterance};

/// Revisions of MCP with `initialize`, the newest first.
const REVISIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const LISTS: &str = r#"{"completions":{},"prompts":{"listChanged":true},"resources":{"listChanged":true},"tools":{"listChanged":true}}"#;
const NO_TOOLS: &str = r#"{"tools":{}}"#;

/// Offers of a participant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offers {
    Nothing,
    /// The lists of a server.
    Server,
}

/// Answers a request by itself, with a raw result; `None`: the request is none of these.
pub fn answer(envelope: &Envelope<'_>, me: &str, offers: Offers) -> Option<String> {
    match (envelope.kind().method()?, offers) {
        ("initialize", Offers::Nothing) => Some(initialized(envelope, me, NO_TOOLS)),
        ("initialize", Offers::Server) => Some(initialized(envelope, me, LISTS)),
        ("ping", Offers::Nothing) => Some("{}".into()),
        ("tools/list", Offers::Nothing) => Some(r#"{"tools":[]}"#.into()),
        _ => None,
    }
}

/// Agrees to the revision asked for, or offers the newest.
fn initialized(envelope: &Envelope<'_>, me: &str, capabilities: &str) -> String {
    let payload = Members::again(envelope.payload);
    let asked = payload.get("params").filter(|raw| raw.starts_with(b"{")).map(Members::again);
    let asked = asked.as_ref().and_then(|params| params.str("protocolVersion"));
    let revision = REVISIONS.iter().find(|known| asked.as_deref() == Some(**known)).unwrap_or(&REVISIONS[0]);
    let version = env!("CARGO_PKG_VERSION");
    format!(
        r#"{{"protocolVersion":"{revision}","capabilities":{capabilities},"serverInfo":{{"name":{},"version":"{version}"}}}}"#,
        quote(me)
    )
}

/// Error for any other request to a participant with nothing to offer.
pub const NOT_SERVED: &[u8] =
    br#"{"code":-32601,"message":"this participant offers no tools and answers `initialize`, `ping` and `tools/list` alone: ask what sits in this room"}"#;

/// A participant with nothing to offer, and an answer for everybody.
#[derive(Debug)]
pub struct Bystander(Participant);

impl Bystander {
    /// Makes a participant before the welcome. No two may have the same seed.
    pub fn new(seed: u128) -> Self {
        Self(Participant::new(chain::Bounds { chains: 1, ..chain::Bounds::default() }, usize::MAX, seed))
    }

    /// Takes a message of the room; gives the answers.
    pub fn handle_message(&mut self, now: Now, bytes: &Bytes) -> Vec<Bytes> {
        self.0.handle_message(now, bytes);
        let events: Vec<Event> = std::iter::from_fn(|| banyan_model::Machine::poll_output(&mut self.0)).collect();
        let asked = events.into_iter().filter_map(|event| if let Event::Asked(request) = event { Some(request) } else { None });
        asked.filter_map(|request| respond(&mut self.0, now, &request)).map(|spoken| spoken.bytes).collect()
    }
}

/// Answers a request to a participant with nothing to offer; `None`: nobody to answer.
pub fn respond(participant: &mut Participant, now: Now, request: &Bytes) -> Option<Utterance> {
    let me = participant.me()?.as_str().to_owned();
    let envelope = Envelope::decode(request, usize::MAX).ok()?;
    let said = match answer(&envelope, &me, Offers::Nothing) {
        Some(result) => participant.respond(now, request, Answer::Result(result.as_bytes())),
        None => participant.respond(now, request, Answer::Error(NOT_SERVED)),
    };
    said.ok()
}

#[cfg(test)]
mod tests {
    use std::time::{Instant, SystemTime};

    use serde_json::{Value, json};

    use super::*;

    #[expect(clippy::disallowed_methods, reason = "a test has to begin at some time")]
    fn now() -> Now {
        Now { instant: Instant::now(), wall: SystemTime::UNIX_EPOCH }
    }

    fn message(from: &str, kind: &str, payload: &Value) -> Bytes {
        let whole = json!({"protocol": "mcpx/v0.1", "id": "m-1", "ts": "2026-01-01T00:00:00Z", "from": from, "to": ["gate"], "kind": kind, "payload": payload});
        Bytes::from(whole.to_string())
    }

    fn bystander() -> Bystander {
        let mut gate = Bystander::new(7);
        let may = json!(["mcp/response:*"]);
        let welcome = json!({"you": {"id": "gate", "capabilities": may}, "participants": [{"id": "ann", "capabilities": ["mcp/*"]}]});
        assert!(gate.handle_message(now(), &message("system:gateway", "system/welcome", &welcome)).is_empty());
        gate
    }

    fn asked(method: &str, params: &Value) -> Value {
        let payload = json!({"jsonrpc": "2.0", "id": 3, "method": method, "params": params});
        let said = bystander().handle_message(now(), &message("ann", &format!("mcp/request:{method}"), &payload));
        assert_eq!(said.len(), 1, "{method}: {said:?}");
        serde_json::from_slice::<Value>(&said[0]).unwrap()["payload"].clone()
    }

    #[test]
    fn mx_21_who_offers_nothing_still_says_who_it_is() {
        for (wanted, given) in [("2025-03-26", "2025-03-26"), ("1999-01-01", "2025-11-25")] {
            let told =
                asked("initialize", &json!({"protocolVersion": wanted, "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}));
            assert_eq!((&told["id"], &told["result"]["protocolVersion"]), (&json!(3), &json!(given)));
            assert_eq!((&told["result"]["serverInfo"]["name"], &told["result"]["capabilities"]), (&json!("gate"), &json!({"tools": {}})));
        }
        assert_eq!((&asked("ping", &json!({}))["result"], &asked("tools/list", &json!({}))["result"]), (&json!({}), &json!({"tools": []})));
        assert_eq!(asked("tools/call", &json!({"name": "x"}))["error"]["code"], -32601);
    }

    #[test]
    fn mx_21_nobody_is_answered_who_asks_nothing() {
        let payload = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let said = bystander().handle_message(now(), &message("ann", "mcp/request:notifications/initialized", &payload));
        assert!(said.is_empty(), "{said:?}");
    }
}
