//! Parts: a family of upstreams, doors and sections, as one thing that is handed to a gate. A gate knows a part by these traits only.

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;

use config::Sections;
use config::resolved::Config;
use config::secret::Sources;
use futures_util::future::BoxFuture;
use runtime::tls::Connector;

use crate::entrance::Entrance;
use crate::port::Door;
use call::tree::port::Family;

/// A family that can be part of a gate.
pub trait GatePart: Send + Sync + 'static {
    /// Adds the sections of the family to those of `banyan.toml`.
    fn sections(&self, known: Sections) -> Sections {
        known
    }

    /// Installs the family at a gate that is being made, inside a tokio runtime. No mount has begun.
    fn install(&self, _ground: &Ground) -> Arc<dyn InstalledPart> {
        Arc::new(SectionsOnly)
    }
}

/// The ground that a gate gives to its parts.
pub struct Ground {
    /// Admits callers, and knows the gate that calls go through.
    pub entrance: Arc<Entrance>,
    /// Connects to servers over TCP and TLS.
    pub connector: Arc<Connector>,
    pub sources: Arc<dyn Sources>,
    /// Directory for files that outlive a run.
    pub state_dir: PathBuf,
    /// The gate has its id and record over restarts.
    pub is_lasting: bool,
}

/// A family at one gate.
pub trait InstalledPart: Any + Send + Sync {
    /// Openers of mounts, one for each kind of upstream.
    fn families(&self) -> Vec<Arc<dyn Family>> {
        Vec::new()
    }

    /// Places at the listener. A path belongs to the first door that claims it, and the gate's own doors come first.
    fn doors(&self) -> Vec<Arc<dyn Door>> {
        Vec::new()
    }

    /// Begins the work beside calls, once the mounts of the configuration have begun.
    fn begin(&self) {}

    /// Takes a changed configuration, before mounts change.
    fn apply(&self, _config: &Config) {}

    /// Checks whether somebody has a connection to the family. A gate without use may end.
    fn is_used(&self) -> bool {
        false
    }

    /// Ends the work, with the gate.
    fn end_work(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// A part of sections alone: mounts of these are opened by another family.
struct SectionsOnly;

impl InstalledPart for SectionsOnly {}
