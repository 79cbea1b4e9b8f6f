//! The codec of `mcp-v1`: calls of tools in both eras of MCP, their results, progress and cancellation, and `ping`. Reads no other method,
//! and no session.

mod answer;
mod block;

pub(crate) use block::resource;

use std::borrow::Cow;

use crate::binding::BindingId;
use crate::carried::{self, LossReport, Restoring, fatal};
use crate::error::BridgeError;
use crate::field::CanonicalField as Field;
use crate::loss::Severity;
use crate::message::{CanonicalMessage, CanonicalPart, FailureClass, Hop, MessageKind, PartContent, Residue, ResiduePlace};
use crate::part;
use crate::passage::{IncomingMessage, OutgoingText};
use crate::raw::{ObjectWriter, RawMember, array};
use crate::reader::RawObject;
use crate::residue::{self, CONNECTION_PREFIX, EXTENSION_KEY, OwnPlaces};
use crate::rpc::{self, CodeTable, RpcEnvelope};

const MCP: BindingId = BindingId::Mcp;

/// Codes of JSON-RPC, and of MCP from 2026-07-28.
const CODES: &CodeTable = &[
    (FailureClass::BadRequest, "-32602"),
    (FailureClass::BadRequest, "-32600"),
    (FailureClass::BadRequest, "-32700"),
    (FailureClass::BadRequest, "-32020"),
    (FailureClass::Unsupported, "-32601"),
    (FailureClass::Unsupported, "-32021"),
    (FailureClass::Unsupported, "-32022"),
    (FailureClass::Internal, "-32603"),
];

const OF_REQUEST: &[Field] = &[Field::Op, Field::Stream, Field::Parts];

/// The objects of each kind of message.
fn places_of(kind: MessageKind) -> OwnPlaces<'static> {
    let places: &[ResiduePlace] = match kind {
        MessageKind::Request => &[ResiduePlace::Envelope, ResiduePlace::Params, ResiduePlace::Meta],
        MessageKind::Response => &[ResiduePlace::Envelope, ResiduePlace::Result, ResiduePlace::Meta],
        MessageKind::Event => &[ResiduePlace::Envelope, ResiduePlace::Update, ResiduePlace::Meta],
        MessageKind::Cancel => &[ResiduePlace::Envelope, ResiduePlace::Cancel, ResiduePlace::Meta],
        MessageKind::Probe => &[ResiduePlace::Envelope, ResiduePlace::Probe, ResiduePlace::Meta],
        MessageKind::Failure => &[],
    };
    (MCP, places)
}

/// Reads a message.
pub(crate) fn decode(text: &[u8]) -> Result<IncomingMessage<'_>, BridgeError> {
    let envelope = RpcEnvelope::read(text)?;
    let mut hop = envelope.hop();
    let mut message = match (&envelope.method, &envelope.result, &envelope.error) {
        (Some(method), ..) => match &*method.text() {
            "tools/call" => call(needed(&envelope)?, &mut hop)?,
            "notifications/progress" => answer::progress(needed(&envelope)?, &mut hop)?,
            "notifications/cancelled" => cancel(needed(&envelope)?, "requestId", &mut hop)?,
            "tasks/cancel" => cancel(needed(&envelope)?, "taskId", &mut hop)?,
            "ping" => ping(envelope.params.as_ref(), &mut hop)?,
            _ => return Err(BridgeError::NoPath(Cow::Borrowed("this method of MCP"))),
        },
        (_, Some(result), _) => answer::decode(result, &mut hop)?,
        (_, _, Some(error)) => rpc::read_failure(error, MCP, CODES)?,
        _ => return Err(BridgeError::malformed("message", "a method, a result or an error is expected")),
    };
    rpc::keep_envelope(&mut message.residue, MCP, &envelope);
    carried::settle(&mut message)?;
    Ok(IncomingMessage { message, hop })
}

