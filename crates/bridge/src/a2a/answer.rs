//! Answers of an agent: messages, tasks and their updates. Follows no stream.

use super::{A2A, map, own_id, read_words, restore, words};
use crate::carried::{self, LossReport, fatal};
use crate::error::BridgeError;
use crate::field::CanonicalField as Field;
use crate::loss::Severity;
use crate::message::{CanonicalMessage, CanonicalPart, Hop, MessageKind, ResiduePlace, WorkState};
use crate::part;
use crate::raw::{ObjectWriter, QuotedText, array};
use crate::reader::{MOST_ELEMENTS, RawObject};
use crate::residue;

/// Fields and objects of a wire form.
type AnswerForm = (&'static [Field], &'static [ResiduePlace]);

const OF_MESSAGE: AnswerForm = (
    &[Field::Id, Field::Conversation, Field::Task, Field::Parts],
    &[ResiduePlace::Envelope, ResiduePlace::Result, ResiduePlace::Message, ResiduePlace::MessageMeta],
);
const OF_TASK: AnswerForm = (
    &[Field::Id, Field::Conversation, Field::Task, Field::State, Field::Parts, Field::Artifacts],
    &[
        ResiduePlace::Envelope,
        ResiduePlace::Result,
        ResiduePlace::Task,
        ResiduePlace::Meta,
        ResiduePlace::Status,
        ResiduePlace::StatusMessage,
    ],
);
/// A task without words has no message, and so no id of a message.
const OF_SILENT_TASK: AnswerForm = (
    &[Field::Conversation, Field::Task, Field::State, Field::Parts, Field::Artifacts],
    &[ResiduePlace::Envelope, ResiduePlace::Result, ResiduePlace::Task, ResiduePlace::Meta, ResiduePlace::Status],
);
const OF_STATUS: AnswerForm = (
    &[Field::Id, Field::Conversation, Field::Task, Field::State, Field::Parts],
    &[
        ResiduePlace::Envelope,
        ResiduePlace::Result,
        ResiduePlace::Update,
        ResiduePlace::Meta,
        ResiduePlace::Status,
        ResiduePlace::StatusMessage,
    ],
);
const OF_SILENT_STATUS: AnswerForm = (
    &[Field::Conversation, Field::Task, Field::State, Field::Parts],
    &[ResiduePlace::Envelope, ResiduePlace::Result, ResiduePlace::Update, ResiduePlace::Meta, ResiduePlace::Status],
);
const OF_ARTIFACT: AnswerForm = (
    &[Field::Conversation, Field::Task, Field::Artifacts, Field::Parts],
    &[ResiduePlace::Envelope, ResiduePlace::Result, ResiduePlace::Update, ResiduePlace::Meta],
);

/// Reads a result.
pub(super) fn decode<'a>(result: &RawObject<'a>) -> Result<CanonicalMessage<'a>, BridgeError> {
    let forms = ["task", "message", "statusUpdate", "artifactUpdate"].map(|key| result.object(key, "result"));
    let mut message = match forms {
        [Ok(Some(task)), Ok(None), Ok(None), Ok(None)] => read_task(&task)?,
        [Ok(None), Ok(Some(said)), Ok(None), Ok(None)] => read_message(&said)?,
        [Ok(None), Ok(None), Ok(Some(update)), Ok(None)] => read_status_update(&update)?,
        [Ok(None), Ok(None), Ok(None), Ok(Some(update))] => read_artifact_update(&update)?,
        _ => return Err(BridgeError::malformed("result", "a task, a message or an update is expected, and no two of them")),
    };
    residue::keep(&mut message.residue, A2A, ResiduePlace::Result, result);
    Ok(message)
}

fn read_message<'a>(said: &RawObject<'a>) -> Result<CanonicalMessage<'a>, BridgeError> {
    let mut message = CanonicalMessage::new(MessageKind::Response);
    read_words(&mut message, said, "ROLE_AGENT")?;
    message.id = Some(said.needed("messageId", "a message has an id")?);
    (message.conversation, message.task) = (said.string("contextId")?, said.string("taskId")?);
    residue::keep(&mut message.residue, A2A, ResiduePlace::Message, said);
    restore(&mut message, said, ResiduePlace::MessageMeta, OF_MESSAGE.0, OF_MESSAGE.1)?;
    Ok(message)
}

