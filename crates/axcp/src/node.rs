//! The gate as a node: dialling and dialled peers, and a link for each. Reads no envelope.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axcp_proto::error::ErrorCode;
use call::words::party::Party;
use config::watch::Watch;
use quinn::{Connection, Endpoint, Incoming, VarInt};
use runtime::clock;
use runtime::tls::Connector;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use trust::Trust;

use crate::answer::LinkEnd;
use crate::endpoint::{self, EndpointError};
use crate::link::PeerLink;
use crate::section::{AxcpSettings, ContextSettings, PeerSettings};
use crate::shelf::ContextShelf;
use crate::slots::{HandshakeSlot, HandshakeSlots};
use crate::tools::ground::ToolGround;
use crate::tools::link::LinkTools;
use crate::words::plain;

/// Longest wait for a handshake.
const HANDSHAKE: Duration = Duration::from_secs(8);
/// Shortest and longest pause between two tries to reach a peer.
const PAUSES: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(4)];
/// Shortest and longest pause between two tries to open a context.
const OPENINGS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];
/// Time after which a connection was none that ends at once, so that the next pause is short again.
const STABLE: Duration = Duration::from_secs(2);

/// The gate as a node of AXCP.
pub(crate) struct AxcpNode {
    settings: AxcpSettings,
    contexts: Vec<ContextSettings>,
    shelf: Arc<ContextShelf>,
    tools: Arc<ToolGround>,
    trust: Arc<Trust>,
    connector: Arc<Connector>,
    stop: CancellationToken,
    /// Cancelled when the files of the listener change: who was admitted by the old ones has to come again.
    admission: Mutex<CancellationToken>,
    tasks: TaskTracker,
    links: watch::Sender<BTreeMap<Arc<str>, Arc<PeerLink>>>,
    state: Mutex<NodeState>,
}

/// State of a node, for people.
#[derive(Debug, Clone, Default)]
pub(crate) struct NodeState {
    /// Name in the gate's own certificate.
    pub(crate) id: Option<Arc<str>>,
    pub(crate) listens: Option<SocketAddr>,
    /// Reason for which nothing works.
    pub(crate) trouble: Option<String>,
    /// Reasons for which contexts are not open, by their names.
    pub(crate) unopened: BTreeMap<Arc<str>, String>,
    /// Reason for which changed files of certificates are not in force.
    pub(crate) files: Option<String>,
    /// Last words with each peer.
    pub(crate) ends: BTreeMap<Arc<str>, String>,
    pub(crate) refused: u64,
}

impl AxcpNode {
    /// Begins to listen and to dial.
    pub(crate) fn begin(
        settings: AxcpSettings,
        contexts: Vec<ContextSettings>,
        (shelf, tools): (Arc<ContextShelf>, Arc<ToolGround>),
        trust: Arc<Trust>,
        connector: Arc<Connector>,
    ) -> Arc<Self> {
        let (stop, tasks, links) = (CancellationToken::new(), TaskTracker::new(), watch::Sender::default());
        let (admission, state) = (Mutex::new(stop.child_token()), Mutex::default());
        let node = Arc::new(Self { settings, contexts, shelf, tools, trust, connector, stop, admission, tasks, links, state });
        let running = Arc::clone(&node);
        node.tasks.spawn(async move { running.run_again().await });
        node
    }

    /// Runs until the end. With files that are unusable at the beginning, begins anew once they change.
    async fn run_again(self: &Arc<Self>) {
        let AxcpSettings { certificate, key, ca, .. } = &self.settings;
        // The watch begins before the first reading, so that no change comes between.
        let mut files = Watch::start(vec![certificate.clone(), key.clone(), ca.clone()]);
        while let Err(error) = self.run(&mut files).await {
            tracing::error!(%error, "contexts are not shared");
            self.state().trouble = Some(error.to_string());
            tokio::select! {
                () = self.stop.cancelled() => return,
                Some(_) = files.changed() => self.state().trouble = None,
            }
        }
    }

