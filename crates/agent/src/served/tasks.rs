//! Tasks of A2A clients: each belongs to its caller, and is kept for a while after its end. Runs none.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use agent_proto::served::incoming::SkillCall;
use agent_proto::served::input::TaskQuestion;
use agent_proto::served::listing::{TaskFilter, TaskPage};
use agent_proto::served::rejection::{ClientRefusal, RefusalReason};
use agent_proto::served::written::{ServedTask, TaskEnd};
use agent_proto::task::TaskState;
use banyan_model::{Principal, PrincipalKind};
use call::words::cancel::Cancel;
use runtime::{clock, random};
use tokio::sync::{oneshot, watch};

use crate::served::onward::{Onward, known_call};
use crate::served::shelf::{KeptTask, TaskShelf, TaskTurn};
use crate::translated::heard::mark;

/// Time to keep an ended task, or a task at rest for its caller.
const KEPT: Duration = Duration::from_secs(600);

/// All tasks.
#[derive(Default)]
pub struct Tasks(Mutex<TaskShelf>);

/// A running call of a task.
pub struct BegunTask {
    pub id: String,
    pub call: SkillCall,
    pub cancel: Cancel,
    /// State of the task.
    pub state: watch::Receiver<TaskState>,
}

impl Tasks {
    /// Begins a task of `owner`, unless a task has heard the message.
    pub fn begin(&self, owner: &Principal, message: &str, context: Option<String>, call: SkillCall) -> Result<Onward, ClientRefusal> {
        let mut shelf = self.lock();
        if let Some(known) = known_call(&shelf, owner, message, &call)? {
            return Ok(known);
        }
        let (moved, state) = watch::channel(TaskState::Working);
        let (id, context) = (random::token(), context.unwrap_or_else(random::token));
        let task = ServedTask {
            id: id.clone(),
            context,
            state: TaskState::Working,
            changed: millis(),
            words: None,
            question: None,
            artifacts: None,
        };
        let mut kept = KeptTask::new(owner.clone(), task, call.clone(), moved);
        kept.hear(mark(message));
        shelf.make_room(owner, kept.size())?;
        let begun = BegunTask { id, call, cancel: kept.cancel.clone(), state };
        shelf.place(kept);
        Ok(Onward::Begun(begun))
    }

    /// Drops a task whose call never ran.
    pub fn drop_unbegun(&self, id: &str) {
        self.lock().remove(id);
    }

    /// Asks the client of a running task. `None`: there is no such task, or no room for the question.
    pub fn ask(&self, id: &str, question: TaskQuestion) -> Option<oneshot::Receiver<String>> {
        let mut shelf = self.lock();
        let mut kept = shelf.remove(id)?;
        let (answered, answer) = oneshot::channel();
        (kept.task.question, kept.answered) = (Some(Arc::new(question)), Some(answered));
        let is_room = shelf.make_room(&kept.owner, kept.size()).is_ok();
        turn(&mut kept, if is_room { TaskState::InputRequired } else { TaskState::Working }, None);
        shelf.place(kept);
        is_room.then_some(answer)
    }

    /// Notes a step of a working task, if there is room for its words.
    pub fn step(&self, id: &str, words: String) {
        let mut shelf = self.lock();
        if shelf.get(id).is_none_or(|kept| kept.task.state != TaskState::Working) {
            return;
        }
        let Some(mut kept) = shelf.remove(id) else { return };
        turn(&mut kept, TaskState::Working, Some(words));
        if shelf.make_room(&kept.owner, kept.size()).is_err() {
            kept.task.words = None;
        }
        shelf.place(kept);
    }

    /// Notes that a running call waits for people, as `words` say; without words, that they have agreed.
    pub fn attend(&self, id: &str, words: Option<&str>) {
        let mut shelf = self.lock();
        let Some(mut kept) = shelf.remove(id) else { return };
        let state = if words.is_some() { TaskState::AuthRequired } else { TaskState::Working };
        turn(&mut kept, state, words.map(str::to_owned));
        shelf.place(kept);
    }

    /// Writes a task as after its end at `changed`, in milliseconds since 1970; `None`: nobody looks for the task any more.
    pub fn ended(&self, id: &str, end: &TaskEnd, changed: i64) -> Option<ServedTask> {
        let shelf = self.lock();
        let task = &shelf.get(id).filter(|kept| kept.owner != nobody())?.task;
        let (words, artifacts) = (end.words.clone(), end.artifacts.clone());
        Some(ServedTask { id: task.id.clone(), context: task.context.clone(), state: end.state, changed, words, question: None, artifacts })
    }

