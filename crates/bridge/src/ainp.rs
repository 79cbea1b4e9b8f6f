//! The codec of `ainp-v1`: envelopes of AINP 0.1 in JSON, in the lite form. Reads no discovery and no negotiation, and checks no signature.
//!
//! Local profile of AEPB: tokens are attestations that begin with `ect:`, and the extension is a member of the payload.

mod answer;
mod intent;
mod seal;

use std::borrow::Cow;

pub use seal::{EnvelopeKey, EnvelopeSeal, did_of_key, key_of_did, seal, seal_of};

use crate::binding::BindingId;
use crate::carried::{self, LossReport, Restoring, fatal};
use crate::error::BridgeError;
use crate::field::CanonicalField as Field;
use crate::hex;
use crate::loss::Severity;
use crate::message::{CanonicalMessage, EnvelopeFacts, Hop, MessageKind, Residue, ResiduePlace};
use crate::passage::{IncomingMessage, OutgoingText};
use crate::raw::{ObjectWriter, QuotedText, RawMember, array};
use crate::reader::RawObject;
use crate::residue;
use crate::shape::{self, OTHERS, SCHEMA, TOKEN};

const AINP: BindingId = BindingId::Ainp;
/// Longest payload, in bytes.
const MOST_PAYLOAD: usize = 1 << 20;
const VERSION: &str = "0.1.0";
const AT: &str = "envelope";

/// Fields and objects of a wire form.
type AinpForm = (&'static [Field], &'static [ResiduePlace]);

/// Reads a message.
pub(crate) fn decode(text: &[u8]) -> Result<IncomingMessage<'_>, BridgeError> {
    let envelope = RawObject::whole(text)?;
    if envelope.needed("version", "an envelope has a version")?.text() != VERSION {
        return Err(BridgeError::NoPath(Cow::Borrowed("this version of AINP")));
    }
    let payload = envelope.object("payload", "payload")?.ok_or(BridgeError::malformed(AT, "an envelope has a payload"))?;
    if payload.text().len() > MOST_PAYLOAD {
        return Err(BridgeError::TooLarge);
    }
    let found = Restoring::open(Some(&payload))?;
    let kind = envelope.needed("msg_type", "an envelope has a type")?;
    let (mut message, (native, places)) = match &*kind.text() {
        "INTENT" => intent::decode(&payload, found.as_ref())?,
        "RESULT" => answer::decode(&payload, found.as_ref())?,
        "ERROR" => answer::decode_error(&payload)?,
        _ => return Err(BridgeError::NoPath(Cow::Borrowed("this type of an AINP message"))),
    };
    let id = envelope.needed("id", "an envelope has an id")?;
    id.plain().and_then(|id| hex::read_uuid(&id)).ok_or(BridgeError::malformed("id", "an envelope has a UUID in lower case"))?;
    let is_made = found.as_ref().is_some_and(|found| found.is_made(Field::Id));
    message.id = Some(id.clone()).filter(|_| !is_made);
    message.conversation = envelope.string("trace_id")?;
    keep_rest(&mut message, &envelope)?;
    if let Some(found) = found {
        let native: Vec<Field> = native.iter().copied().filter(|field| is_native(*field, &message)).collect();
        found.restore(&mut message, &native, (AINP, places))?;
    }
    answer::settled(&message, &payload)?;
    carried::settle(&mut message)?;
    let asked =
        if message.kind == MessageKind::Request { id.clone() } else { payload.needed("intent_id", "an answer names its intent")? };
    let number = |key, why| {
        let number = |raw| std::str::from_utf8(raw).ok().and_then(|digits| digits.parse().ok()).ok_or(BridgeError::malformed(AT, why));
        envelope.get(key).map(number).transpose()
    };
    let facts = EnvelopeFacts {
        id: Some(id),
        from: Some(envelope.needed("from_did", "an envelope has a sender")?),
        to: envelope.string("to_did")?,
        time: number("timestamp", "the time is in whole milliseconds")?.ok_or(BridgeError::malformed(AT, "an envelope has a time"))?,
        lifetime: number("ttl", "the lifetime is in whole milliseconds")?,
    };
    Ok(IncomingMessage { message, hop: Hop { id: Some(Cow::Owned(asked.raw().to_vec())), envelope: facts, ..Hop::default() } })
}

/// Tells if a field of a form is in its place, and not in the extension.
fn is_native(field: Field, message: &CanonicalMessage<'_>) -> bool {
    (field != Field::Id || message.id.is_some())
        && (field != Field::Conversation || message.conversation.is_some())
        && (field != Field::Ects || !message.trail.ects.is_empty())
}

/// The fields of a form that a message has in their places.
fn native(message: &CanonicalMessage<'_>, of_form: &[Field]) -> Vec<Field> {
    of_form.iter().copied().filter(|field| *field != Field::Id || own_id(message).is_some()).collect()
}

