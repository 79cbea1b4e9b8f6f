//! Ways of a task after a message of its client. A message sent again begins no call, and answers no question. Runs no call.

use agent_proto::served::incoming::{OnwardMessage, SentMessage, SentPurpose, SkillCall};
use agent_proto::served::rejection::{ClientRefusal, RefusalReason};
use agent_proto::task::TaskState;
use banyan_model::Principal;
use call::words::cancel::Cancel;
use tokio::sync::watch;

use crate::served::shelf::{KeptTask, TaskShelf};
use crate::served::tasks::{BegunTask, Tasks, owned, turn, unknown};
use crate::translated::heard::mark;

/// Way of a task after a message, with the id of the task and its states.
pub enum Onward {
    /// A new task; or the same call, once more, after a gate below held the first.
    Begun(BegunTask),
    /// The running call has its answer.
    Answered(String, watch::Receiver<TaskState>),
    /// The call waits here, and goes on by itself.
    Waits(String, watch::Receiver<TaskState>),
    /// The task has heard the message before.
    Known(String, watch::Receiver<TaskState>),
}

impl Onward {
    /// States of the task.
    pub fn state(&self) -> &watch::Receiver<TaskState> {
        match self {
            Self::Begun(begun) => &begun.state,
            Self::Answered(_, state) | Self::Waits(_, state) | Self::Known(_, state) => state,
        }
    }
}

impl Tasks {
    /// Finds the task of `owner` to have heard a message: its id and its states.
    pub fn known(&self, owner: &Principal, sent: &SentMessage) -> Result<Option<(String, watch::Receiver<TaskState>)>, ClientRefusal> {
        let shelf = self.lock();
        let known = match &sent.purpose {
            SentPurpose::Begins(call) => known_call(&shelf, owner, &sent.id, call),
            SentPurpose::GoesOn(onward) => known_onward(&shelf, owner, onward),
        };
        Ok(known?.and_then(|known| if let Onward::Known(id, state) = known { Some((id, state)) } else { None }))
    }

    /// Goes on with a waiting task of `owner`, unless the task has heard the message.
    pub fn go_on(&self, owner: &Principal, onward: OnwardMessage) -> Result<Onward, ClientRefusal> {
        go_on(&mut self.lock(), owner, onward)
    }
}

/// Finds the task begun by a message before. Another call under the same id of a message is refused.
pub(super) fn known_call(shelf: &TaskShelf, owner: &Principal, message: &str, call: &SkillCall) -> Result<Option<Onward>, ClientRefusal> {
    known(shelf, owner, message, |kept| kept.call == *call)
}

/// Finds the task to have heard an onward message before.
pub(super) fn known_onward(shelf: &TaskShelf, owner: &Principal, onward: &OnwardMessage) -> Result<Option<Onward>, ClientRefusal> {
    known(shelf, owner, &onward.id, |kept| kept.task.id == onward.task)
}

fn known(
    shelf: &TaskShelf,
    owner: &Principal,
    message: &str,
    is_same: impl Fn(&KeptTask) -> bool,
) -> Result<Option<Onward>, ClientRefusal> {
    let Some(kept) = shelf.heard(owner, &mark(message)) else { return Ok(None) };
    if !is_same(kept) {
        let text = "The `messageId` is that of another message: give each message an id of its own.";
        return Err(ClientRefusal::new(RefusalReason::InvalidParams, text));
    }
    Ok(Some(Onward::Known(kept.task.id.clone(), kept.moved.subscribe())))
}

/// Notes a message without a change.
fn hear(shelf: &mut TaskShelf, task: &str, message: &str) {
    if let Some(mut kept) = shelf.remove(task) {
        kept.hear(mark(message));
        shelf.place(kept);
    }
}

/// Goes on with a waiting task of `owner`.
pub(super) fn go_on(shelf: &mut TaskShelf, owner: &Principal, onward: OnwardMessage) -> Result<Onward, ClientRefusal> {
    if let Some(known) = known_onward(shelf, owner, &onward)? {
        return Ok(known);
    }
    let kept = owned(shelf, owner, &onward.task)?;
    if kept.task.state == TaskState::InputRequired {
        return answered(shelf, &onward);
    }
    if kept.task.state != TaskState::AuthRequired {
        return Err(ClientRefusal::new(RefusalReason::UnsupportedOperation, "The task waits for no message."));
    }
    if onward.call?.is_some_and(|call| call != kept.call) {
        return Err(ClientRefusal::new(RefusalReason::InvalidParams, "The task is about another call: begin a task of its own."));
    }
    if kept.rests.is_none() {
        let state = kept.moved.subscribe();
        hear(shelf, &onward.task, &onward.id);
        return Ok(Onward::Waits(onward.task, state));
    }
    let mut kept = shelf.remove(&onward.task).ok_or_else(unknown)?;
    (kept.rests, kept.cancel) = (None, Cancel::default());
    kept.hear(mark(&onward.id));
    turn(&mut kept, TaskState::Working, None);
    let state = kept.moved.subscribe();
    let begun = BegunTask { id: onward.task, call: kept.call.clone(), cancel: kept.cancel.clone(), state };
    shelf.place(kept);
    Ok(Onward::Begun(begun))
}

