//! An admitted caller, its credential, and its view. Does not admit; the doors do.

use std::sync::{Arc, LazyLock};
use std::time::SystemTime;

use banyan_model::{Principal, PrincipalKind, Segment};
use config::resolved::{Config, NameStyle};
use mcp_proto::glob::Glob;
use mcp_proto::json::{self, Members};
use mcp_proto::mcpax::{self, Peer};
use mcp_proto::projection::{Style, style_for};
use policy::decide::Subject;
use runtime::wall;

use crate::words::granted::{Place, TokenRights};
use crate::words::party::Party;
use crate::words::view_key::ViewKey;

/// Proof of admission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmittedCaller {
    pub principal: Principal,
    /// Other end of the connection; `None` for this machine.
    pub party: Option<Arc<Party>>,
    /// Profile of the token.
    pub profile: Option<Arc<str>>,
    pub by: By,
}

/// Credential by which a caller came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum By {
    Certificate,
    /// A token of an issuer: the issuer's name in the configuration, the expiry, and the rights granted.
    Issuer(Arc<str>, SystemTime, Arc<TokenRights>),
    /// Nothing: the gate asks for nothing.
    Nothing,
    /// The operator's standard input, or the gate itself.
    Own,
    /// A link dialled by this gate.
    Parent,
    /// A room credential; the room knows this caller by its participant id.
    Room,
    /// A token kept as its hash.
    Token,
}

/// A client's description of itself.
#[derive(Clone, Copy)]
pub struct AboutClient<'a> {
    /// Raw `clientInfo`.
    pub info: &'a [u8],
    /// Raw capabilities.
    pub capabilities: &'a [u8],
}

impl AdmittedCaller {
    /// Somebody on our own standard input.
    pub fn local() -> Self {
        Self { principal: Principal::local(), party: None, profile: None, by: By::Own }
    }

    /// Checks that the credential is still good.
    pub fn holds(&self) -> bool {
        self.until().is_none_or(|until| wall::now() < until)
    }

    /// Checks for the operator.
    pub fn is_owner(&self) -> bool {
        self.by == By::Own
    }

    /// Checks for the right to read metrics, which tell of everybody's calls: by the token, or where nothing is kept from anybody.
    pub fn reads_metrics(&self, config: &Config) -> bool {
        match self.by {
            By::Nothing => config.policy.is_none(),
            By::Own => true,
            By::Token => config.tokens.iter().any(|token| token.metrics && token.name == self.principal.name),
            By::Certificate | By::Issuer(..) | By::Parent | By::Room => false,
        }
    }

    /// Checks for a gate that asks for no credential.
    pub fn is_anybody(&self) -> bool {
        self.by == By::Nothing
    }

    /// Expiry of the credential, if it has one.
    pub fn until(&self) -> Option<SystemTime> {
        match &self.by {
            By::Certificate | By::Nothing | By::Own | By::Parent | By::Room | By::Token => None,
            By::Issuer(_, until, _) => Some(*until),
        }
    }

    /// Place in rooms granted by the token, with its issuer.
    pub fn place(&self) -> Option<(&str, &Place)> {
        match &self.by {
            By::Certificate | By::Nothing | By::Own | By::Parent | By::Room | By::Token => None,
            By::Issuer(issuer, _, granted) => Some((issuer, &granted.place)),
        }
    }

    /// The parent dialled at `host`, which calls over the link.
    pub fn parent(host: &str) -> Self {
        Self { principal: Principal::new(PrincipalKind::Parent, format!("parent {host}")), by: By::Parent, ..Self::local() }
    }

    /// A participant of a room, whom nothing but the room knows.
    pub fn participant(id: &str) -> Self {
        Self { principal: Principal::new(PrincipalKind::Participant, id), by: By::Room, ..Self::local() }
    }

    /// Subject for the rules, without groups of the configuration. `info` is the client's raw `clientInfo`.
    pub fn subject(&self, info: &[u8]) -> Subject {
        let (kind, granted) = match &self.by {
            By::Certificate => (PrincipalKind::Certificate, None),
            By::Issuer(_, _, granted) => (PrincipalKind::Issuer, Some(granted)),
            By::Nothing | By::Own => (PrincipalKind::Local, None),
            By::Parent => (PrincipalKind::Parent, None),
            By::Room => (PrincipalKind::Participant, None),
            By::Token => (PrincipalKind::Token, None),
        };
        let TokenRights { groups, roles, scopes, place: _ } = granted.map(|granted| TokenRights::clone(granted)).unwrap_or_default();
        let client = Members::again(info).str("name").unwrap_or_default().into_owned();
        Subject { name: self.principal.name.to_string(), kind, groups, roles, scopes, client }
    }

    /// Applies a changed configuration, where the token may name another profile.
    pub fn under(&self, config: &Config) -> Self {
        let profile = match &self.by {
            By::Certificate | By::Nothing | By::Own | By::Parent | By::Room => None,
            By::Issuer(name, _, _) => {
                config.trust.issuers.iter().find(|issuer| issuer.name == *name).and_then(|issuer| issuer.profile.clone())
            }
            By::Token => config.tokens.iter().find(|t| t.name == self.principal.name).and_then(|t| t.profile.clone()),
        };
        Self { profile, ..self.clone() }
    }

    /// View of a client with this description. Another gate sees the names of the tree, whatever is configured for people's clients.
    pub fn scope(&self, config: &Config, mount: Option<Segment>, about: AboutClient<'_>, asked: Option<Style>) -> ViewKey {
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
        // A token's own profile stays named where missing, so that its holder sees nothing rather than everything.
        let named = self.profile.as_ref().or(profile.map(|p| &p.name));
        let speaks_mesh = peer != Peer::Plain;
        // Another gate needs them, whatever is configured for people's clients.
        let annotated = gate.is_some() || profile.is_none_or(|profile| profile.annotations);
        ViewKey { mount, profile: named.cloned().unwrap_or_else(no_profile), style, annotated, speaks_mesh, is_seated: false }
    }
}

/// View of a client that calls itself `name`.
pub fn scope_of(config: &Config, name: &str) -> ViewKey {
    let info = format!("{{\"name\":{}}}", json::quote(name));
    let asked = (name.is_empty()).then(|| style_for(""));
    AdmittedCaller::local().scope(config, None, AboutClient { info: info.as_bytes(), capabilities: b"{}" }, asked)
}

fn no_profile() -> Arc<str> {
    static NONE: LazyLock<Arc<str>> = LazyLock::new(|| "".into());
    Arc::clone(&NONE)
}
