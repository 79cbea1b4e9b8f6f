//! Servers that register themselves (MCP-AX 6): one task owns the deciding machine and the relay of notifications, and everybody else
//! speaks to the task over a bounded channel.
//!
//! Decides nothing: `mesh_proto::parent` does. A registered server is an ordinary mount once in the tree; calls never pass through this
//! module.

pub mod admit;
pub mod asking;
pub mod driver;
pub mod holding;
pub mod holdings;
pub mod inbox;
pub mod input;
pub mod links;
pub mod notices;
pub mod outputs;
pub mod recorded;
pub mod refused;
pub mod rising;
pub mod runner;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use banyan_model::{Principal, Segment};
use bytes::Bytes;
use mcp_proto::envelope::Notification;
use mesh_proto::authority::Identity;
use mesh_proto::id::{LinkId, NodeId, SessionKey};
use mesh_proto::message::Ancestry;
use mesh_proto::refusal::Refusal;
use tokio::sync::{mpsc, oneshot, watch};

use crate::mesh::Mesh;
use crate::registry::inbox::{Inbox, NotificationSource};
use crate::registry::input::{Input, MeshRequest, Way};
use crate::registry::refused::Refusals;

pub use crate::registry::holding::FetchedLists;
pub use crate::registry::links::{Ask, LinkEnd};
pub use crate::registry::notices::DroppedNotifications;
pub use crate::registry::refused::RefusedRegistration;
pub use call::tree::registration::Registration;

/// Most inputs in the queue.
const DEPTH: usize = 4096;

/// Access to the task, with its latest news.
pub struct Registry {
    inputs: mpsc::Sender<Input>,
    /// Inputs of the task before its start.
    unread: Mutex<Option<mpsc::Receiver<Input>>>,
    links: AtomicU64,
    /// Registered gates below, and this one.
    subtree: watch::Sender<BTreeSet<NodeId>>,
    pub inbox: Inbox,
    pub refused: Refusals,
    pub dropped: DroppedNotifications,
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl Registry {
    /// Makes a registry before the start of its task.
    pub fn new() -> Self {
        let (inputs, unread) = mpsc::channel(DEPTH);
        Self {
            inputs,
            unread: Mutex::new(Some(unread)),
            links: AtomicU64::new(1),
            subtree: watch::Sender::default(),
            inbox: Inbox::default(),
            refused: Refusals::default(),
            dropped: DroppedNotifications::default(),
        }
    }

    /// Starts the task, which ends with the gate.
    pub fn begin(mesh: &Arc<Mesh>) {
        let unread = mesh.registry.unread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(unread) = unread {
            tokio::spawn(driver::run(Arc::clone(mesh), unread));
        }
    }

    /// Handles a request of MCP-AX by ordinary HTTP; gives the raw result, or the refusal. Such a registration has no connection to break,
    /// so its link is no connection either: see [`links`].
    pub async fn request_by_http(
        &self,
        identity: &Identity,
        (is_private, is_here): (bool, bool),
        method: &str,
        params: Bytes,
    ) -> Result<String, Refusal> {
        self.ask(Way::Http { is_private, is_here }, identity, method, params).await
    }

    /// Watches the registered gates below, and this one.
    pub fn subtree(&self) -> watch::Receiver<BTreeSet<NodeId>> {
        self.subtree.subscribe()
    }

    /// Reports a new configuration. A busy task notices by itself.
    pub fn config_changed(&self) {
        drop(self.inputs.try_send(Input::ConfigChanged));
    }

    /// Reports a changed list of a registered server.
    pub async fn list_changed(&self, session: SessionKey) {
        self.put(Input::ListChanged(session)).await;
    }

    /// Hands in the fetched lists of a registered server, or a failure.
    pub async fn fetched(&self, session: SessionKey, outcome: Option<FetchedLists>) {
        self.put(Input::Fetched(session, outcome.map(Box::new))).await;
    }

    /// Relays a notification of a registered server outside of calls.
    pub fn relay(&self, session: SessionKey, whole: Bytes) {
        self.inbox.push(NotificationSource::Session(session), whole);
    }

    /// Relays a notification of a mount outside of calls, to gates above of a principal.
    pub fn relay_mount(&self, mount: &Segment, principal: Principal, whole: Bytes) {
        self.inbox.push(NotificationSource::Mount(mount.clone(), principal.kind, principal.name), whole);
    }

    /// Frees a segment that an authority keeps (AX-12); `false`: none does. Its holder keeps it until the session ends.
    pub async fn release(&self, segment: Segment) -> bool {
        let (done, released) = oneshot::channel();
        self.put(Input::Release(segment, done)).await;
        released.await.unwrap_or_default()
    }

    fn next_link(&self) -> LinkId {
        LinkId(self.links.fetch_add(1, Ordering::Relaxed))
    }

    async fn ask(&self, way: Way, identity: &Identity, method: &str, params: Bytes) -> Result<String, Refusal> {
        let (reply, answer) = oneshot::channel();
        self.put(Input::Request(MeshRequest { way, identity: identity.clone(), method: method.to_owned(), params, reply })).await;
        answer.await.unwrap_or_else(|_| Err(Refusal::NotAdmitted { why: "this gate is shutting down; register with another one".into() }))
    }

    /// Sends an input. The task takes inputs until the gate ends; afterwards nobody needs them.
    async fn put(&self, input: Input) {
        drop(self.inputs.send(input).await);
    }
}

/// Calls of the driver of links, and of this gate's own membership.
impl Registry {
    /// Opens a link dialled by a child, for registrations and calls.
    pub async fn open_link(&self, end: LinkEnd) -> LinkId {
        let link = self.next_link();
        self.put(Input::LinkOpened(link, end)).await;
        link
    }

    /// Handles a request of MCP-AX over a link, from this machine or elsewhere; gives the raw result, or the refusal.
    pub async fn request(
        &self,
        (id, is_here): (LinkId, bool),
        identity: &Identity,
        method: &str,
        params: Bytes,
    ) -> Result<String, Refusal> {
        self.ask(Way::Link { id, is_here }, identity, method, params).await
    }

    /// Reports a broken link: its registrants are lost.
    pub async fn link_lost(&self, link: LinkId) {
        self.put(Input::LinkLost(link)).await;
    }

    /// Hands in a notification over a link, outside of calls.
    pub async fn notified(&self, link: LinkId, notification: Notification) {
        if notification.method.ends_with("/list_changed") {
            self.put(Input::ListsChanged(link)).await;
        } else {
            self.inbox.push(NotificationSource::Link(link), notification.whole);
        }
    }

    /// Reports a new ancestry of this gate.
    pub async fn above(&self, above: Ancestry) {
        self.put(Input::Above(above)).await;
    }

    /// Reports ids below that an aggregator above knows as standing above. Returns when their sources are out.
    pub async fn cycle(&self, ids: Vec<NodeId>) {
        let (done, out) = oneshot::channel();
        self.put(Input::Cycle(ids, done)).await;
        drop(out.await);
    }
}
