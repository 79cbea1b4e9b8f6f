//! Who may come in: `Host` and `Origin` (against DNS rebinding), client certificates, bearer tokens, and what the caller is then shown.
//! What they may call is not decided here.

use std::net::IpAddr;
use std::sync::{Arc, LazyLock};
use std::time::SystemTime;

use banyan_model::{Principal, Segment};
use config::resolved::{Config, NameStyle, Token};
use http::StatusCode;
use mcp_proto::glob::Glob;
use mcp_proto::http1::Fields;
use mcp_proto::json::{self, Members};
use mcp_proto::mcpax::{self, Peer};
use mcp_proto::projection::{Style, style_for};
use policy::decide::{Kind, Subject};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::call::caller::ViewKey;
use crate::trust::{self, Bearer, Certified, Denied, Granted, Party, Place, Trust, Wrong, wall};

/// Proof that somebody may come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entered {
    pub(crate) principal: Principal,
    /// What the connection shows of it; `None`: it comes from this machine.
    pub(crate) party: Option<Arc<Party>>,
    /// The profile that goes with the token.
    profile: Option<Arc<str>>,
    by: By,
}

/// What somebody came in by.
#[derive(Debug, Clone, PartialEq, Eq)]
enum By {
    /// A client certificate.
    Certificate,
    /// A token of an issuer, by its name in the configuration, until when, and what it grants.
    Issuer(Arc<str>, SystemTime, Arc<Granted>),
    /// Nothing: the gate asks for nothing.
    Nothing,
    /// Its standard input, which is that of whoever runs the gate; or the gate is itself the caller.
    Own,
    /// The link that this gate dialled.
    Parent,
    /// What let it into a room, which knows it by its id there.
    Room,
    /// A token that is kept as its hash.
    Token,
}

/// What a client says about itself.
#[derive(Clone, Copy)]
pub(crate) struct About<'a> {
    /// Its raw `clientInfo`.
    pub(crate) info: &'a [u8],
    /// Its raw capabilities.
    pub(crate) capabilities: &'a [u8],
}

/// Why somebody may not: the status, what to do about it, and where to sign in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) status: StatusCode,
    pub(crate) why: String,
    /// The `WWW-Authenticate` of the answer.
    pub(crate) challenge: Option<String>,
}

/// Lets a request in, or not.
pub(crate) fn enter(config: &Config, trust: &Trust, party: Option<&Arc<Party>>, fields: &Fields) -> Result<Entered, Refused> {
    let certified = outer(config, party, fields)?;
    let elsewhere = config.behind_proxy.then(|| Party::elsewhere(party));
    let party = elsewhere.as_ref().or(party);
    if !config.wants_credential() {
        if party.is_some_and(|party| !party.is_here()) {
            return Err(forbidden(ELSEWHERE.to_owned()));
        }
        let host = text(fields, "host").unwrap_or_default();
        if !host_allowed(config, host) {
            return Err(forbidden(format!("Host {host} is not allowed: use a loopback name, or add it to `allowed_hosts`")));
        }
        return Ok(Entered { party: party.cloned(), by: By::Nothing, ..Entered::local() });
    }
    let Some(sent) = bearer(config, fields)? else {
        let principal = certified.map(|certified| Principal { name: Arc::clone(&certified.principal) });
        let missing = || unauthorized(config, if config.trust.issuers.is_empty() { MISSING } else { MISSING_ISSUED });
        return Ok(Entered { principal: principal.ok_or_else(missing)?, party: party.cloned(), profile: None, by: By::Certificate });
    };
    if !config.trust.issuers.is_empty() && sent.split('.').count() == 3 {
        let Bearer { principal, issuer, profile, until, granted } = trust.bearer(sent).map_err(|why| denied(config, &why))?;
        return Ok(Entered { principal, party: party.cloned(), profile, by: By::Issuer(issuer, until, granted) });
    }
    let token = find(config, sent)
        .ok_or_else(|| unauthorized(config, "the bearer token is not known: `banyan token list` shows whose there are"))?;
    Ok(Entered {
        principal: Principal { name: Arc::clone(&token.name) },
        party: party.cloned(),
        profile: token.profile.clone(),
        by: By::Token,
    })
}

/// What everybody has to show, whoever it is: a page of this gate, if any, and a certificate where one is required.
pub(crate) fn outer<'a>(config: &Config, party: Option<&'a Arc<Party>>, fields: &Fields) -> Result<Option<&'a Certified>, Refused> {
    if let Some(origin) = text(fields, "origin")
        && !origin_allowed(config, origin)
    {
        return Err(forbidden(format!("Origin {origin} is not allowed: add its host to `allowed_hosts` if it should be")));
    }
    // A connection may have shown its certificate while an authority for it was configured.
    let takes = config.trust.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
    let certified = party.and_then(|party| party.certified()).filter(|_| takes);
    if certified.is_none() && config.trust.tls.as_ref().is_some_and(|tls| tls.required) {
        let why = "a client certificate is needed here, one with a DNS name or a spiffe:// URI among its alternative names";
        return Err(unauthorized(config, why));
    }
    Ok(certified)
}

