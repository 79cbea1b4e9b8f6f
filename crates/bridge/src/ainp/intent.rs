//! Intents of AINP: calls of services, and requests of other types. Reads no envelope.

use std::borrow::Cow;

use super::{AINP, AinpForm};
use crate::carried::{self, LossReport, Restoring, fatal};
use crate::error::BridgeError;
use crate::field::CanonicalField as Field;
use crate::loss::Severity;
use crate::message::{CanonicalMessage, CanonicalPart, MessageKind, PartContent, Residue, ResiduePlace};
use crate::part;
use crate::raw::{ObjectWriter, QuotedText, RawMember, array};
use crate::reader::RawObject;
use crate::residue::{self, EXTENSION_KEY};
use crate::shape::{CONTEXT, EMBEDDING, VERSION};

const AT: &str = "payload.semantics";
/// Type of a call of a service by its name.
const SERVICE: &str = "RequestService";
/// Type of a text.
const NOTE: &str = "FreeformNote";
/// Types of the binding besides calls of services.
const TYPES: [&str; 5] = ["RequestMeeting", "ApprovalRequest", "SubmitInfo", "Invoice", NOTE];

const OF_INTENT: &[Field] = &[Field::Id, Field::Conversation, Field::Ects, Field::Op, Field::Parts];
const PLACES: [ResiduePlace; 4] = [ResiduePlace::Envelope, ResiduePlace::Attestations, ResiduePlace::Payload, ResiduePlace::Semantics];

/// Fields and objects of an intent.
fn form(is_service: bool) -> AinpForm {
    (OF_INTENT, &PLACES[..if is_service { 4 } else { 3 }])
}

/// Reads an intent.
pub(super) fn decode<'a>(payload: &RawObject<'a>, found: Option<&Restoring<'a>>) -> Result<(CanonicalMessage<'a>, AinpForm), BridgeError> {
    let mut message = CanonicalMessage::new(MessageKind::Request);
    let kind = payload.needed("@type", "an intent has a type")?;
    let defaults = [("@context", CONTEXT), ("version", VERSION), ("embedding", EMBEDDING)];
    let is_usual = payload.value("@context").is_none_or(|raw| raw == CONTEXT);
    let is_default = |member: &RawMember<'_>| defaults.iter().any(|(key, value)| member.key() == *key && member.value() == *value);
    let rest = payload.rest(residue::known(AINP, ResiduePlace::Payload));
    let members: Vec<_> = rest.into_iter().filter(|member| !is_default(member)).collect();
    if !members.is_empty() {
        message.residue.push(Residue { binding: AINP, place: ResiduePlace::Payload, members });
    }
    let is_made = |field| found.is_some_and(|found| found.is_made(field));
    let is_service = is_usual && kind.text() == SERVICE;
    if is_service {
        let semantics = payload.object("semantics", AT)?.ok_or(BridgeError::malformed(AT, "the semantics of a call are expected"))?;
        message.op = Some(semantics.needed("service_type", "a call names a service")?);
        residue::keep(&mut message.residue, AINP, ResiduePlace::Semantics, &semantics);
        message.parts = details(semantics.value("details"), is_made(Field::Parts))?;
    } else {
        message.parts = meaning(payload, kind.text() == NOTE, is_made(Field::Parts))?;
        message.op = Some(kind);
    }
    if is_made(Field::Op) {
        let is_note = message.op.as_ref().is_some_and(|op| op.text() == NOTE);
        let is_text = matches!(&message.parts[..], [CanonicalPart { content: PartContent::Text(_), .. }]);
        if !is_note || !is_text {
            return Err(BridgeError::malformed("extension", "a field is named as made up that is not"));
        }
        message.op = None;
    }
    Ok((message, form(is_service)))
}

/// Reads the details of a call.
fn details(raw: Option<&[u8]>, is_wrapped: bool) -> Result<Vec<CanonicalPart<'_>>, BridgeError> {
    match raw {
        None => Ok(Vec::new()),
        Some(raw) if is_wrapped => unwrap(raw),
        Some(raw) => Ok(vec![CanonicalPart::new(PartContent::Json(Cow::Borrowed(raw)))]),
    }
}

/// Reads the semantics of other types.
fn meaning<'a>(payload: &RawObject<'a>, is_note: bool, is_wrapped: bool) -> Result<Vec<CanonicalPart<'a>>, BridgeError> {
    let Some(semantics) = payload.object("semantics", AT)? else { return Ok(Vec::new()) };
    if is_wrapped {
        return unwrap(semantics.text());
    }
    if is_note && let Some(body) = body(&semantics) {
        return Ok(vec![CanonicalPart::new(PartContent::Text(body))]);
    }
    Ok(vec![CanonicalPart::new(PartContent::Json(Cow::Borrowed(semantics.text())))])
}

