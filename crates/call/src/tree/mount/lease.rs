//! Which connection a call goes over: the shared one, or one of a single client. How a connection is made is not known here (`connect.rs`).
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

/// How many connections are kept for stateless callers that can be asked, where the server can't tell them apart.
const MOST_LEASES: usize = 16;

/// How many connections are kept for clients of the stateless era that share none.
const MOST_CLIENTS: usize = 16;

/// A connection for one call.
pub struct Lease {
    pub instance: Arc<Instance>,
    held: Held,
}

/// What a lease holds besides the connection, and of which mount.
enum Held {
    /// The place of the one caller on the shared connection that can be asked.
    Asking(Arc<Mount>),
    /// A use of the connection of a stateless client.
    Client(Arc<Mount>),
    /// Nothing.
    Nothing,
    /// A connection that goes back to the others.
    Spare(Arc<Mount>),
}

impl Drop for Lease {
    fn drop(&mut self) {
        match &self.held {
            Held::Asking(mount) => {
                mount.connections.asking.fetch_sub(1, Ordering::Relaxed);
            }
            Held::Client(mount) => mount.connections.lock().clients.released(&self.instance),
            Held::Nothing => {}
            Held::Spare(mount) => mount.connections.lock().leases.push(Arc::clone(&self.instance)),
        }
    }
}

/// A client of the stateless era, as far as its requests tell it from another.
#[derive(PartialEq, Eq)]
struct ClientKey {
    principal: Principal,
    info: Bytes,
    capabilities: Bytes,
}

/// The connections of single clients of the stateless era.
#[derive(Default)]
pub struct Clients(Vec<Kept>);

struct Kept {
    client: ClientKey,
    instance: Arc<Instance>,
    users: usize,
    used: Instant,
}

impl Clients {
    /// Takes a connection out: nothing goes over it any more.
    pub fn forget(&mut self, instance: &Arc<Instance>) {
        self.0.retain(|kept| !Arc::ptr_eq(&kept.instance, instance));
    }

    /// All of them.
    pub fn into_instances(self) -> impl Iterator<Item = Arc<Instance>> {
        self.0.into_iter().map(|kept| kept.instance)
    }

    /// A connection of `client`; `alone`: one that nobody uses.
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

    /// Whether `instance` was kept, with one user, and which other one left for it.
    fn keep(&mut self, client: ClientKey, instance: &Arc<Instance>) -> (bool, Option<Arc<Instance>>) {
        let mut left = None;
        if self.0.len() >= MOST_CLIENTS {
            let idle = self.0.iter().enumerate().filter(|(_, k)| k.users == 0).min_by_key(|(_, k)| k.used);
            let Some((at, _)) = idle else { return (false, None) };
            left = Some(self.0.swap_remove(at).instance);
        }
        self.0.push(Kept { client, instance: Arc::clone(instance), users: 1, used: Instant::now() });
        (true, left)
    }
}

impl Mount {
    /// The connection a call of `caller` goes over.
    pub async fn lease(self: &Arc<Self>, caller: &Caller) -> Result<Lease, UpstreamError> {
        let shared = self.connections.shared.load_full().ok_or_else(|| UpstreamError::Unreachable(self.trouble()))?;
        self.lease_by(shared, caller).await
    }

