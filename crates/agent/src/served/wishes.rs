//! Wishes of clients to be told of their tasks, kept with the tasks. Sends nothing.

use agent_proto::served::incoming::OnwardMessage;
use agent_proto::served::push::PushName;
use agent_proto::served::rejection::{ClientRefusal, RefusalReason};
use agent_proto::task::TaskState;
use banyan_model::Principal;
use call::words::cancel::Cancel;
use tokio::sync::watch;

use crate::served::onward::{Onward, go_on, known_onward};
use crate::served::push::KeptPush;
use crate::served::shelf::TaskShelf;
use crate::served::tasks::{Tasks, owned, unknown};

/// Most wishes of a task for notifications.
const MOST_PUSHES: usize = 4;

impl Tasks {
    /// Adds a wish to a task of `owner` before its end, in place of one with the same id.
    pub fn add_push(&self, owner: &Principal, id: &str, push: KeptPush) -> Result<watch::Receiver<TaskState>, ClientRefusal> {
        let mut shelf = self.lock();
        make_room(&mut shelf, owner, id, &push)?;
        place(&mut shelf, id, push)
    }

    /// Goes on with a waiting task of `owner`, and adds a wish: both or neither.
    pub fn go_on_told(&self, owner: &Principal, onward: OnwardMessage, push: KeptPush) -> Result<Onward, ClientRefusal> {
        let (mut shelf, id) = (self.lock(), onward.task.clone());
        if let Some(known) = known_onward(&shelf, owner, &onward)? {
            return Ok(known);
        }
        make_room(&mut shelf, owner, &id, &push)?;
        let gone_on = go_on(&mut shelf, owner, onward)?;
        place(&mut shelf, &id, push).map(|_| gone_on)
    }

    /// Lists the wishes of a task of `owner`, each with its id.
    pub fn pushes(&self, owner: &Principal, id: &str) -> Result<Vec<(String, String)>, ClientRefusal> {
        let shelf = self.lock();
        let kept = owned(&shelf, owner, id)?;
        Ok(kept.pushes.iter().map(|push| (push.id.clone(), push.written.clone())).collect())
    }

    /// Takes a wish from a task of `owner`, if the task has such a wish.
    pub fn remove_push(&self, owner: &Principal, name: &PushName) -> Result<(), ClientRefusal> {
        let mut shelf = self.lock();
        owned(&shelf, owner, &name.task)?;
        let mut kept = shelf.remove(&name.task).ok_or_else(unknown)?;
        kept.pushes.retain(|push| push.id != name.id);
        shelf.place(kept);
        Ok(())
    }

    /// Takes the wish that `stop` belongs to from its task: its notifications have ended. A later wish of the same id stays.
    pub fn end_push(&self, name: &PushName, stop: &Cancel) {
        let mut shelf = self.lock();
        if !stop.is_cancelled()
            && let Some(mut kept) = shelf.remove(&name.task)
        {
            kept.pushes.retain(|push| push.id != name.id);
            shelf.place(kept);
        }
    }
}

/// Makes room for a wish of a task. The task stands off the shelf meanwhile, so that it does not make room for itself.
fn make_room(shelf: &mut TaskShelf, owner: &Principal, id: &str, push: &KeptPush) -> Result<(), ClientRefusal> {
    let kept = owned(shelf, owner, id)?;
    if kept.task.state.is_final() {
        return Err(ClientRefusal::new(
            RefusalReason::UnsupportedOperation,
            "The task has ended: nothing is left to tell. Ask for it instead.",
        ));
    }
    if kept.pushes.iter().filter(|other| other.id != push.id).count() >= MOST_PUSHES {
        return Err(ClientRefusal::new(RefusalReason::Crowded, "The task has too many push notification configs: delete one."));
    }
    let kept = shelf.remove(id).ok_or_else(unknown)?;
    let room = shelf.make_room(owner, kept.size() + push.size);
    shelf.place(kept);
    room
}

/// Puts a wish into the room made for it.
fn place(shelf: &mut TaskShelf, id: &str, push: KeptPush) -> Result<watch::Receiver<TaskState>, ClientRefusal> {
    let mut kept = shelf.remove(id).ok_or_else(unknown)?;
    kept.pushes.retain(|other| other.id != push.id);
    kept.pushes.push(push);
    let state = kept.moved.subscribe();
    shelf.place(kept);
    Ok(state)
}

