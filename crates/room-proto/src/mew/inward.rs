//! From MEW to MCPx. Missing parts of the MCPx kind come from the payload, or from the message referred to. Does not judge the message.

use std::borrow::Cow;

use json::{Duplicates, Members};

use super::memory::Memory;
use super::write::{self, Instead};
use super::{ADMINS, ALL_IDS, Inward, MAX_IDS, PROPOSAL, READ, REJECT, REQUEST, RESPONSE, STREAMS, WITHDRAW, invalid, join};
use crate::envelope::{self, MAX_ID, MAX_KIND, RefusedEnvelope, legible};
use crate::participant::named;
use crate::refusal::Refusal;

/// Reads a message of a peer.
pub(super) fn read(memory: &Memory, bytes: &[u8], most: usize) -> Result<Inward, RefusedEnvelope> {
    let unread = |why| RefusedEnvelope { why, id: legible::id(bytes) };
    if bytes.len() > most {
        return Err(unread(Refusal::TooLarge { most, size: bytes.len() }));
    }
    if bytes.starts_with(b"#") {
        let why = "is not written as `#ID#DATA` here: send the kind `stream/data`, with those whom it is for in `to`";
        return Err(unread(invalid("the data of a stream", why)));
    }
    let members = Members::parse(bytes, Duplicates::RefuseTop).map_err(|error| unread(Refusal::NotJson(error)))?;
    if join::is(&members) {
        return Ok(Inward::Join);
    }
    let id = envelope::required(&members, "id", MAX_ID).map(Cow::into_owned).ok();
    translate(memory, &members).map_err(|why| RefusedEnvelope { why, id })
}

