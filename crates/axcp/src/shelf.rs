//! Contexts of the gate: open in memory, kept in a store before anybody hears of a change. Sends nothing to a peer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use axcp_proto::context::kept::{read_snapshot, read_version, write_snapshot, write_version};
use axcp_proto::context::peers::{ContextMoment, KnownVersion, PeerProgress, SharedContext};
use axcp_proto::context::replica::{ContextVersion, Replica};
use axcp_proto::error::AxcpError;
use axcp_proto::message::EnvelopePayload;
use bytes::Bytes;
use call::judge::gate::Gate;
use json::quote;
use runtime::{clock, random};
use store::{ContextAddition, Contexts, KeptContext, KeptProgress, StoreError};
use tokio::sync::{OwnedMutexGuard, watch};

use crate::section::ContextSettings;
use crate::whole::WholeText;

/// Bytes of the versions behind a snapshot, after which the store gets a new one.
const MOST_BEHIND: usize = 8 * 1024 * 1024;
/// Bytes of the versions behind a snapshot, above which nothing is written any more until the store takes a new one.
const MOST_UNSHORTENED: usize = 2 * MOST_BEHIND;
/// Bytes of versions between two tries to put a snapshot in their place, where the store refused one.
const BETWEEN_TRIES: usize = 1024 * 1024;

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
    /// JSON text of the whole, as a JSON string.
    whole: WholeText,
    /// Last failure of the store, until it takes a change again.
    trouble: Mutex<Option<String>>,
    shelf: Weak<ContextShelf>,
    began: Instant,
}

