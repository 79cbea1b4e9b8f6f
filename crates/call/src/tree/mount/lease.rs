//! Choice of a call's connection: the shared one, or one of a single client. Does not make connections (`connect.rs`).
//!
//! A pipe does not say for which call a server asks. Callers with answers therefore take turns on a shared connection of a server that has
//! asked, and get connections of their own before two would meet. Nobody is ever asked by a guess.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use banyan_model::{Era, Principal};
use bytes::Bytes;
use config::resolved::Sharing;
use mcp_proto::client::Identity;
use mcp_proto::json::Members;

use crate::tree::caller::Caller;
use crate::tree::mount::Mount;
use crate::tree::mount::following::subscribe_on;
use crate::tree::port::{Instance, Owner, UpstreamError};
use crate::words::node::Node;
use crate::words::session::Session;

/// Most connections kept for stateless callers that can be asked, for a server that can't tell them apart.
const MOST_LEASES: usize = 16;

/// Most connections kept for clients of the stateless era that share none.
const MOST_CLIENTS: usize = 16;

/// A connection for a call.
pub struct Lease {
    pub instance: Arc<Instance>,
    held: LeaseKind,
}

/// Obligation at the end of a lease, with its mount.
enum LeaseKind {
    /// The only place on the shared connection for a caller that can be asked.
    Asking(Arc<Mount>),
    /// A use of the connection of a stateless client.
    Client(Arc<Mount>),
    Nothing,
    /// A connection that returns to the spare ones.
    Spare(Arc<Mount>),
}

impl Drop for Lease {
    fn drop(&mut self) {
        match &self.held {
            LeaseKind::Asking(mount) => {
                mount.connections.asking.fetch_sub(1, Ordering::Relaxed);
            }
            LeaseKind::Client(mount) => mount.connections.lock().clients.released(&self.instance),
            LeaseKind::Nothing => {}
            LeaseKind::Spare(mount) => mount.connections.lock().leases.push(Arc::clone(&self.instance)),
        }
    }
}

/// A client of the stateless era, as far as its requests distinguish it.
#[derive(PartialEq, Eq)]
struct ClientKey {
    principal: Principal,
    info: Bytes,
    capabilities: Bytes,
}

/// The connections of single clients of the stateless era.
#[derive(Default)]
pub struct Clients(Vec<ClientConnection>);

struct ClientConnection {
    client: ClientKey,
    instance: Arc<Instance>,
    users: usize,
    used: Instant,
}

impl Clients {
    /// Removes a connection from use.
    pub fn forget(&mut self, instance: &Arc<Instance>) {
        self.0.retain(|kept| !Arc::ptr_eq(&kept.instance, instance));
    }

    /// All connections.
    pub fn into_instances(self) -> impl Iterator<Item = Arc<Instance>> {
        self.0.into_iter().map(|kept| kept.instance)
    }

    /// Connection of `client`; with `alone`, only an unused one.
    fn take_up(&mut self, client: &ClientKey, alone: bool) -> Option<Arc<Instance>> {
        let kept = self.0.iter_mut().find(|k| k.client == *client && !(alone && k.users > 0))?;
        kept.users += 1;
        Some(Arc::clone(&kept.instance))
    }

    fn released(&mut self, instance: &Arc<Instance>) {
        if let Some(kept) = self.0.iter_mut().find(|k| Arc::ptr_eq(&k.instance, instance)) {
            kept.users -= 1;
            kept.used = Instant::now();
        }
    }

    /// Keeps `instance` with one user; returns whether there was room, and a connection displaced by it.
    fn keep(&mut self, client: ClientKey, instance: &Arc<Instance>) -> (bool, Option<Arc<Instance>>) {
        let mut left = None;
        if self.0.len() >= MOST_CLIENTS {
            let idle = self.0.iter().enumerate().filter(|(_, k)| k.users == 0).min_by_key(|(_, k)| k.used);
            let Some((at, _)) = idle else { return (false, None) };
            left = Some(self.0.swap_remove(at).instance);
        }
        self.0.push(ClientConnection { client, instance: Arc::clone(instance), users: 1, used: Instant::now() });
        (true, left)
    }
}

impl Mount {
    /// The connection a call of `caller` goes over.
    pub async fn lease(self: &Arc<Self>, caller: &Caller) -> Result<Lease, UpstreamError> {
        let shared = self.connections.shared.load_full().ok_or_else(|| UpstreamError::Unreachable(self.trouble()))?;
        self.lease_by(shared, caller).await
    }

