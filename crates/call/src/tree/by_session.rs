//! Callers of the initialize era: the opener of a session makes its calls. Does not define sessions.

use std::sync::{Arc, OnceLock};

use banyan_model::Era;

use crate::tree::caller::{Caller, Last};
use crate::words::entered::AdmittedCaller;
use crate::words::session::Session;

/// The caller of a session's requests.
pub fn caller_of(session: &Arc<Session>, entered: &AdmittedCaller) -> Arc<Caller> {
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
