//! The codec of `uacp-v1`: frames of µACP as the libraries of its author have them. Reads no block and no negotiation, and keeps no number.
//!
//! Local profile of AEPB: tokens, the id of the parent, the callback and the extension stand in vendor options. An answer is a message with a
//! Correlation-ID, or with a code other than 0.

mod cbor;
mod frame;
mod payload;

use std::borrow::Cow;

use frame::{Frame, FrameHeader, FrameVerb, FrameWriter, NUMBERS};
use payload::PayloadForm;

use crate::binding::BindingId;
use crate::carried::{self, LossReport, Restoring, fatal};
use crate::error::BridgeError;
use crate::field::CanonicalField as Field;
use crate::hex;
use crate::loss::Severity;
use crate::message::{CanonicalMessage, Failure, FailureClass, Hop, MessageKind, PartContent, Residue, ResiduePlace, WorkState};
use crate::passage::{IncomingMessage, OutgoingText};
use crate::raw::{QuotedText, RawMember};
use crate::reader::RawObject;
use crate::residue::{self, OwnPlaces};
use crate::shape::{self, MOST_OPTION};

const UACP: BindingId = BindingId::Uacp;

/// Options of the protocol.
const CONVERSATION: u8 = 0x01;
const CORRELATION: u8 = 0x02;
const TOPIC: u8 = 0x03;
const CONTENT: u8 = 0x04;
/// Vendor options of AEPB, as this project has them.
const TOKENS: u8 = 0x40;
const PARENT: u8 = 0x41;
const CALLBACK: u8 = 0x42;
const EXTENSION: u8 = 0x43;

const OK: u8 = 0x00;
const ACCEPTED: u8 = 0x02;
const FIRST_REFUSAL: u8 = 0x40;
const INTERNAL: u8 = 0x80;
const FIRST_NEGOTIATION: u8 = 0xc0;
/// Usual quality of service: at least once.
const USUAL_QOS: u8 = 1;

/// Codes of refusals. The first row of a class is written for the class.
const CODES: &[(FailureClass, u8)] = &[
    (FailureClass::BadRequest, 0x40),
    (FailureClass::BadRequest, 0x4a),
    (FailureClass::Unauthorized, 0x41),
    (FailureClass::Forbidden, 0x42),
    (FailureClass::NotFound, 0x43),
    (FailureClass::Unsupported, 0x81),
    (FailureClass::Unsupported, 0x44),
    (FailureClass::Unsupported, 0x4c),
    (FailureClass::Timeout, 0x46),
    (FailureClass::Timeout, 0x84),
    (FailureClass::Conflict, 0x47),
    (FailureClass::Conflict, 0x87),
    (FailureClass::Unavailable, 0x83),
    (FailureClass::Unavailable, 0x82),
    (FailureClass::Internal, INTERNAL),
];

fn class_of(code: u8) -> FailureClass {
    CODES.iter().find(|(_, known)| *known == code).map_or(FailureClass::Internal, |(class, _)| *class)
}

/// The code for an answer by the state of its work.
fn code_of(state: Option<WorkState>) -> u8 {
    match state {
        None | Some(WorkState::Completed) => OK,
        Some(WorkState::Submitted | WorkState::Working | WorkState::InputRequired | WorkState::AuthRequired) => ACCEPTED,
        Some(WorkState::Failed | WorkState::Canceled | WorkState::Rejected) => INTERNAL,
    }
}

/// Objects written in place. `has_code`: the answer has a code of success.
fn places(has_code: bool) -> OwnPlaces<'static> {
    const PLACES: [ResiduePlace; 3] = [ResiduePlace::Envelope, ResiduePlace::Options, ResiduePlace::Result];
    (UACP, &PLACES[..if has_code { 3 } else { 2 }])
}

