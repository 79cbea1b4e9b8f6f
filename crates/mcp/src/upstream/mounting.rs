//! Running mounts: those of the configuration, and those of registered servers. Does not keep them alive; `supervise.rs` does.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use banyan_model::Segment;
use config::resolved::Config;
use config::secret::Sources;
use mcp_proto::catalog::Kind;
use runtime::tls::Connector;

use crate::upstream::connect::Dialer;
use crate::upstream::fleet::SharedProcesses;
use crate::upstream::origins::Origins;
use crate::upstream::supervise::supervise;
use call::judge::gate::Gate;
use call::tree::mount::Mount;
use call::tree::port::Family;

/// Resources for reaching servers.
pub struct Upstreams {
    pub gate: Arc<Gate>,
    pub connector: Arc<Connector>,
    pub origins: Origins,
    pub sources: Arc<dyn Sources>,
    /// Openers of upstreams other than MCP servers.
    pub families: Vec<Arc<dyn Family>>,
    /// Processes that serve several mounts.
    pub shared: SharedProcesses,
    /// Directory of upstreams' tokens.
    pub state_dir: PathBuf,
}

impl Upstreams {
    /// Starts and stops mounts so that those of `config` run.
    pub fn mount(self: &Arc<Self>, config: &Config) {
        let mounts = &self.gate.mounts;
        let publishing = mounts.publishing();
        let (registered, old): (Vec<_>, Vec<_>) = mounts.all.load_full().iter().cloned().partition(|m| m.registration.is_some());
        let mut wanted_mounts = Vec::with_capacity(config.mounts.len() + registered.len());
        for wanted in config.mounts.values() {
            // A registered server keeps its segment; the mount begins when the registration is over.
            if registered.iter().any(|m| m.config.name == wanted.name) {
                tracing::warn!(mount = %wanted.name, "a registered server has this segment: the mount waits until its registration ends");
                continue;
            }
            let same = old.iter().find(|m| m.config == *wanted || (m.config.name == wanted.name && *m.config == **wanted));
            wanted_mounts.push(match same {
                Some(same) => Arc::clone(same),
                None => self.begin(wanted),
            });
        }
        let gone: Vec<_> = old.iter().filter(|m| !wanted_mounts.iter().any(|n| Arc::ptr_eq(n, m))).cloned().collect();
        wanted_mounts.extend(registered);
        self.gate.replace(wanted_mounts);
        drop(publishing);
        mounts.changed.notify_waiters();
        self.gate.mounts_changed();
        for gone in gone {
            self.gate.hub.lists_changed(Some(&gone.config.name), &Kind::ALL);
            let gate = Arc::clone(&self.gate);
            // Out of the tree at once, closed after its last call.
            tokio::spawn(async move {
                gone.drain(Duration::from_secs(30)).await;
                gate.hub.left.leave(&gone);
                gone.close().await;
            });
        }
    }

    /// Replaces the mounts of registered servers.
    pub fn set_registered(self: &Arc<Self>, registered: Vec<Arc<Mount>>) {
        let is_waiting = {
            let _one = self.gate.mounts.publishing();
            let mut mounts: Vec<_> = self.gate.mounts.all.load().iter().filter(|m| m.registration.is_none()).cloned().collect();
            mounts.extend(registered);
            let running: HashSet<Segment> = mounts.iter().map(|m| m.config.name.clone()).collect();
            self.gate.replace(mounts);
            self.gate.config.load().mounts.keys().any(|name| !running.contains(name))
        };
        if is_waiting {
            self.mount(&self.gate.config.load_full());
        }
    }

    fn begin(self: &Arc<Self>, config: &Arc<config::resolved::Mount>) -> Arc<Mount> {
        let other = self.families.iter().find_map(|family| family.opens(config));
        // The dialer of a mount that no family opens says so.
        let opens = other.unwrap_or_else(|| Arc::new(Dialer::new(self, config)));
        let mount = Mount::new(Arc::clone(config), &self.gate.base, opens, None);
        tokio::spawn(supervise(Arc::clone(&mount)));
        mount
    }
}