/// Writes a message.
pub(crate) fn encode(message: &CanonicalMessage<'_>, hop: &Hop<'_>) -> Result<OutgoingText, BridgeError> {
    let mut report = LossReport::default();
    let mut out = match message.kind {
        MessageKind::Request => write_call(message, hop, &mut report)?,
        MessageKind::Probe => write_ping(message, hop, &mut report)?,
        MessageKind::Cancel => write_cancel(message, hop, &mut report)?,
        MessageKind::Event => answer::write_progress(message, hop, &mut report)?,
        MessageKind::Response => answer::write_result(message, hop, &mut report)?,
        MessageKind::Failure => {
            let text = rpc::write_failure(message, MCP, CODES, rpc::begin(hop)?, &mut report)?;
            return Ok(OutgoingText { text, losses: report.losses });
        }
    };
    out.members(residue::at(&message.residue, MCP, ResiduePlace::Envelope));
    Ok(OutgoingText { text: out.finish(), losses: report.losses })
}

fn needed<'r, 'a>(envelope: &'r RpcEnvelope<'a>) -> Result<&'r RawObject<'a>, BridgeError> {
    envelope.params.as_ref().ok_or(BridgeError::malformed("params", "an object is expected"))
}

/// Reads `_meta`: members about the connection go to the hop, the extension is opened, and the rest is residue.
fn read_meta<'a>(
    message: &mut CanonicalMessage<'a>,
    holder: &RawObject<'a>,
    hop: &mut Hop<'a>,
) -> Result<Option<Restoring<'a>>, BridgeError> {
    let Some(meta) = holder.object("_meta", "_meta")? else { return Ok(None) };
    hop.token = meta.get("progressToken").map(Cow::Borrowed).or(hop.token.take());
    let rest = meta.rest(residue::known(MCP, ResiduePlace::Meta));
    let (own, members): (Vec<RawMember<'a>>, Vec<_>) = rest.into_iter().partition(|member| member.key().starts_with(CONNECTION_PREFIX));
    hop.meta = own;
    if !members.is_empty() {
        message.residue.push(Residue { binding: MCP, place: ResiduePlace::Meta, members });
    }
    Restoring::open(Some(&meta))
}

/// Writes `_meta`.
fn write_meta(
    message: &CanonicalMessage<'_>,
    hop: &Hop<'_>,
    native: &[Field],
    report: &mut LossReport,
) -> Result<ObjectWriter, BridgeError> {
    let mut meta = ObjectWriter::new();
    if message.kind == MessageKind::Request && message.wants.stream {
        meta.raw("progressToken", hop.token.as_ref().ok_or(BridgeError::Hop("progress token"))?);
    }
    meta.members(&hop.meta).members(residue::at(&message.residue, MCP, ResiduePlace::Meta));
    meta.nested(EXTENSION_KEY, carried::write(message, native, places_of(message.kind), report));
    Ok(meta)
}

fn call<'a>(params: &RawObject<'a>, hop: &mut Hop<'a>) -> Result<CanonicalMessage<'a>, BridgeError> {
    let mut message = CanonicalMessage::new(MessageKind::Request);
    message.op = Some(params.needed("name", "a call names a tool")?);
    residue::keep(&mut message.residue, MCP, ResiduePlace::Params, params);
    let arguments = params.object("arguments", "params.arguments")?;
    let found = read_meta(&mut message, params, hop)?;
    message.wants.stream = hop.token.is_some();
    let is_wrapped = found.as_ref().is_some_and(|found| found.is_made(Field::Parts));
    match arguments {
        Some(arguments) if is_wrapped => {
            let parts = arguments.array("parts")?.filter(|_| arguments.rest(&["parts"]).is_empty());
            let parts = parts.ok_or(BridgeError::malformed("params.arguments", "parts and nothing else are expected"))?;
            message.parts = parts.into_iter().map(part::read).collect::<Result<_, _>>()?;
        }
        Some(arguments) => message.parts.push(CanonicalPart::new(PartContent::Json(Cow::Borrowed(arguments.text())))),
        None => {}
    }
    if let Some(found) = found {
        found.restore(&mut message, OF_REQUEST, places_of(MessageKind::Request))?;
    }
    Ok(message)
}

