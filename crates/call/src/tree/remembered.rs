//! Tasks and resources mentioned in answers, and their owners, for later requests that name them. Bounded. Keeps nothing of an answer but
//! these names.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use banyan_model::{Principal, PrincipalKind, Segment};
use mcp_proto::resource_index::Seen;
use policy::decide::Verdict;

const SEEN_BYTES: usize = 1 << 20;
/// Most tasks known, in all and of each principal.
const MOST_TASKS: usize = 100_000;
const MOST_OF_PRINCIPAL: usize = 10_000;
/// Name for the owner of tasks whose principal is gone. No principal has the name.
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

    /// Mount whose result mentioned `uri`.
    pub fn find(&self, uri: &str) -> Option<Segment> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).owner(uri)
    }

    /// Keeps URIs mentioned in a result of `mount`.
    pub fn note(&self, mount: &Segment, uris: &[String]) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        uris.iter().for_each(|uri| seen.note(mount, uri));
    }
}

/// Owners of tasks: the principals that began them.
#[derive(Debug, Default)]
pub struct Tasks(Mutex<Owners>);

#[derive(Debug, Default)]
struct Owners {
    /// Tasks by id. Two servers may give the same id.
    of: HashMap<String, Vec<(Principal, TaskOrigin)>>,
    /// Ids of each principal, oldest first.
    order: HashMap<Principal, VecDeque<String>>,
    count: usize,
}

/// Call that began a task.
#[derive(Debug, Clone)]
pub struct TaskOrigin {
    /// Mount that runs the task.
    pub mount: Segment,
    /// Tool called, in its server's words; empty if another method began the task.
    pub tool: Box<str>,
    /// Verdict of the rules about the call, and the digest of these rules.
    pub verdict: Option<([u8; 32], Arc<Verdict>)>,
}

/// Ownership of a task, seen from a principal.
#[derive(Debug)]
pub enum Whose {
    /// Another principal began the task.
    Foreign,
    /// This principal began the task.
    Own(TaskOrigin),
    /// No principal is known to have begun the task.
    Unknown,
}

impl Tasks {
    /// Ownership of task `id`, seen by `principal`.
    pub fn ownership(&self, principal: &Principal, id: &str) -> Whose {
        let owners = self.lock();
        let Some(of) = owners.of.get(id) else { return Whose::Unknown };
        of.iter().rfind(|(p, _)| p == principal).map_or(Whose::Foreign, |(_, begun)| Whose::Own(begun.clone()))
    }

    /// Principal that began task `id` at `mount`.
    pub fn began(&self, mount: &Segment, id: &str) -> Option<Principal> {
        self.lock().of.get(id)?.iter().rfind(|(_, begun)| begun.mount == *mount).map(|(principal, _)| principal.clone())
    }

    /// Keeps the tasks of the principal `before` from a later principal of the same name: their owner never comes again.
    pub fn disown(&self, before: &Principal) {
        let owners = &mut *self.lock();
        let nobody = Principal::new(PrincipalKind::Local, NOBODY);
        let ids = owners.order.remove(before).unwrap_or_default();
        for id in ids {
            let Some(of) = owners.of.get_mut(&id) else { continue };
            let is_known = of.iter().any(|(owner, _)| *owner == nobody);
            of.iter_mut().filter(|(owner, _)| *owner == *before).for_each(|(owner, _)| *owner = nobody.clone());
            if is_known {
                owners.count -= 1;
            } else {
                owners.order.entry(nobody.clone()).or_default().push_back(id);
            }
        }
    }

    /// Keeps a task begun by `principal`.
    pub fn note(&self, principal: &Principal, id: &str, begun: TaskOrigin) {
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
            // The principal with the most tasks loses its own oldest, never another's.
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
        let [many, one] = ["many", "one"].map(|name| Principal::new(PrincipalKind::Token, name));
        let begun = || TaskOrigin { mount: Segment::nearest("m"), tool: "t".into(), verdict: None };
        tasks.note(&one, "hers", begun());
        (0..=MOST_OF_PRINCIPAL).for_each(|n| tasks.note(&many, &n.to_string(), begun()));
        assert!(matches!(tasks.ownership(&one, "hers"), Whose::Own(_)) && matches!(tasks.ownership(&many, "hers"), Whose::Foreign));
        assert!(matches!(tasks.ownership(&many, "0"), Whose::Unknown) && matches!(tasks.ownership(&many, "1"), Whose::Own(_)));
        assert_eq!(tasks.lock().count, MOST_OF_PRINCIPAL + 1);
        tasks.note(&one, &"x".repeat(LONGEST_ID + 1), begun());
        assert_eq!(tasks.lock().count, MOST_OF_PRINCIPAL + 1, "what is too long is not kept");
    }

    #[test]
    fn h3_disowned_tasks_stay_foreign_and_are_counted_once() {
        let tasks = Tasks::default();
        let [ann, bob] = ["ann", "bob"].map(|name| Principal::new(PrincipalKind::Token, name));
        let begun = |mount| TaskOrigin { mount: Segment::nearest(mount), tool: "t".into(), verdict: None };
        ["1", "2"].iter().for_each(|id| tasks.note(&ann, id, begun("m")));
        tasks.note(&bob, "1", begun("n"));
        for mount in ["m", "o"] {
            tasks.note(&ann, "1", begun(mount));
            tasks.disown(&ann);
            assert!(["1", "2"].iter().all(|id| matches!(tasks.ownership(&ann, id), Whose::Foreign)));
            assert!(matches!(tasks.ownership(&bob, "1"), Whose::Own(_)) && matches!(tasks.ownership(&bob, "2"), Whose::Foreign));
        }
        let owners = tasks.lock();
        assert_eq!((owners.count, owners.order.values().map(VecDeque::len).sum::<usize>()), (3, 3));
    }

    #[test]
    fn h3_the_principal_with_most_tasks_loses_its_oldest() {
        let tasks = Tasks::default();
        let begin = |who: &str, from: usize, many: usize| {
            let principal = Principal::new(PrincipalKind::Token, who);
            for n in from..from + many {
                tasks.note(&principal, &format!("{who}-{n}"), TaskOrigin { mount: Segment::nearest("m"), tool: "t".into(), verdict: None });
            }
        };
        begin("most", 0, MOST_OF_PRINCIPAL);
        (0..91).for_each(|who| begin(&format!("p{who}"), 0, 1000));
        assert_eq!(tasks.lock().count, MOST_TASKS);
        let knows = |who: &str, n: usize| {
            matches!(tasks.ownership(&Principal::new(PrincipalKind::Token, who), &format!("{who}-{n}")), Whose::Own(_))
        };
        assert!(knows("p0", 0) && knows("p90", 999), "they have fewer");
        assert!(!knows("most", 999) && knows("most", 1000));
        begin("p0", 1000, 1);
        let owners = tasks.lock();
        assert_eq!((owners.count, owners.of.len()), (MOST_TASKS, MOST_TASKS));
    }
}
