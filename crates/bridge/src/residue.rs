//! Residue: members known to a single binding, kept byte for byte and put back in place. Knows no codec.

use crate::binding::BindingId;
use crate::error::BridgeError;
use crate::message::{Residue, ResiduePlace};
use crate::raw::{ObjectWriter, RawMember, array};
use crate::reader::RawObject;
use crate::shape;

/// Member of every free map for fields without a place in a binding.
pub const EXTENSION_KEY: &str = "io.banyan/aepb";

/// A binding, a place and the name of the place in the extension, and the members read there by a codec. No residue may hold any of these.
type PlaceRow = (BindingId, ResiduePlace, &'static str, &'static [&'static str]);

const PLACES: &[PlaceRow] = &[
    (BindingId::A2a, ResiduePlace::Envelope, "envelope", &["jsonrpc", "id", "method", "params", "result", "error"]),
    (BindingId::A2a, ResiduePlace::Params, "params", &["message", "configuration", "metadata"]),
    (BindingId::A2a, ResiduePlace::Cancel, "cancel", &["id", "metadata"]),
    (
        BindingId::A2a,
        ResiduePlace::Configuration,
        "configuration",
        &["acceptedOutputModes", "taskPushNotificationConfig", "returnImmediately"],
    ),
    (BindingId::A2a, ResiduePlace::Push, "push", &["url", "token", "authentication"]),
    (BindingId::A2a, ResiduePlace::Message, "message", &["messageId", "contextId", "taskId", "role", "parts", "metadata"]),
    (BindingId::A2a, ResiduePlace::MessageMeta, "message_meta", &[EXTENSION_KEY]),
    (BindingId::A2a, ResiduePlace::Meta, "meta", &[EXTENSION_KEY]),
    (BindingId::A2a, ResiduePlace::Result, "result", &["task", "message", "statusUpdate", "artifactUpdate"]),
    (BindingId::A2a, ResiduePlace::Task, "task", &["id", "contextId", "status", "artifacts", "metadata"]),
    (BindingId::A2a, ResiduePlace::Status, "status", &["state", "message"]),
    (BindingId::A2a, ResiduePlace::StatusMessage, "status_message", &["messageId", "role", "parts"]),
    (BindingId::A2a, ResiduePlace::Update, "update", &["taskId", "contextId", "status", "artifact", "metadata"]),
    (BindingId::A2a, ResiduePlace::Error, "error", &["code", "message"]),
    (BindingId::A2a, ResiduePlace::Part, "part", &["text", "raw", "url", "data", "filename", "mediaType", "metadata"]),
    (BindingId::A2a, ResiduePlace::PartMeta, "part_meta", &[EXTENSION_KEY]),
    (BindingId::Mcp, ResiduePlace::Envelope, "envelope", &["jsonrpc", "id", "method", "params", "result", "error"]),
    (BindingId::Mcp, ResiduePlace::Params, "params", &["name", "arguments", "_meta"]),
    (BindingId::Mcp, ResiduePlace::Update, "update", &["progressToken", "progress", "total", "message", "_meta"]),
    (BindingId::Mcp, ResiduePlace::Cancel, "cancel", &["requestId", "reason", "taskId", "_meta"]),
    (BindingId::Mcp, ResiduePlace::Probe, "probe", &["_meta"]),
    (BindingId::Mcp, ResiduePlace::Meta, "meta", &[EXTENSION_KEY, "progressToken"]),
    (BindingId::Mcp, ResiduePlace::Result, "result", &["content", "structuredContent", "isError", "resultType", "_meta"]),
    (BindingId::Mcp, ResiduePlace::Error, "error", &["code", "message"]),
    (BindingId::Mcp, ResiduePlace::Part, "part", &["type", "text", "data", "mimeType", "uri", "name", "resource", "_meta"]),
    (BindingId::Mcp, ResiduePlace::PartMeta, "part_meta", &[EXTENSION_KEY]),
    (BindingId::Mcp, ResiduePlace::Resource, "resource", &["text", "blob", "mimeType"]),
    (
        BindingId::Ainp,
        ResiduePlace::Envelope,
        "envelope",
        &["version", "msg_type", "id", "timestamp", "ttl", "trace_id", "from_did", "to_did", "to_query", "attestations", "payload", "sig"],
    ),
    (BindingId::Ainp, ResiduePlace::Attestations, "attestations", &[]),
    (BindingId::Ainp, ResiduePlace::Payload, "payload", &["@type", "semantics", EXTENSION_KEY]),
    (BindingId::Ainp, ResiduePlace::Semantics, "semantics", &["service_type", "details"]),
    (BindingId::Ainp, ResiduePlace::Result, "result", &["intent_id", "status", "result", EXTENSION_KEY]),
    (BindingId::Ainp, ResiduePlace::Error, "error", &["intent_id", "error_code", "error_message", "retry_after_ms", EXTENSION_KEY]),
    (BindingId::Uacp, ResiduePlace::Envelope, "envelope", &[]),
    (BindingId::Uacp, ResiduePlace::Result, "result", &[]),
    (BindingId::Uacp, ResiduePlace::Options, "options", &[]),
];

/// Beginning of the keys in `_meta` of MCP for a single connection.
pub(crate) const CONNECTION_PREFIX: &str = "io.modelcontextprotocol/";

fn row(binding: BindingId, place: ResiduePlace) -> Option<&'static PlaceRow> {
    PLACES.iter().find(|(of, at, ..)| (*of, *at) == (binding, place))
}

/// The members of a place read by a codec.
pub(crate) fn known(binding: BindingId, place: ResiduePlace) -> &'static [&'static str] {
    row(binding, place).map_or(&[], |(.., known)| known)
}