/// Reads a message.
pub(crate) fn decode(text: &[u8]) -> Result<IncomingMessage<'_>, BridgeError> {
    let frame = Frame::read(text)?;
    let extension = frame.joined(EXTENSION)?;
    let found = extension.as_deref().map(|text| RawObject::whole(text).and_then(Restoring::alone)).transpose()?;
    let correlation = frame.option(CORRELATION)?.map(number).transpose()?;
    let FrameHeader { verb, code, .. } = frame.header;
    if code >= FIRST_NEGOTIATION {
        return Err(BridgeError::NoPath(Cow::Borrowed("a negotiation of µACP")));
    }
    let is_answer = correlation.is_some() || code != OK;
    let mut message = CanonicalMessage::new(match (is_answer, verb) {
        (true, _) if code < FIRST_REFUSAL || found.as_ref().is_some_and(Restoring::is_response) => MessageKind::Response,
        (true, _) => MessageKind::Failure,
        (false, FrameVerb::Tell) => MessageKind::Event,
        (false, FrameVerb::Ping) => MessageKind::Probe,
        (false, FrameVerb::Ask | FrameVerb::Observe) => MessageKind::Request,
    });
    let mut native = read_options(&mut message, &frame)?;
    if message.kind == MessageKind::Request {
        message.wants.stream = verb == FrameVerb::Observe;
        native.push(Field::Stream);
    }
    let form = PayloadForm::read(frame.option(CONTENT)?)?;
    if message.kind == MessageKind::Failure {
        message.failure = Some(read_failure(code, form, frame.payload)?);
    } else {
        let is_wrapped = found.as_ref().is_some_and(|found| found.is_made(Field::Parts));
        message.parts = payload::read_parts(form, frame.payload, is_wrapped)?;
        native.push(Field::Parts);
    }
    message.state = Some(WorkState::Working).filter(|_| code == ACCEPTED);
    keep_header(&mut message, &frame.header);
    frame.keep(&mut message.residue);
    if let Some(found) = found {
        let has_code = message.kind == MessageKind::Response && is_success(code);
        found.restore(&mut message, &native, places(has_code))?;
    }
    settled(&mut message, code)?;
    let id = correlation.unwrap_or(frame.header.number).to_string().into_bytes();
    let cbor = !frame.payload.is_empty() && matches!(form, None | Some(PayloadForm::Cbor));
    Ok(IncomingMessage { message: message.into_owned(), hop: Hop { id: Some(Cow::Owned(id)), cbor, ..Hop::default() } })
}

/// Checks for a code of success without a state of unfinished work.
fn is_success(code: u8) -> bool {
    code < FIRST_REFUSAL && code != ACCEPTED
}

/// Refuses an answer whose state is not that of its code.
fn settled(message: &mut CanonicalMessage<'_>, code: u8) -> Result<(), BridgeError> {
    let is_known = match code_of(message.state) {
        OK => is_success(code),
        ACCEPTED => code == ACCEPTED,
        _ => code >= FIRST_REFUSAL,
    };
    if message.kind == MessageKind::Response && !is_known {
        return Err(BridgeError::malformed("extension", "the state is not that of the code"));
    }
    carried::settle(message)
}

fn number(bytes: &[u8]) -> Result<u32, BridgeError> {
    let number = bytes.iter().fold(0_u64, |number, byte| (number << 8 | u64::from(*byte)) & 0xff_ffff_ffff);
    let number = u32::try_from(number).ok().filter(|number| matches!(bytes.len(), 3 | 4) && *number < NUMBERS);
    number.ok_or(BridgeError::malformed("options", "a Correlation-ID is the number of a message"))
}

/// Reads the options with a meaning, and names their fields.
fn read_options(message: &mut CanonicalMessage<'_>, frame: &Frame<'_>) -> Result<Vec<Field>, BridgeError> {
    let mut native = Vec::new();
    let topic = frame.text(TOPIC)?.map(QuotedText::quote);
    if message.kind == MessageKind::Event {
        message.task = Some(topic.ok_or(BridgeError::malformed("options", "a TELL has a topic"))?);
        native.push(Field::Task);
    } else if topic.is_some() || message.kind == MessageKind::Request {
        message.op = topic;
        native.push(Field::Op);
    }
    if let Some(bytes) = frame.option(CONVERSATION)? {
        let text = match bytes.len() {
            16 => hex::write_uuid(bytes.try_into().unwrap_or(&[0; 16])),
            8..=15 => hex::write(bytes),
            _ => return Err(BridgeError::malformed("options", "a Conversation-ID has 8 to 16 bytes")),
        };
        message.conversation = Some(QuotedText::quote(&text));
        native.push(Field::Conversation);
    }
    if let Some(joined) = frame.joined(TOKENS)? {
        let tokens = std::str::from_utf8(&joined).ok().filter(|joined| joined.split(',').all(is_token));
        let tokens = tokens.ok_or(BridgeError::malformed("options", "an execution context token is expected"))?;
        message.trail.ects = tokens.split(',').map(QuotedText::quote).collect();
        native.push(Field::Ects);
    }
    if let Some(bytes) = frame.option(PARENT)? {
        let wrong = BridgeError::malformed("options", "the id of a parent has 16 bytes");
        message.trail.parent = Some(QuotedText::quote(&hex::write_uuid(bytes.try_into().map_err(|_| wrong)?)));
        native.push(Field::Parent);
    }
    if let Some(address) = frame.text(CALLBACK)? {
        message.trail.callback = Some(QuotedText::quote(address));
        native.push(Field::Callback);
    }
    Ok(native)
}

