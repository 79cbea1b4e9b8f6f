//! The codec of `a2a-v1`: A2A 1.0 in its JSON-RPC binding. Reads neither cards nor the methods about stored tasks.

mod answer;

use std::borrow::Cow;

use crate::binding::BindingId;
use crate::carried::{self, LossReport, Restoring, fatal};
use crate::error::BridgeError;
use crate::field::CanonicalField as Field;
use crate::loss::Severity;
use crate::message::{CanonicalMessage, CanonicalPart, FailureClass, Hop, MessageKind, PartContent, ResiduePlace, WorkState};
use crate::part;
use crate::passage::{IncomingMessage, OutgoingText};
use crate::raw::{ObjectWriter, QuotedText, array};
use crate::reader::RawObject;
use crate::residue::{self, EXTENSION_KEY};
use crate::rpc::{self, CodeTable, RpcEnvelope};

const A2A: BindingId = BindingId::A2a;

/// Beginning of an id that is made up.
const MADE_ID: &str = "aepb-";

/// Codes of A2A 1.0, section 3.3.2, and of JSON-RPC.
const CODES: &CodeTable = &[
    (FailureClass::BadRequest, "-32602"),
    (FailureClass::BadRequest, "-32600"),
    (FailureClass::BadRequest, "-32700"),
    (FailureClass::NotFound, "-32001"),
    (FailureClass::NotFound, "-32007"),
    (FailureClass::Conflict, "-32002"),
    (FailureClass::Unsupported, "-32004"),
    (FailureClass::Unsupported, "-32003"),
    (FailureClass::Unsupported, "-32005"),
    (FailureClass::Unsupported, "-32008"),
    (FailureClass::Unsupported, "-32009"),
    (FailureClass::Unsupported, "-32601"),
    (FailureClass::Internal, "-32603"),
    (FailureClass::Internal, "-32006"),
];

/// Fields of a request with a place of their own.
const OF_REQUEST: &[Field] =
    &[Field::Id, Field::Conversation, Field::Task, Field::Stream, Field::Modes, Field::Push, Field::Immediate, Field::Parts];
const OF_CANCEL: &[Field] = &[Field::Task];
const PLACES_OF_CANCEL: &[ResiduePlace] = &[ResiduePlace::Envelope, ResiduePlace::Cancel, ResiduePlace::Meta];
const PLACES_OF_REQUEST: &[ResiduePlace] = &[
    ResiduePlace::Envelope,
    ResiduePlace::Params,
    ResiduePlace::Meta,
    ResiduePlace::Message,
    ResiduePlace::MessageMeta,
    ResiduePlace::Configuration,
    ResiduePlace::Push,
];

/// The objects of a request. The object of a callback stands last, and only beside a callback.
fn places_of_request(has_push: bool) -> &'static [ResiduePlace] {
    if has_push { PLACES_OF_REQUEST } else { PLACES_OF_REQUEST.split_last().map_or(&[], |(_, before)| before) }
}

/// Reads a message.
pub(crate) fn decode(text: &[u8]) -> Result<IncomingMessage<'_>, BridgeError> {
    let envelope = RpcEnvelope::read(text)?;
    let mut message = match (&envelope.method, &envelope.result, &envelope.error) {
        (Some(method), ..) => match &*method.text() {
            "SendMessage" => request(&envelope, false)?,
            "SendStreamingMessage" => request(&envelope, true)?,
            "CancelTask" => cancel(&envelope)?,
            _ => return Err(BridgeError::NoPath(Cow::Borrowed("this method of A2A"))),
        },
        (_, Some(result), _) => answer::decode(result)?,
        (_, _, Some(error)) => rpc::read_failure(error, A2A, CODES)?,
        _ => return Err(BridgeError::malformed("message", "a method, a result or an error is expected")),
    };
    rpc::keep_envelope(&mut message.residue, A2A, &envelope);
    carried::settle(&mut message)?;
    Ok(IncomingMessage { message, hop: envelope.hop() })
}

/// Writes a message.
pub(crate) fn encode(message: &CanonicalMessage<'_>, hop: &Hop<'_>) -> Result<OutgoingText, BridgeError> {
    let mut report = LossReport::default();
    let mut out = rpc::begin(hop)?;
    let (key, body) = match message.kind {
        MessageKind::Request => {
            let method = if message.wants.stream { "SendStreamingMessage" } else { "SendMessage" };
            out.raw("method", json::quote(method).as_bytes());
            ("params", write_request(message, hop, &mut report))
        }
        MessageKind::Cancel => {
            out.raw("method", b"\"CancelTask\"");
            ("params", write_cancel(message, &mut report)?)
        }
        MessageKind::Response => ("result", answer::write_response(message, hop, &mut report)?),
        MessageKind::Event => ("result", answer::write_event(message, hop, &mut report)?),
        MessageKind::Failure => {
            let text = rpc::write_failure(message, A2A, CODES, out, &mut report)?;
            return Ok(OutgoingText { text, losses: report.losses });
        }
        MessageKind::Probe => return Err(fatal(Field::Kind, "an agent of A2A is asked for its card, not for a sign of life")),
    };
    out.raw(key, &body).members(residue::at(&message.residue, A2A, ResiduePlace::Envelope));
    Ok(OutgoingText { text: out.finish(), losses: report.losses })
}