    /// Puts the end of a run.
    pub fn rest(&self, id: &str, end: TaskEnd) {
        self.rest_sealed(id, end, None);
    }

    /// Puts the end of a run, with its time and the tokens over the task as it then is. A task without room for its end has no tokens.
    pub fn rest_sealed(&self, id: &str, end: TaskEnd, seal: Option<(i64, Arc<str>)>) {
        let mut shelf = self.lock();
        // The task itself stands off the shelf while room is made, so that it does not make room for itself.
        let Some(mut kept) = shelf.remove(id).filter(|kept| kept.owner != nobody()) else { return };
        (kept.task.words, kept.task.artifacts) = (end.words, end.artifacts);
        let (changed, evidence) = seal.unzip();
        kept.evidence = evidence;
        let room = shelf.make_room(&kept.owner, kept.size());
        let (state, words) = match room {
            Ok(()) => (end.state, kept.task.words.take()),
            Err(refusal) => (TaskState::Failed, Some(format!("The tool has run. {refusal}"))),
        };
        if state != end.state {
            (kept.task.artifacts, kept.evidence) = (None, None);
        }
        kept.rests = Some(Instant::now());
        // Whoever waits for the state finds the task as the tokens have it.
        let changed = changed.filter(|_| kept.evidence.is_some()).unwrap_or_else(millis);
        turn_at(&mut kept, state, words, changed);
        shelf.place(kept);
    }

    /// Keeps the tasks of the principal `before` from a later principal of the same name: those at rest go, and a running one ends unseen.
    pub fn disown(&self, before: &Principal) {
        let mut shelf = self.lock();
        let ids: Vec<String> = shelf.of_owner(before).map(|(_, task)| task.id.clone()).collect();
        for id in ids {
            if let Some(mut kept) = shelf.remove(&id).filter(|kept| kept.rests.is_none()) {
                (kept.owner, kept.pushes) = (nobody(), Vec::new());
                shelf.place(kept);
            }
        }
    }

    /// Keeps the tasks of all principals that are gone from later ones of the same names, as [`Self::disown`] does.
    pub fn disown_all(&self, is_gone: impl Fn(&Principal) -> bool) {
        let gone: Vec<Principal> = self.lock().owners().filter(|owner| is_gone(owner)).cloned().collect();
        gone.iter().for_each(|owner| self.disown(owner));
    }

    /// Finds a task of `owner`.
    pub fn find(&self, owner: &Principal, id: &str) -> Result<ServedTask, ClientRefusal> {
        owned(&self.lock(), owner, id).map(|kept| kept.task.clone())
    }

    /// Finds the tokens of an ended task of `owner`, as a line of `Execution-Context`.
    pub fn evidence(&self, owner: &Principal, id: &str) -> Option<Arc<str>> {
        owned(&self.lock(), owner, id).ok()?.evidence.clone()
    }

    /// Name of the tool that a task of `owner` calls.
    pub fn skill(&self, owner: &Principal, id: &str) -> Result<String, ClientRefusal> {
        owned(&self.lock(), owner, id).map(|kept| kept.call.skill.clone())
    }

    /// Size of a task of `owner`, in bytes.
    pub fn size(&self, owner: &Principal, id: &str) -> Result<usize, ClientRefusal> {
        owned(&self.lock(), owner, id).map(|kept| kept.task.size())
    }

    /// Subscribes to the states of a task of `owner` before its end.
    pub fn watch(&self, owner: &Principal, id: &str) -> Result<watch::Receiver<TaskState>, ClientRefusal> {
        let shelf = self.lock();
        let kept = owned(&shelf, owner, id)?;
        if kept.task.state.is_final() {
            return Err(ClientRefusal::new(RefusalReason::UnsupportedOperation, "The task has ended: ask for it instead."));
        }
        Ok(kept.moved.subscribe())
    }

    /// Turn of a task of `owner`.
    pub fn turn(&self, owner: &Principal, id: &str) -> Result<TaskTurn, ClientRefusal> {
        owned(&self.lock(), owner, id).map(KeptTask::turn)
    }

    /// Finds a task of `owner`, with its turn.
    pub fn at_turn(&self, owner: &Principal, id: &str) -> Result<(ServedTask, TaskTurn), ClientRefusal> {
        owned(&self.lock(), owner, id).map(|kept| (kept.task.clone(), kept.turn()))
    }

