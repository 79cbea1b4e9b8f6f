//! Results and errors of AINP. Reads no envelope.

use std::borrow::Cow;

use super::{AINP, AinpForm, intent};
use crate::carried::{self, LossReport, Restoring, mark_response};
use crate::error::BridgeError;
use crate::field::CanonicalField as Field;
use crate::loss::Severity;
use crate::message::{CanonicalMessage, CanonicalPart, Failure, FailureClass, MessageKind, PartContent, ResiduePlace, WorkState};
use crate::raw::ObjectWriter;
use crate::reader::RawObject;
use crate::residue::{self, EXTENSION_KEY};

const OF_RESULT: AinpForm = (
    &[Field::Id, Field::Conversation, Field::Ects, Field::Parts],
    &[ResiduePlace::Envelope, ResiduePlace::Attestations, ResiduePlace::Result],
);
const OF_ERROR: AinpForm = (
    &[Field::Id, Field::Conversation, Field::Ects, Field::RetryAfter],
    &[ResiduePlace::Envelope, ResiduePlace::Attestations, ResiduePlace::Error],
);

const SUCCESS: &str = "success";
const PARTIAL: &str = "partial";
const FAILED: &str = "failed";

/// Codes of errors. The first row of a class is written for the class.
const CODES: &[(FailureClass, &str)] = &[
    (FailureClass::Unauthorized, "UNAUTHORIZED"),
    (FailureClass::Unauthorized, "INVALID_SIGNATURE"),
    (FailureClass::Unsupported, "UNSUPPORTED_SCHEMA"),
    (FailureClass::Timeout, "TIMEOUT"),
    (FailureClass::RateLimited, "RATE_LIMIT_EXCEEDED"),
    (FailureClass::Forbidden, "EVIDENCE_INSUFFICIENT"),
    (FailureClass::Forbidden, "INSUFFICIENT_CREDITS"),
    (FailureClass::Forbidden, "ESCROW_REQUIRED"),
    (FailureClass::Conflict, "DUPLICATE_INTENT"),
    (FailureClass::Conflict, "NEGOTIATION_FAILED"),
    (FailureClass::Unavailable, "AGENT_OFFLINE"),
    (FailureClass::Internal, "INTERNAL_ERROR"),
];

fn class_of(code: &str) -> FailureClass {
    CODES.iter().find(|(_, known)| *known == code).map_or(FailureClass::Internal, |(class, _)| *class)
}

/// The status of an answer.
fn status_of(message: &CanonicalMessage<'_>) -> &'static str {
    match message.state {
        _ if message.kind == MessageKind::Event => PARTIAL,
        None | Some(WorkState::Completed) => SUCCESS,
        Some(state) if state.is_failed() => FAILED,
        Some(_) => PARTIAL,
    }
}

/// Reads a result.
pub(super) fn decode<'a>(payload: &RawObject<'a>, found: Option<&Restoring<'a>>) -> Result<(CanonicalMessage<'a>, AinpForm), BridgeError> {
    let status = payload.needed("status", "a result has a status")?;
    let is_response = found.is_some_and(Restoring::is_response);
    let (kind, state) = match &*status.text() {
        SUCCESS => (MessageKind::Response, None),
        FAILED => (MessageKind::Response, Some(WorkState::Failed)),
        PARTIAL if is_response => (MessageKind::Response, Some(WorkState::Working)),
        PARTIAL => (MessageKind::Event, None),
        _ => return Err(BridgeError::malformed("payload.status", "the status is unknown")),
    };
    let mut message = CanonicalMessage::new(kind);
    message.state = state;
    let is_wrapped = found.is_some_and(|found| found.is_made(Field::Parts));
    message.parts = match payload.value("result") {
        None => Vec::new(),
        Some(raw) if is_wrapped => intent::unwrap(raw)?,
        Some(raw) => {
            let text = payload.string("result").ok().flatten();
            vec![CanonicalPart::new(text.map_or(PartContent::Json(Cow::Borrowed(raw)), PartContent::Text))]
        }
    };
    residue::keep(&mut message.residue, AINP, ResiduePlace::Result, payload);
    Ok((message, OF_RESULT))
}