/// The bearer token that is shown, if there is one.
pub(crate) fn bearer<'a>(config: &Config, fields: &'a Fields) -> Result<Option<&'a str>, Refused> {
    let Some(sent) = text(fields, "authorization") else { return Ok(None) };
    let sent = sent.strip_prefix("Bearer ").or_else(|| sent.strip_prefix("bearer "));
    sent.map(|sent| Some(sent.trim())).ok_or_else(|| unauthorized(config, "only bearer tokens are taken"))
}

fn text<'a>(fields: &'a Fields, name: &str) -> Option<&'a str> {
    fields.get(name).map(|value| std::str::from_utf8(value).unwrap_or("?"))
}

fn unauthorized(config: &Config, why: &str) -> Refused {
    let challenge = trust::challenge(config, None).unwrap_or_else(|| "Bearer realm=\"banyan\"".into());
    Refused { status: StatusCode::UNAUTHORIZED, why: why.into(), challenge: Some(challenge) }
}

fn forbidden(why: String) -> Refused {
    Refused { status: StatusCode::FORBIDDEN, why, challenge: None }
}

const ELSEWHERE: &str = "this gate has no credential to ask for, so it lets in only callers on its own machine: \
     make a token there with `banyan token add NAME`";
const MISSING: &str = "a bearer token is needed: make one with `banyan token add NAME`";
const MISSING_ISSUED: &str =
    "a bearer token of one of this gate's authorization servers is needed: sign in there and send it with each request";

/// Whoever was let in is somebody else by now.
pub(crate) fn another() -> Refused {
    let why = "this token or certificate is somebody else's by the configuration that came into force meanwhile: ask once more";
    Refused { status: StatusCode::UNAUTHORIZED, why: why.into(), challenge: Some("Bearer realm=\"banyan\"".into()) }
}

/// The token of an issuer is not taken.
pub(crate) fn denied(config: &Config, why: &Denied) -> Refused {
    let (status, error) = match why {
        Denied::Later => (StatusCode::SERVICE_UNAVAILABLE, None),
        Denied::Wrong(Wrong::Scope) => (StatusCode::FORBIDDEN, Some("insufficient_scope")),
        Denied::Wrong(_) => (StatusCode::UNAUTHORIZED, Some("invalid_token")),
    };
    let challenge = error.and_then(|error| trust::challenge(config, Some(error)));
    Refused { status, why: format!("the bearer token is not taken: {why}"), challenge }
}

/// The token that was sent, among those that are known.
fn find<'a>(config: &'a Config, sent: &str) -> Option<&'a Token> {
    let digest: [u8; 32] = Sha256::digest(sent.as_bytes()).into();
    // Every token is compared, so that the time taken tells nothing.
    let mut found = None;
    for token in &config.tokens {
        if bool::from(token.sha256.ct_eq(&digest)) {
            found = Some(token);
        }
    }
    found
}

impl Entered {
    /// Somebody on our own standard input.
    pub(crate) fn local() -> Self {
        Self { principal: Principal::local(), party: None, profile: None, by: By::Own }
    }

    /// Whether what it came in by is still good.
    pub(crate) fn holds(&self) -> bool {
        self.until().is_none_or(|until| wall::now() < until)
    }

    /// Checks whether it is whoever runs the gate.
    pub(crate) fn is_owner(&self) -> bool {
        self.by == By::Own
    }

    /// Checks whether it may read the metrics, which tell of everybody's calls: by its token, or where nothing is kept from anybody.
    pub(crate) fn reads_metrics(&self, config: &Config) -> bool {
        match self.by {
            By::Nothing => config.policy.is_none(),
            By::Own => true,
            By::Token => config.tokens.iter().any(|token| token.metrics && token.name == self.principal.name),
            By::Certificate | By::Issuer(..) | By::Parent | By::Room => false,
        }
    }

    /// Whether it is whoever reaches the gate, which asks for nothing.
    pub(crate) fn is_anybody(&self) -> bool {
        self.by == By::Nothing
    }

    /// When what it came in by is over; `None`: not by itself.
    pub(crate) fn until(&self) -> Option<SystemTime> {
        match &self.by {
            By::Certificate | By::Nothing | By::Own | By::Parent | By::Room | By::Token => None,
            By::Issuer(_, until, _) => Some(*until),
        }
    }

    /// What its token says of its place in rooms, and which issuer made that.
    pub(crate) fn place(&self) -> Option<(&str, &Place)> {
        match &self.by {
            By::Certificate | By::Nothing | By::Own | By::Parent | By::Room | By::Token => None,
            By::Issuer(issuer, _, granted) => Some((issuer, &granted.place)),
        }
    }