fn translate(memory: &Memory, members: &Members<'_>) -> Result<Inward, Refusal> {
    let protocol = envelope::required(members, "protocol", MAX_KIND)?;
    if !READ.contains(&&*protocol) {
        return Err(Refusal::Protocol { given: protocol.chars().take(40).collect(), wanted: super::PROTOCOL });
    }
    if members.has(ALL_IDS) {
        return Err(invalid(ALL_IDS, "is no member of MEW: put all ids into `correlation_id`"));
    }
    let kind = envelope::required(members, "kind", MAX_KIND)?;
    if kind.contains(':') {
        return Err(invalid("kind", "holds a colon: in MEW the method stands in the payload alone"));
    }
    let ids = ids(members)?;
    let said = MewMessage { memory, members, kind, ids };
    let (kind, refers) = said.kind()?;
    let payload = said.payload()?;
    let mut instead: Vec<(&str, Option<Cow<'_, [u8]>>)> =
        vec![("protocol", write::text(envelope::PROTOCOL)), ("kind", write::text(&kind)), ("correlation_id", refers.and_then(write::text))];
    if said.ids.len() != usize::from(refers.is_some()) {
        instead.push((ALL_IDS, write::texts(&said.ids)));
    }
    if let Some(payload) = payload {
        instead.push(("payload", Some(payload)));
    }
    let instead: &Instead<'_> = &instead;
    Ok(Inward::Envelope(write::envelope(members, instead)))
}

/// A message of MEW, with its references.
struct MewMessage<'a, 'b> {
    memory: &'b Memory,
    members: &'b Members<'a>,
    kind: Cow<'a, str>,
    ids: Vec<Cow<'a, str>>,
}

impl<'a> MewMessage<'a, '_> {
    /// Gives the kind of MCPx, and the one message referred to.
    fn kind(&self) -> Result<(String, Option<&str>), Refusal> {
        let first = self.ids.first().map(AsRef::as_ref);
        match &*self.kind {
            class @ (PROPOSAL | REQUEST) => {
                let about = self.about()?;
                let fulfils = self.memory.about(&self.ids, &[], true).map(|(id, _)| id);
                // A proposal refers to nothing in MCPx (3.2.1); what it follows is kept beside.
                let refers = if class == REQUEST { fulfils.or(first) } else { None };
                Ok((format!("{class}:{about}"), refers))
            }
            class @ (REJECT | RESPONSE | WITHDRAW) => {
                let is_proposal = class != RESPONSE;
                let found = self.memory.about(&self.ids, &self.to(), is_proposal);
                let (id, about) = found.ok_or_else(|| unknown(is_proposal))?;
                Ok((format!("{class}:{about}"), Some(id)))
            }
            kind if ADMINS.iter().any(|own| kind.starts_with(own)) => {
                Err(invalid("kind", "is for admins of this room, and they do it elsewhere: by POST /admin/participants/ID/capabilities"))
            }
            kind if STREAMS.contains(&kind) => Err(invalid(
                "kind",
                "is not for this gateway, which keeps no streams: send `stream/open` and `stream/data`, with those whom they are for in `to`",
            )),
            kind => Ok((kind.to_owned(), first)),
        }
    }

    /// Reads METHOD, or METHOD:CONTEXT, from the payload, which has to be legible in one way only: the permission to send depends on the
    /// result.
    fn about(&self) -> Result<String, Refusal> {
        let payload = self.members.get("payload").ok_or(invalid("payload", "is missing: it holds `method` and `params`"))?;
        let payload = Members::parse(payload, Duplicates::RefuseDeep).map_err(Refusal::NotJson)?;
        let wrong = invalid("payload", "has no `method`, or one that is none: write the MCP method there, such as \"tools/call\"");
        let method = payload.str("method").filter(|method| !method.is_empty() && !method.contains([':', '*'])).ok_or(wrong)?;
        let context = payload.object("params").and_then(|params| named(&method, &params));
        Ok(context.map_or_else(|| method.to_string(), |context| format!("{method}:{context}")))
    }

    /// Gives a new payload where MCPx needs another: some kinds need none in MEW, and a request for an answer has an id of JSON-RPC.
    fn payload(&self) -> Result<Option<Cow<'static, [u8]>>, Refusal> {
        let empty = || Some(Cow::Borrowed(&b"{}"[..]));
        let Some(payload) = self.members.get("payload") else {
            return Ok(if self.kind.starts_with("participant/") { empty() } else { None });
        };
        let asks = || Members::again(payload);
        let wants_answer =
            |payload: &Members<'_>| !payload.has("id") && payload.str("method").is_some_and(|method| !method.starts_with("notifications/"));
        if self.kind != REQUEST || !wants_answer(&asks()) {
            return Ok(None);
        }
        let id = envelope::required(self.members, "id", MAX_ID)?;
        let version = if asks().has("jsonrpc") { "" } else { "\"jsonrpc\":\"2.0\"," };
        let mut written = format!("{{{version}\"id\":{},", json::quote(&id)).into_bytes();
        written.extend_from_slice(payload.get(1..).unwrap_or_default());
        Ok(Some(Cow::Owned(written)))
    }

    fn to(&self) -> Vec<Cow<'a, str>> {
        let all = self.members.get("to").and_then(json::elements).unwrap_or_default();
        all.into_iter().filter_map(json::as_str).collect()
    }
}

/// Reads the references: a list, or a text for a list with a single id, as clients of MEW write.
fn ids<'a>(members: &Members<'a>) -> Result<Vec<Cow<'a, str>>, Refusal> {
    let Some(raw) = members.get("correlation_id") else { return Ok(Vec::new()) };
    if raw.starts_with(b"\"") {
        return Ok(vec![envelope::text(raw, "correlation_id", MAX_ID)?]);
    }
    let all = json::elements(raw).ok_or(invalid("correlation_id", "must be a list of ids: [\"ID\"], or one id as a text"))?;
    if all.len() > MAX_IDS {
        return Err(invalid("correlation_id", "names more than 100 messages: name fewer"));
    }
    all.into_iter().map(|raw| envelope::text(raw, "correlation_id", MAX_ID)).collect()
}

fn unknown(is_proposal: bool) -> Refusal {
    let why = if is_proposal {
        "names no proposal that was made here lately: put its `id` there"
    } else {
        "names no request that was made here lately: a response names the `id` of the request that it answers"
    };
    invalid("correlation_id", why)
}
