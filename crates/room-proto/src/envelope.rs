//! A message of a room, read as far as a decision needs. Bytes are passed on as received, and payloads stay unread (MCPx v0.1, 3 and 4.2).
//!
//! Reading is strict where two readers could differ: no duplicate member in the outermost object, whatever the spelling of its name, and no
//! half characters in decisive members. Unknown members stay.

pub(crate) mod legible;

use std::borrow::Cow;

use banyan_model::Timestamp;
use json::{Duplicates, Members};

use crate::kind::Kind;
use crate::refusal::Refusal;

/// Version spoken.
pub const PROTOCOL: &str = "mcpx/v0.1";

/// Longest id of an envelope or a participant, in bytes.
pub(crate) const MAX_ID: usize = 256;
/// Longest kind, in bytes. A context may be a URI.
pub(crate) const MAX_KIND: usize = 4096;
/// Most addressees of an envelope.
const MAX_TO: usize = 1000;

/// An envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope<'a> {
    pub id: Cow<'a, str>,
    /// The alleged sender. The room compares the connection.
    pub from: Cow<'a, str>,
    /// Addressees; empty: everybody.
    pub to: Vec<Cow<'a, str>>,
    /// Message answered or fulfilled.
    pub correlation_id: Option<Cow<'a, str>>,
    /// The raw payload, an object.
    pub payload: &'a [u8],
    kind: Cow<'a, str>,
}

/// A text refused as an envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedEnvelope {
    pub why: Refusal,
    /// Id of the envelope, where legible.
    pub id: Option<String>,
}

impl<'a> Envelope<'a> {
    /// Reads a message of at most `most` bytes.
    ///
    /// # Errors
    /// The fault, with the id of the envelope where legal.
    pub fn decode(text: &'a [u8], most: usize) -> Result<Self, RefusedEnvelope> {
        let unread = |why| RefusedEnvelope { why, id: legible::id(text) };
        if text.len() > most {
            return Err(unread(Refusal::TooLarge { most, size: text.len() }));
        }
        let members = Members::parse(text, Duplicates::RefuseTop).map_err(|error| unread(Refusal::NotJson(error)))?;
        let id = required(&members, "id", MAX_ID);
        Self::read(&members, id.clone()).map_err(|why| RefusedEnvelope { why, id: id.ok().map(Cow::into_owned) })
    }

    fn read(members: &Members<'a>, id: Result<Cow<'a, str>, Refusal>) -> Result<Self, Refusal> {
        // Another protocol has other members: nothing of them is complained about.
        let protocol = required(members, "protocol", MAX_KIND)?;
        if protocol != PROTOCOL {
            return Err(Refusal::Protocol { given: protocol.chars().take(40).collect(), wanted: PROTOCOL });
        }
        let (id, from) = (id?, required(members, "from", MAX_ID)?);
        let kind = required(members, "kind", MAX_KIND)?;
        let correlation_id = members.get("correlation_id").map(|raw| text(raw, "correlation_id", MAX_ID)).transpose()?;
        check_kind(Kind::new(&kind), correlation_id.is_some())?;
        if let Some(raw) = members.get("ts")
            && !Timestamp::is_legal(&text(raw, "ts", MAX_ID)?)
        {
            return Err(Refusal::Invalid { member: "ts", why: "must be a time of RFC 3339, such as \"2025-08-26T14:00:00Z\"" });
        }
        let payload = members.get("payload").ok_or(missing("payload", "is missing: it is an object, `{}` if there is nothing to say"))?;
        if !payload.starts_with(b"{") {
            return Err(Refusal::Invalid { member: "payload", why: "must be an object" });
        }
        Ok(Self { id, from, to: to(members)?, correlation_id, payload, kind })
    }

    /// Gives the kind.
    pub fn kind(&self) -> Kind<'_> {
        Kind::new(&self.kind)
    }

    /// Tells whether the envelope is for everybody (6.3).
    pub fn is_broadcast(&self) -> bool {
        self.to.is_empty()
    }
}

/// Checks the members required by MCP's three classes (3, 3.1.2, 3.2.1).
fn check_kind(kind: Kind<'_>, refers: bool) -> Result<(), Refusal> {
    let class = kind.class();
    if !matches!(class, "mcp/proposal" | "mcp/request" | "mcp/response") {
        return Ok(());
    }
    if kind.method().is_none_or(str::is_empty) {
        return Err(Refusal::Invalid {
            member: "kind",
            why: "names no MCP method: write one behind the colon, as in `mcp/request:tools/call`",
        });
    }
    match (class, refers) {
        ("mcp/response", false) => Err(missing("correlation_id", "is missing: a response names the `id` of the request that it answers")),
        ("mcp/proposal", true) => Err(Refusal::Invalid {
            member: "correlation_id",
            why: "must not stand in a proposal, which refers to nothing: leave it out, or send a request to fulfil one",
        }),
        _ => Ok(()),
    }
}

fn to<'a>(members: &Members<'a>) -> Result<Vec<Cow<'a, str>>, Refusal> {
    let Some(raw) = members.get("to") else { return Ok(Vec::new()) };
    let wrong = |why| Refusal::Invalid { member: "to", why };
    let list = json::elements(raw).ok_or(wrong("must be a list of participant ids: leave it out to send to everybody"))?;
    if list.len() > MAX_TO {
        return Err(wrong("names too many participants: leave it out to send to everybody"));
    }
    list.into_iter().map(|raw| text(raw, "to", MAX_ID)).collect()
}

fn missing(member: &'static str, why: &'static str) -> Refusal {
    Refusal::Invalid { member, why }
}

/// Reads a required text.
pub(crate) fn required<'a>(members: &Members<'a>, member: &'static str, most: usize) -> Result<Cow<'a, str>, Refusal> {
    let raw = members.get(member).ok_or(missing(member, "is missing"))?;
    text(raw, member, most)
}

/// Reads a text that no two readers read differently.
pub(crate) fn text<'a>(raw: &'a [u8], member: &'static str, most: usize) -> Result<Cow<'a, str>, Refusal> {
    let wrong = |why| Refusal::Invalid { member, why };
    let text = json::as_str(raw).ok_or(wrong("must be a string; leave out what there is none of"))?;
    if text.is_empty() {
        return Err(wrong("is empty"));
    }
    if text.len() > most {
        return Err(wrong("is too long: an id has at most 256 bytes, a kind 4,096"));
    }
    // Half a character, which only an escape can spell, is read as this one, by some.
    let replaced = |text: &str| text.matches(char::REPLACEMENT_CHARACTER).count();
    let is_half = matches!(&text, Cow::Owned(text) if replaced(text) > std::str::from_utf8(raw).map_or(0, replaced));
    if is_half || text.contains(char::is_control) {
        return Err(wrong("holds a control character or half a character: leave it out"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
