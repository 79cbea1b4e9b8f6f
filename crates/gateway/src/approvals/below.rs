//! Calls that a gate below holds, as it told of them: shown here, and confirmed there. Nothing is decided here.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use banyan_model::Segment;
use bytes::Bytes;
use mcp_proto::json::Members;

/// More are not remembered: the earliest to expire goes.
const MOST: usize = 1000;
/// For so long, in seconds, it is still known whose one was that is over, so that whoever confirms it hears that from there.
const REMEMBERED: u64 = 3600;

/// Such calls, by the id that the gate below gave them.
#[derive(Debug, Default)]
pub(crate) struct Below(Mutex<BTreeMap<String, HeldBelow>>);

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeldBelow {
    /// Behind which mount.
    pub(crate) mount: Segment,
    /// What that gate says of it: a raw object.
    pub(crate) data: Bytes,
    /// Until when it can be agreed to: Unix time, in seconds.
    expires: u64,
}

impl Below {
    /// The id by which a gate tells of a call that it holds.
    pub(crate) fn id(data: &Bytes) -> Option<String> {
        Some(Members::again(data).str("id").filter(|id| !id.is_empty() && id.len() <= 64)?.into_owned())
    }

    /// A gate behind `mount` told of a call that it holds; gives the id.
    pub(crate) fn note(&self, mount: &Segment, data: &Bytes, now: u64) -> Option<String> {
        let (id, members) = (Self::id(data)?, Members::again(data));
        let expires = members.get("expires").and_then(|raw| std::str::from_utf8(raw).ok()?.parse().ok()).unwrap_or(now);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, held| held.expires.saturating_add(REMEMBERED) > now);
        if all.len() >= MOST
            && let Some(first) = all.iter().min_by_key(|(_, held)| held.expires).map(|(id, _)| id.clone())
        {
            all.remove(&first);
        }
        // Whoever told of an id first keeps it: nobody else is asked about it.
        let is_own = all.get(&id).is_none_or(|held| held.mount == *mount);
        is_own.then(|| {
            all.insert(id.clone(), HeldBelow { mount: mount.clone(), data: data.clone(), expires });
            id
        })
    }

    /// One of them.
    pub(crate) fn find(&self, id: &str) -> Option<HeldBelow> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// All that can still be agreed to.
    pub(crate) fn all(&self, now: u64) -> Vec<(String, HeldBelow)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter(|(_, held)| held.expires > now).map(|(id, held)| (id.clone(), held.clone())).collect()
    }

    /// It waits no more; whose it was is still known.
    pub(crate) fn freed(&self, id: &str, now: u64) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = all.get_mut(id) {
            held.expires = held.expires.min(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ax_47_what_a_gate_below_holds_is_asked_of_that_gate_alone() {
        let below = Below::default();
        let (one, other) = (Segment::nearest("one"), Segment::nearest("other"));
        let data = Bytes::from_static(br#"{"id":"x","expires":100}"#);
        assert_eq!(below.note(&one, &data, 1).as_deref(), Some("x"));
        assert_eq!(below.note(&other, &data, 1), None);
        assert_eq!(below.find("x").unwrap().mount, one);
        assert_eq!((below.all(99).len(), below.all(100).len()), (1, 0));
        assert!(below.find("x").is_some(), "who confirms it now hears from that gate that it expired");
        below.freed("x", 5);
        assert!(below.all(5).is_empty() && below.find("x").is_some());
        assert_eq!(below.note(&other, &data, 6), None, "nor does anybody else get it now");
        assert_eq!((below.note(&one, &data, 6).as_deref(), below.all(6).len()), (Some("x"), 1), "it waits once more");
        assert_eq!(below.note(&one, &Bytes::from_static(b"{}"), 1), None);
    }
}
