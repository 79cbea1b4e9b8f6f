//! Connection to a registered server, and fetches of its lists on the machine's order. Decides neither on fetches nor on retries.

use std::collections::BTreeSet;
use std::sync::Arc;

use mcp_proto::catalog::Kind;
use mesh_proto::id::SessionKey;
use mesh_proto::namespace;
use tokio::sync::Notify;
use tokio::time::Interval;
use tokio_util::sync::CancellationToken;

use crate::mesh::Mesh;
use crate::registry::holding::FetchedLists;
use call::judge::pins::role::role_of;
use call::tree::catalog::Catalog;
use call::tree::mount::{Mount, Phase, State};
use call::tree::port::{Instance, Owner, UpstreamError};
use mcp::upstream::listening;
use mcp::upstream::listening::StandingStream;
use mcp::upstream::supervise;

/// Runs until `over` fires: the session ended, or its server is lost.
pub async fn run(mesh: Arc<Mesh>, mount: Arc<Mount>, session: SessionKey, wanted: Arc<Notify>, over: CancellationToken) {
    let mut line = Line::default();
    let registry = &mesh.registry;
    let mut again = supervise::looks_again(&mount.config);
    loop {
        let is_stale = tokio::select! {
            () = over.cancelled() => break,
            () = wanted.notified() => {
                // Not broken off by `over`: half a connection would keep a stream open that nobody closes.
                let fetched = line.fetch_or_close(&mount).await;
                if !over.is_cancelled() {
                    registry.fetched(session, fetched).await;
                }
                false
            }
            is_due = woken(&mount, &mut again) => line.stirred(&mount, is_due).await,
            () = line.lost() => {
                line.close().await;
                true
            }
        };
        if is_stale {
            registry.list_changed(session).await;
        }
    }
    line.close().await;
}

/// Waits for a wish of the mount; `true`: for the time to look again at lists of which the server tells no changes.
async fn woken(mount: &Mount, again: &mut Interval) -> bool {
    tokio::select! {
        () = mount.connections.wake.notified() => false,
        _ = again.tick() => true,
    }
}

/// The connection, and the lists fetched over it.
#[derive(Default)]
struct Line {
    instance: Option<Arc<Instance>>,
    catalog: Arc<Catalog>,
    dirty: BTreeSet<Kind>,
    listening: Option<StandingStream>,
    /// Nobody but the clock has asked for the lists.
    is_look: bool,
}

impl Line {
    /// Fetches the wanted lists, over a new connection if necessary; `None`: failed, and without a connection now.
    async fn fetch_or_close(&mut self, mount: &Arc<Mount>) -> Option<FetchedLists> {
        let is_look = std::mem::take(&mut self.is_look);
        match (self.fetch(mount).await, &self.instance) {
            (Ok(fetched), _) => Some(fetched),
            // A server that answers one request at a time is busy with a call: the lists stay as they were until the next look.
            (Err(UpstreamError::Silent(_)), Some(instance)) if is_look => {
                let (instance, catalog) = (Arc::clone(instance), Arc::clone(&self.catalog));
                Some(FetchedLists { instance, offers: offers(&catalog), catalog })
            }
            (Err(error), _) => {
                self.close().await;
                fall(mount, &error);
                None
            }
        }
    }

    async fn fetch(&mut self, mount: &Arc<Mount>) -> Result<FetchedLists, UpstreamError> {
        let (instance, kinds) = match &self.instance {
            Some(instance) => {
                let dirty = std::mem::take(&mut self.dirty);
                (Arc::clone(instance), if dirty.is_empty() { vec![Kind::Tools] } else { dirty.into_iter().collect() })
            }
            None => {
                let instance = mount.open(Owner::Shared, mount.gate.node.shared()).await?;
                self.instance = Some(Arc::clone(&instance));
                if instance.gate_id().as_deref() == Some(&*mount.gate.node.id) {
                    return Err(UpstreamError::Loop);
                }
                mount.role.store(Arc::new(role_of(mount, &instance.negotiated.capabilities).await));
                mount.connections.subscribed.forget();
                supervise::subscribe_again(mount, &instance).await;
                self.listening = listening::begin(mount, &instance).await;
                mount.connections.take_dirty();
                self.dirty.clear();
                (instance, Kind::ALL.to_vec())
            }
        };
        let catalog = Arc::new(supervise::fetch(mount, &instance, &self.catalog, &kinds).await?);
        self.catalog = Arc::clone(&catalog);
        Ok(FetchedLists { instance, offers: offers(&catalog), catalog })
    }

    /// Follows the wishes of the mount; `true`: lists are to be fetched. `is_due`: also those of which the server tells no changes.
    async fn stirred(&mut self, mount: &Arc<Mount>, is_due: bool) -> bool {
        let is_asked = !self.dirty.is_empty();
        if is_due {
            self.dirty.extend(self.instance.iter().flat_map(|instance| supervise::untold(instance)));
        }
        if let Some(instance) = &self.instance {
            listening::resubscribe(mount, instance, &mut self.listening).await;
        }
        let stirred = mount.connections.take_dirty();
        self.is_look = is_due && !is_asked && stirred.is_empty();
        self.dirty.extend(stirred);
        if mount.connections.take_reconnect().is_some() {
            mount.connections.shared.store(None);
            self.forget();
            return true;
        }
        !self.dirty.is_empty()
    }

    /// Waits for the loss of the connection.
    async fn lost(&self) {
        match &self.instance {
            Some(instance) => instance.lost().await,
            None => std::future::pending().await,
        }
    }

    async fn close(&mut self) {
        if let Some(instance) = self.forget() {
            instance.close().await;
        }
    }

    /// Forgets the connection and everything fetched over it (AX-26).
    fn forget(&mut self) -> Option<Arc<Instance>> {
        let instance = self.instance.take();
        *self = Self::default();
        instance
    }
}

/// Gives the tools in the machine's form, with the server's own names.
fn offers(catalog: &Catalog) -> Vec<namespace::Offer> {
    let tools = catalog.tools.iter().filter_map(|tool| {
        let annotation = tool.noted.as_ref()?.annotation().clone();
        Some(namespace::Offer { name: tool.entry.key.clone(), definition: tool.entry.raw.clone(), annotation })
    });
    tools.collect()
}

fn fall(mount: &Mount, error: &UpstreamError) {
    tracing::warn!(mount = %mount.config.name, %error, "a registered server could not be asked for its lists");
    let phase = if mount.catalog.load().is_empty() { Phase::Failed } else { Phase::Degraded };
    mount.enter(State::new(phase, Some(error.to_string()), None));
}