fn request<'a>(envelope: &RpcEnvelope<'a>, stream: bool) -> Result<CanonicalMessage<'a>, BridgeError> {
    let params = envelope.params.as_ref().ok_or(BridgeError::malformed("params", "an object is expected"))?;
    let said = params.object("message", "params.message")?.ok_or(BridgeError::malformed("params", "no message is given"))?;
    let mut message = CanonicalMessage::new(MessageKind::Request);
    message.wants.stream = stream;
    read_words(&mut message, &said, "ROLE_USER")?;
    message.id = Some(said.needed("messageId", "a message has an id")?);
    (message.conversation, message.task) = (said.string("contextId")?, said.string("taskId")?);
    residue::keep(&mut message.residue, A2A, ResiduePlace::Params, params);
    residue::keep(&mut message.residue, A2A, ResiduePlace::Message, &said);
    if let Some(map) = params.object("metadata", "params.metadata")? {
        if map.has(EXTENSION_KEY) {
            return Err(BridgeError::malformed("params.metadata", "the extension of a request stands in the metadata of its message"));
        }
        residue::keep(&mut message.residue, A2A, ResiduePlace::Meta, &map);
    }
    if let Some(wishes) = params.object("configuration", "params.configuration")? {
        read_wishes(&mut message, &wishes)?;
    }
    let places = places_of_request(message.wants.push.is_some());
    restore(&mut message, &said, ResiduePlace::MessageMeta, OF_REQUEST, places)?;
    Ok(message)
}

/// Reads role and parts of a message.
fn read_words<'a>(message: &mut CanonicalMessage<'a>, said: &RawObject<'a>, role: &str) -> Result<(), BridgeError> {
    if said.needed("role", "a message has a role")?.text() != role {
        return Err(BridgeError::malformed("message.role", "the role does not fit to the direction"));
    }
    let parts = said.array("parts")?.filter(|parts| !parts.is_empty());
    let parts = parts.ok_or(BridgeError::malformed("message.parts", "a message has parts"))?;
    for raw in parts {
        message.parts.push(part::read(raw)?);
    }
    Ok(())
}

fn read_wishes<'a>(message: &mut CanonicalMessage<'a>, wishes: &RawObject<'a>) -> Result<(), BridgeError> {
    message.wants.modes = wishes.array("acceptedOutputModes")?.and(wishes.get("acceptedOutputModes")).map(Cow::Borrowed);
    message.wants.immediate = wishes.flag("returnImmediately")?;
    residue::keep(&mut message.residue, A2A, ResiduePlace::Configuration, wishes);
    let Some(push) = wishes.object("taskPushNotificationConfig", "taskPushNotificationConfig")? else { return Ok(()) };
    message.wants.push = Some(push.needed("url", "a callback has an address")?);
    message.wants.push_secret = push.get("token").is_some() || push.get("authentication").is_some();
    residue::keep(&mut message.residue, A2A, ResiduePlace::Push, &push);
    Ok(())
}

/// Reads the free map of an object with the extension, and takes back made-up fields.
fn restore<'a>(
    message: &mut CanonicalMessage<'a>,
    holder: &RawObject<'a>,
    place: ResiduePlace,
    native: &[Field],
    places: &[ResiduePlace],
) -> Result<(), BridgeError> {
    let map = holder.object("metadata", "metadata")?;
    if let Some(map) = &map {
        residue::keep(&mut message.residue, A2A, place, map);
    }
    let Some(found) = Restoring::open(map.as_ref())? else { return Ok(()) };
    undo(message, &found)?;
    found.restore(message, native, (A2A, places))
}

/// Takes back the fields made up by an encoder, and no other.
fn undo(message: &mut CanonicalMessage<'_>, found: &Restoring<'_>) -> Result<(), BridgeError> {
    let is_made_up = [
        (Field::Id, message.id.as_ref().is_some_and(|id| id.text().starts_with(MADE_ID))),
        (Field::State, message.state == Some(WorkState::Working)),
        (Field::Parts, matches!(&message.parts[..], [only] if *only == CanonicalPart::new(PartContent::Text(QuotedText::quote(""))))),
    ];
    if is_made_up.iter().any(|(field, fits)| found.is_made(*field) && !fits) {
        return Err(BridgeError::malformed("extension", "a field is named as made up that is not"));
    }
    if found.is_made(Field::Id) {
        message.id = None;
    }
    if found.is_made(Field::State) {
        message.state = None;
    }
    if found.is_made(Field::Parts) {
        message.parts.clear();
    }
    Ok(())
}

