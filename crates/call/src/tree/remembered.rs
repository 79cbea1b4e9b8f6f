//! Names that answers mentioned and later requests will use: tasks and resources, and whose they are. Bounded; nothing of an answer is kept but
//! these names.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use banyan_model::{Principal, Segment};
use mcp_proto::resource_index::Seen;
use policy::decide::Verdict;

const SEEN_BYTES: usize = 1 << 20;
/// Most tasks that are known, in all and of one principal.
const MOST_TASKS: usize = 100_000;
const MOST_OF_PRINCIPAL: usize = 10_000;
/// Name of the owner of tasks whose principal comes no more. No principal is called like this.
const NOBODY: &str = "";
/// Longest id of a task that is kept or followed, in bytes.
pub const LONGEST_ID: usize = 512;

/// URIs seen in results.
#[derive(Debug)]
pub struct SeenUris(Mutex<Seen>);

impl Default for SeenUris {
    fn default() -> Self {
        Self::new()
    }
}

impl SeenUris {
    /// Makes an empty memory.
    pub fn new() -> Self {
        Self(Mutex::new(Seen::new(SEEN_BYTES)))
    }

    /// Whose result mentioned `uri`.
    pub fn find(&self, uri: &str) -> Option<Segment> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).owner(uri)
    }

    /// Keeps URIs that a result of `mount` mentioned.
    pub fn note(&self, mount: &Segment, uris: &[String]) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        uris.iter().for_each(|uri| seen.note(mount, uri));
    }
}

/// Whose a task is. A task belongs to the principal that began it.
#[derive(Debug, Default)]
pub struct Tasks(Mutex<Owners>);

#[derive(Debug, Default)]
struct Owners {
    /// Ids are a server's own, so that two may give the same one.
    of: HashMap<String, Vec<(Principal, Begun)>>,
    /// The ids of each principal, oldest first.
    order: HashMap<Principal, VecDeque<String>>,
    count: usize,
}

/// The call that began a task.
#[derive(Debug, Clone)]
pub struct Begun {
    /// The mount that runs the task.
    pub mount: Segment,
    /// The tool that was called, in the words of its server; empty: another method began the task.
    pub tool: Box<str>,
    /// Verdict of the rules about the call, and the digest of these rules.
    pub verdict: Option<([u8; 32], Arc<Verdict>)>,
}

/// Whose a task is, seen from one principal.
#[derive(Debug)]
pub enum Whose {
    /// Somebody else's.
    Foreign,
    /// Its own.
    Own(Begun),
    /// Nobody is known to have begun it.
    Unknown,
}

impl Tasks {
    /// Whose task `id` is, as `principal` sees it.
    pub fn of(&self, principal: &Principal, id: &str) -> Whose {
        let owners = self.lock();
        let Some(of) = owners.of.get(id) else { return Whose::Unknown };
        of.iter().rfind(|(p, _)| p == principal).map_or(Whose::Foreign, |(_, begun)| Whose::Own(begun.clone()))
    }

    /// Who began task `id` at `mount`.
    pub fn began(&self, mount: &Segment, id: &str) -> Option<Principal> {
        self.lock().of.get(id)?.iter().rfind(|(_, begun)| begun.mount == *mount).map(|(principal, _)| principal.clone())
    }

    /// Keeps the tasks of a principal from whoever bears its name from now on: they stay somebody's, and nobody comes for them.
    pub fn disown(&self, principal: &str) {
        let owners = &mut *self.lock();
        let (before, nobody) = (Principal { name: principal.into() }, Principal { name: NOBODY.into() });
        let ids = owners.order.remove(&before).unwrap_or_default();
        for id in ids {
            let Some(of) = owners.of.get_mut(&id) else { continue };
            let is_known = of.iter().any(|(owner, _)| *owner == nobody);
            of.iter_mut().filter(|(owner, _)| *owner == before).for_each(|(owner, _)| *owner = nobody.clone());
            if is_known {
                owners.count -= 1;
            } else {
                owners.order.entry(nobody.clone()).or_default().push_back(id);
            }
        }
    }