    /// Ends all connections.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
    }

    /// Waits until all connections have ended.
    pub(crate) async fn ended(&self) {
        self.tasks.wait().await;
    }

    pub(crate) fn settings(&self) -> &AxcpSettings {
        &self.settings
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, NodeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds the live link of a peer.
    pub(crate) fn link(&self, peer: &str) -> Option<Arc<PeerLink>> {
        self.links.borrow().get(peer).cloned()
    }

    async fn run(self: &Arc<Self>, files: &mut Watch) -> Result<(), EndpointError> {
        let id = endpoint::own_id(&self.settings)?;
        self.state().id = Some(Arc::clone(&id));
        self.shelf.retain(&self.contexts).await;
        for context in &self.contexts {
            let is_tried = self.state().unopened.contains_key(&context.name);
            if !is_tried && !self.open(context, &id).await {
                let (node, context, id) = (Arc::clone(self), context.clone(), Arc::clone(&id));
                self.tasks.spawn(async move { node.open_again(&context, &id).await });
            }
        }
        let endpoint = self.endpoint().await?;
        self.state().listens = self.settings.listen.and_then(|_| endpoint.local_addr().ok());
        for peer in self.settings.peers.values().filter(|peer| peer.address.is_some()) {
            let (node, endpoint, peer) = (Arc::clone(self), endpoint.clone(), peer.clone());
            self.tasks.spawn(async move { node.dial_again(&endpoint, &peer).await });
        }
        let slots = Arc::<HandshakeSlots>::default();
        loop {
            tokio::select! {
                () = self.stop.cancelled() => break,
                Some(_) = files.changed() => self.read_files(&endpoint),
                Some(incoming) = endpoint.accept() => self.admit(incoming, &slots),
            }
        }
        endpoint.close(VarInt::from_u32(ErrorCode::Unknown.number()), b"the gate ends");
        drop(tokio::time::timeout(Duration::from_secs(1), endpoint.wait_idle()).await);
        Ok(())
    }

    /// Opens a context, as `id` in its history. Tells if the context is open.
    async fn open(&self, context: &ContextSettings, id: &str) -> bool {
        let opened = self.shelf.open(context, id).await;
        let mut state = self.state();
        match opened {
            Ok(_) => drop(state.unopened.remove(&context.name)),
            Err(error) => {
                tracing::error!(context = %context.name, %error, "a context cannot be opened");
                state.unopened.insert(Arc::clone(&context.name), format!("the context {} cannot be opened: {error}", context.name));
                return false;
            }
        }
        true
    }

    /// Tries to open a context until that succeeds. Peers that are here greet only open contexts, and have to come again then.
    async fn open_again(&self, context: &ContextSettings, id: &str) {
        let mut pause = OPENINGS[0];
        loop {
            tokio::select! {
                () = tokio::time::sleep(pause) => pause = pause.saturating_mul(2).min(OPENINGS[1]),
                () = self.stop.cancelled() => return,
            }
            if self.open(context, id).await {
                break;
            }
        }
        let links: Vec<_> = self.links.borrow().values().filter(|link| context.peers.contains(&link.peer)).cloned().collect();
        for link in links {
            LinkEnd::new(ErrorCode::Unknown, "a context is open that was not before: connect anew").close(&link.connection);
        }
    }

    /// Reads the changed files of the listener, and ends all connections: whom the new files do not admit does not come back. Unusable files
    /// change nothing.
    fn read_files(&self, endpoint: &Endpoint) {
        let read = endpoint::server(&self.settings).and_then(|server| {
            endpoint::client(&self.settings, &self.connector)?;
            Ok((server, endpoint::own_id(&self.settings)?))
        });
        match read {
            Ok((server, id)) => {
                if self.settings.listen.is_some() {
                    endpoint.set_server_config(Some(server));
                }
                let before = std::mem::replace(&mut *self.lock_admission(), self.stop.child_token());
                before.cancel();
                let mut state = self.state();
                let is_same = state.id.as_ref() == Some(&id);
                state.files = (!is_same).then(|| format!("the certificate names {id} now: start the gate anew to write under that name"));
                tracing::info!("the certificates of the listener for contexts are those of the changed files");
            }
            Err(error) => {
                tracing::warn!(%error, "the listener for contexts keeps the certificates that it has");
                self.state().files = Some(format!("the changed files of certificates are not in force: {error}"));
            }
        }
    }

    fn lock_admission(&self) -> MutexGuard<'_, CancellationToken> {
        self.admission.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives what ends a connection that begins now. To be taken before the files are read.
    fn admission(&self) -> CancellationToken {
        self.lock_admission().clone()
    }

    /// Begins the handshake of somebody who dials, where there is room.
    fn admit(self: &Arc<Self>, incoming: Incoming, slots: &Arc<HandshakeSlots>) {
        if !incoming.remote_address_validated() && incoming.may_retry() {
            // A sender that cannot receive is no peer: addresses are forged easily.
            return drop(incoming.retry());
        }
        let Some(slot) = slots.take_slot(incoming.remote_address().ip()) else { return incoming.ignore() };
        let (node, admission) = (Arc::clone(self), self.admission());
        self.tasks.spawn(async move {
            if let Some(connection) = node.shake(incoming, slot).await {
                node.serve(connection, None, &admission).await;
            }
        });
    }

    /// Opens the endpoint. An earlier one of the same port may still be closing.
    async fn endpoint(&self) -> Result<Endpoint, EndpointError> {
        let secret = self.shelf.secret().await;
        for _ in 0..20 {
            match endpoint::open(&self.settings, secret) {
                Err(EndpointError::Port(_, error)) if error.kind() == std::io::ErrorKind::AddrInUse => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                opened => return opened,
            }
        }
        endpoint::open(&self.settings, secret)
    }

    /// Shakes hands, in a slot that is free again behind the handshake.
    async fn shake(&self, incoming: Incoming, _slot: HandshakeSlot) -> Option<Connection> {
        match tokio::time::timeout(HANDSHAKE, incoming.into_future()).await {
            Ok(Ok(connection)) => Some(connection),
            Ok(Err(error)) => {
                tracing::debug!(%error, "a handshake failed");
                self.state().refused += 1;
                None
            }
            Err(_) => None,
        }
    }

    async fn dial_again(self: &Arc<Self>, endpoint: &Endpoint, peer: &PeerSettings) {
        let mut pause = PAUSES[0];
        loop {
            let mut links = self.links.subscribe();
            let is_free = links.wait_for(|links| !links.contains_key(&peer.id));
            tokio::select! {
                _ = is_free => {}
                () = self.stop.cancelled() => return,
            }
            if self.dial_once(endpoint, peer).await {
                pause = PAUSES[0];
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => pause = pause.saturating_mul(2).min(PAUSES[1]),
                () = self.stop.cancelled() => return,
            }
        }
    }

    /// Dials a peer, and serves the connection. Tells if there was a connection for a while.
    async fn dial_once(self: &Arc<Self>, endpoint: &Endpoint, peer: &PeerSettings) -> bool {
        let admission = self.admission();
        let dialled = tokio::select! {
            dialled = self.dial(endpoint, peer) => dialled,
            () = self.stop.cancelled() => return false,
        };
        match dialled {
            Ok(connection) => {
                let began = clock::now();
                self.serve(connection, Some(&peer.id), &admission).await;
                clock::now().saturating_duration_since(began) >= STABLE
            }
            Err(why) => {
                let why = plain(&why);
                tracing::debug!(peer = %peer.id, why, "a peer cannot be reached");
                self.state().ends.insert(Arc::clone(&peer.id), why);
                false
            }
        }
    }

    async fn dial(&self, endpoint: &Endpoint, peer: &PeerSettings) -> Result<Connection, String> {
        let (host, port) = peer.address.as_ref().ok_or("the peer has no address")?;
        let found = tokio::net::lookup_host((host.as_str(), *port)).await.map_err(|error| format!("{host} has no address: {error}"))?;
        let is_v6 = endpoint.local_addr().is_ok_and(|address| address.is_ipv6());
        let address = found.into_iter().find(|address| is_v6 || address.is_ipv4()).ok_or(format!("{host} has no usable address"))?;
        let client = endpoint::client(&self.settings, &self.connector).map_err(|error| error.to_string())?;
        let connecting = endpoint.connect_with(client, address, host).map_err(|error| error.to_string())?;
        let shaken = tokio::time::timeout(HANDSHAKE, connecting).await.map_err(|_| "it gave no answer".to_owned())?;
        shaken.map_err(|error| error.to_string())
    }

    /// Serves a connection, dialled to `expected` or accepted, until its end.
    async fn serve(self: &Arc<Self>, connection: Connection, expected: Option<&Arc<str>>, admission: &CancellationToken) {
        let party = endpoint::party(&connection);
        let settings = match self.known(&party, expected) {
            Ok(settings) => settings,
            Err(end) => {
                tracing::warn!(from = %connection.remote_address(), why = end.why, "a connection is refused");
                self.state().refused += 1;
                expected.into_iter().for_each(|id| drop(self.state().ends.insert(Arc::clone(id), end.why.clone())));
                return end.close(&connection);
            }
        };
        let peer = Arc::clone(&settings.id);
        let shared = self.contexts.iter().filter(|context| context.peers.contains(&peer)).map(|context| Arc::clone(&context.id));
        let (shelf, contexts) = (Arc::clone(&self.shelf), shared.collect());
        let tools = LinkTools::new(&self.tools, &self.settings, settings, &party, &connection);
        let link = Arc::new(PeerLink::new((connection, expected.is_some()), settings, (shelf, contexts), tools));
        let before = self.links.borrow().get(&peer).cloned();
        self.links.send_modify(|links| drop(links.insert(Arc::clone(&peer), Arc::clone(&link))));
        if let Some(before) = before {
            LinkEnd::new(ErrorCode::Unknown, "a newer connection takes the place of this one").close(&before.connection);
        }
        let end = tokio::select! {
            biased;
            () = self.stop.cancelled() => LinkEnd::new(ErrorCode::Unknown, "the gate ends"),
            () = admission.cancelled() => LinkEnd::new(ErrorCode::Unknown, "the certificates of this node have changed: connect anew"),
            () = self.trust.ended(&party) => LinkEnd::new(ErrorCode::Unauthorized, "the certificate has ended or was revoked"),
            end = link.run() => end,
        };
        link.tools.end_calls();
        end.close(&link.connection);
        tracing::info!(peer = %peer, why = end.why, "the connection with a peer has ended");
        self.state().ends.insert(Arc::clone(&peer), end.why);
        let is_last = self.links.send_if_modified(|links| {
            let is_ours = links.get(&peer).is_some_and(|current| Arc::ptr_eq(current, &link));
            is_ours && links.remove(&peer).is_some()
        });
        if is_last {
            link.part();
        }
    }

    /// Finds the peer that a certificate names.
    fn known(&self, party: &Party, expected: Option<&Arc<str>>) -> Result<&PeerSettings, LinkEnd> {
        let unauthorized = |why: String| LinkEnd::new(ErrorCode::Unauthorized, why);
        let certified = party.certified().ok_or_else(|| unauthorized("show a certificate that names you".into()))?;
        let name = &certified.principal;
        if expected.is_some_and(|expected| expected != name) {
            return Err(unauthorized(format!("the peer is {name}, and another was expected")));
        }
        let peer = self.settings.peers.values().find(|peer| peer.id == *name);
        peer.ok_or_else(|| unauthorized(format!("{name} is no peer of this node")))
    }
}