/// Checks for a token as JWS and base64url write it.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

fn read_failure(code: u8, form: Option<PayloadForm>, bytes: &[u8]) -> Result<Failure<'static>, BridgeError> {
    let message = match payload::read(form, bytes)? {
        None => QuotedText::quote(""),
        Some(PartContent::Text(text)) => text.into_owned(),
        Some(PartContent::Json(raw)) => match QuotedText::read(&raw) {
            Some(text) => text.into_owned(),
            None => QuotedText::quote(&String::from_utf8_lossy(&raw)),
        },
        Some(PartContent::Bytes(_) | PartContent::Uri(_) | PartContent::Native(..)) => QuotedText::quote("The refusal has no text."),
    };
    Ok(Failure { class: class_of(code), message, code: Some((UACP, Cow::Owned(code.to_string().into_bytes()))), retry_after: None })
}

/// Keeps the facts of a header that no other binding has.
fn keep_header(message: &mut CanonicalMessage<'_>, header: &FrameHeader) {
    let mut keep = |place, key, value: u8| {
        let members = vec![RawMember::new(key, value.to_string().as_bytes())];
        message.residue.push(Residue { binding: UACP, place, members });
    };
    if header.qos != USUAL_QOS {
        keep(ResiduePlace::Envelope, shape::QOS, header.qos);
    }
    if header.code < FIRST_REFUSAL && !matches!(header.code, OK | ACCEPTED) {
        keep(ResiduePlace::Result, shape::CODE, header.code);
    }
}