fn read_task<'a>(task: &RawObject<'a>) -> Result<CanonicalMessage<'a>, BridgeError> {
    let mut message = CanonicalMessage::new(MessageKind::Response);
    message.task = Some(task.needed("id", "a task has an id")?);
    message.conversation = task.string("contextId")?;
    let has_words = read_status(&mut message, task)?;
    for raw in task.array("artifacts")?.unwrap_or_default() {
        read_artifact(&mut message, &RawObject::read(raw, "task.artifacts")?)?;
    }
    residue::keep(&mut message.residue, A2A, ResiduePlace::Task, task);
    let (native, places) = if has_words { OF_TASK } else { OF_SILENT_TASK };
    restore(&mut message, task, ResiduePlace::Meta, native, places)?;
    Ok(message)
}

fn read_status_update<'a>(update: &RawObject<'a>) -> Result<CanonicalMessage<'a>, BridgeError> {
    let mut message = read_update(update, "artifact")?;
    let has_words = read_status(&mut message, update)?;
    let (native, places) = if has_words { OF_STATUS } else { OF_SILENT_STATUS };
    restore(&mut message, update, ResiduePlace::Meta, native, places)?;
    Ok(message)
}

fn read_artifact_update<'a>(update: &RawObject<'a>) -> Result<CanonicalMessage<'a>, BridgeError> {
    let mut message = read_update(update, "status")?;
    let artifact = update.object("artifact", "artifactUpdate.artifact")?;
    read_artifact(&mut message, &artifact.ok_or(BridgeError::malformed("artifactUpdate", "no artifact is given"))?)?;
    restore(&mut message, update, ResiduePlace::Meta, OF_ARTIFACT.0, OF_ARTIFACT.1)?;
    Ok(message)
}

/// Reads the members of all updates. `other` is a member of the other kind.
fn read_update<'a>(update: &RawObject<'a>, other: &str) -> Result<CanonicalMessage<'a>, BridgeError> {
    if update.has(other) {
        return Err(BridgeError::malformed("update", "an update is of one kind"));
    }
    let mut message = CanonicalMessage::new(MessageKind::Event);
    message.task = Some(update.needed("taskId", "an update names its task")?);
    message.conversation = update.string("contextId")?;
    residue::keep(&mut message.residue, A2A, ResiduePlace::Update, update);
    Ok(message)
}

/// Reads a status, and tells if it holds words.
fn read_status<'a>(message: &mut CanonicalMessage<'a>, holder: &RawObject<'a>) -> Result<bool, BridgeError> {
    let status = holder.object("status", "status")?.ok_or(BridgeError::malformed("status", "a status is expected"))?;
    let state = WorkState::parse(&status.needed("state", "a status has a state")?.text());
    message.state = Some(state.ok_or(BridgeError::malformed("status.state", "the state is unknown"))?);
    residue::keep(&mut message.residue, A2A, ResiduePlace::Status, &status);
    let Some(said) = status.object("message", "status.message")? else { return Ok(false) };
    read_words(message, &said, "ROLE_AGENT")?;
    message.id = Some(said.needed("messageId", "a message has an id")?);
    residue::keep(&mut message.residue, A2A, ResiduePlace::StatusMessage, &said);
    Ok(true)
}

fn read_artifact<'a>(message: &mut CanonicalMessage<'a>, artifact: &RawObject<'a>) -> Result<(), BridgeError> {
    let index = message.artifacts.len();
    message.artifacts.push(carried::read_head(artifact)?);
    for raw in artifact.array("parts")?.unwrap_or_default() {
        if message.parts.len() >= MOST_ELEMENTS {
            return Err(BridgeError::TooLarge);
        }
        let one = part::read(raw)?;
        if one.artifact.is_some() {
            return Err(BridgeError::malformed("part extension", "the artifact of a part is named twice"));
        }
        message.parts.push(CanonicalPart { artifact: Some(index), ..one });
    }
    Ok(())
}

/// Writes a result: a task where the work has a state, or else a message.
pub(super) fn write_response(message: &CanonicalMessage<'_>, hop: &Hop<'_>, report: &mut LossReport) -> Result<Vec<u8>, BridgeError> {
    let mut result = ObjectWriter::new();
    if let Some(state) = message.state {
        result.raw("task", &write_task(message, state, hop, report)?);
    } else {
        let mut said = ObjectWriter::new();
        said.text("messageId", Some(&own_id(message, hop, report)));
        said.text("contextId", message.conversation.as_ref()).text("taskId", message.task.as_ref()).raw("role", b"\"ROLE_AGENT\"");
        said.raw("parts", &words(message, report)).members(residue::at(&message.residue, A2A, ResiduePlace::Message));
        said.nested("metadata", map(message, ResiduePlace::MessageMeta, OF_MESSAGE, report));
        result.raw("message", &said.finish());
    }
    result.members(residue::at(&message.residue, A2A, ResiduePlace::Result));
    Ok(result.finish())
}

