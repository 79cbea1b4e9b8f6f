//! Calls held by gates below, by those gates' own notices: shown here, and confirmed there. A notice is bounded, and believed only of the
//! gate behind its own mount. Decides nothing.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use banyan_model::Segment;
use bytes::Bytes;
use mcp_proto::json::{self, Members};
use mcp_proto::splice::{self, Change};
use runtime::reach::is_loopback;
use url::Url;

use crate::tree::snapshot::{Branch, Tree};

/// Most calls remembered; the mount with the most loses its earliest to expire.
const MOST: usize = 1000;
/// Most calls remembered of one mount; its earliest to expire gives way.
const MOST_OF_ONE: usize = 100;
/// Longest wait of a call, whatever its gate says, in seconds.
const LONGEST: u64 = 86_400;
/// Seconds for which the mount of a finished call is remembered, so that a late confirmation still gets its answer from the gate below.
const REMEMBERED: u64 = 3600;
/// Longest notice of a gate about a call, in bytes.
const MOST_BYTES: usize = 1 << 20;
/// Longest address that is shown, in bytes.
const LONGEST_LINK: usize = 2048;

/// Calls held below, by the id that the gate below gave them.
#[derive(Debug, Default)]
pub struct Below(Mutex<BTreeMap<String, HeldBelow>>);

/// A call held by a gate below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldBelow {
    /// Mount with the gate behind it.
    pub mount: Segment,
    /// Id of the holding gate, named in its challenge.
    pub gate: String,
    /// The gate behind the mount is vouched for by more than the server's own claim.
    pub is_vouched: bool,
    /// Notice of the gate: a raw object, with an address to open as `url` if any.
    pub data: Bytes,
    /// Last time for agreement: Unix time, in seconds.
    expires: u64,
}

impl HeldBelow {
    /// Reads the notice of a gate behind `branch` about a call, with its id; `own` is the id of this gate. `None` for a notice without a
    /// call, or about a gate that is not behind the mount: a signature on such a challenge would agree to somebody else's call.
    pub fn read(tree: &Tree, branch: &Branch, own: &str, data: &Bytes, now: u64) -> Option<(String, Self)> {
        if data.len() > MOST_BYTES {
            return None;
        }
        let (id, members) = (Below::id(data)?, Members::again(data));
        let challenge = members.str("challenge")?;
        let signed = Members::parse(challenge.as_bytes(), json::Duplicates::RefuseDeep).ok()?;
        let gate = signed.str("gate")?.into_owned();
        let is_vouched = branch.role.is_vouched();
        let is_elsewhere = || tree.branches.iter().any(|other| other.role.is_vouched() && other.has_gate(&gate));
        if gate == own || signed.str("id")? != id || !branch.has_gate(&gate) || (!is_vouched && is_elsewhere()) {
            return None;
        }
        let said = members.get("expires").and_then(|raw| std::str::from_utf8(raw).ok()?.parse().ok());
        let expires = said.unwrap_or(now).min(now.saturating_add(LONGEST));
        let link = members.str("url").and_then(|url| link(&url)).filter(|_| is_vouched).map(|link| json::quote(&link));
        let (until, link) = (expires.to_string(), link.unwrap_or_else(|| "\"\"".to_owned()));
        let changes = [("expires", Change::Set(until.as_bytes())), ("url", Change::Set(link.as_bytes()))];
        let data = splice::edit(data, &changes).into();
        Some((id, Self { mount: branch.mount.config.name.clone(), gate, is_vouched, data, expires }))
    }
}

/// Address of a gate below to which people may be sent: over TLS, or on this machine.
fn link(text: &str) -> Option<String> {
    let url = Url::parse(text).ok().filter(|_| text.len() <= LONGEST_LINK)?;
    let is_bare = url.username().is_empty() && url.password().is_none();
    (is_bare && (url.scheme() == "https" || (url.scheme() == "http" && is_loopback(&url)))).then(|| url.to_string())
}

impl Below {
    /// Reads the id of a held call from a gate's notice.
    pub fn id(data: &Bytes) -> Option<String> {
        Some(Members::again(data).str("id").filter(|id| !id.is_empty() && id.len() <= 64)?.into_owned())
    }

