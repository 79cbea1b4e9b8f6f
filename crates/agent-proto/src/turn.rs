//! A turn: everything that an agent says from a message of its caller until it has answered or waits. Reads no stream.

use std::collections::BTreeMap;

use crate::part::{Content, MessagePart};
use crate::task::{AgentMessage, AgentReply, Artifact, ReplyError, Status, Task, TaskState};

/// Longest id of a task, in bytes: the id stands in addresses.
const LONGEST_ID: usize = 512;
/// Bytes that an artifact or a part costs besides its texts.
const EACH: usize = 64;

/// The answers of an agent so far.
#[derive(Clone, Debug)]
pub struct AgentTurn {
    /// Id of the task, once the agent has made one.
    pub task: Option<String>,
    /// Id of the conversation.
    pub context: Option<String>,
    state: Option<TaskState>,
    /// Last words of the agent to its caller.
    words: Vec<MessagePart>,
    artifacts: Vec<Artifact>,
    /// Place of an artifact by its id.
    places: BTreeMap<String, usize>,
    /// Parts of kinds that are unknown here.
    unknown: usize,
    has_message: bool,
    size: usize,
    most: usize,
}

/// Reasons to end a turn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgentTurnError {
    #[error(transparent)]
    Reply(#[from] ReplyError),
    #[error("it answers for another task than the one of this call")]
    OtherTask,
    #[error("it answers in another context than the one of this call")]
    OtherContext,
    #[error("it gives its task an id that is none")]
    BadId,
    #[error("its answer is larger than {0} bytes")]
    TooLarge(usize),
}

impl AgentTurn {
    /// Begins a turn whose answers may hold `most` bytes. `task` and `context` are those that the message named.
    pub fn new(most: usize, task: Option<String>, context: Option<String>) -> Self {
        Self {
            task,
            context,
            state: None,
            words: Vec::new(),
            artifacts: Vec::new(),
            places: BTreeMap::new(),
            unknown: 0,
            has_message: false,
            size: 0,
            most,
        }
    }

    /// Takes an answer to a message, or an event of a stream. Gives words about the work so far, for people.
    pub fn handle_reply(&mut self, text: &[u8]) -> Result<Option<String>, AgentTurnError> {
        match AgentReply::read(text)? {
            AgentReply::Message(message) => {
                self.know(message.task.clone(), message.context.clone())?;
                self.has_message = true;
                self.say(message)?;
                Ok(None)
            }
            AgentReply::Task(task) => self.take_task(task),
            AgentReply::Status { task, context, status } => {
                self.know(Some(task), context)?;
                self.take_status(status)
            }
            AgentReply::Artifact { task, context, artifact, appends } => {
                self.know(Some(task), context)?;
                self.take_artifact(artifact, appends)?;
                Ok(None)
            }
        }
    }

    /// Takes a whole task, as `GetTask` and `CancelTask` answer.
    pub fn handle_task(&mut self, text: &[u8]) -> Result<Option<String>, AgentTurnError> {
        let task = Task::read(text)?;
        self.take_task(task)
    }

    /// The same turn without content.
    #[must_use]
    pub fn emptied(&self) -> Self {
        let known = Self::new(self.most, self.task.clone(), self.context.clone());
        Self { state: self.state, has_message: self.has_message, ..known }
    }

    /// Checks for an answer, or for a question to the caller.
    pub fn is_over(&self) -> bool {
        self.has_message || self.state.is_some_and(|state| state.is_final() || state.is_waiting())
    }

    /// Checks for the end of all answers: a message, or a final state of the task.
    pub fn is_final(&self) -> bool {
        self.has_message || self.state.is_some_and(TaskState::is_final)
    }

    /// State of the task; `None`: the agent has answered without a task, or not yet.
    pub fn state(&self) -> Option<TaskState> {
        self.state
    }

    /// Last words of the agent to its caller.
    pub fn words(&self) -> &[MessagePart] {
        &self.words
    }

    /// Artifacts so far, in the order of their beginning.
    pub fn artifacts(&self) -> &[Artifact] {
        &self.artifacts
    }

    /// Counts the parts of kinds that are unknown here.
    pub fn unknown(&self) -> usize {
        self.unknown
    }

