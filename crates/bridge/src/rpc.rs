//! JSON-RPC 2.0 below A2A and MCP: envelopes and refusals. Knows no method.

use std::borrow::Cow;

use crate::binding::BindingId;
use crate::carried::{self, LossReport, Restoring};
use crate::error::BridgeError;
use crate::field::CanonicalField;
use crate::loss::Severity;
use crate::message::{CanonicalMessage, Failure, FailureClass, Hop, MessageKind, Residue, ResiduePlace};
use crate::raw::{ObjectWriter, QuotedText, RawJson, array};
use crate::reader::RawObject;
use crate::residue::{self, EXTENSION_KEY};

/// Type of the detail that holds the extension of a refusal by an agent.
const DETAIL_TYPE: &[u8] = br#""urn:io.banyan:aepb""#;

/// Codes of a binding. The first row of a class is written for the class.
pub(crate) type CodeTable = [(FailureClass, &'static str)];

/// A message of JSON-RPC.
pub(crate) struct RpcEnvelope<'a> {
    pub(crate) object: RawObject<'a>,
    pub(crate) id: Option<RawJson<'a>>,
    pub(crate) method: Option<QuotedText<'a>>,
    pub(crate) params: Option<RawObject<'a>>,
    pub(crate) result: Option<RawObject<'a>>,
    pub(crate) error: Option<RawObject<'a>>,
}

impl<'a> RpcEnvelope<'a> {
    pub(crate) fn read(text: &'a [u8]) -> Result<Self, BridgeError> {
        let object = RawObject::whole(text)?;
        if object.get("jsonrpc") != Some(b"\"2.0\"") {
            return Err(BridgeError::malformed("message", "JSON-RPC 2.0 is expected"));
        }
        let id = object.value("id").map(Cow::Borrowed);
        if id.as_deref().is_some_and(|raw: &[u8]| raw.starts_with(b"{") || raw.starts_with(b"[")) {
            return Err(BridgeError::malformed("id", "a text or a number is expected"));
        }
        let method = object.string("method")?;
        let (params, result) = (object.object("params", "params")?, object.object("result", "result")?);
        let error = object.object("error", "error")?;
        let forms = usize::from(method.is_some()) + usize::from(result.is_some()) + usize::from(error.is_some());
        if forms != 1 || (method.is_none() && params.is_some()) {
            return Err(BridgeError::malformed("message", "a method, a result or an error is expected"));
        }
        Ok(Self { object, id, method, params, result, error })
    }

    /// The id and nothing else of the hop.
    pub(crate) fn hop(&self) -> Hop<'a> {
        Hop { id: self.id.clone(), ..Hop::default() }
    }
}

/// Begins a message with an id.
pub(crate) fn begin(hop: &Hop<'_>) -> Result<ObjectWriter, BridgeError> {
    let id = hop.id.as_ref().ok_or(BridgeError::Hop("id"))?;
    let mut out = notification();
    out.raw("id", id);
    Ok(out)
}

/// Begins a message without an id.
pub(crate) fn notification() -> ObjectWriter {
    let mut out = ObjectWriter::new();
    out.raw("jsonrpc", b"\"2.0\"");
    out
}

/// Reads a refusal.
pub(crate) fn read_failure<'a>(error: &RawObject<'a>, binding: BindingId, codes: &CodeTable) -> Result<CanonicalMessage<'a>, BridgeError> {
    let code = error.get("code").filter(|raw| raw.first().is_some_and(|byte| *byte == b'-' || byte.is_ascii_digit()));
    let code = code.ok_or(BridgeError::malformed("error.code", "a number is expected"))?;
    let class = codes.iter().find(|(_, known)| known.as_bytes() == code).map_or(FailureClass::Internal, |(class, _)| *class);
    let text = error.needed("message", "a refusal has a text")?;
    let mut message = CanonicalMessage::new(MessageKind::Failure);
    message.failure = Some(Failure { class, message: text, code: Some((binding, Cow::Borrowed(code))), retry_after: None });
    let extension = match (binding, error.get("data")) {
        (_, None) => None,
        (BindingId::A2a, Some(raw)) => detail(raw)?,
        (_, Some(raw)) => RawObject::read(raw, "error.data").ok(),
    };
    match Restoring::open(extension.as_ref())? {
        Some(found) => found.restore(&mut message, &[], (binding, &[]))?,
        None => residue::keep(&mut message.residue, binding, ResiduePlace::Error, error),
    }
    Ok(message)
}

/// The only typed detail, if it holds the extension.
fn detail(raw: &[u8]) -> Result<Option<RawObject<'_>>, BridgeError> {
    match json::elements(raw).unwrap_or_default()[..] {
        [only] => Ok(RawObject::read(only, "error.data").ok().filter(|detail| detail.get("@type") == Some(DETAIL_TYPE))),
        _ => Ok(None),
    }
}

/// Writes a refusal behind the id. Data of the refusal travel in the extension, if there is an extension.
pub(crate) fn write_failure(
    message: &CanonicalMessage<'_>,
    binding: BindingId,
    codes: &CodeTable,
    mut out: ObjectWriter,
    report: &mut LossReport,
) -> Result<Vec<u8>, BridgeError> {
    let failure = message.failure.as_ref().ok_or(BridgeError::Hop("refusal"))?;
    let class_of =
        |code: &[u8]| codes.iter().find(|(_, known)| known.as_bytes() == code).map_or(FailureClass::Internal, |(class, _)| *class);
    let of_class = codes.iter().find(|(class, _)| *class == failure.class).map_or("-32603", |(_, code)| code);
    let own = failure.code.as_ref().filter(|(of, _)| *of == binding).map(|(_, code)| &**code);
    if failure.code.is_none() {
        report.make(CanonicalField::Code, Severity::Info, "the code of the class is written");
    }
    let code = own.unwrap_or(of_class.as_bytes());
    let mut native = Vec::new();
    if own.is_some() {
        native.push(CanonicalField::Code);
    }
    if class_of(code) == failure.class {
        native.push(CanonicalField::Class);
    }
    let mut error = ObjectWriter::new();
    error.raw("code", code).raw("message", failure.message.raw());
    let extension = carried::write(message, &native, (binding, &[ResiduePlace::Envelope, ResiduePlace::Error]), &mut LossReport::default());
    if extension.is_empty() && report.losses.is_empty() {
        out.members(residue::at(&message.residue, binding, ResiduePlace::Envelope));
        error.members(residue::at(&message.residue, binding, ResiduePlace::Error));
    } else {
        let mut data = ObjectWriter::new();
        if binding == BindingId::A2a {
            data.raw("@type", DETAIL_TYPE);
        }
        data.nested(EXTENSION_KEY, carried::write(message, &native, (binding, &[]), report));
        let data = data.finish();
        error.raw("data", &if binding == BindingId::A2a { array([data]) } else { data });
    }
    out.raw("error", &error.finish());
    Ok(out.finish())
}

/// Keeps the members of an envelope beside the message.
pub(crate) fn keep_envelope<'a>(residue: &mut Vec<Residue<'a>>, binding: BindingId, envelope: &RpcEnvelope<'a>) {
    residue::keep(residue, binding, ResiduePlace::Envelope, &envelope.object);
}