    /// Leases a connection for a call of `caller`; `shared` is the one that all share as far as they may.
    ///
    /// A pipe does not say for which call its server asks. So at most one caller that can answer is on the shared connection of an asking
    /// server, and others use connections of their own meanwhile. A server that asks for roots at its start needs a connection for each
    /// session.
    pub async fn lease_by(self: &Arc<Self>, shared: Arc<Instance>, caller: &Caller) -> Result<Lease, UpstreamError> {
        let lease = |instance, held| Lease { instance, held };
        if shared.era() == Era::Stateless || self.config.sharing == Sharing::Always {
            return Ok(lease(shared, LeaseKind::Nothing));
        }
        let roots = self.connections.asks_roots.load(Ordering::Relaxed) && mcp_proto::era::declares(&caller.capabilities, "roots");
        let own = self.config.sharing == Sharing::Never || roots;
        match &caller.session {
            Some(session) if own => return Ok(lease(Box::pin(self.own(session)).await?, LeaseKind::Nothing)),
            None if self.config.sharing == Sharing::Never => return Box::pin(self.of_client(caller)).await,
            _ if !caller.can_answer() => return Ok(lease(shared, LeaseKind::Nothing)),
            _ => {}
        }
        let alone = self.connections.asking.fetch_add(1, Ordering::Relaxed) == 0;
        if alone || !self.connections.asks.load(Ordering::Relaxed) {
            return Ok(lease(shared, LeaseKind::Asking(Arc::clone(self))));
        }
        self.connections.asking.fetch_sub(1, Ordering::Relaxed);
        if let Some(session) = &caller.session {
            return Ok(lease(Box::pin(self.own(session)).await?, LeaseKind::Nothing));
        }
        let instance = match self.spare() {
            Some(instance) => instance,
            None => Box::pin(self.open(Owner::Shared, self.gate.node.shared())).await?,
        };
        let keep = self.connections.lock().leases.len() < MOST_LEASES;
        Ok(lease(instance, if keep { LeaseKind::Spare(Arc::clone(self)) } else { LeaseKind::Nothing }))
    }

    /// Connection of a single session, opened on first need.
    async fn own(self: &Arc<Self>, session: &Arc<Session>) -> Result<Arc<Instance>, UpstreamError> {
        if let Some(instance) = self.connections.lock().own.get(&session.id) {
            return Ok(Arc::clone(instance));
        }
        let identity = self.on_behalf_of(&session.opening.info, &session.opening.capabilities);
        let instance = self.open(Owner::Session(Arc::downgrade(session)), identity).await?;
        let kept = Arc::clone(self.connections.lock().own.entry(Arc::clone(&session.id)).or_insert_with(|| Arc::clone(&instance)));
        if Arc::ptr_eq(&kept, &instance) {
            for uri in session.subscriptions(|all| all.of_mount(&self.config.name)) {
                if let Err(error) = subscribe_on(&instance, "resources/subscribe", &uri).await {
                    tracing::debug!(%error, uri, "a subscription could not be made on a session's own connection");
                }
            }
            let (mount, session, instance) = (Arc::clone(self), Arc::clone(session), Arc::clone(&instance));
            tokio::spawn(async move {
                tokio::select! {
                    () = session.over.cancelled() => {}
                    () = mount.gone.cancelled() => {}
                    () = instance.lost() => {}
                }
                mount.connections.lock().own.remove(&session.id);
                instance.close().await;
            });
        } else {
            instance.close().await;
        }
        Ok(kept)
    }

    /// Identity shown to a server for a client. Another gate is told that a gate asks, since it shows gates names hidden from clients.
    fn on_behalf_of(&self, info: &Bytes, capabilities: &Bytes) -> Identity {
        if self.role.load().is_gate() {
            return self.gate.node.with(capabilities);
        }
        Identity { info: info.clone(), capabilities: capabilities.clone() }
    }

    /// Takes a connection without a call, if any.
    fn spare(&self) -> Option<Arc<Instance>> {
        let mut inner = self.connections.lock();
        while let Some(instance) = inner.leases.pop() {
            if !instance.is_lost() {
                return Some(instance);
            }
        }
        None
    }

    /// Leases a connection of a client of the stateless era, opened with that client's own capabilities. At an asking server, a call of a
    /// client that can answer has the connection to itself, since a pipe does not say for which call it asks.
    async fn of_client(self: &Arc<Self>, caller: &Caller) -> Result<Lease, UpstreamError> {
        let client =
            ClientKey { principal: caller.principal.clone(), info: caller.info.clone(), capabilities: caller.capabilities.clone() };
        let lease = |instance, held| Lease { instance, held };
        let alone = caller.can_answer() && self.connections.asks.load(Ordering::Relaxed);
        if let Some(instance) = self.connections.lock().clients.take_up(&client, alone) {
            return Ok(lease(instance, LeaseKind::Client(Arc::clone(self))));
        }
        let mut identity = self.on_behalf_of(&caller.info, &caller.capabilities);
        let about = Members::again(&caller.info);
        if !(about.has("name") && about.has("version")) {
            // The initialize era needs both, the stateless era neither.
            identity.info = Node::info();
        }
        let instance = self.open(Owner::Shared, identity).await?;
        let (kept, left) = self.connections.lock().clients.keep(client, &instance);
        if let Some(left) = left {
            left.close().await;
        }
        if kept {
            self.watch(Arc::clone(&instance));
        }
        Ok(lease(instance, if kept { LeaseKind::Client(Arc::clone(self)) } else { LeaseKind::Nothing }))
    }

    /// Removes a client's connection once it is gone.
    fn watch(self: &Arc<Self>, instance: Arc<Instance>) {
        let mount = Arc::clone(self);
        tokio::spawn(async move {
            tokio::select! {
                () = mount.gone.cancelled() => {}
                () = instance.lost() => {}
            }
            mount.connections.lock().clients.forget(&instance);
            instance.close().await;
        });
    }

    /// Connection of a single session, if any.
    pub fn own_of(&self, session: &Session) -> Option<Arc<Instance>> {
        self.connections.lock().own.get(&session.id).cloned()
    }
}