/// The text of a note of nothing else.
fn body<'a>(semantics: &RawObject<'a>) -> Option<QuotedText<'a>> {
    semantics.string("body").ok().flatten().filter(|_| semantics.rest(&["body"]).is_empty())
}

/// Reads a list of parts in the place of a value.
pub(super) fn unwrap(raw: &[u8]) -> Result<Vec<CanonicalPart<'_>>, BridgeError> {
    let object = RawObject::read(raw, "payload")?;
    let parts = object.array("parts")?.filter(|_| object.rest(&["parts"]).is_empty());
    let parts = parts.ok_or(BridgeError::malformed("payload", "parts and nothing else are expected"))?;
    parts.into_iter().map(part::read).collect()
}

/// Writes parts as a list in the place of a value.
pub(super) fn wrap(parts: &[CanonicalPart<'_>], report: &mut LossReport) -> Vec<u8> {
    report.make(Field::Parts, Severity::Warn, "a list of the parts of the message stands in the place of a value");
    let mut out = ObjectWriter::new();
    out.raw("parts", &array(parts.iter().map(|one| part::write(one, false))));
    out.finish()
}

/// Writes an intent.
pub(super) fn encode(message: &CanonicalMessage<'_>, report: &mut LossReport) -> Result<Vec<u8>, BridgeError> {
    let own = residue::at(&message.residue, AINP, ResiduePlace::Payload);
    let has = |key: &str| own.iter().any(|member| member.key() == key);
    let mut out = ObjectWriter::new();
    if !has("@context") {
        out.raw("@context", CONTEXT);
    }
    let named = message.op.as_ref().map(QuotedText::text);
    let is_service = !has("@context") && named.as_ref().is_some_and(|name| !TYPES.contains(&&**name));
    match &message.op {
        Some(_) if is_service => out.raw("@type", json::quote(SERVICE).as_bytes()),
        Some(name) => out.raw("@type", name.raw()),
        None => {
            let [CanonicalPart { content: PartContent::Text(_), .. }] = &message.parts[..] else {
                return Err(fatal(Field::Op, "an intent has a type, and only a text is a note"));
            };
            report.make(Field::Op, Severity::Info, "a text is a note");
            out.raw("@type", json::quote(NOTE).as_bytes())
        }
    };
    if !has("version") {
        out.raw("version", VERSION);
    }
    if !has("embedding") {
        report.note(
            Field::Embedding,
            crate::loss::LossFate::Synthesized,
            Severity::Warn,
            "an intent has a vector of its meaning, and no model made one",
        );
        out.raw("embedding", EMBEDDING);
    }
    let semantics = if is_service { call(message, report) } else { write_meaning(message, report) };
    if let Some(semantics) = semantics {
        out.raw("semantics", &semantics);
    }
    let (native, places) = form(is_service);
    out.members(own);
    out.nested(EXTENSION_KEY, carried::write(message, &super::native(message, native), (AINP, places), report));
    Ok(out.finish())
}

/// Writes the semantics of a call.
fn call(message: &CanonicalMessage<'_>, report: &mut LossReport) -> Option<Vec<u8>> {
    let mut out = ObjectWriter::new();
    out.text("service_type", message.op.as_ref());
    match &message.parts[..] {
        [] => {}
        [CanonicalPart { content: PartContent::Json(raw), .. }] if message.parts[0].is_plain() => {
            out.raw("details", raw);
        }
        parts => {
            out.raw("details", &wrap(parts, report));
        }
    }
    out.members(residue::at(&message.residue, AINP, ResiduePlace::Semantics));
    Some(out.finish())
}

/// Writes the semantics of other types.
fn write_meaning(message: &CanonicalMessage<'_>, report: &mut LossReport) -> Option<Vec<u8>> {
    let is_note = message.op.as_ref().is_none_or(|op| op.text() == NOTE);
    let is_body = |raw: &[u8]| RawObject::read(raw, AT).is_ok_and(|object| body(&object).is_some());
    match &message.parts[..] {
        [] => None,
        [part] if part.is_plain() => match &part.content {
            PartContent::Text(text) if is_note => {
                let mut out = ObjectWriter::new();
                out.text("body", Some(text));
                Some(out.finish())
            }
            PartContent::Json(raw) if raw.starts_with(b"{") && !(is_note && is_body(raw)) => Some(raw.to_vec()),
            PartContent::Text(_) | PartContent::Bytes(_) | PartContent::Uri(_) | PartContent::Json(_) | PartContent::Native(..) => {
                Some(wrap(&message.parts, report))
            }
        },
        parts => Some(wrap(parts, report)),
    }
}
