//! Results of tools, questions to a caller, and progress. Keeps no task.

use std::borrow::Cow;

use super::{MCP, block, places_of, read_meta, write_meta};
use crate::carried::{LossReport, fatal};
use crate::error::BridgeError;
use crate::field::CanonicalField as Field;
use crate::loss::Severity;
use crate::message::{CanonicalMessage, CanonicalPart, Hop, MessageKind, PartContent, Residue, ResiduePlace, WorkState};
use crate::raw::{ObjectWriter, QuotedText, array};
use crate::reader::RawObject;
use crate::residue;
use crate::rpc;

/// Schema of an answer to a question in words alone.
const ANSWER_SCHEMA: &[u8] = br#"{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}"#;

/// Reads a result.
pub(super) fn decode<'a>(result: &RawObject<'a>, hop: &mut Hop<'a>) -> Result<CanonicalMessage<'a>, BridgeError> {
    let mut message = CanonicalMessage::new(MessageKind::Response);
    let kind = result.string("resultType")?;
    hop.stateless = kind.is_some();
    let is_waiting = match kind.as_ref().map(QuotedText::text).as_deref() {
        None | Some("complete") => false,
        Some("input_required") => true,
        Some(_) => return Err(BridgeError::NoPath(Cow::Borrowed("this type of an MCP result"))),
    };
    let is_error = result.flag("isError")?;
    message.state = if is_waiting { Some(WorkState::InputRequired) } else { is_error.then_some(WorkState::Failed) };
    let found = read_meta(&mut message, result, hop)?;
    let is_made = found.as_ref().is_some_and(|found| found.is_made(Field::Parts));
    let has_parts = found.as_ref().is_some_and(|found| found.has(Field::Parts));
    if is_waiting && (result.has("content") || result.has("structuredContent")) {
        return Err(BridgeError::malformed("result", "a question has no content"));
    }
    if is_waiting && is_made {
        let members = result.rest(&[residue::known(MCP, ResiduePlace::Result), &["inputRequests", "requestState"]].concat());
        if !members.is_empty() {
            message.residue.push(Residue { binding: MCP, place: ResiduePlace::Result, members });
        }
    } else {
        residue::keep(&mut message.residue, MCP, ResiduePlace::Result, result);
    }
    if is_waiting && !has_parts && !is_made {
        questions(&mut message, result)?;
    }
    if !is_waiting {
        block::read_content(&mut message, result)?;
    }
    if let Some(found) = found {
        let native: &[Field] = if is_waiting { &[] } else { &[Field::Parts] };
        found.restore(&mut message, native, places_of(MessageKind::Response))?;
    }
    let agrees = message.state.is_none_or(|state| state.is_failed() == is_error && state.is_waiting() == is_waiting);
    if agrees { Ok(message) } else { Err(BridgeError::malformed("extension", "its state is not that of the result")) }
}

/// Takes the words of questions, for readers without forms.
fn questions<'a>(message: &mut CanonicalMessage<'a>, result: &RawObject<'a>) -> Result<(), BridgeError> {
    let Some(asked) = result.object("inputRequests", "result.inputRequests")? else { return Ok(()) };
    for raw in asked.values()? {
        let params = RawObject::read(raw, "inputRequests")?.object("params", "inputRequests")?;
        if let Some(words) = params.map(|params| params.string("message")).transpose()?.flatten() {
            message.parts.push(CanonicalPart::new(PartContent::Text(words)));
        }
    }
    Ok(())
}

/// Writes a result: a question where the work waits, or else content.
pub(super) fn write_result(message: &CanonicalMessage<'_>, hop: &Hop<'_>, report: &mut LossReport) -> Result<ObjectWriter, BridgeError> {
    let mut result = ObjectWriter::new();
    let mut native = Vec::new();
    match message.state {
        Some(WorkState::Submitted | WorkState::Working) => {
            return Err(fatal(Field::State, "a result of MCP ends the work, and the work goes on: wait for its end"));
        }
        Some(state) if state.is_waiting() => {
            if !hop.stateless {
                return Err(fatal(Field::State, "a result of the initialize era cannot ask: ask by a request"));
            }
            if state == WorkState::InputRequired {
                native.push(Field::State);
            }
            result.raw("resultType", b"\"input_required\"");
            write_question(message, &mut result, report);
        }
        state => {
            if hop.stateless {
                result.raw("resultType", b"\"complete\"");
            }
            native.push(Field::Parts);
            block::write_content(message, &mut result);
            if state.is_some_and(WorkState::is_failed) {
                result.raw("isError", b"true");
            }
            if state == Some(WorkState::Failed) {
                native.push(Field::State);
            }
        }
    }
    result.members(residue::at(&message.residue, MCP, ResiduePlace::Result));
    result.nested("_meta", write_meta(message, hop, &native, report)?);
    let mut out = rpc::begin(hop)?;
    out.raw("result", &result.finish());
    Ok(out)
}