/// Hands the answer of a client to its running call.
fn answered(shelf: &mut TaskShelf, onward: &OnwardMessage) -> Result<Onward, ClientRefusal> {
    let asked = shelf.get(&onward.task).and_then(|kept| kept.task.question.clone()).ok_or_else(unknown)?;
    let answer = asked.answer(&onward.input)?;
    let mut kept = shelf.remove(&onward.task).ok_or_else(unknown)?;
    let answered = kept.answered.take();
    kept.hear(mark(&onward.id));
    turn(&mut kept, TaskState::Working, None);
    // A call that has ended meanwhile puts its end next.
    let _sent = answered.map(|answered| answered.send(answer));
    let state = kept.moved.subscribe();
    shelf.place(kept);
    Ok(Onward::Answered(onward.task.clone(), state))
}

#[cfg(test)]
mod tests {
    use agent_proto::served::input::GivenInput;
    use agent_proto::served::written::TaskEnd;

    use super::*;
    use crate::served::fixtures::{call, question, token};

    fn onward(message: &str, id: &str) -> OnwardMessage {
        OnwardMessage { id: message.into(), task: id.into(), call: Ok(None), input: GivenInput::Text("green".into()) }
    }

    fn begin(tasks: &Tasks, owner: &str, message: &str) -> BegunTask {
        let Ok(Onward::Begun(begun)) = tasks.begin(&token(owner), message, None, call()) else { panic!("no task") };
        begun
    }

    #[test]
    fn a_message_sent_again_begins_no_call() {
        let tasks = Tasks::default();
        let first = begin(&tasks, "alice", "m");
        let again = |call| tasks.begin(&token("alice"), "m", None, call);
        assert!(matches!(again(call()), Ok(Onward::Known(id, _)) if id == first.id));
        let other = SkillCall { skill: "b".into(), ..call() };
        assert_eq!(again(other).err().unwrap().kind, RefusalReason::InvalidParams);
        assert_ne!(begin(&tasks, "bob", "m").id, first.id, "an id of another caller's message is nobody's matter");
        tasks.rest(&first.id, TaskEnd { state: TaskState::Completed, words: None, artifacts: None });
        assert!(matches!(again(call()), Ok(Onward::Known(id, _)) if id == first.id), "nor after the end");
    }

    #[test]
    fn a_message_sent_again_answers_no_other_question() {
        let tasks = Tasks::default();
        let begun = begin(&tasks, "alice", "m");
        let say = |message: &str| tasks.go_on(&token("alice"), onward(message, &begun.id));
        tasks.attend(&begun.id, Some("wait"));
        assert!(matches!(say("waits"), Ok(Onward::Waits(..))));
        let mut first = tasks.ask(&begun.id, question()).unwrap();
        assert!(matches!(say("waits"), Ok(Onward::Known(..))) && first.try_recv().is_err());
        assert!(matches!(say("first"), Ok(Onward::Answered(..))) && first.try_recv().is_ok());
        let mut second = tasks.ask(&begun.id, question()).unwrap();
        assert!(matches!(say("first"), Ok(Onward::Known(..))) && matches!(say("m"), Ok(Onward::Known(..))));
        assert!(second.try_recv().is_err());
        let other = begin(&tasks, "alice", "n");
        assert!(tasks.go_on(&token("alice"), onward("first", &other.id)).is_err());
        assert!(matches!(say("second"), Ok(Onward::Answered(..))) && second.try_recv().is_ok());
    }

    #[test]
    fn many_answers_never_hide_what_began_the_call() {
        let tasks = Tasks::default();
        let begun = begin(&tasks, "alice", "m");
        for number in 0..100 {
            let _answer = tasks.ask(&begun.id, question()).unwrap();
            assert!(tasks.go_on(&token("alice"), onward(&number.to_string(), &begun.id)).is_ok());
        }
        assert!(matches!(tasks.begin(&token("alice"), "m", None, call()), Ok(Onward::Known(..))));
        tasks.drop_unbegun(&begun.id);
        assert_ne!(begin(&tasks, "alice", "m").id, begun.id, "what never ran may be sent again");
    }
}