/// Writes a message.
pub(crate) fn encode(message: &CanonicalMessage<'_>, hop: &Hop<'_>) -> Result<OutgoingText, BridgeError> {
    let id = hop.id.as_ref().and_then(|raw| std::str::from_utf8(raw).ok()?.parse().ok()).filter(|number| *number < NUMBERS);
    let number: u32 = id.ok_or(BridgeError::Hop("number of a message"))?;
    let (mut report, mut out) = (LossReport::default(), FrameWriter::default());
    let (verb, mut code) = match message.kind {
        MessageKind::Request if message.wants.stream => (FrameVerb::Observe, OK),
        MessageKind::Request | MessageKind::Failure => (FrameVerb::Ask, OK),
        MessageKind::Response => (FrameVerb::Ask, code_of(message.state)),
        MessageKind::Event => (FrameVerb::Tell, OK),
        MessageKind::Probe => (FrameVerb::Ping, OK),
        MessageKind::Cancel => return Err(fatal(Field::Kind, "a request of µACP cannot be cancelled")),
    };
    let mut native = write_options(message, &mut out)?;
    if matches!(message.kind, MessageKind::Response | MessageKind::Failure) {
        out.option(CORRELATION, &number.to_be_bytes()[1..]);
    }
    let has_code = message.kind == MessageKind::Response && code == OK;
    let formed = if message.kind == MessageKind::Failure {
        let (written, fields) = write_code(message, &mut report)?;
        (code, native) = (written, [native, fields].concat());
        message.failure.as_ref().map(|failure| payload::write_words(&failure.message))
    } else {
        native.push(Field::Parts);
        payload::write(&message.parts, hop.cbor, &mut report)
    };
    if message.kind == MessageKind::Request {
        native.push(Field::Stream);
    }
    if message.kind == MessageKind::Response && message.state == Some(WorkState::Working) {
        native.push(Field::State);
    }
    if let Some((form, payload)) = formed {
        out.option(CONTENT, form.option());
        out.payload = payload;
    }
    let mut extension = carried::write(message, &native, places(has_code), &mut report);
    if message.kind == MessageKind::Response && code >= FIRST_REFUSAL {
        carried::mark_response(&mut extension);
    }
    if !extension.is_empty() {
        out.split(EXTENSION, &extension.finish())?;
    }
    out.put_back(residue::at(&message.residue, UACP, ResiduePlace::Options))?;
    let kept = |place, read: fn(&RawMember<'_>) -> Option<u8>| residue::at(&message.residue, UACP, place).first().and_then(read);
    let qos = kept(ResiduePlace::Envelope, shape::qos).unwrap_or(USUAL_QOS);
    code = kept(ResiduePlace::Result, shape::success).filter(|_| has_code).unwrap_or(code);
    let text = out.finish(FrameHeader { verb, qos, code, number })?;
    Ok(OutgoingText { text, losses: report.losses })
}

/// Writes the fields with an option of their own, and names them.
fn write_options(message: &CanonicalMessage<'_>, out: &mut FrameWriter) -> Result<Vec<Field>, BridgeError> {
    let mut native = Vec::new();
    let short = |text: Option<&QuotedText<'_>>| {
        text.and_then(QuotedText::plain).filter(|text| text.len() <= MOST_OPTION).map(|text| text.as_bytes().to_vec())
    };
    let (field, topic) = match message.kind {
        MessageKind::Event => (Field::Task, short(message.task.as_ref())),
        MessageKind::Request | MessageKind::Response | MessageKind::Failure | MessageKind::Probe | MessageKind::Cancel => {
            (Field::Op, short(message.op.as_ref()))
        }
    };
    if topic.is_none() && matches!(message.kind, MessageKind::Request | MessageKind::Event) {
        return Err(fatal(field, "a message of µACP has a topic of at most 255 bytes"));
    }
    if let Some(bytes) = message.conversation.as_ref().and_then(conversation) {
        native.push(Field::Conversation);
        out.option(CONVERSATION, bytes);
    }
    if let Some(topic) = topic {
        native.push(field);
        out.option(TOPIC, topic);
    }
    let tokens: Vec<_> = message.trail.ects.iter().map(QuotedText::text).collect();
    if !tokens.is_empty() && tokens.iter().all(|token| is_token(token)) {
        native.push(Field::Ects);
        out.split(TOKENS, tokens.join(",").as_bytes())?;
    }
    if let Some(parent) = message.trail.parent.as_ref().and_then(|parent| hex::read_uuid(&parent.plain()?)) {
        native.push(Field::Parent);
        out.option(PARENT, parent);
    }
    if let Some(address) = short(message.trail.callback.as_ref()) {
        native.push(Field::Callback);
        out.option(CALLBACK, address);
    }
    Ok(native)
}

/// The bytes of a conversation whose name is that of bytes: a UUID, or 8 to 15 bytes in digits.
fn conversation(name: &QuotedText<'_>) -> Option<Vec<u8>> {
    let name = name.plain()?;
    let short = || hex::read(&name).filter(|bytes| matches!(bytes.len(), 8..=15));
    hex::read_uuid(&name).map(|bytes| bytes.to_vec()).or_else(short)
}

/// The code of a refusal, and the fields told by the code.
fn write_code(message: &CanonicalMessage<'_>, report: &mut LossReport) -> Result<(u8, Vec<Field>), BridgeError> {
    let failure = message.failure.as_ref().ok_or(BridgeError::Hop("refusal"))?;
    let own = failure.code.as_ref().filter(|(of, _)| *of == UACP).and_then(|(_, raw)| std::str::from_utf8(raw).ok()?.parse().ok());
    let own = own.filter(|code| (FIRST_REFUSAL..FIRST_NEGOTIATION).contains(code));
    let of_class = CODES.iter().find(|(class, _)| *class == failure.class).map_or(INTERNAL, |(_, code)| *code);
    let mut native = Vec::new();
    if own.is_some() {
        native.push(Field::Code);
    } else if failure.code.is_none() {
        report.make(Field::Code, Severity::Info, "the code of the class is written");
    }
    let code = own.unwrap_or(of_class);
    if class_of(code) == failure.class {
        native.push(Field::Class);
    }
    Ok((code, native))
}