    fn take_task(&mut self, task: Task) -> Result<Option<String>, AgentTurnError> {
        self.know(Some(task.id), task.context)?;
        // A task is whole, so what events have brought before is in it.
        self.size -= self.artifacts.iter().map(cost).sum::<usize>();
        self.unknown -= self.artifacts.iter().map(|artifact| artifact.unknown).sum::<usize>();
        self.artifacts.clear();
        self.places.clear();
        for artifact in task.artifacts {
            self.take_artifact(artifact, false)?;
        }
        self.take_status(task.status)
    }

    fn take_status(&mut self, status: Status) -> Result<Option<String>, AgentTurnError> {
        self.state = Some(status.state);
        let told = status.message.as_ref().and_then(|message| first_text(&message.parts)).map(str::to_owned);
        if let Some(message) = status.message {
            self.say(message)?;
        }
        Ok(told.or_else(|| Some(status.state.word())))
    }

    fn say(&mut self, message: AgentMessage) -> Result<(), AgentTurnError> {
        self.size -= self.words.iter().map(part_cost).sum::<usize>();
        self.words = message.parts;
        self.unknown += message.unknown;
        self.grow(self.words.iter().map(part_cost).sum())
    }

    fn take_artifact(&mut self, mut artifact: Artifact, appends: bool) -> Result<(), AgentTurnError> {
        self.unknown += artifact.unknown;
        match self.places.get(&artifact.id).and_then(|place| self.artifacts.get_mut(*place)) {
            Some(known) if appends => {
                known.unknown += artifact.unknown;
                let grown: usize = artifact.parts.iter().map(part_cost).sum();
                let saved = if join_texts(&mut known.parts, &mut artifact.parts) { EACH } else { 0 };
                self.grow(grown - saved)
            }
            Some(known) => {
                self.size -= cost(known);
                self.unknown -= known.unknown;
                *known = artifact;
                let grown = cost(known);
                self.grow(grown)
            }
            None => {
                let grown = cost(&artifact);
                self.places.insert(artifact.id.clone(), self.artifacts.len());
                self.artifacts.push(artifact);
                self.grow(grown)
            }
        }
    }

    fn know(&mut self, task: Option<String>, context: Option<String>) -> Result<(), AgentTurnError> {
        if task.as_deref().is_some_and(|id| matches!(id, "." | "..") || id.len() > LONGEST_ID) {
            return Err(AgentTurnError::BadId);
        }
        if differs(&self.task, &task) {
            return Err(AgentTurnError::OtherTask);
        }
        if differs(&self.context, &context) {
            return Err(AgentTurnError::OtherContext);
        }
        self.task = self.task.take().or(task);
        self.context = self.context.take().or(context);
        Ok(())
    }

    fn grow(&mut self, by: usize) -> Result<(), AgentTurnError> {
        self.size += by;
        if self.size > self.most { Err(AgentTurnError::TooLarge(self.most)) } else { Ok(()) }
    }
}

fn differs(known: &Option<String>, given: &Option<String>) -> bool {
    matches!((known, given), (Some(known), Some(given)) if known != given)
}

/// Appends parts. Joins plain text that goes on, and tells so: an agent that speaks word by word sends each as a part.
fn join_texts(parts: &mut Vec<MessagePart>, more: &mut Vec<MessagePart>) -> bool {
    let is_plain = |part: &MessagePart| part.filename.is_none() && part.media_type.is_none();
    let mut joins = false;
    if let (Some(last), Some(next)) = (parts.last_mut(), more.first())
        && is_plain(last)
        && is_plain(next)
        && let (Content::Text(text), Content::Text(goes_on)) = (&mut last.content, &next.content)
    {
        text.push_str(goes_on);
        more.remove(0);
        joins = true;
    }
    parts.append(more);
    joins
}

/// Finds the first text among parts.
pub fn first_text(parts: &[MessagePart]) -> Option<&str> {
    parts.iter().find_map(|part| match &part.content {
        Content::Text(text) => Some(text.as_str()),
        Content::Raw(_) | Content::Url(_) | Content::Data(_) => None,
    })
}

fn part_cost(part: &MessagePart) -> usize {
    EACH + part.size()
}

