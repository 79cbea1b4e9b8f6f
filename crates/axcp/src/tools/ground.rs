//! Ground of all links' tools: room for calls, keys of calls that outlive a link, and the tools of peers. Calls nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use axcp_proto::invocation::KeptCalls;
use call::judge::gate::Gate;
use runtime::clock;

use crate::room::CallRoom;
use crate::tools::served::CallWaiter;
use crate::tools::shelf::OfferShelf;

/// Ground of the tools of all links.
pub(crate) struct ToolGround {
    pub(crate) gate: Arc<Gate>,
    pub(crate) offers: Arc<OfferShelf>,
    /// Room for calls of peers.
    pub(crate) served: Arc<CallRoom>,
    /// Room for calls to peers.
    pub(crate) outgoing: Arc<CallRoom>,
    keys: Mutex<BTreeMap<Arc<str>, Arc<CallKeys>>>,
}

/// Idempotency keys of one peer, over all its links.
pub(crate) struct CallKeys {
    calls: Mutex<KeptCalls<CallWaiter>>,
    began: Instant,
}

impl ToolGround {
    pub(crate) fn new(gate: Arc<Gate>) -> Arc<Self> {
        let offers = OfferShelf::new(Arc::clone(&gate));
        Arc::new(Self { gate, offers, served: Arc::default(), outgoing: Arc::default(), keys: Mutex::default() })
    }

    /// Gives the keys of a configured peer.
    pub(crate) fn keys(&self, peer: &Arc<str>) -> Arc<CallKeys> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || Arc::new(CallKeys { calls: Mutex::default(), began: clock::now() });
        Arc::clone(keys.entry(Arc::clone(peer)).or_insert_with(made))
    }
}

impl CallKeys {
    /// Works on the keys at the present time in milliseconds.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut KeptCalls<CallWaiter>, u64) -> T) -> T {
        let now = u64::try_from(clock::now().saturating_duration_since(self.began).as_millis()).unwrap_or(u64::MAX);
        let mut calls: MutexGuard<'_, _> = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut calls, now)
    }
}
