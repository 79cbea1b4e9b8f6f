//! Tasks with running sums: finding, placing and dropping one takes no look at the others. Bounds alone; ids, states and times are the caller's.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent_proto::served::incoming::SkillCall;
use agent_proto::served::rejection::{ClientRefusal, RefusalReason};
use agent_proto::served::written::ServedTask;
use agent_proto::task::TaskState;
use banyan_model::Principal;
use call::words::cancel::Cancel;
use tokio::sync::{oneshot, watch};

use crate::served::push::KeptPush;
use crate::translated::heard::MessageMark;

/// Most tasks of a caller, and of all.
pub const MOST_OF_CALLER: usize = 256;
pub const MOST: usize = 4_096;
/// Most bytes for tasks of a caller, and those of all.
pub const BYTES_OF_CALLER: usize = 16 << 20;
pub const BYTES: usize = 128 << 20;

/// Most messages of a task known again, and the bytes to know a message by.
const MOST_HEARD: usize = 16;
const BYTES_OF_MARK: usize = 128;

/// A task with its call.
pub struct KeptTask {
    pub owner: Principal,
    pub task: ServedTask,
    pub call: SkillCall,
    pub cancel: Cancel,
    /// When the task stopped working.
    pub rests: Option<Instant>,
    /// Way of the client's answer to the question of the task.
    pub answered: Option<oneshot::Sender<String>>,
    /// Wishes to be told of the task.
    pub pushes: Vec<KeptPush>,
    /// Tokens of the ended call, as a line of `Execution-Context`.
    pub evidence: Option<Arc<str>>,
    /// The state, for those who wait for another.
    pub moved: watch::Sender<TaskState>,
    /// Messages heard by the task: the first, and the latest.
    heard: Vec<MessageMark>,
    /// Count of the turns to another state, or to another wait. Steps are none.
    pub turns: u64,
    /// Number of the last change; the shelf sets it.
    number: u64,
}

impl KeptTask {
    /// Makes a working task.
    pub fn new(owner: Principal, task: ServedTask, call: SkillCall, moved: watch::Sender<TaskState>) -> Self {
        let (cancel, pushes, heard) = (Cancel::default(), Vec::new(), Vec::new());
        Self { owner, task, call, cancel, rests: None, answered: None, pushes, evidence: None, moved, heard, turns: 0, number: 0 }
    }

    /// Turn at which the task is.
    pub fn turn(&self) -> TaskTurn {
        TaskTurn { state: self.task.state, count: self.turns }
    }

    /// Notes a message. The first, with the call, is never forgotten.
    pub fn hear(&mut self, mark: MessageMark) {
        if self.heard.len() >= MOST_HEARD {
            self.heard.remove(1);
        }
        self.heard.push(mark);
    }

    /// Counts the bytes that the task holds, or may hold without asking for room.
    pub fn size(&self) -> usize {
        let pushes: usize = self.pushes.iter().map(|push| push.size).sum();
        let evidence = self.evidence.as_ref().map_or(0, |line| line.len());
        evidence + self.task.size() + self.call.size() + pushes + MOST_HEARD * BYTES_OF_MARK
    }
}

/// A state of a task, told apart from the same state later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskTurn {
    pub state: TaskState,
    pub count: u64,
}

/// Tasks of all callers.
#[derive(Default)]
pub struct TaskShelf {
    tasks: HashMap<String, KeptTask>,
    owners: HashMap<Principal, OwnedTasks>,
    /// Resting tasks, by the number of their last change: the longest at rest first.
    resting: BTreeMap<u64, String>,
    bytes: usize,
    last: u64,
}

/// Tasks of one caller, by the number of their last change.
#[derive(Default)]
struct OwnedTasks {
    ids: BTreeMap<u64, String>,
    /// Ids of the tasks by messages heard.
    heard: HashMap<MessageMark, String>,
    bytes: usize,
}

impl TaskShelf {
    /// Finds a task.
    pub fn get(&self, id: &str) -> Option<&KeptTask> {
        self.tasks.get(id)
    }

    /// Finds the task of `owner` to have heard a message.
    pub fn heard(&self, owner: &Principal, mark: &MessageMark) -> Option<&KeptTask> {
        self.get(self.owners.get(owner)?.heard.get(mark)?)
    }

    /// Takes a task off the shelf.
    pub fn remove(&mut self, id: &str) -> Option<KeptTask> {
        let kept = self.tasks.remove(id)?;
        self.bytes -= kept.size();
        self.resting.remove(&kept.number);
        if let Some(owned) = self.owners.get_mut(&kept.owner) {
            owned.bytes -= kept.size();
            owned.ids.remove(&kept.number);
            kept.heard.iter().for_each(|mark| drop(owned.heard.remove(mark)));
            if owned.ids.is_empty() {
                self.owners.remove(&kept.owner);
            }
        }
        Some(kept)
    }

    /// Places a new or changed task as the newest of its owner. Room was made before.
    pub fn place(&mut self, mut kept: KeptTask) {
        self.last += 1;
        kept.number = self.last;
        let (id, size) = (kept.task.id.clone(), kept.size());
        self.bytes += size;
        if kept.rests.is_some() {
            self.resting.insert(kept.number, id.clone());
        }
        let owned = self.owners.entry(kept.owner.clone()).or_default();
        owned.bytes += size;
        owned.ids.insert(kept.number, id.clone());
        owned.heard.extend(kept.heard.iter().map(|mark| (*mark, id.clone())));
        self.tasks.insert(id, kept);
    }

