//! Settings of approvals, checked. Holds no approval.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use banyan_model::Segment;
use policy::approval::{Demand, Mode};

use crate::secret::SecretRef;

/// Calls that wait, and receivers of news.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    pub mode: Mode,
    /// Other modes for single mounts.
    pub mounts: BTreeMap<Segment, Mode>,
    /// Demand for previews of waiting calls.
    pub preview: Demand,
    /// Other demands for single mounts.
    pub previews: BTreeMap<Segment, Demand>,
    /// Number of different people.
    pub approvals: u8,
    pub expires: Duration,
    /// Time for which a caller without progress is kept waiting.
    pub wait: Duration,
    /// Address at which people approve; `None`: the gate's own port on `localhost`.
    pub url: Option<url::Url>,
    pub services: Vec<ApprovalService>,
    pub webhooks: Vec<Webhook>,
    /// Programs for news, and their arguments.
    pub commands: Vec<(String, Vec<String>)>,
}

/// An approval service, or a policy engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalService {
    pub name: String,
    /// The `iss` of the service's tokens.
    pub issuer: String,
    /// The `aud` of the service's tokens for this gate.
    pub audience: String,
    pub keys: PathBuf,
    /// The content of the file, or the error of reading.
    pub text: Result<String, String>,
}

/// A receiver of news about waiting calls.
#[derive(Clone, Debug, PartialEq)]
pub struct Webhook {
    /// Address to post to.
    pub url: url::Url,
    /// Key of the signature on each post.
    pub secret: SecretRef,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            mode: Mode::Off,
            mounts: BTreeMap::new(),
            preview: Demand::Offered,
            previews: BTreeMap::new(),
            approvals: 1,
            expires: Duration::from_secs(300),
            wait: Duration::ZERO,
            url: None,
            services: Vec::new(),
            webhooks: Vec::new(),
            commands: Vec::new(),
        }
    }
}

impl Gate {
    /// Finds the mode of a mount.
    pub fn mode_of(&self, mount: &Segment) -> Mode {
        self.mounts.get(mount).copied().unwrap_or(self.mode)
    }

    /// Finds the demand for previews of calls of a mount.
    pub fn preview_of(&self, mount: &Segment) -> Demand {
        self.previews.get(mount).copied().unwrap_or(self.preview)
    }
}