    /// Writes a page of the tasks of `owner`.
    pub fn list(&self, owner: &Principal, filter: &TaskFilter) -> String {
        let shelf = self.lock();
        let mut page = TaskPage::new(filter);
        shelf.of_owner(owner).for_each(|(number, task)| page.push(number, task));
        page.write()
    }

    /// Cancels a task of `owner`. A begun run ends by itself soon, and takes a question to people back; the receiver
    /// tells when.
    pub fn cancel(&self, owner: &Principal, id: &str) -> Result<watch::Receiver<TaskState>, ClientRefusal> {
        let mut shelf = self.lock();
        let kept = owned(&shelf, owner, id)?;
        if kept.task.state.is_final() {
            return Err(ClientRefusal::new(RefusalReason::TaskNotCancelable, "The task has ended."));
        }
        kept.cancel.cancel();
        let state = kept.moved.subscribe();
        if kept.rests.is_some()
            && let Some(mut kept) = shelf.remove(id)
        {
            turn(&mut kept, TaskState::Canceled, None);
            kept.rests = Some(Instant::now());
            shelf.place(kept);
        }
        Ok(state)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, TaskShelf> {
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.expire(KEPT);
        shelf
    }
}

/// Turns a task to a state, and counts the turn unless a working task goes on to work. No task has a question in another state.
pub(super) fn turn(kept: &mut KeptTask, state: TaskState, words: Option<String>) {
    turn_at(kept, state, words, millis());
}

fn turn_at(kept: &mut KeptTask, state: TaskState, words: Option<String>, changed: i64) {
    if kept.task.state != state || state.is_waiting() {
        kept.turns += 1;
    }
    (kept.task.state, kept.task.words, kept.task.changed) = (state, words, changed);
    if state != TaskState::InputRequired {
        (kept.task.question, kept.answered) = (None, None);
    }
    kept.moved.send_replace(state);
}

/// Reads the clock on the wall, in milliseconds since 1970.
pub(super) fn millis() -> i64 {
    i64::try_from(clock::wall() / 1000).unwrap_or(i64::MAX)
}

/// Finds a task. The task of another caller is as unknown as none.
pub(super) fn owned<'a>(shelf: &'a TaskShelf, owner: &Principal, id: &str) -> Result<&'a KeptTask, ClientRefusal> {
    shelf.get(id).filter(|kept| kept.owner == *owner).ok_or_else(unknown)
}

/// Owner of running tasks whose principal is gone. No principal has the name.
fn nobody() -> Principal {
    Principal::new(PrincipalKind::Local, "")
}

