//! Answers of an agent (A2A 1.0, sections 3.2 and 4.1): a message, a task, or an event of a stream. Follows none of them.

use json::{Duplicates, Members};

use crate::part::MessagePart;

/// State of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    Submitted,
    Working,
    Completed,
    Failed,
    Canceled,
    InputRequired,
    Rejected,
    AuthRequired,
}

/// States with their names on the wire.
const STATES: [(TaskState, &str); 8] = [
    (TaskState::Submitted, "TASK_STATE_SUBMITTED"),
    (TaskState::Working, "TASK_STATE_WORKING"),
    (TaskState::Completed, "TASK_STATE_COMPLETED"),
    (TaskState::Failed, "TASK_STATE_FAILED"),
    (TaskState::Canceled, "TASK_STATE_CANCELED"),
    (TaskState::InputRequired, "TASK_STATE_INPUT_REQUIRED"),
    (TaskState::Rejected, "TASK_STATE_REJECTED"),
    (TaskState::AuthRequired, "TASK_STATE_AUTH_REQUIRED"),
];

impl TaskState {
    /// Reads a name on the wire.
    pub fn parse(text: &str) -> Option<Self> {
        STATES.iter().find(|(_, name)| *name == text).map(|(state, _)| *state)
    }

    /// Name on the wire.
    pub fn name(self) -> &'static str {
        STATES.iter().find(|(state, _)| *state == self).map_or("TASK_STATE_UNSPECIFIED", |(_, name)| name)
    }

    /// The state in a word for people.
    pub fn word(self) -> String {
        self.name().trim_start_matches("TASK_STATE_").to_ascii_lowercase().replace('_', "-")
    }

    /// Checks for a state that no task leaves.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Rejected)
    }

    /// Checks for a state in which the agent waits for its caller.
    pub fn is_waiting(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }
}

/// State of a task, and the agent's words to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub state: TaskState,
    pub message: Option<AgentMessage>,
}

/// A message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentMessage {
    pub task: Option<String>,
    pub context: Option<String>,
    pub parts: Vec<MessagePart>,
    /// Parts of kinds that are unknown here.
    pub unknown: usize,
}

/// A thing that a task makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    pub id: String,
    pub name: Option<String>,
    pub description: Option<String>,
    pub parts: Vec<MessagePart>,
    pub unknown: usize,
}

/// A task as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    pub id: String,
    pub context: Option<String>,
    pub status: Status,
    pub artifacts: Vec<Artifact>,
}

/// An answer to a message, or an event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentReply {
    Message(AgentMessage),
    Task(Task),
    Status { task: String, context: Option<String>, status: Status },
    Artifact { task: String, context: Option<String>, artifact: Artifact, appends: bool },
}

/// Reasons to refuse an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    #[error("its answer is no JSON of A2A: {0}")]
    Malformed(String),
    #[error("its answer holds neither a task nor a message")]
    Neither,
    #[error("its answer has no `{0}`")]
    Missing(&'static str),
    #[error("it says that the task is in the state `{0}`, which A2A 1.0 does not have")]
    State(String),
}

impl AgentReply {
    /// Reads a `SendMessageResponse` or a `StreamResponse`: an object with one of four members.
    pub fn read(text: &[u8]) -> Result<Self, ReplyError> {
        let reply = object(text)?;
        if let Some(message) = reply.get("message") {
            return AgentMessage::read(message).map(Self::Message);
        }
        if let Some(task) = reply.get("task") {
            return Task::read(task).map(Self::Task);
        }
        if let Some(update) = reply.get("statusUpdate") {
            let update = object(update)?;
            let status = Status::read(update.get("status").ok_or(ReplyError::Missing("statusUpdate.status"))?)?;
            let task = owned(&update, "taskId").ok_or(ReplyError::Missing("statusUpdate.taskId"))?;
            return Ok(Self::Status { task, context: owned(&update, "contextId"), status });
        }
        let update = object(reply.get("artifactUpdate").ok_or(ReplyError::Neither)?)?;
        let artifact = Artifact::read(update.get("artifact").ok_or(ReplyError::Missing("artifactUpdate.artifact"))?)?;
        let task = owned(&update, "taskId").ok_or(ReplyError::Missing("artifactUpdate.taskId"))?;
        Ok(Self::Artifact { task, context: owned(&update, "contextId"), artifact, appends: update.get("append") == Some(b"true") })
    }
}

