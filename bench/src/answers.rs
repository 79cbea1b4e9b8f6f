//! The prepared answers of the upstream, whatever they travel over.
//!
//! Both eras. Knows no sessions, and of errors only an unknown method.

use std::cell::OnceCell;

use bytes::{BufMut, Bytes, BytesMut};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Notifications in front of the result of `progress` and `busy`.
pub(crate) const NOTIFICATIONS: usize = 10;

/// The tools that are not there for their number only.
const NAMED: [&str; 7] = ["small", "medium", "large", "huge", "event", "progress", "busy"];

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: &'a str,
    #[serde(borrow)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    name: Option<&'a str>,
    #[serde(rename = "protocolVersion")]
    version: Option<&'a str>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<Meta<'a>>,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(borrow, rename = "progressToken")]
    token: Option<&'a RawValue>,
}

/// What is said to a message.
pub(crate) enum Said {
    /// It is not a message.
    Unreadable,
    /// It needs no answer.
    Nothing,
    /// One message.
    Whole { known: bool, message: Bytes },
    /// Several, of which the last one is the answer. `slowly`: some time apart.
    Events { messages: Vec<Bytes>, slowly: bool },
}

pub(crate) struct Answers {
    tools: String,
    small: String,
    medium: String,
    large: String,
    /// Made when it is asked for: most upstreams need no such piece.
    huge: OnceCell<String>,
}

impl Answers {
    /// Answers of a server with `tools` tools, or a few more.
    pub(crate) fn new(tools: usize) -> Self {
        Self { tools: list(tools), small: text(2), medium: text(4 << 10), large: text(64 << 10), huge: OnceCell::new() }
    }

    pub(crate) fn to(&self, body: &[u8]) -> Said {
        let Ok(message) = serde_json::from_slice::<Message<'_>>(body) else { return Said::Unreadable };
        let Some(id) = message.id else { return Said::Nothing };
        let params = message.params.as_ref();
        let result = |value: &str| Said::Whole { known: true, message: whole(id.get(), "result", value) };
        match message.method {
            "initialize" => result(&initialize(params.and_then(|p| p.version).unwrap_or("2025-11-25"))),
            "ping" => result("{}"),
            "server/discover" => result(DISCOVER),
            "tools/list" => result(&self.tools),
            "tools/call" => match params.and_then(|p| p.name) {
                Some("medium") => result(&self.medium),
                Some("large") => result(&self.large),
                Some("huge") => result(self.huge.get_or_init(|| text(50_000_000))),
                Some("event") => Said::Events { messages: vec![whole(id.get(), "result", &self.small)], slowly: false },
                Some(name @ ("progress" | "busy")) => {
                    let token = params.and_then(|p| p.meta.as_ref()).and_then(|m| m.token).map(RawValue::get);
                    Said::Events { messages: self.with_progress(id.get(), token), slowly: name == "busy" }
                }
                _ => result(&self.small),
            },
            _ => Said::Whole { known: false, message: whole(id.get(), "error", r#"{"code":-32601,"message":"Method not found"}"#) },
        }
    }

    fn with_progress(&self, id: &str, token: Option<&str>) -> Vec<Bytes> {
        let notifications = token.into_iter().flat_map(|token| (1..=NOTIFICATIONS).map(move |n| progress(token, n)));
        notifications.chain([whole(id, "result", &self.small)]).collect()
    }
}

const DISCOVER: &str =
    r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":3600000,"cacheScope":"public"}"#;

fn initialize(version: &str) -> String {
    format!(r#"{{"protocolVersion":"{version}","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"bench","version":"1"}}}}"#)
}

fn text(size: usize) -> String {
    format!(r#"{{"resultType":"complete","content":[{{"type":"text","text":"{}"}}]}}"#, "x".repeat(size))
}

fn progress(token: &str, n: usize) -> Bytes {
    let params = format!(r#"{{"progressToken":{token},"progress":{n},"total":{NOTIFICATIONS}}}"#);
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#).into()
}

fn list(count: usize) -> String {
    let named = NAMED.map(str::to_owned).into_iter();
    let all = named.chain((0..).map(|i| format!("tool_{i:05}")));
    list_of(&all.take(count.max(NAMED.len())).collect::<Vec<_>>())
}

/// The result of a `tools/list` of these.
pub(crate) fn list_of(names: &[String]) -> String {
    let entries: Vec<String> = names.iter().map(|name| tool(name)).collect();
    format!(r#"{{"resultType":"complete","ttlMs":3600000,"cacheScope":"public","tools":[{}]}}"#, entries.join(","))
}

fn tool(name: &str) -> String {
    let schema = r#"{"type":"object","properties":{"path":{"type":"string","description":"Where to look"},"depth":{"type":"integer"}}}"#;
    format!(r#"{{"name":"{name}","description":"Does what {name} does, as described at some length for a model","inputSchema":{schema}}}"#)
}

/// A response in one piece.
pub(crate) fn whole(id: &str, member: &str, value: &str) -> Bytes {
    let mut body = BytesMut::with_capacity(value.len() + id.len() + 48);
    for part in [r#"{"jsonrpc":"2.0","id":"#, id, r#",""#, member, r#"":"#, value, "}"] {
        body.put_slice(part.as_bytes());
    }
    body.freeze()
}
