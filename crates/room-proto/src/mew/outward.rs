//! From MCPx to MEW. MEW peers believe payloads, so that payloads are compared with kinds before. Does not choose receivers.

use std::borrow::Cow;

use json::Members;

use super::memory::Memory;
use super::{ALL_IDS, MAX_IDS, Outward, PROPOSAL, PROTOCOL, REJECT, REQUEST, RESPONSE, SAME, WITHDRAW, capability, write};
use crate::envelope::{self, Envelope, MAX_ID};
use crate::kind::Kind;
use crate::participant::check;

/// Translates a message of the room.
pub(super) fn write(memory: &mut Memory, bytes: &[u8]) -> Outward {
    // What the room sends it has read, or written itself.
    let Ok(envelope) = Envelope::decode(bytes, usize::MAX) else { return Outward::Unknown };
    let Some(kind) = kind(envelope.kind()) else { return Outward::Unknown };
    if let Err(why) = check(&envelope) {
        return Outward::Held { from: envelope.from.into_owned(), why };
    }
    let about = envelope.kind().as_str().strip_prefix(kind).and_then(|rest| rest.strip_prefix(':'));
    if let Some(about) = about.filter(|_| matches!(kind, PROPOSAL | REQUEST)) {
        memory.keep(&envelope.from, &envelope.id, about, kind == PROPOSAL);
    }
    let members = Members::again(bytes);
    let ids = all(&members, &envelope).map_or_else(|| envelope.correlation_id.clone().map(|id| vec![id]), Some);
    let payload = kind.starts_with("system/").then(|| Cow::Owned(system(kind, envelope.payload)));
    let mut instead = vec![
        ("protocol", write::text(PROTOCOL)),
        ("kind", write::text(kind)),
        ("correlation_id", ids.and_then(|ids| write::texts(&ids))),
        (ALL_IDS, None),
    ];
    if let Some(payload) = payload {
        instead.push(("payload", Some(payload)));
    }
    Outward::Envelope(write::envelope(&members, &instead))
}

/// Finds the same kind in MEW.
fn kind(kind: Kind<'_>) -> Option<&'static str> {
    let whole = [&SAME[..], &["system/error", "system/presence", "system/welcome"]];
    let classes = [PROPOSAL, REJECT, REQUEST, RESPONSE, WITHDRAW];
    let same = whole.into_iter().flatten().copied().find(|same| *same == kind.as_str());
    same.or_else(|| classes.into_iter().find(|class| *class == kind.class()))
}

/// Reads the list of references, where there is more than one.
fn all<'a>(members: &Members<'a>, envelope: &Envelope<'a>) -> Option<Vec<Cow<'a, str>>> {
    let all = json::elements(members.get(ALL_IDS)?).filter(|all| all.len() <= MAX_IDS)?;
    let all: Vec<_> = all.into_iter().map(|raw| envelope::text(raw, ALL_IDS, MAX_ID)).collect::<Result<_, _>>().ok()?;
    envelope.correlation_id.as_ref().is_none_or(|id| all.contains(id)).then_some(all)
}

/// Translates the gateway's own payloads.
fn system(kind: &str, payload: &[u8]) -> Vec<u8> {
    let payload = Members::again(payload);
    let instead = match kind {
        "system/error" => vec![
            ("attempted_kind", payload.str("attempted_kind").and_then(|kind| write::text(Kind::new(&kind).class()))),
            ("your_capabilities", payload.get("your_capabilities").map(|list| Cow::Owned(objects(list)))),
        ],
        "system/presence" => vec![("participant", payload.get("participant").map(|one| Cow::Owned(participant(one))))],
        _ => {
            let others = payload.get("participants").and_then(json::elements).unwrap_or_default();
            let others: Vec<Vec<u8>> = others.into_iter().map(participant).collect();
            vec![
                ("you", payload.get("you").map(|one| Cow::Owned(participant(one)))),
                ("participants", Some(Cow::Owned(listed(&others)))),
                ("active_streams", Some(Cow::Borrowed(&b"[]"[..]))),
            ]
        }
    };
    write::envelope(&payload, &instead).to_vec()
}

fn participant(raw: &[u8]) -> Vec<u8> {
    let members = Members::again(raw);
    let capabilities = members.get("capabilities").map(|list| Cow::Owned(objects(list)));
    write::envelope(&members, &[("capabilities", capabilities)]).to_vec()
}

/// Translates a list of patterns into a list of objects.
fn objects(list: &[u8]) -> Vec<u8> {
    let patterns = json::elements(list).unwrap_or_default();
    let objects = patterns.into_iter().filter_map(json::as_str).map(|pattern| capability::object_of(&pattern).into_bytes());
    listed(&objects.collect::<Vec<_>>())
}

fn listed(all: &[Vec<u8>]) -> Vec<u8> {
    let mut written = vec![b'['];
    written.extend_from_slice(&all.join(&b','));
    written.push(b']');
    written
}