    /// Keeps a task as one that `principal` began.
    pub fn note(&self, principal: &Principal, id: &str, begun: Begun) {
        if id.len() > LONGEST_ID {
            return;
        }
        let owners = &mut *self.lock();
        let of = owners.of.entry(id.to_owned()).or_default();
        let is_known = of.iter().any(|(p, _)| p == principal);
        of.retain(|(_, b)| b.mount != begun.mount);
        of.push((principal.clone(), begun));
        if is_known {
            return;
        }
        owners.order.entry(principal.clone()).or_default().push_back(id.to_owned());
        owners.count += 1;
        if owners.order.get(principal).is_some_and(|own| own.len() > MOST_OF_PRINCIPAL) {
            owners.forget_oldest(principal);
        }
        if owners.count > MOST_TASKS
            && let Some((most, _)) = owners.order.iter().max_by_key(|(_, ids)| ids.len())
        {
            // Whoever begins the most tasks takes none of anybody else's.
            owners.forget_oldest(&most.clone());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Owners> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Owners {
    fn forget_oldest(&mut self, principal: &Principal) {
        let Some(ids) = self.order.get_mut(principal) else { return };
        let Some(oldest) = ids.pop_front() else { return };
        if ids.is_empty() {
            self.order.remove(principal);
        }
        self.count -= 1;
        if let Some(of) = self.of.get_mut(&oldest) {
            of.retain(|(p, _)| p != principal);
            if of.is_empty() {
                self.of.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h3_who_begins_many_tasks_takes_nobody_elses() {
        let tasks = Tasks::default();
        let [many, one] = ["many", "one"].map(|name| Principal { name: name.into() });
        let begun = || Begun { mount: Segment::nearest("m"), tool: "t".into(), verdict: None };
        tasks.note(&one, "hers", begun());
        (0..=MOST_OF_PRINCIPAL).for_each(|n| tasks.note(&many, &n.to_string(), begun()));
        assert!(matches!(tasks.of(&one, "hers"), Whose::Own(_)) && matches!(tasks.of(&many, "hers"), Whose::Foreign));
        assert!(matches!(tasks.of(&many, "0"), Whose::Unknown) && matches!(tasks.of(&many, "1"), Whose::Own(_)));
        assert_eq!(tasks.lock().count, MOST_OF_PRINCIPAL + 1);
        tasks.note(&one, &"x".repeat(LONGEST_ID + 1), begun());
        assert_eq!(tasks.lock().count, MOST_OF_PRINCIPAL + 1, "what is too long is not kept");
    }

    #[test]
    fn h3_disowned_tasks_stay_foreign_and_are_counted_once() {
        let tasks = Tasks::default();
        let [ann, bob] = ["ann", "bob"].map(|name| Principal { name: name.into() });
        let begun = |mount| Begun { mount: Segment::nearest(mount), tool: "t".into(), verdict: None };
        ["1", "2"].iter().for_each(|id| tasks.note(&ann, id, begun("m")));
        tasks.note(&bob, "1", begun("n"));
        for mount in ["m", "o"] {
            tasks.note(&ann, "1", begun(mount));
            tasks.disown("ann");
            assert!(["1", "2"].iter().all(|id| matches!(tasks.of(&ann, id), Whose::Foreign)));
            assert!(matches!(tasks.of(&bob, "1"), Whose::Own(_)) && matches!(tasks.of(&bob, "2"), Whose::Foreign));
        }
        let owners = tasks.lock();
        assert_eq!((owners.count, owners.order.values().map(VecDeque::len).sum::<usize>()), (3, 3));
    }

    #[test]
    fn h3_of_all_tasks_so_many_are_known_and_whoever_began_the_most_loses_the_oldest() {
        let tasks = Tasks::default();
        let begin = |who: &str, from: usize, many: usize| {
            let principal = Principal { name: who.into() };
            for n in from..from + many {
                tasks.note(&principal, &format!("{who}-{n}"), Begun { mount: Segment::nearest("m"), tool: "t".into(), verdict: None });
            }
        };
        begin("most", 0, MOST_OF_PRINCIPAL);
        (0..91).for_each(|who| begin(&format!("p{who}"), 0, 1000));
        assert_eq!(tasks.lock().count, MOST_TASKS);
        let knows = |who: &str, n: usize| matches!(tasks.of(&Principal { name: who.into() }, &format!("{who}-{n}")), Whose::Own(_));
        assert!(knows("p0", 0) && knows("p90", 999), "they have fewer");
        assert!(!knows("most", 999) && knows("most", 1000));
        begin("p0", 1000, 1);
        let owners = tasks.lock();
        assert_eq!((owners.count, owners.of.len()), (MOST_TASKS, MOST_TASKS));
    }
}