    /// Notes a held call; `false` if another gate gave the same id before.
    pub fn note(&self, id: &str, held: HeldBelow, now: u64) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, held| held.expires.saturating_add(REMEMBERED) > now);
        // The first gate with an id keeps it, and no other gate is asked about it.
        if let Some(before) = all.get_mut(id) {
            let is_own = before.mount == held.mount && before.gate == held.gate;
            if is_own {
                *before = held;
            }
            return is_own;
        }
        let mut counts: BTreeMap<&Segment, usize> = BTreeMap::new();
        all.values().for_each(|held| *counts.entry(&held.mount).or_default() += 1);
        let fullest = || counts.iter().max_by_key(|(_, count)| **count).map(|(mount, _)| Segment::clone(mount));
        let is_own_full = counts.get(&held.mount).is_some_and(|count| *count >= MOST_OF_ONE);
        let full = if is_own_full { Some(held.mount.clone()) } else { fullest().filter(|_| all.len() >= MOST) };
        if let Some(mount) = full {
            let own = all.iter().filter(|(_, held)| held.mount == mount);
            let first = own.min_by_key(|(_, held)| held.expires).map(|(id, _)| id.clone());
            all.remove(&first.unwrap_or_default());
        }
        all.insert(id.to_owned(), held);
        true
    }

    /// Finds a call by id.
    pub fn find(&self, id: &str) -> Option<HeldBelow> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// Calls that can still be agreed to.
    pub fn all(&self, now: u64) -> Vec<(String, HeldBelow)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter(|(_, held)| held.expires > now).map(|(id, held)| (id.clone(), held.clone())).collect()
    }

    /// Notes that a call waits no more, and remembers its mount.
    pub fn freed(&self, id: &str, now: u64) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = all.get_mut(id) {
            held.expires = held.expires.min(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(mount: &str, expires: u64) -> HeldBelow {
        HeldBelow { mount: Segment::nearest(mount), gate: mount.into(), is_vouched: true, data: Bytes::from_static(b"{}"), expires }
    }

    #[test]
    fn ax_47_calls_held_below_are_asked_there_only() {
        let below = Below::default();
        assert!(below.note("x", held("one", 100), 1));
        assert!(!below.note("x", held("other", 100), 1));
        assert_eq!(below.find("x").unwrap().mount.as_str(), "one");
        assert_eq!((below.all(99).len(), below.all(100).len()), (1, 0));
        assert!(below.find("x").is_some(), "who confirms it now hears from that gate that it expired");
        below.freed("x", 5);
        assert!(below.all(5).is_empty() && below.find("x").is_some());
        assert!(!below.note("x", held("other", 100), 6), "nor does anybody else get it now");
        assert!(below.note("x", held("one", 100), 6) && below.all(6).len() == 1, "it waits once more");
    }

    #[test]
    fn m13_one_gate_below_crowds_out_nothing_that_others_hold() {
        let below = Below::default();
        assert!(below.note("mine", held("one", 10), 1));
        (0..5000).for_each(|n| assert!(below.note(&format!("flood {n}"), held("loud", 50_000 + n), 1)));
        assert_eq!(below.all(1).len(), 1 + MOST_OF_ONE);
        for gate in 0..40 {
            (0..MOST_OF_ONE).for_each(|n| assert!(below.note(&format!("{gate} {n}"), held(&format!("g{gate}"), 60_000), 1)));
        }
        assert!(below.all(1).len() <= MOST && below.find("mine").is_some());
        assert!(below.note("late", held("one", 200_000), 100_000) && below.all(0).len() == 1, "what is over is forgotten");
    }

    #[test]
    fn l12_people_are_sent_over_tls_or_to_this_machine() {
        for good in ["https://gate.example/-/console/#/approvals/1", "http://127.0.0.1:7411/x", "http://localhost/x"] {
            assert_eq!(link(good).as_deref(), Some(good));
        }
        for bad in ["javascript:alert(1)", "http://gate.example/", "data:text/html,x", "https://user:word@gate.example/", "", "x"] {
            assert_eq!(link(bad), None, "{bad}");
        }
        assert_eq!(link(&format!("https://gate.example/{}", "x".repeat(LONGEST_LINK))), None);
    }
}