    /// The same; `shared` is the one that all share as far as they may.
    ///
    /// A pipe does not say for which call its server asks. So at most one caller that can answer is on the shared connection of a server
    /// that asks; others go over connections of their own meanwhile. A server that asks for roots at its start needs one for each session.
    pub async fn lease_by(self: &Arc<Self>, shared: Arc<Instance>, caller: &Caller) -> Result<Lease, UpstreamError> {
        let lease = |instance, held| Lease { instance, held };
        if shared.era() == Era::Stateless || self.config.sharing == Sharing::Always {
            return Ok(lease(shared, Held::Nothing));
        }
        let roots = self.connections.asks_roots.load(Ordering::Relaxed) && mcp_proto::era::declares(&caller.capabilities, "roots");
        let own = self.config.sharing == Sharing::Never || roots;
        match &caller.session {
            Some(session) if own => return Ok(lease(Box::pin(self.own(session)).await?, Held::Nothing)),
            None if self.config.sharing == Sharing::Never => return Box::pin(self.of_client(caller)).await,
            _ if !caller.can_answer() => return Ok(lease(shared, Held::Nothing)),
            _ => {}
        }
        let alone = self.connections.asking.fetch_add(1, Ordering::Relaxed) == 0;
        if alone || !self.connections.asks.load(Ordering::Relaxed) {
            return Ok(lease(shared, Held::Asking(Arc::clone(self))));
        }
        self.connections.asking.fetch_sub(1, Ordering::Relaxed);
        if let Some(session) = &caller.session {
            return Ok(lease(Box::pin(self.own(session)).await?, Held::Nothing));
        }
        let instance = match self.spare() {
            Some(instance) => instance,
            None => Box::pin(self.open(Owner::Shared, self.gate.node.shared())).await?,
        };
        let keep = self.connections.lock().leases.len() < MOST_LEASES;
        Ok(lease(instance, if keep { Held::Spare(Arc::clone(self)) } else { Held::Nothing }))
    }

    /// The connection of one session alone, opened when it is first needed.
    async fn own(self: &Arc<Self>, session: &Arc<Session>) -> Result<Arc<Instance>, UpstreamError> {
        if let Some(instance) = self.connections.lock().own.get(&session.id) {
            return Ok(Arc::clone(instance));
        }
        let identity = self.on_behalf_of(&session.opening.info, &session.opening.capabilities);
        let instance = self.open(Owner::Session(Arc::downgrade(session)), identity).await?;
        let kept = Arc::clone(self.connections.lock().own.entry(Arc::clone(&session.id)).or_insert_with(|| Arc::clone(&instance)));
        if Arc::ptr_eq(&kept, &instance) {
            for uri in session.subscriptions(|all| all.of(&self.config.name)) {
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

    /// What a server is told about one client. Another gate is told that a gate asks: it shows a gate names that it shows no client.
    fn on_behalf_of(&self, info: &Bytes, capabilities: &Bytes) -> Identity {
        if self.role.load().is_gate() {
            return self.gate.node.with(capabilities);
        }
        Identity { info: info.clone(), capabilities: capabilities.clone() }
    }

    /// A connection that no call uses at present, if there is one.
    fn spare(&self) -> Option<Arc<Instance>> {
        let mut inner = self.connections.lock();
        while let Some(instance) = inner.leases.pop() {
            if !instance.is_lost() {
                return Some(instance);
            }
        }
        None
    }

    /// A connection of one client of the stateless era: the server is told of that client's own capabilities. Where the server asks, a
    /// call of a client that can answer has its connection to itself, as a pipe does not say for which call it is asked.
    async fn of_client(self: &Arc<Self>, caller: &Caller) -> Result<Lease, UpstreamError> {
        let client =
            ClientKey { principal: caller.principal.clone(), info: caller.info.clone(), capabilities: caller.capabilities.clone() };
        let lease = |instance, held| Lease { instance, held };
        let alone = caller.can_answer() && self.connections.asks.load(Ordering::Relaxed);
        if let Some(instance) = self.connections.lock().clients.take_up(&client, alone) {
            return Ok(lease(instance, Held::Client(Arc::clone(self))));
        }
        let mut identity = self.on_behalf_of(&caller.info, &caller.capabilities);
        let about = Members::again(&caller.info);
        if !(about.has("name") && about.has("version")) {
            // The initialize era wants both, the stateless one neither.
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
        Ok(lease(instance, if kept { Held::Client(Arc::clone(self)) } else { Held::Nothing }))
    }

    /// Takes a client's connection out when it is gone.
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

    /// The connection of one session alone, if it has one.
    pub fn own_of(&self, session: &Session) -> Option<Arc<Instance>> {
        self.connections.lock().own.get(&session.id).cloned()
    }
}