fn cost(artifact: &Artifact) -> usize {
    let described = [&artifact.name, &artifact.description].into_iter().flatten().map(String::len).sum::<usize>();
    EACH + artifact.id.len() + described + artifact.parts.iter().map(part_cost).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(events: &[&str]) -> Result<AgentTurn, AgentTurnError> {
        let mut turn = AgentTurn::new(10_000, None, None);
        for event in events {
            turn.handle_reply(event.as_bytes())?;
        }
        Ok(turn)
    }

    fn artifact(id: &str, text: &str, append: bool) -> String {
        format!(
            r#"{{"artifactUpdate":{{"taskId":"t","artifact":{{"artifactId":"{id}","parts":[{{"text":"{text}"}}]}},"append":{append}}}}}"#
        )
    }

    fn texts(turn: &AgentTurn) -> Vec<Vec<&str>> {
        turn.artifacts()
            .iter()
            .map(|artifact| artifact.parts.iter().filter_map(|part| first_text(std::slice::from_ref(part))).collect())
            .collect()
    }

    const WORKING: &str =
        r#"{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING","message":{"parts":[{"text":"half"}]}}}}"#;

    #[test]
    fn texts_of_an_artifact_are_joined() {
        let (first, second, third) = (artifact("a", "one", false), artifact("a", "two", true), artifact("b", "x", false));
        let joined = turn(&[WORKING, &first, &second, &third]).unwrap();
        assert_eq!(texts(&joined), [vec!["onetwo"], vec!["x"]]);
        assert!(!joined.is_over());
        let again = artifact("a", "new", false);
        assert_eq!(texts(&turn(&[&first, &second, &again]).unwrap()), [vec!["new"]]);
    }

    #[test]
    fn a_whole_task_holds_what_events_have_brought() {
        let piece = artifact("a", "one", false);
        let task =
            r#"{"task":{"id":"t","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"artifactId":"a","parts":[{"text":"one"}]}]}}"#;
        let whole = turn(&[&piece, task]).unwrap();
        assert_eq!(texts(&whole), [vec!["one"]]);
        assert!(whole.is_over());
        assert_eq!(whole.state(), Some(TaskState::Completed));
    }

    #[test]
    fn an_event_of_another_task_ends_the_turn() {
        let other = WORKING.replace(r#""taskId":"t""#, r#""taskId":"u""#);
        assert_eq!(turn(&[WORKING, &other]).unwrap_err(), AgentTurnError::OtherTask);
        let expecting = |task: &str, context: &str| {
            AgentTurn::new(10_000, Some(task.into()), Some(context.into())).handle_reply(WORKING.as_bytes()).map(drop)
        };
        assert_eq!(
            (expecting("t", "c"), expecting("x", "c"), expecting("t", "x")),
            (Ok(()), Err(AgentTurnError::OtherTask), Err(AgentTurnError::OtherContext))
        );
        let dots = WORKING.replace(r#""taskId":"t""#, r#""taskId":"..""#);
        assert_eq!(turn(&[&dots]).unwrap_err(), AgentTurnError::BadId);
    }

    #[test]
    fn answers_beyond_the_bound_end_the_turn() {
        let long = "x".repeat(6_000);
        let (first, again, other) = (artifact("a", &long, false), artifact("a", &long, false), artifact("b", &long, false));
        assert!(turn(&[&first, &again, &again]).is_ok());
        assert_eq!(turn(&[&first, &other]).unwrap_err(), AgentTurnError::TooLarge(10_000));
        assert_eq!(turn(&[&first, &artifact("a", &long, true)]).unwrap_err(), AgentTurnError::TooLarge(10_000));
    }

    #[test]
    fn a_replaced_artifact_leaves_nothing_in_the_count() {
        let (first, more) = (artifact("a", "one", false), artifact("a", "two", true));
        let mut turn = AgentTurn::new(10_000, None, None);
        for event in [&first, &more, &more, &first] {
            turn.handle_reply(event.as_bytes()).unwrap();
        }
        assert_eq!(turn.size, turn.artifacts().iter().map(cost).sum::<usize>());
    }

    #[test]
    fn words_about_the_work_come_from_the_agent() {
        let mut turn = AgentTurn::new(10_000, None, None);
        assert_eq!(turn.handle_reply(WORKING.as_bytes()).unwrap().as_deref(), Some("half"));
        let silent = r#"{"statusUpdate":{"taskId":"t","status":{"state":"TASK_STATE_INPUT_REQUIRED"}}}"#;
        assert_eq!(turn.handle_reply(silent.as_bytes()).unwrap().as_deref(), Some("input-required"));
        assert!(turn.is_over());
        assert_eq!(turn.context.as_deref(), Some("c"));
    }
}
