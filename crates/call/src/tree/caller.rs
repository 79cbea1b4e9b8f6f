//! Who makes a call, in which era, and what it is shown. Made by the downstream side once the caller is known. Holds no credential.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use banyan_model::{Era, Principal};
use bytes::Bytes;
use policy::decide::Subject;

use crate::tree::gate::Load;
use crate::tree::standing::Standing;
use crate::tree::view::View;
use crate::words::party::Party;
use crate::words::session::Session;
use crate::words::shares::Share;
use crate::words::view_key::ViewKey;

/// A caller.
#[derive(Debug)]
pub struct Caller {
    /// Who it is.
    pub principal: Principal,
    /// Set if it runs the gate: then it is told what others are not.
    pub is_owner: bool,
    /// Who it is to rules, but for the groups of the configuration.
    pub subject: Arc<Subject>,
    /// What its connection shows of it; `None`: it comes from this machine.
    pub party: Option<Arc<Party>>,
    /// The era it speaks.
    pub era: Era,
    /// The revision it speaks.
    pub version: &'static str,
    /// Its raw capabilities.
    pub capabilities: Bytes,
    /// Its raw `clientInfo`.
    pub info: Bytes,
    /// What it is shown.
    pub scope: ViewKey,
    /// Its session, in the initialize era.
    pub session: Option<Arc<Session>>,
    /// Where what it was shown last is found again.
    pub shown: Last<View>,
    /// Where what it may do is found again.
    pub standing: Last<Standing>,
    /// The share of its principal, once somebody has asked.
    pub share: OnceLock<Arc<Share>>,
}

/// What was looked up last, and in which tree. It does not keep that alive.
pub struct Last<T>(Mutex<(u64, Weak<T>)>);

impl<T> Default for Last<T> {
    fn default() -> Self {
        Self(Mutex::new((0, Weak::new())))
    }
}

impl<T> fmt::Debug for Last<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Last")
    }
}

impl<T> Last<T> {
    /// What there is in tree number `tree`: the last one, or what `look_up` finds.
    pub fn or(&self, tree: u64, look_up: impl FnOnce() -> Arc<T>) -> Arc<T> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if last.0 == tree
            && let Some(known) = last.1.upgrade()
        {
            return known;
        }
        let found = look_up();
        *last = (tree, Arc::downgrade(&found));
        found
    }
}

impl Caller {
    /// The share of its principal.
    pub fn share(&self, load: &Load) -> &Arc<Share> {
        self.share.get_or_init(|| load.shares.of(&self.principal.name))
    }

    /// Whether it can be asked anything at all.
    pub fn can_answer(&self) -> bool {
        ["elicitation", "roots", "sampling"].iter().any(|c| mcp_proto::era::declares(&self.capabilities, c))
    }
}
