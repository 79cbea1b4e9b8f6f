//! What answers mention and later requests will name: tasks and resources, and whose they are. Bounded.
//! Nothing of an answer is kept but these names.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use banyan_model::{Method, Principal, Segment};
use mcp_proto::envelope::Answer;
use mcp_proto::json::{self, Object};
use mcp_proto::resource_index::Seen;

use super::caller::Caller;
use super::key;
use crate::Inner;
use crate::tree::Branch;

/// Results longer than this are not searched for URIs.
const SEARCHED: usize = 256 << 10;
const SEEN_BYTES: usize = 1 << 20;
const MOST_TASKS: usize = 100_000;

/// URIs seen in results.
#[derive(Debug)]
pub(crate) struct SeenUris(Mutex<Seen>);

impl SeenUris {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Seen::new(SEEN_BYTES)))
    }

    /// Whose result mentioned `uri`.
    pub(crate) fn find(&self, uri: &str) -> Option<Segment> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).owner(uri)
    }

    fn note(&self, mount: &Segment, uris: &[String]) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        uris.iter().for_each(|uri| seen.note(mount, uri));
    }
}

/// Whose a task is. A task belongs to the principal that began it.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Mutex<Owners>);

#[derive(Debug, Default)]
struct Owners {
    /// Ids are a server's own, so that two may give the same one.
    of: HashMap<String, Vec<(Principal, Segment)>>,
    /// Oldest first.
    order: VecDeque<String>,
}

/// Whose a task is, seen from one principal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Somebody else's.
    Foreign,
    /// Its own; the mount that runs it.
    Own(Segment),
    /// Nobody is known to have begun it.
    Unknown,
}

impl Tasks {
    /// Whose task `id` is, as `principal` sees it.
    pub(crate) fn of(&self, principal: &Principal, id: &str) -> Whose {
        let owners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(of) = owners.of.get(id) else { return Whose::Unknown };
        of.iter().rfind(|(p, _)| p == principal).map_or(Whose::Foreign, |(_, mount)| Whose::Own(mount.clone()))
    }

    /// Who began task `id` at `mount`.
    pub(crate) fn began(&self, mount: &Segment, id: &str) -> Option<Principal> {
        let owners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        owners.of.get(id)?.iter().rfind(|(_, m)| m == mount).map(|(principal, _)| principal.clone())
    }

    fn note(&self, principal: &Principal, id: &str, mount: &Segment) {
        let mut owners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of = owners.of.entry(id.to_owned()).or_default();
        let fresh = of.is_empty();
        of.retain(|(_, m)| m != mount);
        of.push((principal.clone(), mount.clone()));
        if fresh {
            owners.order.push_back(id.to_owned());
        }
        while owners.order.len() > MOST_TASKS {
            if let Some(old) = owners.order.pop_front() {
                owners.of.remove(&old);
            }
        }
    }
}

/// Notes the tasks and URIs of an answer.
pub(crate) fn remember(gateway: &Inner, owner: &Branch, caller: &Caller, method: Method, answer: &Answer) {
    let Answer::Result(result) = answer else { return };
    let mount = &owner.mount.config.name;
    // Who asks about a task has not begun it.
    if method != Method::Task
        && let Some(id) = task_id(result)
    {
        gateway.tasks.note(&caller.principal, &id, mount);
    }
    if owner.has_resources && result.len() <= SEARCHED {
        let uris = uris(result);
        if !uris.is_empty() {
            gateway.seen.note(mount, &uris);
        }
    }
}

/// The id of the task a result begins: at the top (2026-07-28), or in `task` (2025-11-25).
fn task_id(result: &Object) -> Option<String> {
    let members = result.members();
    members.str("taskId").or_else(|| members.object("task")?.str("taskId")).map(|id| id.into_owned())
}

/// The text of every member named `uri`, wherever it stands.
fn uris(result: &[u8]) -> Vec<String> {
    let mut out = Vec::new();
    if key::is_escaped(result) {
        // The key may be spelled in many ways: every string is looked at.
        let mut at = 0;
        while let Some(start) = memchr::memchr(b'"', &result[at..]).map(|start| at + start) {
            let Some(length) = string_end(&result[start..]) else { break };
            at = start + length;
            if key::value(&result[at..]).is_some() && json::as_str(&result[start..at]).as_deref() == Some("uri") {
                out.extend(text_of(&result[at..]));
            }
        }
    } else {
        out.extend(memchr::memmem::find_iter(result, b"\"uri\"").filter_map(|at| text_of(&result[at + 5..])));
    }
    out
}

/// The value of the key that stands before `rest`, where that is text.
fn text_of(rest: &[u8]) -> Option<String> {
    let value = key::value(rest)?;
    json::as_str(&value[..string_end(value)?]).map(|text| text.into_owned())
}

/// Where the JSON string at the start of `text` ends.
fn string_end(text: &[u8]) -> Option<usize> {
    let mut escaped = false;
    let inner = text.strip_prefix(b"\"")?;
    inner
        .iter()
        .position(|b| {
            let ends = *b == b'"' && !escaped;
            escaped = *b == b'\\' && !escaped;
            ends
        })
        .map(|at| at + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_and_task_ids_are_found_in_results() {
        let raw = br#"{"content":[{"type":"resource_link","uri" : "a://\"b"},{"uri":5},{"x":{"uri":"c://d"}}]}"#;
        assert_eq!(uris(raw), ["a://\"b", "c://d"]);
        let spelled = br#"{"a":"\"uri\":","\u0075r\u0069":"a://1","uri":"b://\u0032","u\u0072\u0069":{"uri":7,"x":"uri"}}"#;
        assert_eq!(uris(spelled), ["a://1", "b://2"]);
        assert_eq!(uris(br#"{"\u0075ri":"a://b","x":"\\"}"#), ["a://b"]);
        let task = |raw: &'static [u8]| task_id(&bytes::Bytes::from_static(raw).into());
        assert_eq!(task(br#"{"resultType":"task","taskId":"t1"}"#).as_deref(), Some("t1"));
        assert_eq!(task(br#"{"task":{"taskId":"t2"}}"#).as_deref(), Some("t2"));
    }
}
