//! Tools of peers that are here, for the mounts that call them. Checks no offer: `axcp-proto` does.

use std::collections::BTreeMap;
use std::sync::Arc;

use axcp_proto::capability::offers::OfferedTools;
use call::judge::gate::Gate;
use config::resolved::{Config, Transport};
use tokio::sync::watch;

use crate::section::OfferedSettings;
use crate::tools::outgoing::OutgoingCalls;

/// Bytes of the offers of all peers.
const MOST_OFFERED: usize = 32 * 1024 * 1024;

/// Tools of all peers that are here.
pub(crate) struct OfferShelf {
    gate: Arc<Gate>,
    peers: watch::Sender<BTreeMap<Arc<str>, PeerTools>>,
}

/// Tools of a peer, and the way to call them.
#[derive(Clone)]
pub(crate) struct PeerTools {
    pub(crate) tools: Arc<OfferedTools>,
    pub(crate) calls: Arc<OutgoingCalls>,
    /// Bytes of the tools.
    pub(crate) held: usize,
}

impl OfferShelf {
    pub(crate) fn new(gate: Arc<Gate>) -> Arc<Self> {
        Arc::new(Self { gate, peers: watch::Sender::default() })
    }

    /// Checks for a mount that wants the tools of a peer.
    pub(crate) fn is_wanted(&self, peer: &str) -> bool {
        mounts_of(&self.gate.config.load(), peer).next().is_some()
    }

    /// Gives the bytes left for the offers of a peer.
    pub(crate) fn room(&self, peer: &str) -> usize {
        let others = self.peers.borrow().iter().filter(|(other, _)| &***other != peer).map(|(_, tools)| tools.held).sum();
        MOST_OFFERED.saturating_sub(others)
    }

    /// Shows the tools of a peer, and wakes its mounts.
    pub(crate) fn show(&self, peer: &Arc<str>, tools: PeerTools) {
        let is_new = !self.peers.borrow().contains_key(peer);
        self.peers.send_modify(|peers| drop(peers.insert(Arc::clone(peer), tools)));
        if is_new {
            for name in mounts_of(&self.gate.config.load_full(), peer) {
                if let Some(mount) = self.gate.mounts.find(&name) {
                    mount.connections.again.notify_one();
                }
            }
        }
    }

    /// Takes the tools of a peer away with its connection, unless a newer one has shown others.
    pub(crate) fn hide(&self, peer: &str, calls: &Arc<OutgoingCalls>) {
        self.peers.send_if_modified(|peers| {
            let is_same = peers.get(peer).is_some_and(|tools| Arc::ptr_eq(&tools.calls, calls));
            is_same && peers.remove(peer).is_some()
        });
    }

    /// Subscribes to the tools of all peers.
    pub(crate) fn peers(&self) -> watch::Receiver<BTreeMap<Arc<str>, PeerTools>> {
        self.peers.subscribe()
    }
}

/// Lists the names of the mounts of a peer.
fn mounts_of(config: &Config, peer: &str) -> impl Iterator<Item = String> {
    config.mounts.values().filter_map(move |mount| match &mount.transport {
        Transport::Family(family) => {
            family.settings::<OfferedSettings>().filter(|settings| *settings.peer == *peer).map(|_| mount.name.to_string())
        }
        Transport::Http(_) | Transport::Sse(_) | Transport::Stdio(_) => None,
    })
}