/// Turn to change a context.
#[derive(Default)]
struct ChangeTurn {
    /// Bytes of the versions behind the snapshot in the store.
    bytes: usize,
    /// Bytes at which a new snapshot is tried.
    shortens_at: usize,
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
        let opened = self.in_store(move |store, gate| OpenedContext::read(store, gate, &id, &node)).await.inspect_err(|_| {
            // What was open with other settings takes no change any more.
            self.all().remove(&settings.id);
        })?;
        let known = |peer: &str| {
            opened.known.get(peer).map_or_else(KnownVersion::default, |known| KnownVersion { version: known.version, epoch: known.epoch })
        };
        let peers: Vec<_> = settings.peers.iter().map(|peer| (Arc::clone(peer), known(peer))).collect();
        let ttl = u32::try_from(settings.keep.as_millis()).unwrap_or(u32::MAX);
        let turn = ChangeTurn { bytes: opened.bytes, shortens_at: MOST_BEHIND, is_over: false };
        let held = Arc::new(HeldContext {
            settings: settings.clone(),
            shared: Mutex::new(SharedContext::new(opened.replica, opened.epoch, ttl, peers)),
            turn: Arc::new(tokio::sync::Mutex::new(turn)),
            whole: WholeText::default(),
            trouble: Mutex::default(),
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

/// A context as the store has it.
struct OpenedContext {
    replica: Replica,
    epoch: u64,
    known: BTreeMap<String, KeptProgress>,
    /// Bytes of the versions behind the snapshot.
    bytes: usize,
}

impl OpenedContext {
    /// Reads a context. A new one gets an epoch before anybody hears of a version.
    fn read(store: &dyn Contexts, gate: &str, id: &str, node: &str) -> Result<Self, ShelfError> {
        let kept = store.read(gate, id)?;
        let epoch = if kept.epoch == 0 { u64::from_le_bytes(random::bytes()).max(1) } else { kept.epoch };
        if kept.epoch == 0 {
            store.add(gate, id, &ContextAddition { epoch: Some(epoch), ..ContextAddition::default() })?;
        }
        let bytes = kept.versions.iter().map(|(_, text)| text.len()).sum();
        Ok(Self { replica: replica_of(&kept, id, node, u64::MAX)?, epoch, known: kept.known, bytes })
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

    /// Gives the JSON text of the whole context as a JSON string, made once a version.
    pub(crate) fn quoted(&self) -> Bytes {
        let shared = self.lock();
        let replica = shared.replica();
        self.whole.of_version(replica.version(), || Bytes::from(quote(&String::from_utf8_lossy(&replica.json()))))
    }

    /// Gives the progress of a peer.
    pub(crate) fn progress(&self, peer: &str) -> PeerProgress {
        self.lock().progress(peer)
    }

    /// Gives the last failure of the store, until it takes a change again.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_trouble(&self, trouble: Option<String>) {
        let mut known = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if *known != trouble {
            let error = trouble.as_deref().unwrap_or("it is kept again");
            tracing::warn!(context = %self.settings.name, error, "the store has trouble with a context");
            *known = trouble;
        }
    }

    /// Works on the progress of peers, and on no register.
    pub(crate) fn with_peers<T>(&self, work: impl FnOnce(&mut SharedContext, u64) -> T) -> T {
        let now = self.millis();
        work(&mut self.lock(), now)
    }

    /// Makes the next message for a peer.
    pub(crate) fn next(&self, peer: &str) -> Option<EnvelopePayload> {
        self.with_peers(|shared, now| shared.next(peer, now))
    }

    /// Gives the time until a peer is asked again; `None`: nothing is lacking.
    pub(crate) fn due(&self, peer: &str) -> Option<Duration> {
        self.with_peers(|shared, now| Some(Duration::from_millis(shared.due(peer)?.saturating_sub(now))))
    }

    fn millis(&self) -> u64 {
        u64::try_from(clock::now().saturating_duration_since(self.began).as_millis()).unwrap_or(u64::MAX)
    }

    /// Changes the context, at the wish of `peer` or of a caller, and keeps the change. Nobody hears of it before. A change once made is kept
    /// even when the caller has gone. What the store did not take before goes first: nothing piles up behind a full disk.
    pub(crate) async fn change<T>(
        self: &Arc<Self>,
        peer: Option<&str>,
        change: impl FnOnce(&mut SharedContext, ContextMoment) -> Result<T, AxcpError>,
    ) -> Result<T, ShelfError> {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        if turn.is_over {
            return Err(ShelfError::Over);
        }
        let turn = self.keep_all(None, turn).await?;
        let at = ContextMoment { wall: clock::wall(), now: self.millis() };
        let done = change(&mut self.lock(), at)?;
        self.keep_all(peer, turn).await?;
        Ok(done)
    }

    /// Keeps all that is not on the disk yet, with what is known of `peer`.
    async fn keep_all(
        self: &Arc<Self>,
        peer: Option<&str>,
        mut turn: OwnedMutexGuard<ChangeTurn>,
    ) -> Result<OwnedMutexGuard<ChangeTurn>, ShelfError> {
        let (versions, version) = {
            let shared = self.lock();
            let versions: Vec<_> = shared.unkept().map(|version| (version.version, write_version(version))).collect();
            (versions, shared.replica().version())
        };
        if versions.is_empty() && turn.bytes <= MOST_UNSHORTENED {
            return Ok(turn);
        }
        let known = peer.map(|peer| {
            let PeerProgress { known: version, epoch, .. } = self.progress(peer);
            (peer.to_owned(), KeptProgress { version, epoch })
        });
        let addition = ContextAddition { versions, known: known.into_iter().collect(), epoch: None };
        let held = Arc::clone(self);
        let kept = tokio::spawn(async move {
            let kept = held.keep(addition, version, &mut turn).await;
            held.set_trouble(kept.as_ref().map_or_else(|error| Some(error.to_string()), Clone::clone));
            kept.map(|_| turn)
        });
        kept.await.unwrap_or_else(|error| Err(StoreError::Failed(error.to_string()).into()))
    }

    /// Keeps versions up to `version`. Gives what went wrong without harm to them.
    async fn keep(&self, addition: ContextAddition, version: u64, turn: &mut ChangeTurn) -> Result<Option<String>, ShelfError> {
        let shelf = self.shelf()?;
        if !addition.versions.is_empty() {
            let bytes: usize = addition.versions.iter().map(|(_, text)| text.len()).sum();
            let id = Arc::clone(&self.settings.id);
            shelf.in_store(move |store, gate| Ok(store.add(gate, &id, &addition)?)).await?;
            turn.bytes += bytes;
            let now = self.millis();
            self.lock().note_kept(version, now);
            shelf.note_change(&self.settings);
        }
        self.shorten(&shelf, turn).await
    }

    /// Puts a snapshot in the place of old versions, once there are many. A failure is told, and stops all changes only once too many have
    /// piled up.
    async fn shorten(&self, shelf: &ContextShelf, turn: &mut ChangeTurn) -> Result<Option<String>, ShelfError> {
        if turn.bytes <= turn.shortens_at {
            return Ok(None);
        }
        let id = Arc::clone(&self.settings.id);
        match shelf.in_store(move |store, gate| shorten(store, gate, &id)).await {
            Ok(left) => {
                (turn.bytes, turn.shortens_at) = (left, MOST_BEHIND);
                Ok(None)
            }
            Err(error) if turn.bytes > MOST_UNSHORTENED => Err(error),
            Err(error) => {
                turn.shortens_at = turn.bytes.saturating_add(BETWEEN_TRIES).min(MOST_UNSHORTENED);
                Ok(Some(format!("old versions cannot be put together: {error}")))
            }
        }
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

/// Puts a snapshot in the place of the older half of the bytes of all versions. Gives the bytes of the versions left.
fn shorten(store: &dyn Contexts, gate: &str, id: &str) -> Result<usize, ShelfError> {
    let kept = store.read(gate, id)?;
    let all: usize = kept.versions.iter().map(|(_, text)| text.len()).sum();
    let mut left = all;
    let middle = kept.versions.iter().find(|(_, text)| {
        left -= text.len();
        left <= all / 2
    });
    let Some((middle, _)) = middle else { return Ok(all) };
    let replica = replica_of(&kept, id, "store", *middle)?;
    store.rebase(gate, id, *middle, &write_snapshot(&replica.snapshot()))?;
    Ok(left)
}