fn write_task(message: &CanonicalMessage<'_>, state: WorkState, hop: &Hop<'_>, report: &mut LossReport) -> Result<Vec<u8>, BridgeError> {
    let mut task = ObjectWriter::new();
    task.text("id", Some(task_of(message)?)).text("contextId", message.conversation.as_ref());
    let (status, has_words) = write_status(message, state, true, hop, report);
    task.raw("status", &status);
    if !message.artifacts.is_empty() {
        let heads = message.artifacts.iter().enumerate();
        task.raw("artifacts", &array(heads.map(|(index, head)| carried::head_of(head, Some(&parts_of(message, index))))));
    }
    task.members(residue::at(&message.residue, A2A, ResiduePlace::Task));
    task.nested("metadata", map(message, ResiduePlace::Meta, if has_words { OF_TASK } else { OF_SILENT_TASK }, report));
    Ok(task.finish())
}

/// Writes an event: the piece of an artifact if the event has no state, or else a status.
pub(super) fn write_event(message: &CanonicalMessage<'_>, hop: &Hop<'_>, report: &mut LossReport) -> Result<Vec<u8>, BridgeError> {
    let mut update = ObjectWriter::new();
    update.text("taskId", Some(task_of(message)?)).text("contextId", message.conversation.as_ref());
    let in_artifact = message.parts.iter().all(|part| part.artifact == Some(0));
    let key = if let ([head], None, true) = (&message.artifacts[..], message.state, in_artifact) {
        update.raw("artifact", &carried::head_of(head, Some(&parts_of(message, 0))));
        update.members(residue::at(&message.residue, A2A, ResiduePlace::Update));
        update.nested("metadata", map(message, ResiduePlace::Meta, OF_ARTIFACT, report));
        "artifactUpdate"
    } else {
        if message.state.is_none() {
            report.make(Field::State, Severity::Info, "the work is said to go on");
        }
        let (status, has_words) = write_status(message, message.state.unwrap_or(WorkState::Working), false, hop, report);
        update.raw("status", &status).members(residue::at(&message.residue, A2A, ResiduePlace::Update));
        update.nested("metadata", map(message, ResiduePlace::Meta, if has_words { OF_STATUS } else { OF_SILENT_STATUS }, report));
        "statusUpdate"
    };
    let mut result = ObjectWriter::new();
    result.raw(key, &update.finish()).members(residue::at(&message.residue, A2A, ResiduePlace::Result));
    Ok(result.finish())
}

fn task_of<'m, 'a>(message: &'m CanonicalMessage<'a>) -> Result<&'m QuotedText<'a>, BridgeError> {
    message.task.as_ref().ok_or_else(|| fatal(Field::Task, "A2A reports on a task, and none is named"))
}

/// The parts of an artifact.
fn parts_of(message: &CanonicalMessage<'_>, index: usize) -> Vec<u8> {
    array(message.parts.iter().filter(|one| one.artifact == Some(index)).map(|one| part::write(one, true)))
}

/// Writes a status, with the parts of no artifact as words. `apart`: the parts of artifacts stand elsewhere.
fn write_status(message: &CanonicalMessage<'_>, state: WorkState, apart: bool, hop: &Hop<'_>, report: &mut LossReport) -> (Vec<u8>, bool) {
    let mut status = ObjectWriter::new();
    status.raw("state", json::quote(state.name()).as_bytes());
    let said: Vec<Vec<u8>> =
        message.parts.iter().filter(|one| !apart || one.artifact.is_none()).map(|one| part::write(one, false)).collect();
    let has_words = !said.is_empty();
    if has_words {
        let mut words = ObjectWriter::new();
        words.text("messageId", Some(&own_id(message, hop, report))).raw("role", b"\"ROLE_AGENT\"").raw("parts", &array(said));
        words.members(residue::at(&message.residue, A2A, ResiduePlace::StatusMessage));
        status.raw("message", &words.finish());
    }
    status.members(residue::at(&message.residue, A2A, ResiduePlace::Status));
    (status.finish(), has_words)
}
