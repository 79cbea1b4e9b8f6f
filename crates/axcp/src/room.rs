//! Room for calls under way, in number and in bytes: for each peer, and for all. Knows no call.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Calls of a peer, and of all peers.
const MOST_CALLS: [usize; 2] = [32, 128];
/// Bytes of the calls of a peer, and of all peers: arguments, and results until they are sent.
const MOST_BYTES: [usize; 2] = [16 * 1024 * 1024, 64 * 1024 * 1024];

/// Room for the calls of all peers in one direction.
#[derive(Debug, Default)]
pub(crate) struct CallRoom(Mutex<BTreeMap<Arc<str>, TakenShare>>);

/// Calls and bytes of one peer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct TakenShare {
    calls: usize,
    bytes: usize,
}

/// Room of one call, free again at the end of the value.
#[derive(Debug)]
pub(crate) struct CallPlace {
    room: Arc<CallRoom>,
    peer: Arc<str>,
    bytes: usize,
}

impl CallRoom {
    /// Takes room for a call; `None`: there is none.
    pub(crate) fn take_place(self: &Arc<Self>, peer: &Arc<str>, bytes: usize) -> Option<CallPlace> {
        let mut shares = self.lock();
        let share = fits(&shares, peer, TakenShare { calls: 1, bytes })?;
        shares.insert(Arc::clone(peer), share);
        Some(CallPlace { room: Arc::clone(self), peer: Arc::clone(peer), bytes })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, TakenShare>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallPlace {
    /// Takes room for `bytes` besides those of the call. Tells if there was room.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let mut shares = self.room.lock();
        let Some(share) = fits(&shares, &self.peer, TakenShare { calls: 0, bytes }) else { return false };
        shares.insert(Arc::clone(&self.peer), share);
        self.bytes += bytes;
        true
    }
}

impl Drop for CallPlace {
    fn drop(&mut self) {
        let mut shares = self.room.lock();
        let share = shares.get(&self.peer).copied().unwrap_or_default();
        let left = TakenShare { calls: share.calls.saturating_sub(1), bytes: share.bytes.saturating_sub(self.bytes) };
        if left.calls == 0 {
            shares.remove(&self.peer);
        } else {
            shares.insert(Arc::clone(&self.peer), left);
        }
    }
}

/// Gives the share of a peer with more in it, if both bounds allow.
fn fits(shares: &BTreeMap<Arc<str>, TakenShare>, peer: &str, more: TakenShare) -> Option<TakenShare> {
    let own = shares.get(peer).copied().unwrap_or_default();
    let own = TakenShare { calls: own.calls + more.calls, bytes: own.bytes.saturating_add(more.bytes) };
    let calls = shares.values().map(|share| share.calls).sum::<usize>() + more.calls;
    let bytes = shares.values().fold(more.bytes, |sum, share| sum.saturating_add(share.bytes));
    let fits = own.calls <= MOST_CALLS[0] && calls <= MOST_CALLS[1] && own.bytes <= MOST_BYTES[0] && bytes <= MOST_BYTES[1];
    fits.then_some(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(room: &Arc<CallRoom>, peer: &str, bytes: usize) -> Vec<CallPlace> {
        std::iter::from_fn(|| room.take_place(&peer.into(), bytes)).collect()
    }

    #[test]
    fn xc_21_the_calls_of_a_peer_are_bounded() {
        let room = Arc::<CallRoom>::default();
        let one = places(&room, "one", 1);
        assert_eq!(one.len(), MOST_CALLS[0]);
        assert!(room.take_place(&"other".into(), 1).is_some(), "another peer has room");
        drop(one);
        assert!(room.lock().is_empty());
        assert_eq!(places(&room, "one", 1024 * 1024).len(), 16);
    }

    #[test]
    fn xc_21_the_calls_of_all_peers_are_bounded() {
        let room = Arc::<CallRoom>::default();
        let all: Vec<_> = (0..10).flat_map(|peer| places(&room, &peer.to_string(), 1)).collect();
        assert_eq!(all.len(), MOST_CALLS[1]);
        drop(all);
        let all: Vec<_> = (0..10).flat_map(|peer| places(&room, &peer.to_string(), MOST_BYTES[0])).collect();
        assert_eq!(all.len(), 4);
    }

    #[test]
    fn xc_21_a_result_takes_room_of_its_own() {
        let room = Arc::<CallRoom>::default();
        let mut place = room.take_place(&"one".into(), 10).unwrap();
        assert!(place.grow(MOST_BYTES[0] - 10) && !place.grow(1));
        assert!(room.take_place(&"one".into(), 1).is_none());
        drop(place);
        assert!(room.lock().is_empty());
    }
}