/// Keeps the members of an object unknown to a codec.
pub(crate) fn keep<'a>(into: &mut Vec<Residue<'a>>, binding: BindingId, place: ResiduePlace, object: &RawObject<'a>) {
    let members = object.rest(known(binding, place));
    if !members.is_empty() {
        into.push(Residue { binding, place, members });
    }
}

/// The residue of a place.
pub(crate) fn at<'r, 'a>(residue: &'r [Residue<'a>], binding: BindingId, place: ResiduePlace) -> &'r [RawMember<'a>] {
    residue.iter().find(|found| (found.binding, found.place) == (binding, place)).map_or(&[], |found| &found.members)
}

/// Objects of a wire form whose residue a codec writes and reads in their place.
pub(crate) type OwnPlaces<'p> = (BindingId, &'p [ResiduePlace]);

fn is_own(own: OwnPlaces<'_>, binding: BindingId, place: ResiduePlace) -> bool {
    own.0 == binding && own.1.contains(&place)
}

/// Writes the residue without a place in the wire form; `None`: nothing.
pub(crate) fn write(residue: &[Residue<'_>], own: OwnPlaces<'_>) -> Option<Vec<u8>> {
    let foreign: Vec<Vec<u8>> = residue.iter().filter(|found| !is_own(own, found.binding, found.place)).map(write_one).collect();
    (!foreign.is_empty()).then(|| array(foreign))
}

fn write_one(found: &Residue<'_>) -> Vec<u8> {
    let name = row(found.binding, found.place).map_or("", |(_, _, name, _)| name);
    let mut members = ObjectWriter::new();
    members.members(&found.members);
    let mut out = ObjectWriter::new();
    out.raw("binding", json::quote(found.binding.id()).as_bytes());
    out.raw("at", json::quote(name).as_bytes());
    out.raw("members", &members.finish());
    out.finish()
}

/// Reads residue from an extension, and refuses members known to a codec.
pub(crate) fn read<'a>(into: &mut Vec<Residue<'a>>, elements: Vec<&'a [u8]>, own: OwnPlaces<'_>) -> Result<(), BridgeError> {
    const AT: &str = "extension.residue";
    if elements.len() > PLACES.len() {
        return Err(BridgeError::TooLarge);
    }
    for element in elements {
        let found = RawObject::read(element, AT)?;
        let (binding, name) = (found.needed("binding", "no binding is named")?, found.needed("at", "no place is named")?);
        let mut rows = PLACES.iter().filter(|(binding, place, ..)| !is_own(own, *binding, *place));
        let row = rows.find(|(of, _, at, _)| of.id() == binding.text() && *at == name.text());
        let Some((binding, place, _, known)) = row else { return Err(BridgeError::malformed(AT, "a place is unknown")) };
        let held = found.object("members", AT)?.ok_or(BridgeError::malformed(AT, "no members are given"))?;
        let members = held.rest(&[]);
        let is_connections = |key: &str| *binding == BindingId::Mcp && *place == ResiduePlace::Meta && key.starts_with(CONNECTION_PREFIX);
        let is_known = members.iter().any(|member| known.contains(&member.key()) || is_connections(member.key()));
        let is_shaped = shape::is_shaped(*binding, *place, &members);
        let is_twice = into.iter().any(|other| (other.binding, other.place) == (*binding, *place));
        if is_known || is_twice || !is_shaped || members.is_empty() {
            return Err(BridgeError::malformed(AT, "residue may hold no member that its binding reads, and no place twice"));
        }
        into.push(Residue { binding: *binding, place: *place, members });
    }
    Ok(())
}
