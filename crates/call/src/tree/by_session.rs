//! Callers of the initialize era: whoever opened a session makes its calls. What a session is, is not known here.

use std::sync::{Arc, OnceLock};

use banyan_model::Era;

use crate::tree::caller::{Caller, Last};
use crate::words::entered::Entered;
use crate::words::session::Session;

/// The caller of a session's requests.
pub fn caller_of(session: &Arc<Session>, entered: &Entered) -> Arc<Caller> {
    let opening = &session.opening;
    Arc::new(Caller {
        principal: entered.principal.clone(),
        is_owner: entered.is_owner(),
        subject: Arc::new(entered.subject(&opening.info)),
        party: entered.party.clone(),
        era: Era::Initialize,
        version: opening.version,
        capabilities: opening.capabilities.clone(),
        info: opening.info.clone(),
        scope: session.scope(),
        session: Some(Arc::clone(session)),
        shown: Last::default(),
        standing: Last::default(),
        share: OnceLock::new(),
    })
}
