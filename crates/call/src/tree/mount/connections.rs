//! The connections of one mount: the shared one, those of single clients, and what wakes whoever keeps them. What they are for is not known here.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;
use mcp_proto::catalog::Kind;
use tokio::sync::{Notify, watch};

use crate::tree::mount::agreement::{Freshness, Honoured};
use crate::tree::mount::lease::Clients;
use crate::tree::mount::subscribed::Subscribed;
use crate::tree::port::Instance;
use crate::tree::stderr::Stderr;

/// Connections to one server.
#[derive(Default)]
pub struct Connections {
    pub stderr: Arc<Stderr>,
    pub shared: ArcSwapOption<Instance>,
    /// Wakes the supervisor: something is to be fetched or tried.
    pub wake: Notify,
    /// Wakes the supervisor out of its wait for the next try.
    pub again: Notify,
    /// What the server agreed to last where it did not say on which stream; changes whenever it has agreed, or never will.
    pub agreed: watch::Sender<Option<Honoured>>,
    pub freshness: Freshness,
    pub subscribed: Subscribed,
    /// The server was seen to ask during a call.
    pub asks: AtomicBool,
    /// The server was seen to ask for roots outside of calls.
    pub asks_roots: AtomicBool,
    /// How many calls on the shared connection are of callers that can be asked.
    pub asking: AtomicUsize,
    pub inner: Mutex<Changing>,
}

/// State of a mount's connections that changes while it runs.
#[derive(Default)]
pub struct Changing {
    pub dirty: BTreeSet<Kind>,
    /// Why the shared connection is to be replaced, if it is.
    pub reconnect: Option<&'static str>,
    /// Connections of single sessions, by session id.
    pub own: HashMap<Arc<str>, Arc<Instance>>,
    /// Connections of single clients of the stateless era.
    pub clients: Clients,
    /// Connections that no call uses at present.
    pub leases: Vec<Arc<Instance>>,
}

impl Connections {
    /// The server has forgotten a connection's session: it is not used again.
    pub fn forget(&self, instance: &Arc<Instance>) {
        let mut inner = self.lock();
        inner.own.retain(|_, i| !Arc::ptr_eq(i, instance));
        inner.leases.retain(|i| !Arc::ptr_eq(i, instance));
        inner.clients.forget(instance);
        if self.shared.load().as_ref().is_some_and(|s| Arc::ptr_eq(s, instance)) {
            inner.reconnect = Some("its session was lost");
            self.wake.notify_one();
        }
    }

    /// Replaces the shared connection where it `is` that one, of which somebody knows that it is of no use any more.
    pub fn replace_shared(&self, is: impl Fn(&Instance) -> bool, why: &'static str) {
        if self.shared.load().as_deref().is_some_and(is) {
            self.lock().reconnect = Some(why);
            self.wake.notify_one();
        }
    }

    /// Why the shared connection is to be replaced, if it is; asked once.
    pub fn take_reconnect(&self) -> Option<&'static str> {
        self.lock().reconnect.take()
    }

    /// Somebody wants the server started again: at once, and without the waits that failures earn.
    pub fn restart(&self) {
        if self.shared.load().is_some() {
            self.lock().reconnect = Some("somebody asked for a restart");
            self.wake.notify_one();
        }
        self.again.notify_one();
    }

    /// How the process ended, if it is one.
    pub fn last_words(&self) -> String {
        self.shared.load().as_deref().map_or_else(|| "the connection was closed".into(), |shared| shared.upstream.last_words())
    }

    /// Notes that lists must be fetched anew.
    pub fn dirty(&self, kinds: &[Kind]) {
        self.lock().dirty.extend(kinds);
        self.wake.notify_one();
    }

    /// The server tells of changes from now on, or never will.
    pub fn agree(&self, honoured: Option<Honoured>) {
        self.agreed.send_replace(honoured);
    }

    /// The lists to fetch anew, taken away.
    pub fn take_dirty(&self) -> BTreeSet<Kind> {
        std::mem::take(&mut self.lock().dirty)
    }

    /// Something came that is no message.
    pub fn noise(&self, what: &str) {
        self.stderr.push(&format!("[stdout, not MCP] {what}"));
    }

    /// Locks the changing state.
    pub fn lock(&self) -> MutexGuard<'_, Changing> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
