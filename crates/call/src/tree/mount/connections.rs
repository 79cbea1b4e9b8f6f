//! Connections of a mount: the shared one, those of single clients, and wake-ups for their keepers. Does not know their uses.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;
use mcp_proto::catalog::Kind;
use tokio::sync::{Notify, watch};

use crate::tree::mount::agreement::{AnnouncedChanges, Freshness};
use crate::tree::mount::lease::Clients;
use crate::tree::mount::subscribed::ResourceSubscriptions;
use crate::tree::port::Instance;
use crate::tree::stderr::Stderr;

/// Connections to a server.
#[derive(Default)]
pub struct Connections {
    pub stderr: Arc<Stderr>,
    pub shared: ArcSwapOption<Instance>,
    /// Wakes the supervisor: something is to be fetched or tried.
    pub wake: Notify,
    /// Wakes the supervisor from its wait for the next try.
    pub again: Notify,
    /// Server's last agreement to an unnamed stream; changes with every agreement, or when none will come.
    pub agreed: watch::Sender<Option<AnnouncedChanges>>,
    pub freshness: Freshness,
    pub subscribed: ResourceSubscriptions,
    /// The server was seen to ask during a call.
    pub asks: AtomicBool,
    /// The server was seen to ask for roots outside of calls.
    pub asks_roots: AtomicBool,
    /// Calls on the shared connection whose callers can be asked.
    pub asking: AtomicUsize,
    pub inner: Mutex<ConnectionState>,
}

/// Changing state of a mount's connections.
#[derive(Default)]
pub struct ConnectionState {
    pub dirty: BTreeSet<Kind>,
    /// Reason to replace the shared connection, if any.
    pub reconnect: Option<&'static str>,
    /// Connections of single sessions, by session id.
    pub own: HashMap<Arc<str>, Arc<Instance>>,
    /// Connections of single clients of the stateless era.
    pub clients: Clients,
    /// Connections without a call at present.
    pub leases: Vec<Arc<Instance>>,
}

impl Connections {
    /// Removes a connection whose session the server has forgotten.
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

    /// Replaces the shared connection if `is` recognises it as the useless one.
    pub fn replace_shared(&self, is: impl Fn(&Instance) -> bool, why: &'static str) {
        if self.shared.load().as_deref().is_some_and(is) {
            self.lock().reconnect = Some(why);
            self.wake.notify_one();
        }
    }

    /// Takes the reason to replace the shared connection, if any.
    pub fn take_reconnect(&self) -> Option<&'static str> {
        self.lock().reconnect.take()
    }

    /// Restarts the server on a person's demand: at once, and without the waits earned by failures.
    pub fn restart(&self) {
        if self.shared.load().is_some() {
            self.lock().reconnect = Some("somebody asked for a restart");
            self.wake.notify_one();
        }
        self.again.notify_one();
    }

    /// Last words of the process, if any.
    pub fn last_words(&self) -> String {
        self.shared.load().as_deref().map_or_else(|| "the connection was closed".into(), |shared| shared.upstream.last_words())
    }

    /// Notes that lists must be fetched anew.
    pub fn dirty(&self, kinds: &[Kind]) {
        self.lock().dirty.extend(kinds);
        self.wake.notify_one();
    }

    /// The server tells of changes from now on, or never will.
    pub fn agree(&self, honoured: Option<AnnouncedChanges>) {
        self.agreed.send_replace(honoured);
    }

    /// The lists to fetch anew, taken away.
    pub fn take_dirty(&self) -> BTreeSet<Kind> {
        std::mem::take(&mut self.lock().dirty)
    }

    /// Notes output of the server that is no message.
    pub fn noise(&self, what: &str) {
        self.stderr.push(&format!("[stdout, not MCP] {what}"));
    }

    /// Locks the changing state.
    pub fn lock(&self) -> MutexGuard<'_, ConnectionState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