    /// Lists the owners of tasks.
    pub fn owners(&self) -> impl Iterator<Item = &Principal> {
        self.owners.keys()
    }

    /// Lists the tasks of `owner` with the numbers of their last changes, newest first.
    pub fn of_owner(&self, owner: &Principal) -> impl Iterator<Item = (u64, &ServedTask)> {
        let ids = self.owners.get(owner).into_iter().flat_map(|owned| owned.ids.iter().rev());
        ids.filter_map(|(number, id)| Some((*number, &self.tasks.get(id)?.task)))
    }

    /// Drops tasks that have rested for `kept`.
    pub fn expire(&mut self, kept: Duration) {
        while let Some((_, id)) = self.resting.first_key_value() {
            let rests = self.tasks.get(id).and_then(|task| task.rests);
            if rests.is_some_and(|since| since.elapsed() < kept) {
                return;
            }
            let id = id.clone();
            if self.remove(&id).is_none() {
                self.resting.pop_first();
            }
        }
    }

    /// Makes room for a task of `owner` with so many bytes by dropping the longest at rest of the same caller; working tasks stay.
    pub fn make_room(&mut self, owner: &Principal, bytes: usize) -> Result<(), ClientRefusal> {
        loop {
            let (count, own_bytes) = self.owners.get(owner).map_or((0, 0), |owned| (owned.ids.len(), owned.bytes));
            let is_room =
                count < MOST_OF_CALLER && self.tasks.len() < MOST && own_bytes + bytes <= BYTES_OF_CALLER && self.bytes + bytes <= BYTES;
            if is_room {
                return Ok(());
            }
            let ids = self.owners.get(owner).into_iter().flat_map(|owned| &owned.ids);
            let Some(oldest) = ids.filter(|(number, _)| self.resting.contains_key(number)).map(|(_, id)| id.clone()).next() else {
                let text = "The gate has no room for more tasks of this caller; try again later.";
                return Err(ClientRefusal::new(RefusalReason::Crowded, text));
            };
            self.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use banyan_model::PrincipalKind;

    use super::*;

    fn kept(owner: &str, id: usize, bytes: usize, rests: bool) -> KeptTask {
        let words = Some(" ".repeat(bytes));
        let task = ServedTask {
            id: id.to_string(),
            context: String::new(),
            state: TaskState::Working,
            changed: 0,
            words,
            question: None,
            artifacts: None,
        };
        let call = SkillCall { skill: String::new(), arguments: String::new(), extension: None };
        let kept = KeptTask::new(Principal::new(PrincipalKind::Token, owner), task, call, watch::channel(TaskState::Working).0);
        KeptTask { rests: rests.then(Instant::now), ..kept }
    }

    fn is_summed(shelf: &TaskShelf) -> bool {
        let sum = |own: &OwnedTasks| own.ids.values().map(|id| shelf.tasks[id].size()).sum::<usize>() == own.bytes;
        let resting = shelf.tasks.values().filter(|kept| kept.rests.is_some()).count();
        shelf.bytes == shelf.tasks.values().map(KeptTask::size).sum::<usize>()
            && shelf.owners.values().all(sum)
            && shelf.owners.values().map(|own| own.ids.len()).sum::<usize>() == shelf.tasks.len()
            && shelf.resting.len() == resting
    }

    #[test]
    fn sums_follow_every_change() {
        let mut shelf = TaskShelf::default();
        for id in 0..100 {
            shelf.place(kept(["a", "b", "c"][id % 3], id, id, id % 2 == 0));
            assert!(is_summed(&shelf));
        }
        for id in (0..100).step_by(3) {
            let mut task = shelf.remove(&id.to_string()).unwrap();
            assert!(is_summed(&shelf));
            task.task.words = None;
            task.rests = task.rests.is_none().then(Instant::now);
            shelf.place(task);
            assert!(is_summed(&shelf));
        }
        shelf.expire(Duration::ZERO);
        assert!(is_summed(&shelf) && shelf.resting.is_empty());
        assert!(shelf.tasks.values().all(|kept| kept.rests.is_none()) && !shelf.tasks.is_empty());
    }

    #[test]
    fn the_longest_at_rest_gives_way() {
        let mut shelf = TaskShelf::default();
        shelf.place(kept("b", 0, BYTES_OF_CALLER / 2, true));
        shelf.place(kept("a", 1, BYTES_OF_CALLER / 2, false));
        shelf.place(kept("a", 2, BYTES_OF_CALLER / 4, true));
        shelf.place(kept("a", 3, 10, true));
        let owner = Principal::new(PrincipalKind::Token, "a");
        shelf.make_room(&owner, BYTES_OF_CALLER / 3).unwrap();
        assert_eq!(["0", "1", "2", "3"].map(|id| shelf.get(id).is_some()), [true, true, false, true]);
        assert!(shelf.make_room(&owner, BYTES_OF_CALLER).is_err());
        assert!(shelf.get("0").is_some() && is_summed(&shelf));
    }
}
