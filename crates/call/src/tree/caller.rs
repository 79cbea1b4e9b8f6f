//! Caller of a request: its identity, its era, and its view. Made by the downstream side. Holds no credential.

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

/// Caller of a request.
#[derive(Debug)]
pub struct Caller {
    pub principal: Principal,
    /// Set if it runs the gate, and so may hear more than others.
    pub is_owner: bool,
    /// Subject for the rules, without groups of the configuration.
    pub subject: Arc<Subject>,
    /// Other end of its connection; `None` for this machine.
    pub party: Option<Arc<Party>>,
    pub era: Era,
    pub version: &'static str,
    /// Raw capabilities.
    pub capabilities: Bytes,
    /// Raw `clientInfo`.
    pub info: Bytes,
    pub scope: ViewKey,
    /// Session, in the initialize era.
    pub session: Option<Arc<Session>>,
    /// Last view, found again without a look-up.
    pub shown: Last<View>,
    /// Last standing, found again without a look-up.
    pub standing: Last<Standing>,
    /// Share of its principal, once asked for.
    pub share: OnceLock<Arc<Share>>,
}

/// Last look-up, with its tree's number. Does not keep the result alive.
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
    /// Result for tree number `tree`: the last one, or that of `look_up`.
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
    /// Share of its principal.
    pub fn share(&self, load: &Load) -> &Arc<Share> {
        self.share.get_or_init(|| load.shares.of_principal(&self.principal.name))
    }

    /// Checks that the caller can be asked anything.
    pub fn can_answer(&self) -> bool {
        ["elicitation", "roots", "sampling"].iter().any(|c| mcp_proto::era::declares(&self.capabilities, c))
    }
}
