//! Ends streams and sessions whose credential is gone from the configuration, but not requests, each of which is admitted anew. Streams
//! with an expired token end where they were opened, and their session goes on.

use std::collections::BTreeSet;
use std::sync::Arc;

use banyan_model::{Principal, PrincipalKind};
use config::resolved::Config;
use policy::decide::Subject;

use call::judge::gate::Gate;

/// Ends streams and sessions let in by credentials of `old` that are not in `new`.
pub fn end_revoked(gate: &Arc<Gate>, old: &Config, new: &Config) {
    let is_kept = |name: &str, sha256| new.tokens.iter().any(|token| *token.name == *name && token.sha256 == sha256);
    let tokens: BTreeSet<&str> = old.tokens.iter().filter(|token| !is_kept(&token.name, token.sha256)).map(|token| &*token.name).collect();
    let issuers = old.trust.issuers.iter().filter(|issuer| !new.trust.issuers.contains(issuer));
    let issuers: BTreeSet<&str> = issuers.map(|issuer| &*issuer.name).collect();
    let takes_certificates = |config: &Config| config.trust.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
    let certificates = takes_certificates(old) && !takes_certificates(new);
    tokens.iter().for_each(|name| gate.load.tasks.disown(&Principal::new(PrincipalKind::Token, &**name)));
    if tokens.is_empty() && issuers.is_empty() && !certificates {
        return;
    }
    let is_over = |who: &Subject| match who.kind {
        PrincipalKind::Token => tokens.contains(who.name.as_str()),
        PrincipalKind::Issuer => who.name.rsplit_once('@').is_some_and(|(_, issuer)| issuers.contains(issuer)),
        PrincipalKind::Certificate => certificates,
        PrincipalKind::Local | PrincipalKind::Parent | PrincipalKind::Participant => false,
    };
    for session in gate.hub.let_go(is_over) {
        session.end_session();
        let gate = Arc::clone(gate);
        tokio::spawn(async move { call::way::forget(&gate, &session).await });
    }
}