#[cfg(test)]
mod tests {
    use agent_proto::served::input::GivenInput;
    use agent_proto::served::written::TaskEnd;

    use super::*;
    use crate::served::fixtures::{call, token};
    use crate::served::shelf::BYTES_OF_CALLER;
    use crate::served::tasks::BegunTask;

    fn begun(tasks: &Tasks) -> BegunTask {
        let Ok(Onward::Begun(begun)) = tasks.begin(&token("alice"), "m", None, call()) else { panic!("no task") };
        begun
    }

    fn onward(id: &str) -> OnwardMessage {
        OnwardMessage { id: "n".into(), task: id.into(), call: Ok(None), input: GivenInput::Unclear }
    }

    fn wish(id: &str, stop: &Cancel) -> KeptPush {
        KeptPush::new(id.into(), String::new(), 1, stop)
    }

    #[test]
    fn a_task_has_few_wishes_within_its_bytes() {
        let tasks = Tasks::default();
        let begun = begun(&tasks);
        let stops: Vec<Cancel> = (0..=MOST_PUSHES).map(|_| Cancel::default()).collect();
        let wish = |number: usize, size| KeptPush::new(number.to_string(), String::new(), size, &stops[number]);
        let add = |push| tasks.add_push(&token("alice"), &begun.id, push).map(drop);
        assert_eq!(add(wish(0, BYTES_OF_CALLER)).unwrap_err().kind, RefusalReason::Crowded);
        assert!((1..=MOST_PUSHES).all(|number| add(wish(number, 1)).is_ok()));
        assert_eq!(add(wish(0, 1)).unwrap_err().kind, RefusalReason::Crowded);
        assert!(!stops[1].is_cancelled());
        assert!(add(KeptPush::new("1".into(), String::new(), 1, &Cancel::default())).is_ok() && stops[1].is_cancelled());
        tasks.remove_push(&token("alice"), &PushName { task: begun.id.clone(), id: "2".into() }).unwrap();
        assert!(stops[2].is_cancelled() && tasks.pushes(&token("alice"), &begun.id).unwrap().len() == MOST_PUSHES - 1);
        assert!(tasks.pushes(&token("bob"), &begun.id).is_err());
    }

    #[test]
    fn an_ended_task_takes_no_wish() {
        let tasks = Tasks::default();
        let begun = begun(&tasks);
        tasks.rest(&begun.id, TaskEnd { state: TaskState::Completed, words: None, artifacts: None });
        let refused = tasks.add_push(&token("alice"), &begun.id, wish("p", &Cancel::default())).unwrap_err();
        assert_eq!(refused.kind, RefusalReason::UnsupportedOperation);
        assert!(tasks.pushes(&token("alice"), &begun.id).unwrap().is_empty());
    }

    #[test]
    fn a_refused_message_leaves_the_wishes_alone() {
        let (tasks, [first, second]) = (Tasks::default(), [(); 2].map(|()| Cancel::default()));
        let begun = begun(&tasks);
        tasks.add_push(&token("alice"), &begun.id, wish("p", &first)).unwrap();
        assert!(tasks.go_on_told(&token("alice"), onward(&begun.id), wish("p", &second)).is_err());
        assert!(!first.is_cancelled() && second.is_cancelled());
        tasks.attend(&begun.id, Some("wait"));
        assert!(tasks.go_on_told(&token("alice"), onward(&begun.id), wish("p", &Cancel::default())).is_ok() && first.is_cancelled());
    }

    #[test]
    fn the_end_of_notifications_takes_their_wish_alone() {
        let (tasks, [first, second]) = (Tasks::default(), [(); 2].map(|()| Cancel::default()));
        let begun = begun(&tasks);
        let name = PushName { task: begun.id.clone(), id: "p".into() };
        let count = || tasks.pushes(&token("alice"), &begun.id).unwrap().len();
        for stop in [&first, &second] {
            tasks.add_push(&token("alice"), &begun.id, wish("p", stop)).unwrap();
        }
        tasks.end_push(&name, &first);
        assert_eq!(count(), 1);
        tasks.end_push(&name, &second);
        assert_eq!(count(), 0);
    }
}
