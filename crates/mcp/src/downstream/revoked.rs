//! Streams and sessions of those who would not be let in any more: they end when what let them in is taken out of the configuration. Requests
//! are not looked at here: each is let in by itself. Streams whose token expires end where they were opened, and the session goes on.

use std::collections::BTreeSet;
use std::sync::Arc;

use config::resolved::Config;
use policy::decide::{Kind, Subject};

use call::tree::gate::Gate;

/// Ends what stands open of them, now that `new` is in force in place of `old`.
pub fn end(gate: &Arc<Gate>, old: &Config, new: &Config) {
    let is_kept = |name: &str, sha256| new.tokens.iter().any(|token| *token.name == *name && token.sha256 == sha256);
    let tokens: BTreeSet<&str> = old.tokens.iter().filter(|token| !is_kept(&token.name, token.sha256)).map(|token| &*token.name).collect();
    let issuers = old.trust.issuers.iter().filter(|issuer| !new.trust.issuers.contains(issuer));
    let issuers: BTreeSet<&str> = issuers.map(|issuer| &*issuer.name).collect();
    let takes_certificates = |config: &Config| config.trust.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
    let certificates = takes_certificates(old) && !takes_certificates(new);
    tokens.iter().for_each(|name| gate.load.tasks.disown(name));
    if tokens.is_empty() && issuers.is_empty() && !certificates {
        return;
    }
    let is_over = |who: &Subject| match who.kind {
        Kind::Token => tokens.contains(who.name.as_str()),
        Kind::Issuer => who.name.rsplit_once('@').is_some_and(|(_, issuer)| issuers.contains(issuer)),
        Kind::Certificate => certificates,
        Kind::Local | Kind::Parent | Kind::Participant => false,
    };
    for session in gate.hub.let_go(is_over) {
        session.end();
        let gate = Arc::clone(gate);
        tokio::spawn(async move { call::way::forget(&gate, &session).await });
    }
}