fn write_call(message: &CanonicalMessage<'_>, hop: &Hop<'_>, report: &mut LossReport) -> Result<ObjectWriter, BridgeError> {
    let name = message.op.as_ref().ok_or_else(|| fatal(Field::Op, "a call of MCP names a tool, and none is known"))?;
    let mut params = ObjectWriter::new();
    params.text("name", Some(name));
    match &message.parts[..] {
        [] => {}
        [CanonicalPart { content: PartContent::Json(raw), .. }] if message.parts[0].is_plain() && raw.starts_with(b"{") => {
            params.raw("arguments", raw);
        }
        parts => {
            report.make(Field::Parts, Severity::Warn, "the arguments of the tool hold the parts of the message");
            let mut arguments = ObjectWriter::new();
            arguments.raw("parts", &array(parts.iter().map(|one| part::write(one, false))));
            params.raw("arguments", &arguments.finish());
        }
    }
    params.members(residue::at(&message.residue, MCP, ResiduePlace::Params));
    params.nested("_meta", write_meta(message, hop, OF_REQUEST, report)?);
    let mut out = rpc::begin(hop)?;
    out.raw("method", b"\"tools/call\"").raw("params", &params.finish());
    Ok(out)
}

fn cancel<'a>(params: &RawObject<'a>, key: &str, hop: &mut Hop<'a>) -> Result<CanonicalMessage<'a>, BridgeError> {
    let mut message = CanonicalMessage::new(MessageKind::Cancel);
    let mut native = Vec::new();
    if params.has("requestId") && params.has("taskId") {
        return Err(BridgeError::malformed("params", "a request or a task is cancelled"));
    }
    if key == "taskId" {
        message.task = Some(params.needed(key, "a task is named by its id")?);
        native.push(Field::Task);
    } else {
        hop.target = params.get(key).map(Cow::Borrowed);
        hop.target.as_ref().ok_or(BridgeError::malformed("params.requestId", "a request is named by its id"))?;
    }
    if let Some(reason) = params.string("reason")? {
        message.parts.push(CanonicalPart::new(PartContent::Text(reason)));
    }
    residue::keep(&mut message.residue, MCP, ResiduePlace::Cancel, params);
    if let Some(found) = read_meta(&mut message, params, hop)? {
        found.restore(&mut message, &native, places_of(MessageKind::Cancel))?;
    }
    Ok(message)
}

/// Cancels the request named by the hop, or else the task.
fn write_cancel(message: &CanonicalMessage<'_>, hop: &Hop<'_>, report: &mut LossReport) -> Result<ObjectWriter, BridgeError> {
    let mut params = ObjectWriter::new();
    let mut native = Vec::new();
    let mut out = match (&hop.target, &message.task) {
        (Some(target), _) => {
            params.raw("requestId", target);
            let mut out = rpc::notification();
            out.raw("method", b"\"notifications/cancelled\"");
            out
        }
        (None, Some(task)) => {
            native.push(Field::Task);
            params.text("taskId", Some(task));
            let mut out = rpc::begin(hop)?;
            out.raw("method", b"\"tasks/cancel\"");
            out
        }
        (None, None) => return Err(BridgeError::Hop("request to cancel")),
    };
    if answer::write_first_text(message, "reason", &mut params) {
        native.push(Field::Parts);
    }
    params.members(residue::at(&message.residue, MCP, ResiduePlace::Cancel));
    params.nested("_meta", write_meta(message, hop, &native, report)?);
    out.raw("params", &params.finish());
    Ok(out)
}

fn ping<'a>(params: Option<&RawObject<'a>>, hop: &mut Hop<'a>) -> Result<CanonicalMessage<'a>, BridgeError> {
    let mut message = CanonicalMessage::new(MessageKind::Probe);
    let Some(params) = params else { return Ok(message) };
    residue::keep(&mut message.residue, MCP, ResiduePlace::Probe, params);
    if let Some(found) = read_meta(&mut message, params, hop)? {
        found.restore(&mut message, &[], places_of(MessageKind::Probe))?;
    }
    Ok(message)
}

fn write_ping(message: &CanonicalMessage<'_>, hop: &Hop<'_>, report: &mut LossReport) -> Result<ObjectWriter, BridgeError> {
    let mut params = ObjectWriter::new();
    params.members(residue::at(&message.residue, MCP, ResiduePlace::Probe));
    params.nested("_meta", write_meta(message, hop, &[], report)?);
    let mut out = rpc::begin(hop)?;
    out.raw("method", b"\"ping\"").nested("params", params);
    Ok(out)
}
