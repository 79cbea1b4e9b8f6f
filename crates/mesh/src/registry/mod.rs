//! Servers that register themselves (MCP-AX 6): one task owns the machine that decides and the relay of what they notify, and
//! everybody else speaks to it over a bounded channel.
//!
//! What is decided is not decided here but in `mesh_proto::parent`. A registered server is a mount like any other once it is in the
//! tree; calls to it never come through here.

pub mod admit;
pub mod asking;
pub mod driver;
pub mod holding;
pub mod holdings;
pub mod input;
pub mod links;
pub mod outputs;
pub mod recorded;
pub mod refused;
pub mod runner;
pub mod told;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use mcp_proto::envelope::Notification;
use mesh_proto::authority::Identity;
use mesh_proto::id::{LinkId, NodeId, SessionKey};
use mesh_proto::message::Above;
use mesh_proto::refusal::Refusal;
use tokio::sync::{mpsc, oneshot, watch};

use crate::mesh::Mesh;
use crate::registry::input::{Asked, Input, Way};
use crate::registry::refused::Refusals;

pub use crate::registry::holding::Fetched;
pub use crate::registry::links::{Ask, LinkEnd};
pub use crate::registry::refused::RefusedRegistration;
pub use crate::registry::told::Dropped;
pub use call::tree::registration::Registration;

/// How many inputs may wait for the task.
const DEPTH: usize = 4096;

/// The way to the task, and what it has told last.
pub struct Registry {
    inputs: mpsc::Sender<Input>,
    /// For the task, until it begins.
    unread: Mutex<Option<mpsc::Receiver<Input>>>,
    links: AtomicU64,
    /// The gates below that are registered, and this one.
    subtree: watch::Sender<BTreeSet<NodeId>>,
    pub refused: Refusals,
    pub dropped: Dropped,
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl Registry {
    /// A registry whose task has not begun.
    pub fn new() -> Self {
        let (inputs, unread) = mpsc::channel(DEPTH);
        Self {
            inputs,
            unread: Mutex::new(Some(unread)),
            links: AtomicU64::new(1),
            subtree: watch::Sender::default(),
            refused: Refusals::default(),
            dropped: Dropped::default(),
        }
    }

    /// Begins the task. It ends with the gate.
    pub fn begin(mesh: &Arc<Mesh>) {
        let unread = mesh.registry.unread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(unread) = unread {
            tokio::spawn(driver::run(Arc::clone(mesh), unread));
        }
    }

    /// A request of MCP-AX by an ordinary request over HTTP; the raw result, or why it is refused. Such a registration has no connection that could break, so its link is no
    /// connection either: see [`links`].
    pub async fn request_by_http(
        &self,
        identity: &Identity,
        (is_private, is_here): (bool, bool),
        method: &str,
        params: Bytes,
    ) -> Result<String, Refusal> {
        self.ask(Way::Http { is_private, is_here }, identity, method, params).await
    }

    /// The gates below that are registered, and this one, as they change.
    pub fn subtree(&self) -> watch::Receiver<BTreeSet<NodeId>> {
        self.subtree.subscribe()
    }

    /// Another configuration is in force. Where the task is busy, it looks anyway.
    pub fn config_changed(&self) {
        drop(self.inputs.try_send(Input::ConfigChanged));
    }

    /// What a registered server lists changed.
    pub async fn list_changed(&self, session: SessionKey) {
        self.put(Input::ListChanged(session)).await;
    }

    /// What a registered server lists was fetched, or not.
    pub async fn fetched(&self, session: SessionKey, outcome: Option<Fetched>) {
        self.put(Input::Fetched(session, outcome.map(Box::new))).await;
    }

    /// A registered server notified something that belongs to no call. Where the task cannot keep up, it is dropped and counted.
    pub fn relay(&self, session: SessionKey, whole: Bytes) {
        if self.inputs.try_send(Input::Relay(session, whole)).is_err() {
            self.dropped.one_more();
        }
    }

    fn next_link(&self) -> LinkId {
        LinkId(self.links.fetch_add(1, Ordering::Relaxed))
    }

    async fn ask(&self, way: Way, identity: &Identity, method: &str, params: Bytes) -> Result<String, Refusal> {
        let (reply, answer) = oneshot::channel();
        self.put(Input::Request(Asked { way, identity: identity.clone(), method: method.to_owned(), params, reply })).await;
        answer.await.unwrap_or_else(|_| Err(Refusal::NotAdmitted { why: "this gate is shutting down; register with another one".into() }))
    }

    /// The task takes inputs until the gate ends; then nobody needs to be told any more.
    async fn put(&self, input: Input) {
        drop(self.inputs.send(input).await);
    }
}

/// What the driver of links and of this gate's own registration calls.
impl Registry {
    /// A child has dialled: from here on registrations may be held on this link, and their servers are called over it.
    pub async fn open_link(&self, end: LinkEnd) -> LinkId {
        let link = self.next_link();
        self.put(Input::LinkOpened(link, end)).await;
        link
    }

    /// A request of MCP-AX that came over a link, from this machine or elsewhere; the raw result, or why it is refused.
    pub async fn request(
        &self,
        (id, is_here): (LinkId, bool),
        identity: &Identity,
        method: &str,
        params: Bytes,
    ) -> Result<String, Refusal> {
        self.ask(Way::Link { id, is_here }, identity, method, params).await
    }

    /// A link broke: whoever was registered over it is lost.
    pub async fn link_lost(&self, link: LinkId) {
        self.put(Input::LinkLost(link)).await;
    }

    /// Something was notified over a link, outside of calls.
    pub async fn notified(&self, link: LinkId, notification: Notification) {
        self.put(Input::Notified(link, notification)).await;
    }

    /// What stands above this gate changed.
    pub async fn above(&self, above: Above) {
        self.put(Input::Above(above)).await;
    }

    /// An aggregator above says that these ids, which stand below, stand above. Returns when whoever brought them is out.
    pub async fn cycle(&self, ids: Vec<NodeId>) {
        let (done, out) = oneshot::channel();
        self.put(Input::Cycle(ids, done)).await;
        drop(out.await);
    }
}