fn cancel<'a>(envelope: &RpcEnvelope<'a>) -> Result<CanonicalMessage<'a>, BridgeError> {
    let params = envelope.params.as_ref().ok_or(BridgeError::malformed("params", "an object is expected"))?;
    let mut message = CanonicalMessage::new(MessageKind::Cancel);
    message.task = Some(params.needed("id", "a task is named by its id")?);
    residue::keep(&mut message.residue, A2A, ResiduePlace::Cancel, params);
    restore(&mut message, params, ResiduePlace::Meta, OF_CANCEL, PLACES_OF_CANCEL)?;
    Ok(message)
}

fn write_request(message: &CanonicalMessage<'_>, hop: &Hop<'_>, report: &mut LossReport) -> Vec<u8> {
    let mut said = ObjectWriter::new();
    said.text("messageId", Some(&own_id(message, hop, report)));
    said.text("contextId", message.conversation.as_ref()).text("taskId", message.task.as_ref()).raw("role", b"\"ROLE_USER\"");
    said.raw("parts", &words(message, report)).members(residue::at(&message.residue, A2A, ResiduePlace::Message));
    said.nested("metadata", map(message, ResiduePlace::MessageMeta, (OF_REQUEST, places_of_request(message.wants.push.is_some())), report));
    let mut wishes = ObjectWriter::new();
    if let Some(modes) = &message.wants.modes {
        wishes.raw("acceptedOutputModes", modes);
    }
    if message.wants.immediate {
        wishes.raw("returnImmediately", b"true");
    }
    if let Some(url) = &message.wants.push {
        let mut push = ObjectWriter::new();
        push.raw("url", url.raw()).members(residue::at(&message.residue, A2A, ResiduePlace::Push));
        wishes.nested("taskPushNotificationConfig", push);
    }
    wishes.members(residue::at(&message.residue, A2A, ResiduePlace::Configuration));
    let mut params = ObjectWriter::new();
    params.raw("message", &said.finish()).nested("configuration", wishes);
    let mut map = ObjectWriter::new();
    map.members(residue::at(&message.residue, A2A, ResiduePlace::Meta));
    params.nested("metadata", map);
    params.members(residue::at(&message.residue, A2A, ResiduePlace::Params));
    params.finish()
}

fn write_cancel(message: &CanonicalMessage<'_>, report: &mut LossReport) -> Result<Vec<u8>, BridgeError> {
    let task = message.task.as_ref().ok_or_else(|| fatal(Field::Task, "A2A cancels a task, and none is named"))?;
    let mut params = ObjectWriter::new();
    params.text("id", Some(task)).members(residue::at(&message.residue, A2A, ResiduePlace::Cancel));
    params.nested("metadata", map(message, ResiduePlace::Meta, (OF_CANCEL, PLACES_OF_CANCEL), report));
    Ok(params.finish())
}

/// The free map of an object: earlier members, and the extension.
fn map(
    message: &CanonicalMessage<'_>,
    place: ResiduePlace,
    (native, places): (&[Field], &[ResiduePlace]),
    report: &mut LossReport,
) -> ObjectWriter {
    let mut map = ObjectWriter::new();
    map.members(residue::at(&message.residue, A2A, place));
    map.nested(EXTENSION_KEY, carried::write(message, native, (A2A, places), report));
    map
}

/// The id of the message, or an id made of that of the hop.
fn own_id(message: &CanonicalMessage<'_>, hop: &Hop<'_>, report: &mut LossReport) -> QuotedText<'static> {
    if let Some(id) = &message.id {
        return id.to_owned();
    }
    report.make(Field::Id, Severity::Info, "an id is made of that of the request");
    let of_hop = String::from_utf8_lossy(hop.id.as_deref().unwrap_or_default()).replace('"', "");
    QuotedText::quote(&format!("{MADE_ID}{of_hop}"))
}

/// The parts, or an empty text in place of none: A2A demands a part.
fn words(message: &CanonicalMessage<'_>, report: &mut LossReport) -> Vec<u8> {
    if message.parts.is_empty() {
        report.make(Field::Parts, Severity::Info, "A2A demands a part, and an empty text is written");
        return br#"[{"text":""}]"#.to_vec();
    }
    array(message.parts.iter().map(|one| part::write(one, false)))
}