impl Task {
    /// Reads a task. The history stays unread: the caller knows what was said.
    pub fn read(text: &[u8]) -> Result<Self, ReplyError> {
        let task = object(text)?;
        let status = Status::read(task.get("status").ok_or(ReplyError::Missing("task.status"))?)?;
        let artifacts = task.get("artifacts").and_then(json::elements).unwrap_or_default();
        Ok(Self {
            id: owned(&task, "id").ok_or(ReplyError::Missing("task.id"))?,
            context: owned(&task, "contextId"),
            status,
            artifacts: artifacts.into_iter().map(Artifact::read).collect::<Result<_, _>>()?,
        })
    }
}

impl Status {
    fn read(text: &[u8]) -> Result<Self, ReplyError> {
        let status = object(text)?;
        let name = status.str("state").ok_or(ReplyError::Missing("status.state"))?;
        let state =
            TaskState::parse(&name).ok_or_else(|| ReplyError::State(name.chars().filter(|c| !c.is_control()).take(40).collect()))?;
        Ok(Self { state, message: status.get("message").map(AgentMessage::read).transpose()? })
    }
}

impl AgentMessage {
    fn read(text: &[u8]) -> Result<Self, ReplyError> {
        let message = object(text)?;
        let (parts, unknown) = MessagePart::read_all(message.get("parts"));
        Ok(Self { task: owned(&message, "taskId"), context: owned(&message, "contextId"), parts, unknown })
    }
}

impl Artifact {
    fn read(text: &[u8]) -> Result<Self, ReplyError> {
        let artifact = object(text)?;
        let (parts, unknown) = MessagePart::read_all(artifact.get("parts"));
        let id = owned(&artifact, "artifactId").ok_or(ReplyError::Missing("artifact.artifactId"))?;
        Ok(Self { id, name: owned(&artifact, "name"), description: owned(&artifact, "description"), parts, unknown })
    }
}

fn object(text: &[u8]) -> Result<Members<'_>, ReplyError> {
    Members::parse(text, Duplicates::RefuseTop).map_err(|error| ReplyError::Malformed(error.to_string()))
}

/// Reads a string. An empty one is none, as in every text made from Protocol Buffers.
fn owned(members: &Members<'_>, key: &str) -> Option<String> {
    members.str(key).filter(|text| !text.is_empty()).map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::Content;

    #[test]
    fn every_kind_of_answer_is_read() {
        let message =
            AgentReply::read(br#"{"message":{"messageId":"m","role":"ROLE_AGENT","contextId":"c","parts":[{"text":"hi"}]}}"#).unwrap();
        let AgentReply::Message(message) = message else { panic!("{message:?}") };
        assert_eq!((message.context.as_deref(), &message.parts[0].content), (Some("c"), &Content::Text("hi".into())));
        let task =
            br#"{"task":{"id":"t","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"artifactId":"a","parts":[]}],"history":[{}]}}"#;
        let AgentReply::Task(task) = AgentReply::read(task).unwrap() else { panic!() };
        assert_eq!((task.id.as_str(), task.status.state, task.artifacts.len()), ("t", TaskState::Completed, 1));
        let update = br#"{"artifactUpdate":{"taskId":"t","contextId":"","artifact":{"artifactId":"a","parts":[]},"append":true}}"#;
        assert!(matches!(AgentReply::read(update).unwrap(), AgentReply::Artifact { appends: true, context: None, .. }));
        let update = br#"{"statusUpdate":{"taskId":"t","status":{"state":"TASK_STATE_AUTH_REQUIRED"}}}"#;
        let AgentReply::Status { status, .. } = AgentReply::read(update).unwrap() else { panic!() };
        assert!(status.state.is_waiting() && !status.state.is_final());
    }

    #[test]
    fn a_malformed_answer_is_refused_with_its_fault() {
        let refused = |text: &str| AgentReply::read(text.as_bytes()).unwrap_err();
        assert_eq!(refused("{}"), ReplyError::Neither);
        assert_eq!(refused(r#"{"task":{"id":"t"}}"#), ReplyError::Missing("task.status"));
        assert_eq!(refused(r#"{"task":{"id":"t","status":{"state":"done"}}}"#), ReplyError::State("done".into()));
        assert_eq!(refused(r#"{"statusUpdate":{"status":{"state":"TASK_STATE_WORKING"}}}"#), ReplyError::Missing("statusUpdate.taskId"));
        assert!(matches!(refused(r#"{"task":{"id":"t","id":"u"}}"#), ReplyError::Malformed(_)));
    }

    #[test]
    fn a_state_in_a_word_has_no_prefix() {
        assert_eq!(TaskState::InputRequired.word(), "input-required");
    }
}
