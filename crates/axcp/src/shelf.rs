//! Contexts of the gate: open in memory, kept in a store before anybody hears of a change. Sends nothing to a peer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use axcp_proto::context::kept::{read_snapshot, read_version, write_snapshot, write_version};
use axcp_proto::context::peers::{PeerProgress, SharedContext};
use axcp_proto::context::replica::{ContextVersion, Replica};
use axcp_proto::error::AxcpError;
use axcp_proto::message::EnvelopePayload;
use call::judge::gate::Gate;
use runtime::clock;
use store::{ContextAddition, Contexts, KeptContext, StoreError};
use tokio::sync::watch;

use crate::section::ContextSettings;

/// Bytes of the versions behind a snapshot, after which the store gets a new one.
const MOST_BEHIND: usize = 8 * 1024 * 1024;

/// Failure of a change of a context.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ShelfError {
    /// The change breaks a rule. Its author has to mend it.
    #[error(transparent)]
    Refused(#[from] AxcpError),
    /// The store does not take the change. The owner of the gate has to mend the disk.
    #[error("the context cannot be kept: {0}. Whether the change is there after a restart is not known")]
    Store(#[from] StoreError),
    /// The context is open anew, or closed. The caller has to ask again.
    #[error("the configuration of the context has changed, and nothing was done: try again")]
    Over,
}

/// All contexts of the gate.
pub(crate) struct ContextShelf {
    gate: Arc<Gate>,
    contexts: Mutex<BTreeMap<Arc<str>, Arc<HeldContext>>>,
    /// Opens one context at a time, so that none is opened twice.
    opening: tokio::sync::Mutex<()>,
    changed: watch::Sender<()>,
}

/// A context in memory.
pub(crate) struct HeldContext {
    pub(crate) settings: ContextSettings,
    shared: Mutex<SharedContext>,
    /// Holder of the turn changes the context, and keeps the change.
    turn: Arc<tokio::sync::Mutex<ChangeTurn>>,
    shelf: Weak<ContextShelf>,
    began: Instant,
}

/// Turn to change a context.
#[derive(Default)]
struct ChangeTurn {
    /// Bytes of the versions behind the snapshot in the store.
    bytes: usize,
    /// The context is open anew, or configured no more: two holders would write over each other.
    is_over: bool,
}

impl ContextShelf {
    pub(crate) fn new(gate: Arc<Gate>) -> Arc<Self> {
        let changed = watch::Sender::new(());
        Arc::new(Self { gate, contexts: Mutex::default(), opening: tokio::sync::Mutex::default(), changed })
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Arc<HeldContext>>> {
        self.contexts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Subscribes to changes of any context.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Gives the secret kept over runs, if any.
    pub(crate) async fn secret(&self) -> Option<[u8; 32]> {
        let stores = Arc::clone(&self.gate.stores);
        tokio::task::spawn_blocking(move || stores.sealing().ok()).await.ok().flatten()
    }

    /// Wakes the writers of all links, since a peer asked for versions.
    pub(crate) fn wake(&self) {
        self.changed.send_replace(());
    }

    /// Finds an open context by its id.
    pub(crate) fn find(&self, id: &str) -> Option<Arc<HeldContext>> {
        self.all().get(id).cloned()
    }

    /// Finds an open context by the name of its section.
    pub(crate) fn named(&self, name: &str) -> Option<Arc<HeldContext>> {
        self.all().values().find(|context| &*context.settings.name == name).cloned()
    }

    /// Lists the open contexts.
    pub(crate) fn list(&self) -> Vec<Arc<HeldContext>> {
        self.all().values().cloned().collect()
    }

    /// Forgets contexts that are no longer configured, in memory only.
    pub(crate) async fn retain(&self, settings: &[ContextSettings]) {
        let _turn = self.opening.lock().await;
        let is_gone = |context: &Arc<HeldContext>| settings.iter().all(|settings| settings.id != context.settings.id);
        for gone in self.list().into_iter().filter(is_gone) {
            gone.turn.lock().await.is_over = true;
            self.all().remove(&gone.settings.id);
        }
    }

    /// Opens a context, as `node` in its history, unless it is open with the same settings.
    pub(crate) async fn open(self: &Arc<Self>, settings: &ContextSettings, node: &str) -> Result<Arc<HeldContext>, ShelfError> {
        let _turn = self.opening.lock().await;
        if let Some(open) = self.find(&settings.id) {
            if open.settings == *settings {
                return Ok(open);
            }
            // A change under way ends first, so that the store has it.
            open.turn.lock().await.is_over = true;
        }
        let (id, node) = (Arc::clone(&settings.id), node.to_owned());
        let (replica, known, bytes) = self
            .in_store(move |store, gate| {
                let kept = store.read(gate, &id)?;
                let bytes = kept.versions.iter().map(|(_, text)| text.len()).sum();
                let replica = replica_of(&kept, &id, &node, u64::MAX)?;
                Ok((replica, kept.known, bytes))
            })
            .await?;
        let peers = settings.peers.iter().map(|peer| (Arc::clone(peer), known.get(&**peer).copied().unwrap_or(0)));
        let ttl = u32::try_from(settings.keep.as_millis()).unwrap_or(u32::MAX);
        let held = Arc::new(HeldContext {
            settings: settings.clone(),
            shared: Mutex::new(SharedContext::new(replica, ttl, peers)),
            turn: Arc::new(tokio::sync::Mutex::new(ChangeTurn { bytes, is_over: false })),
            shelf: Arc::downgrade(self),
            began: clock::now(),
        });
        self.all().insert(Arc::clone(&settings.id), Arc::clone(&held));
        Ok(held)
    }

    /// Works in the store, in a thread for waiting.
    async fn in_store<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Contexts, &str) -> Result<T, ShelfError> + Send + 'static,
    ) -> Result<T, ShelfError> {
        let (stores, gate) = (Arc::clone(&self.gate.stores), self.gate.node.id.to_string());
        let done = tokio::task::spawn_blocking(move || work(&*stores.contexts()?, &gate)).await;
        done.unwrap_or_else(|error| Err(StoreError::Failed(error.to_string()).into()))
    }

    /// Notes that a context has changed: peers are sent versions, and subscribers of its resource are told.
    fn note_change(&self, settings: &ContextSettings) {
        self.changed.send_replace(());
        if let Some(mount) = self.gate.mounts.find(&settings.name) {
            mount.may_have_changed(&uri(&settings.id));
        }
    }
}

impl HeldContext {
    fn lock(&self) -> MutexGuard<'_, SharedContext> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the replica.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Replica) -> T) -> T {
        read(self.lock().replica())
    }

    /// Gives the progress of a peer.
    pub(crate) fn progress(&self, peer: &str) -> PeerProgress {
        self.lock().progress(peer)
    }

    /// Works on the progress of peers, and on no register.
    pub(crate) fn with_peers<T>(&self, work: impl FnOnce(&mut SharedContext, u64) -> T) -> T {
        let now = self.millis();
        work(&mut self.lock(), now)
    }

    /// Makes the next message for a peer.
    pub(crate) fn next(&self, peer: &str) -> Option<EnvelopePayload> {
        self.lock().next(peer)
    }

    fn millis(&self) -> u64 {
        u64::try_from(clock::now().saturating_duration_since(self.began).as_millis()).unwrap_or(u64::MAX)
    }

    /// Changes the context, at the wish of `peer` or of a caller, and keeps the change. Nobody hears of it before. A change once made is kept
    /// even when the caller has gone.
    pub(crate) async fn change<T>(
        self: &Arc<Self>,
        peer: Option<&str>,
        change: impl FnOnce(&mut SharedContext, u64) -> Result<T, AxcpError>,
    ) -> Result<T, ShelfError> {
        let mut turn = Arc::clone(&self.turn).lock_owned().await;
        if turn.is_over {
            return Err(ShelfError::Over);
        }
        let (done, versions, version) = {
            let mut shared = self.lock();
            let done = change(&mut shared, clock::wall())?;
            let versions: Vec<(u64, Vec<u8>)> = shared.unkept().map(|version| (version.version, write_version(version))).collect();
            (done, versions, shared.replica().version())
        };
        if versions.is_empty() {
            return Ok(done);
        }
        let known = peer.map(|peer| (peer.to_owned(), self.progress(peer).known)).into_iter().collect();
        let (held, addition) = (Arc::clone(self), ContextAddition { versions, known });
        let kept = tokio::spawn(async move { held.keep(addition, version, &mut turn.bytes).await }).await;
        kept.unwrap_or_else(|error| Err(StoreError::Failed(error.to_string()).into())).map(|()| done)
    }

    async fn keep(&self, addition: ContextAddition, version: u64, bytes: &mut usize) -> Result<(), ShelfError> {
        let shelf = self.shelf()?;
        *bytes += addition.versions.iter().map(|(_, text)| text.len()).sum::<usize>();
        let is_long = *bytes > MOST_BEHIND;
        *bytes = if is_long { *bytes / 2 } else { *bytes };
        let id = Arc::clone(&self.settings.id);
        let kept = shelf.in_store(move |store, gate| {
            store.add(gate, &id, &addition)?;
            if is_long { shorten(store, gate, &id) } else { Ok(()) }
        });
        kept.await?;
        let now = self.millis();
        self.lock().note_kept(version, now);
        shelf.note_change(&self.settings);
        Ok(())
    }

    fn shelf(&self) -> Result<Arc<ContextShelf>, StoreError> {
        self.shelf.upgrade().ok_or_else(|| StoreError::Failed("the gate ends".into()))
    }

    /// Makes the context of an earlier version, from the store.
    pub(crate) async fn at(&self, version: u64) -> Result<Replica, ShelfError> {
        let shelf = self.shelf()?;
        let id = Arc::clone(&self.settings.id);
        shelf
            .in_store(move |store, gate| {
                let kept = store.read(gate, &id)?;
                let newest = kept.versions.last().map_or(kept.base, |(number, _)| *number);
                if version < kept.base || version > newest {
                    return Err(AxcpError::MissingRange { oldest: kept.base, newest }.into());
                }
                replica_of(&kept, &id, "reader", version)
            })
            .await
    }

    /// Reads the kept versions, oldest first.
    pub(crate) async fn log(&self) -> Result<Vec<ContextVersion>, ShelfError> {
        let shelf = self.shelf()?;
        let id = Arc::clone(&self.settings.id);
        shelf
            .in_store(move |store, gate| {
                let kept = store.read(gate, &id)?;
                Ok(kept.versions.iter().map(|(number, text)| read_version(*number, text)).collect::<Result<_, _>>()?)
            })
            .await
    }
}

/// Gives the URI of a context among resources.
pub(crate) fn uri(id: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/".contains(&byte);
    let escaped: String = id.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect();
    format!("axcp://context/{escaped}")
}

/// Makes a replica of a stored context, up to a version.
fn replica_of(kept: &KeptContext, id: &str, node: &str, to: u64) -> Result<Replica, ShelfError> {
    let mut replica = if kept.snapshot.is_empty() {
        Replica::new(id, node)?
    } else {
        Replica::restore(&read_snapshot(kept.snapshot.clone().into())?, node, kept.base)?
    };
    for (number, text) in kept.versions.iter().take_while(|(number, _)| *number <= to) {
        replica.replay(&read_version(*number, text)?)?;
    }
    Ok(replica)
}

/// Puts a snapshot in the place of the older half of the versions.
fn shorten(store: &dyn Contexts, gate: &str, id: &str) -> Result<(), ShelfError> {
    let kept = store.read(gate, id)?;
    let Some((middle, _)) = kept.versions.get(kept.versions.len() / 2) else { return Ok(()) };
    let replica = replica_of(&kept, id, "store", *middle)?;
    Ok(store.rebase(gate, id, *middle, &write_snapshot(&replica.snapshot()))?)
}