    /// Ready when what it came in by is over by itself: the certificate of its connection, or its token.
    pub(crate) async fn over(&self, trust: &Trust) {
        let certificate = async {
            match &self.party {
                Some(party) => trust.ended(party).await,
                None => std::future::pending().await,
            }
        };
        let token = async {
            match self.until() {
                Some(until) => wall::passed(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = certificate => {}
            () = token => {}
        }
    }

    /// The parent that was dialled at `host`, and calls over the link.
    pub(crate) fn parent(host: &str) -> Self {
        Self { principal: Principal { name: format!("parent {host}").into() }, by: By::Parent, ..Self::local() }
    }

    /// A participant of a room, whom nothing but the room knows.
    pub(crate) fn participant(id: &str) -> Self {
        Self { principal: Principal { name: id.into() }, by: By::Room, ..Self::local() }
    }

    /// Who it is to rules: all but the groups of the configuration. `info` is the client's raw `clientInfo`.
    pub(crate) fn subject(&self, info: &[u8]) -> Subject {
        let (kind, granted) = match &self.by {
            By::Certificate => (Kind::Certificate, None),
            By::Issuer(_, _, granted) => (Kind::Issuer, Some(granted)),
            By::Nothing | By::Own => (Kind::Local, None),
            By::Parent => (Kind::Parent, None),
            By::Room => (Kind::Participant, None),
            By::Token => (Kind::Token, None),
        };
        let Granted { groups, roles, scopes, place: _ } = granted.map(|granted| Granted::clone(granted)).unwrap_or_default();
        let client = Members::again(info).str("name").unwrap_or_default().into_owned();
        Subject { name: self.principal.name.to_string(), kind, groups, roles, scopes, client }
    }

    /// The same one under a changed configuration, where its token may name another profile.
    pub(crate) fn under(&self, config: &Config) -> Self {
        let profile = match &self.by {
            By::Certificate | By::Nothing | By::Own | By::Parent | By::Room => None,
            By::Issuer(name, _, _) => {
                config.trust.issuers.iter().find(|issuer| issuer.name == *name).and_then(|issuer| issuer.profile.clone())
            }
            By::Token => config.tokens.iter().find(|t| t.name == self.principal.name).and_then(|t| t.profile.clone()),
        };
        Self { profile, ..self.clone() }
    }

    /// What a client that says this about itself is shown. Another gate sees names as they are in the tree, whatever is configured
    /// for people's clients.
    pub(crate) fn scope(&self, config: &Config, mount: Option<Segment>, about: About<'_>, asked: Option<Style>) -> ViewKey {
        let members = Members::again(about.info);
        let name = members.str("name").unwrap_or_default();
        let profile = match &self.profile {
            Some(own) => config.profiles.iter().find(|p| p.name == *own),
            None => config.profiles.iter().find(|p| p.clients.iter().any(|c| Glob::new(c).matches(&name))),
        };
        let peer = mcpax::peer(about.capabilities);
        let gate = matches!(peer, Peer::Gate(_)).then_some(Style::Qualified);
        let style = gate.or(asked).unwrap_or_else(|| match (profile.and_then(|p| p.names), config.names) {
            (Some(NameStyle::Dotted), _) | (None, NameStyle::Dotted) => Style::Dotted,
            (Some(NameStyle::Safe), _) => Style::Safe,
            (None, NameStyle::Safe) => style_for(&name),
        });
        // A token's own profile stays named where it is not found, so that its holder is shown nothing rather than everything.
        let named = self.profile.as_ref().or(profile.map(|p| &p.name));
        ViewKey { mount, profile: named.cloned().unwrap_or_else(no_profile), style, annotated: peer != Peer::Plain, is_seated: false }
    }
}

/// What a client that calls itself `name` is shown.
pub(crate) fn scope_of(config: &Config, name: &str) -> ViewKey {
    let info = format!("{{\"name\":{}}}", json::quote(name));
    let asked = (name.is_empty()).then(|| style_for(""));
    Entered::local().scope(config, None, About { info: info.as_bytes(), capabilities: b"{}" }, asked)
}

fn no_profile() -> Arc<str> {
    static NONE: LazyLock<Arc<str>> = LazyLock::new(|| "".into());
    Arc::clone(&NONE)
}

fn origin_allowed(config: &Config, origin: &str) -> bool {
    let Some((scheme, host)) = origin.split_once("://") else { return false };
    matches!(scheme, "http" | "https") && host_allowed(config, host)
}

/// Whether the gate may be called by this name.
pub(crate) fn host_allowed(config: &Config, host: &str) -> bool {
    let name = without_port(host);
    is_loopback(name) || config.allowed_hosts.iter().any(|a| a.eq_ignore_ascii_case(name) || a.eq_ignore_ascii_case(host))
}

fn without_port(host: &str) -> &str {
    if let Some(end) = host.strip_prefix('[').and_then(|rest| rest.find(']')) {
        return &host[..end + 2];
    }
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

fn is_loopback(name: &str) -> bool {
    let bare = name.trim_matches(['[', ']']);
    bare.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_names_are_hosts_by_default() {
        for good in ["localhost", "localhost:80", "127.0.0.1:9", "127.9.9.9", "[::1]:80", "LOCALHOST"] {
            assert!(is_loopback(without_port(good)), "{good}");
        }
        for bad in ["evil.example", "localhost.evil.example", "10.0.0.1:80", "[2001:db8::1]:80", "", "127.0.0.1.evil.example:80"] {
            assert!(!is_loopback(without_port(bad)), "{bad}");
        }
    }
}