/// Refuses a result whose state is not that of its status.
pub(super) fn settled(message: &CanonicalMessage<'_>, payload: &RawObject<'_>) -> Result<(), BridgeError> {
    let is_answer = matches!(message.kind, MessageKind::Response | MessageKind::Event);
    let is_known = !is_answer || payload.string("status")?.is_some_and(|status| status.text() == status_of(message));
    if is_known { Ok(()) } else { Err(BridgeError::malformed("extension", "the state is not that of the status")) }
}

/// Writes a result.
pub(super) fn encode(message: &CanonicalMessage<'_>, intent: &[u8], report: &mut LossReport) -> Vec<u8> {
    let status = status_of(message);
    let mut out = ObjectWriter::new();
    out.raw("intent_id", intent).raw("status", json::quote(status).as_bytes());
    match &message.parts[..] {
        [] => {}
        [part] if part.is_plain() => match &part.content {
            PartContent::Text(text) => {
                out.raw("result", text.raw());
            }
            PartContent::Json(raw) if !raw.starts_with(b"\"") => {
                out.raw("result", raw);
            }
            PartContent::Bytes(_) | PartContent::Uri(_) | PartContent::Json(_) | PartContent::Native(..) => {
                out.raw("result", &intent::wrap(&message.parts, report));
            }
        },
        parts => {
            out.raw("result", &intent::wrap(parts, report));
        }
    }
    let mut native = super::native(message, OF_RESULT.0);
    let is_partial = message.kind == MessageKind::Response && status == PARTIAL;
    if message.state == Some(WorkState::Failed) && status == FAILED || is_partial && message.state == Some(WorkState::Working) {
        native.push(Field::State);
    }
    out.members(residue::at(&message.residue, AINP, ResiduePlace::Result));
    let mut extension = carried::write(message, &native, (AINP, OF_RESULT.1), report);
    if is_partial {
        mark_response(&mut extension);
    }
    out.nested(EXTENSION_KEY, extension);
    out.finish()
}

/// Reads an error.
pub(super) fn decode_error<'a>(payload: &RawObject<'a>) -> Result<(CanonicalMessage<'a>, AinpForm), BridgeError> {
    let mut message = CanonicalMessage::new(MessageKind::Failure);
    let code = payload.needed("error_code", "an error has a code")?;
    let wrong = BridgeError::malformed("payload.retry_after_ms", "milliseconds are a whole number");
    let wait = payload.get("retry_after_ms").map(|raw| std::str::from_utf8(raw).ok().and_then(|digits| digits.parse().ok()).ok_or(wrong));
    let class = class_of(&code.text());
    let message_text = payload.needed("error_message", "an error has a text")?;
    let raw = payload.get("error_code").unwrap_or_default();
    message.failure =
        Some(Failure { class, message: message_text, code: Some((AINP, Cow::Borrowed(raw))), retry_after: wait.transpose()? });
    residue::keep(&mut message.residue, AINP, ResiduePlace::Error, payload);
    Ok((message, OF_ERROR))
}

/// Writes an error.
pub(super) fn encode_error(message: &CanonicalMessage<'_>, intent: &[u8], report: &mut LossReport) -> Result<Vec<u8>, BridgeError> {
    let failure = message.failure.as_ref().ok_or(BridgeError::Hop("refusal"))?;
    let own = failure.code.as_ref().filter(|(of, raw)| *of == AINP && raw.starts_with(b"\"")).map(|(_, raw)| raw.to_vec());
    let of_class = CODES.iter().find(|(class, _)| *class == failure.class).map_or("INTERNAL_ERROR", |(_, code)| code);
    let mut native = super::native(message, OF_ERROR.0);
    if own.is_some() {
        native.push(Field::Code);
    } else if failure.code.is_none() {
        report.make(Field::Code, Severity::Info, "the code of the class is written");
    }
    let code = own.unwrap_or_else(|| json::quote(of_class).into_bytes());
    if class_of(&json::as_str(&code).unwrap_or_default()) == failure.class {
        native.push(Field::Class);
    }
    let mut out = ObjectWriter::new();
    out.raw("intent_id", intent).raw("error_code", &code).raw("error_message", failure.message.raw());
    if let Some(wait) = failure.retry_after {
        out.raw("retry_after_ms", wait.to_string().as_bytes());
    }
    out.members(residue::at(&message.residue, AINP, ResiduePlace::Error));
    out.nested(EXTENSION_KEY, carried::write(message, &native, (AINP, OF_ERROR.1), report));
    Ok(out.finish())
}