pub(super) fn unknown() -> ClientRefusal {
    ClientRefusal::new(RefusalReason::TaskNotFound, "No task of this caller has the id.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::served::fixtures::{call, question, token};
    use crate::served::push::KeptPush;
    use crate::served::shelf::{BYTES_OF_CALLER, MOST_OF_CALLER};
    use agent_proto::served::incoming::OnwardMessage;
    use agent_proto::served::input::GivenInput;

    fn begun(tasks: &Tasks, owner: &str) -> BegunTask {
        let Ok(Onward::Begun(begun)) = tasks.begin(&token(owner), &random::token(), None, call()) else { panic!("no task") };
        begun
    }

    fn onward(id: &str, call: Option<SkillCall>) -> OnwardMessage {
        OnwardMessage { id: random::token(), task: id.into(), call: Ok(call), input: GivenInput::Text("green".into()) }
    }

    fn end(state: TaskState) -> TaskEnd {
        TaskEnd { state, words: None, artifacts: Some("[]".into()) }
    }

    #[test]
    fn a_task_of_another_caller_is_unknown() {
        let tasks = Tasks::default();
        let begun = begun(&tasks, "alice");
        assert_eq!(tasks.find(&token("alice"), &begun.id).unwrap().state, TaskState::Working);
        let certified = Principal::new(PrincipalKind::Certificate, "alice");
        assert!(tasks.find(&certified, &begun.id).is_err(), "a name of another kind is another caller");
        let (theirs, none) = (tasks.find(&token("bob"), &begun.id).unwrap_err(), tasks.find(&token("bob"), "no such task").unwrap_err());
        assert_eq!((&theirs, theirs.kind), (&none, RefusalReason::TaskNotFound));
        assert_eq!(tasks.cancel(&token("bob"), &begun.id).unwrap_err(), none);
        assert!(!begun.cancel.is_cancelled());
        assert_eq!(tasks.go_on(&token("bob"), onward(&begun.id, None)).err(), Some(none));
    }

    #[test]
    fn working_tasks_leave_no_room_but_ended_tasks_do() {
        let tasks = Tasks::default();
        let first = begun(&tasks, "alice");
        for _ in 1..MOST_OF_CALLER {
            begun(&tasks, "alice");
        }
        assert_eq!(tasks.begin(&token("alice"), &random::token(), None, call()).err().unwrap().kind, RefusalReason::Crowded);
        assert!(tasks.begin(&token("bob"), &random::token(), None, call()).is_ok());
        tasks.rest(&first.id, end(TaskState::Completed));
        assert!(tasks.begin(&token("alice"), &random::token(), None, call()).is_ok());
        assert!(tasks.find(&token("alice"), &first.id).is_err());
    }

    #[test]
    fn an_approved_task_goes_on_once_at_a_time() {
        let tasks = Tasks::default();
        let begun = begun(&tasks, "alice");
        assert!(tasks.go_on(&token("alice"), onward(&begun.id, None)).is_err());
        tasks.rest(&begun.id, end(TaskState::AuthRequired));
        let other = SkillCall { skill: "b".into(), ..call() };
        assert_eq!(tasks.go_on(&token("alice"), onward(&begun.id, Some(other))).err().unwrap().kind, RefusalReason::InvalidParams);
        assert!(matches!(tasks.go_on(&token("alice"), onward(&begun.id, Some(call()))), Ok(Onward::Begun(_))));
        assert!(tasks.go_on(&token("alice"), onward(&begun.id, None)).is_err());
    }

    #[test]
    fn a_result_beyond_the_room_fails_its_task() {
        let tasks = Tasks::default();
        let begun = begun(&tasks, "alice");
        let long = TaskEnd { artifacts: Some(" ".repeat(BYTES_OF_CALLER)), ..end(TaskState::Completed) };
        tasks.rest(&begun.id, long);
        let task = tasks.find(&token("alice"), &begun.id).unwrap();
        assert_eq!((task.state, task.artifacts), (TaskState::Failed, None));
        assert!(task.words.unwrap().starts_with("The tool has run."));
    }

    #[test]
    fn a_list_holds_the_tasks_of_its_caller_alone() {
        let tasks = Tasks::default();
        let (first, second) = (begun(&tasks, "alice"), begun(&tasks, "alice"));
        begun(&tasks, "bob");
        let ids = |filter: TaskFilter| {
            let page: serde_json::Value = serde_json::from_str(&tasks.list(&token("alice"), &filter)).unwrap();
            page["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(ids(TaskFilter::default()), [second.id.clone(), first.id.clone()]);
        tasks.rest(&first.id, end(TaskState::Completed));
        assert_eq!(ids(TaskFilter::default()), [first.id, second.id.clone()], "the last changed is first");
        assert_eq!(ids(TaskFilter { state: Some(TaskState::Working), ..TaskFilter::default() }), [second.id]);
        assert!(
            serde_json::from_str::<serde_json::Value>(&tasks.list(&token("eve"), &TaskFilter::default())).unwrap()["tasks"]
                == serde_json::json!([])
        );
    }

    #[test]
    fn a_run_that_waits_is_never_begun_again() {
        let tasks = Tasks::default();
        let begun = begun(&tasks, "alice");
        tasks.attend(&begun.id, Some("wait"));
        assert_eq!(*begun.state.borrow(), TaskState::AuthRequired);
        assert!(matches!(tasks.go_on(&token("alice"), onward(&begun.id, None)), Ok(Onward::Waits(..))));
        tasks.attend(&begun.id, None);
        assert_eq!((*begun.state.borrow(), tasks.find(&token("alice"), &begun.id).unwrap().words), (TaskState::Working, None));
        assert!(tasks.go_on(&token("alice"), onward(&begun.id, None)).is_err());
    }

    #[tokio::test]
    async fn a_question_is_answered_once_by_its_client() {
        let tasks = Tasks::default();
        let begun = begun(&tasks, "alice");
        let answer = tasks.ask(&begun.id, question()).unwrap();
        assert_eq!(*begun.state.borrow(), TaskState::InputRequired);
        assert!(tasks.go_on(&token("bob"), onward(&begun.id, None)).is_err());
        let unclear = OnwardMessage { input: GivenInput::Unclear, ..onward(&begun.id, None) };
        assert_eq!(tasks.go_on(&token("alice"), unclear).err().unwrap().kind, RefusalReason::InvalidParams);
        assert!(matches!(tasks.go_on(&token("alice"), onward(&begun.id, None)), Ok(Onward::Answered(..))));
        assert_eq!(answer.await.unwrap(), r#"{"action":"accept","content":{"colour":"green"}}"#);
        let task = tasks.find(&token("alice"), &begun.id).unwrap();
        assert_eq!((task.state, task.question), (TaskState::Working, None));
        assert!(tasks.go_on(&token("alice"), onward(&begun.id, None)).is_err());
    }

    #[tokio::test]
    async fn a_question_ends_with_its_task() {
        let tasks = Tasks::default();
        let begun = begun(&tasks, "alice");
        let answer = tasks.ask(&begun.id, question()).unwrap();
        tasks.rest(&begun.id, end(TaskState::Canceled));
        assert!(answer.await.is_err() && tasks.find(&token("alice"), &begun.id).unwrap().question.is_none());
    }

    #[test]
    fn steps_are_words_of_a_working_task_alone() {
        let tasks = Tasks::default();
        let begun = begun(&tasks, "alice");
        let words = || tasks.find(&token("alice"), &begun.id).unwrap().words;
        tasks.step(&begun.id, "half".into());
        assert_eq!(words().as_deref(), Some("half"));
        tasks.attend(&begun.id, Some("wait"));
        tasks.step(&begun.id, "more".into());
        assert_eq!(words().as_deref(), Some("wait"));
    }

    #[test]
    fn words_of_a_step_never_break_the_bound() {
        let tasks = Tasks::default();
        let begun = begun(&tasks, "alice");
        tasks.step(&begun.id, " ".repeat(BYTES_OF_CALLER + 1));
        assert_eq!(tasks.find(&token("alice"), &begun.id).unwrap().words, None);
    }

    #[test]
    fn a_second_question_is_another_turn() {
        let tasks = Tasks::default();
        let begun = begun(&tasks, "alice");
        let turn = || tasks.turn(&token("alice"), &begun.id).unwrap();
        let answer = || tasks.go_on(&token("alice"), onward(&begun.id, None)).map(drop);
        let first = (tasks.ask(&begun.id, question()).unwrap(), turn()).1;
        answer().unwrap();
        let working = turn();
        tasks.step(&begun.id, "half".into());
        assert_eq!(turn(), working, "a step is no turn");
        let _second = tasks.ask(&begun.id, question()).unwrap();
        assert_eq!((turn().state, first.state), (TaskState::InputRequired, TaskState::InputRequired));
        assert_ne!(turn(), first);
    }

    #[test]
    fn tasks_of_a_gone_token_are_nobodys() {
        let tasks = Tasks::default();
        let [ended, running] = [(); 2].map(|()| begun(&tasks, "alice"));
        tasks.rest(&ended.id, end(TaskState::Completed));
        let stop = Cancel::default();
        tasks.add_push(&token("alice"), &running.id, KeptPush::new("p".into(), String::new(), 1, &stop)).unwrap();
        let other = begun(&tasks, "bob");
        tasks.disown(&token("alice"));
        assert!([&ended, &running].iter().all(|begun| tasks.find(&token("alice"), &begun.id).is_err()) && stop.is_cancelled());
        tasks.rest(&running.id, end(TaskState::Canceled));
        assert!(tasks.find(&token("alice"), &running.id).is_err() && tasks.find(&token("bob"), &other.id).is_ok());
        assert!(tasks.lock().get(&running.id).is_none(), "nobody looks for it");
    }

    #[test]
    fn tasks_of_a_gone_issuer_are_nobodys() {
        let tasks = Tasks::default();
        let owners = ["ann@here", "bob@here", "ann@there"].map(|name| Principal::new(PrincipalKind::Issuer, name));
        let ids = owners.clone().map(|owner| {
            let Ok(Onward::Begun(begun)) = tasks.begin(&owner, "m", None, call()) else { panic!("no task") };
            begun.id
        });
        tasks.disown_all(|owner| owner.kind == PrincipalKind::Issuer && owner.name.ends_with("@here"));
        let found: Vec<bool> = owners.iter().zip(&ids).map(|(owner, id)| tasks.find(owner, id).is_ok()).collect();
        assert_eq!(found, [false, false, true]);
    }

    #[test]
    fn a_cancelled_run_ends_its_task_itself() {
        let tasks = Tasks::default();
        let begun = begun(&tasks, "alice");
        tasks.attend(&begun.id, Some("wait"));
        let state = tasks.cancel(&token("alice"), &begun.id).unwrap();
        assert!(begun.cancel.is_cancelled() && *state.borrow() == TaskState::AuthRequired, "the question to people is not taken back yet");
        tasks.rest(&begun.id, end(TaskState::Canceled));
        assert_eq!(*state.borrow(), TaskState::Canceled);
    }
}