/// The id of a message, if an envelope can have the id.
fn own_id<'m, 'a>(message: &'m CanonicalMessage<'a>) -> Option<&'m QuotedText<'a>> {
    message.id.as_ref().filter(|id| id.plain().is_some_and(|id| hex::read_uuid(&id).is_some()))
}

/// Keeps the members of an envelope without a meaning here, and takes the tokens from the attestations.
fn keep_rest<'a>(message: &mut CanonicalMessage<'a>, envelope: &RawObject<'a>) -> Result<(), BridgeError> {
    let mut others = Vec::new();
    for raw in envelope.array("attestations")?.unwrap_or_default() {
        match raw.strip_prefix(TOKEN) {
            Some(token) => message.trail.ects.push(QuotedText::from_inside(token)),
            None => others.push(raw),
        }
    }
    if !others.is_empty() {
        let members = vec![RawMember::new(OTHERS, &array(others))];
        message.residue.push(Residue { binding: AINP, place: ResiduePlace::Attestations, members });
    }
    let rest = envelope.rest(residue::known(AINP, ResiduePlace::Envelope));
    let members: Vec<_> = rest.into_iter().filter(|member| member.key() != "schema" || member.value() != SCHEMA).collect();
    if !members.is_empty() {
        message.residue.push(Residue { binding: AINP, place: ResiduePlace::Envelope, members });
    }
    Ok(())
}

/// Writes a message without a signature: see [`seal()`].
pub(crate) fn encode(message: &CanonicalMessage<'_>, hop: &Hop<'_>) -> Result<OutgoingText, BridgeError> {
    let mut report = LossReport::default();
    let mut out = ObjectWriter::new();
    let id = match own_id(message) {
        Some(id) => id,
        None => {
            report.make(Field::Id, Severity::Info, "an envelope has a UUID, and a new one is written");
            hop.envelope.id.as_ref().ok_or(BridgeError::Hop("id of an envelope"))?
        }
    };
    let (kind, payload) = match message.kind {
        MessageKind::Request => ("INTENT", intent::encode(message, &mut report)?),
        MessageKind::Response | MessageKind::Event => ("RESULT", answer::encode(message, &asked(hop)?, &mut report)),
        MessageKind::Failure => ("ERROR", answer::encode_error(message, &asked(hop)?, &mut report)?),
        MessageKind::Cancel => return Err(fatal(Field::Kind, "an intent of AINP cannot be cancelled")),
        MessageKind::Probe => return Err(fatal(Field::Kind, "AINP asks for no sign of life")),
    };
    if payload.len() > MOST_PAYLOAD {
        return Err(fatal(Field::Parts, "a payload of AINP holds 1 MiB"));
    }
    let facts = &hop.envelope;
    out.raw("version", json::quote(VERSION).as_bytes()).raw("msg_type", json::quote(kind).as_bytes()).text("id", Some(id));
    out.raw("timestamp", facts.time.to_string().as_bytes());
    if let Some(lifetime) = facts.lifetime {
        out.raw("ttl", lifetime.to_string().as_bytes());
    }
    out.text("trace_id", message.conversation.as_ref());
    out.text("from_did", Some(facts.from.as_ref().ok_or(BridgeError::Hop("sender of an envelope"))?));
    out.text("to_did", Some(facts.to.as_ref().ok_or(BridgeError::Hop("receiver of an envelope"))?));
    let own = residue::at(&message.residue, AINP, ResiduePlace::Envelope);
    if !own.iter().any(|member| member.key() == "schema") {
        out.raw("schema", SCHEMA);
    }
    out.members(own);
    write_attestations(message, &mut out);
    out.raw("payload", &payload);
    Ok(OutgoingText { text: out.finish(), losses: report.losses })
}

/// Writes the tokens and the other attestations.
fn write_attestations(message: &CanonicalMessage<'_>, out: &mut ObjectWriter) {
    let tokens = message.trail.ects.iter().map(|token| [TOKEN, token.inside()].concat());
    let others = residue::at(&message.residue, AINP, ResiduePlace::Attestations).first().and_then(shape::others);
    let all: Vec<Vec<u8>> = tokens.chain(others.unwrap_or_default().into_iter().map(<[u8]>::to_vec)).collect();
    if !all.is_empty() {
        out.raw("attestations", &array(all));
    }
}

/// The raw id of the answered intent, as a text.
fn asked(hop: &Hop<'_>) -> Result<Vec<u8>, BridgeError> {
    let raw = hop.id.as_deref().ok_or(BridgeError::Hop("id"))?;
    Ok(if raw.starts_with(b"\"") { raw.to_vec() } else { json::quote(&String::from_utf8_lossy(raw)).into_bytes() })
}