/// Asks for words in answer to words, unless the server's own questions are known.
fn write_question(message: &CanonicalMessage<'_>, result: &mut ObjectWriter, report: &mut LossReport) {
    let own = residue::at(&message.residue, MCP, ResiduePlace::Result);
    if own.iter().any(|member| matches!(member.key(), "inputRequests" | "requestState")) {
        return;
    }
    report.make(Field::Parts, Severity::Info, "a form asks for a text in answer to the words");
    let words = first_text(message).map_or_else(|| QuotedText::quote("More is needed."), QuotedText::to_owned);
    let mut params = ObjectWriter::new();
    params.raw("mode", b"\"form\"").text("message", Some(&words)).raw("requestedSchema", ANSWER_SCHEMA);
    let mut question = ObjectWriter::new();
    question.raw("method", b"\"elicitation/create\"").raw("params", &params.finish());
    let mut asked = ObjectWriter::new();
    asked.raw("answer", &question.finish());
    result.raw("inputRequests", &asked.finish()).text("requestState", message.task.as_ref());
}

/// Reads a report on unfinished work.
pub(super) fn progress<'a>(params: &RawObject<'a>, hop: &mut Hop<'a>) -> Result<CanonicalMessage<'a>, BridgeError> {
    let mut message = CanonicalMessage::new(MessageKind::Event);
    let found = read_meta(&mut message, params, hop)?;
    hop.token = params.get("progressToken").map(Cow::Borrowed);
    hop.token.as_ref().ok_or(BridgeError::malformed("params.progressToken", "a report names its token"))?;
    let number = |key| params.get(key).map(Cow::Borrowed);
    (message.progress, message.total) = (number("progress"), number("total"));
    if [&message.progress, &message.total].into_iter().flatten().any(|raw| !is_number(raw)) || message.progress.is_none() {
        return Err(BridgeError::malformed("params.progress", "a number is expected"));
    }
    if let Some(words) = params.string("message")? {
        message.parts.push(CanonicalPart::new(PartContent::Text(words)));
    }
    residue::keep(&mut message.residue, MCP, ResiduePlace::Update, params);
    if let Some(found) = found {
        if found.is_made(Field::Progress) {
            message.progress = None;
        }
        found.restore(&mut message, &[Field::Progress, Field::Total], places_of(MessageKind::Event))?;
    }
    Ok(message)
}

fn is_number(raw: &[u8]) -> bool {
    raw.first().is_some_and(|byte| *byte == b'-' || byte.is_ascii_digit())
}

/// Writes a report.
pub(super) fn write_progress(message: &CanonicalMessage<'_>, hop: &Hop<'_>, report: &mut LossReport) -> Result<ObjectWriter, BridgeError> {
    let mut params = ObjectWriter::new();
    params.raw("progressToken", hop.token.as_ref().ok_or(BridgeError::Hop("progress token"))?);
    match &message.progress {
        Some(progress) => params.raw("progress", progress),
        None => {
            report.make(Field::Progress, Severity::Info, "reports are counted");
            params.raw("progress", hop.count.to_string().as_bytes())
        }
    };
    if let Some(total) = &message.total {
        params.raw("total", total);
    }
    let mut native = vec![Field::Progress, Field::Total];
    if write_first_text(message, "message", &mut params) {
        native.push(Field::Parts);
    }
    params.members(residue::at(&message.residue, MCP, ResiduePlace::Update));
    params.nested("_meta", write_meta(message, hop, &native, report)?);
    let mut out = rpc::notification();
    out.raw("method", b"\"notifications/progress\"").raw("params", &params.finish());
    Ok(out)
}

fn first_text<'m, 'a>(message: &'m CanonicalMessage<'a>) -> Option<&'m QuotedText<'a>> {
    message.parts.iter().find_map(|part| match &part.content {
        PartContent::Text(text) => Some(text),
        PartContent::Bytes(_) | PartContent::Uri(_) | PartContent::Json(_) | PartContent::Native(..) => None,
    })
}

/// Writes the first text under `key`, and tells if no part is left.
pub(super) fn write_first_text(message: &CanonicalMessage<'_>, key: &str, params: &mut ObjectWriter) -> bool {
    let text = first_text(message);
    params.text(key, text);
    message.parts.len() == usize::from(text.is_some()) && message.parts.iter().all(CanonicalPart::is_plain)
}

/// The raw elements of an array of blocks.
pub(super) fn content_of(blocks: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    array(blocks)
}
