//! Which calls wait for somebody to agree, all checked. Who has agreed to what is not known here.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use banyan_model::Segment;
use policy::approval::Mode;

use crate::secret::SecretRef;

/// Which calls wait, for whom, and who is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// Which calls wait.
    pub mode: Mode,
    /// Other modes for single mounts.
    pub mounts: BTreeMap<Segment, Mode>,
    /// How many different people have to agree.
    pub approvals: u8,
    /// How long somebody may take.
    pub expires: Duration,
    /// How long a caller that hears no progress is kept waiting.
    pub wait: Duration,
    /// Where people approve; `None`: the gate's own port on `localhost`.
    pub url: Option<url::Url>,
    /// Whose signed tokens count.
    pub services: Vec<ApprovalService>,
    /// Who is told.
    pub webhooks: Vec<Webhook>,
    /// What is started to tell somebody: a program and its arguments.
    pub commands: Vec<(String, Vec<String>)>,
}

/// An approval service, or a policy engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalService {
    /// Its name in the configuration.
    pub name: String,
    /// The `iss` of its tokens.
    pub issuer: String,
    /// The `aud` of its tokens for this gate.
    pub audience: String,
    /// File with its keys.
    pub keys: PathBuf,
    /// What that holds, or why it can't be read.
    pub text: Result<String, String>,
}

/// Who is told what becomes of calls that wait.
#[derive(Clone, Debug, PartialEq)]
pub struct Webhook {
    /// Where to post.
    pub url: url::Url,
    /// What each post is signed with.
    pub secret: SecretRef,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            mode: Mode::Off,
            mounts: BTreeMap::new(),
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
    /// Which calls of a mount wait.
    pub fn mode_of(&self, mount: &Segment) -> Mode {
        self.mounts.get(mount).copied().unwrap_or(self.mode)
    }
}
