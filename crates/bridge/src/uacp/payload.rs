//! Parts as the payload of a message of µACP, and back. Knows no header.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::cbor;
use crate::carried::LossReport;
use crate::error::BridgeError;
use crate::field::CanonicalField as Field;
use crate::loss::Severity;
use crate::message::{CanonicalPart, PartContent};
use crate::part;
use crate::raw::{ObjectWriter, QuotedText, array};
use crate::reader::{MOST_DEPTH, RawObject, depth};

/// Forms of a payload, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PayloadForm {
    Cbor,
    Json,
    Protobuf,
    Text,
}

const CBOR: &str = "application/cbor";
const PROTOBUF: &str = "application/x-protobuf";

/// A payload with its form; `None`: there is no payload.
pub(super) type FormedPayload = Option<(PayloadForm, Vec<u8>)>;

impl PayloadForm {
    /// Reads the number in an option.
    pub(super) fn read(option: Option<&[u8]>) -> Result<Option<Self>, BridgeError> {
        let Some(bytes) = option else { return Ok(None) };
        let number = bytes.iter().try_fold(0_u32, |number, byte| number.checked_mul(256)?.checked_add(u32::from(*byte)));
        match number.filter(|_| !bytes.is_empty()) {
            Some(0) => Ok(Some(Self::Cbor)),
            Some(1) => Ok(Some(Self::Json)),
            Some(2) => Ok(Some(Self::Protobuf)),
            Some(3) => Ok(Some(Self::Text)),
            _ => Err(BridgeError::NoPath(Cow::Borrowed("this content type of µACP"))),
        }
    }

    pub(super) fn option(self) -> [u8; 4] {
        (self as u32).to_be_bytes()
    }
}

/// A single value read from a payload; `None`: there is no payload.
pub(super) fn read(form: Option<PayloadForm>, payload: &[u8]) -> Result<Option<PartContent<'_>>, BridgeError> {
    let wrong = |why| BridgeError::malformed("payload", why);
    let bytes = || QuotedText::quote(&STANDARD.encode(payload));
    let content = match form {
        None if payload.is_empty() => return Ok(None),
        Some(PayloadForm::Text) => {
            PartContent::Text(QuotedText::quote(std::str::from_utf8(payload).map_err(|_| wrong("the text is no UTF-8"))?))
        }
        Some(PayloadForm::Json) => PartContent::Json(Cow::Borrowed(json(payload)?)),
        Some(PayloadForm::Protobuf) => PartContent::Bytes(bytes()),
        None | Some(PayloadForm::Cbor) => match cbor::to_json(payload) {
            Some(raw) => PartContent::Json(Cow::Owned(raw)),
            None => PartContent::Bytes(bytes()),
        },
    };
    Ok(Some(content))
}

fn json(payload: &[u8]) -> Result<&[u8], BridgeError> {
    if depth(payload) > MOST_DEPTH {
        return Err(BridgeError::TooLarge);
    }
    let span = json::check(payload, json::Duplicates::RefuseDeep);
    let span = span.map_err(|error| BridgeError::Malformed { at: "payload", why: error.to_string().into() })?;
    Ok(payload.get(span).unwrap_or_default())
}

/// Reads the parts of a message. `is_wrapped`: the payload holds a list of them.
pub(super) fn read_parts(form: Option<PayloadForm>, payload: &[u8], is_wrapped: bool) -> Result<Vec<CanonicalPart<'static>>, BridgeError> {
    let content = read(form, payload)?;
    let Some(content) = content else { return Ok(Vec::new()) };
    if is_wrapped {
        let PartContent::Json(raw) = &content else { return Err(BridgeError::malformed("payload", "a list of parts is expected")) };
        return unwrap(raw);
    }
    let mut part = CanonicalPart::new(content.into_owned());
    part.media_type = match (&part.content, form) {
        (PartContent::Bytes(_), Some(PayloadForm::Protobuf)) => Some(QuotedText::quote(PROTOBUF)),
        (PartContent::Bytes(_), _) => Some(QuotedText::quote(CBOR)),
        _ => None,
    };
    Ok(vec![part])
}

/// Reads a list of parts in the place of a value.
fn unwrap(raw: &[u8]) -> Result<Vec<CanonicalPart<'static>>, BridgeError> {
    let object = RawObject::read(raw, "payload")?;
    let parts = object.array("parts")?.filter(|_| object.rest(&["parts"]).is_empty());
    let parts = parts.ok_or(BridgeError::malformed("payload", "parts and nothing else are expected"))?;
    parts.into_iter().map(|raw| part::read(raw).map(CanonicalPart::into_owned)).collect()
}

/// Writes the parts of a message: a plain value as such, all else as a list.
pub(super) fn write(parts: &[CanonicalPart<'_>], cbor: bool, report: &mut LossReport) -> FormedPayload {
    let [part] = parts else { return if parts.is_empty() { None } else { Some(wrap(parts, report)) } };
    let is_bare = part.filename.is_none() && part.artifact.is_none() && part.residue.is_empty();
    let media_type = part.media_type.as_ref().map(|media_type| media_type.text().into_owned());
    let plain = match (&part.content, media_type.as_deref()) {
        (PartContent::Text(text), None) => text.plain().map(|text| (PayloadForm::Text, text.as_bytes().to_vec())),
        (PartContent::Json(raw), None) => Some(value(raw, cbor)),
        (PartContent::Bytes(bytes), Some(PROTOBUF)) => exact(bytes).map(|bytes| (PayloadForm::Protobuf, bytes)),
        (PartContent::Bytes(bytes), Some(CBOR)) => {
            exact(bytes).filter(|bytes| !bytes.is_empty() && cbor::to_json(bytes).is_none()).map(|bytes| (PayloadForm::Cbor, bytes))
        }
        (PartContent::Text(_) | PartContent::Bytes(_) | PartContent::Uri(_) | PartContent::Json(_) | PartContent::Native(..), _) => None,
    };
    Some(plain.filter(|_| is_bare).unwrap_or_else(|| wrap(parts, report)))
}

/// Writes a value, in CBOR if the peer does so and the value survives.
fn value(raw: &[u8], cbor: bool) -> (PayloadForm, Vec<u8>) {
    let written = if cbor { cbor::from_json(raw) } else { None };
    written.map_or_else(|| (PayloadForm::Json, raw.to_vec()), |bytes| (PayloadForm::Cbor, bytes))
}

fn wrap(parts: &[CanonicalPart<'_>], report: &mut LossReport) -> (PayloadForm, Vec<u8>) {
    report.make(Field::Parts, Severity::Warn, "the payload holds a list of the parts of the message");
    let mut out = ObjectWriter::new();
    out.raw("parts", &array(parts.iter().map(|one| part::write(one, false))));
    (PayloadForm::Json, out.finish())
}

/// The bytes of a text in base64, if the bytes have no other text.
fn exact(text: &QuotedText<'_>) -> Option<Vec<u8>> {
    let text = text.plain()?;
    STANDARD.decode(text.as_bytes()).ok().filter(|bytes| STANDARD.encode(bytes) == *text)
}

/// Writes words about a refusal.
pub(super) fn write_words(words: &QuotedText<'_>) -> (PayloadForm, Vec<u8>) {
    match words.plain() {
        Some(text) => (PayloadForm::Text, text.as_bytes().to_vec()),
        None => (PayloadForm::Json, words.raw().to_vec()),
    }
}
