//! A caller let in, the credential shown, and the view given. Who may come in is decided at the doors, not here.

use std::sync::{Arc, LazyLock};
use std::time::SystemTime;

use banyan_model::{Principal, Segment};
use config::resolved::{Config, NameStyle};
use mcp_proto::glob::Glob;
use mcp_proto::json::{self, Members};
use mcp_proto::mcpax::{self, Peer};
use mcp_proto::projection::{Style, style_for};
use policy::decide::{Kind, Subject};
use runtime::wall;

use crate::words::granted::{Granted, Place};
use crate::words::party::Party;
use crate::words::view_key::ViewKey;

/// Proof that somebody may come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entered {
    pub principal: Principal,
    /// What the connection shows of it; `None`: it comes from this machine.
    pub party: Option<Arc<Party>>,
    /// The profile that goes with the token.
    pub profile: Option<Arc<str>>,
    pub by: By,
}

/// What somebody came in by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum By {
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
pub struct AboutClient<'a> {
    /// Its raw `clientInfo`.
    pub info: &'a [u8],
    /// Its raw capabilities.
    pub capabilities: &'a [u8],
}

impl Entered {
    /// Somebody on our own standard input.
    pub fn local() -> Self {
        Self { principal: Principal::local(), party: None, profile: None, by: By::Own }
    }

    /// Whether what it came in by is still good.
    pub fn holds(&self) -> bool {
        self.until().is_none_or(|until| wall::now() < until)
    }

    /// Checks whether it is whoever runs the gate.
    pub fn is_owner(&self) -> bool {
        self.by == By::Own
    }

    /// Checks whether it may read the metrics, which tell of everybody's calls: by its token, or where nothing is kept from anybody.
    pub fn reads_metrics(&self, config: &Config) -> bool {
        match self.by {
            By::Nothing => config.policy.is_none(),
            By::Own => true,
            By::Token => config.tokens.iter().any(|token| token.metrics && token.name == self.principal.name),
            By::Certificate | By::Issuer(..) | By::Parent | By::Room => false,
        }
    }

    /// Whether it is whoever reaches the gate, which asks for nothing.
    pub fn is_anybody(&self) -> bool {
        self.by == By::Nothing
    }

    /// When what it came in by is over; `None`: not by itself.
    pub fn until(&self) -> Option<SystemTime> {
        match &self.by {
            By::Certificate | By::Nothing | By::Own | By::Parent | By::Room | By::Token => None,
            By::Issuer(_, until, _) => Some(*until),
        }
    }

    /// What its token says of its place in rooms, and which issuer made that.
    pub fn place(&self) -> Option<(&str, &Place)> {
        match &self.by {
            By::Certificate | By::Nothing | By::Own | By::Parent | By::Room | By::Token => None,
            By::Issuer(issuer, _, granted) => Some((issuer, &granted.place)),
        }
    }

    /// The parent that was dialled at `host`, and calls over the link.
    pub fn parent(host: &str) -> Self {
        Self { principal: Principal { name: format!("parent {host}").into() }, by: By::Parent, ..Self::local() }
    }

    /// A participant of a room, whom nothing but the room knows.
    pub fn participant(id: &str) -> Self {
        Self { principal: Principal { name: id.into() }, by: By::Room, ..Self::local() }
    }

    /// Who it is to rules: all but the groups of the configuration. `info` is the client's raw `clientInfo`.
    pub fn subject(&self, info: &[u8]) -> Subject {
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

    /// What a client that says this about itself is shown. Another gate sees names as they are in the tree, whatever is configured
    /// for people's clients.
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
        // A token's own profile stays named where it is not found, so that its holder is shown nothing rather than everything.
        let named = self.profile.as_ref().or(profile.map(|p| &p.name));
        ViewKey { mount, profile: named.cloned().unwrap_or_else(no_profile), style, annotated: peer != Peer::Plain, is_seated: false }
    }
}

/// What a client that calls itself `name` is shown.
pub fn scope_of(config: &Config, name: &str) -> ViewKey {
    let info = format!("{{\"name\":{}}}", json::quote(name));
    let asked = (name.is_empty()).then(|| style_for(""));
    Entered::local().scope(config, None, AboutClient { info: info.as_bytes(), capabilities: b"{}" }, asked)
}

fn no_profile() -> Arc<str> {
    static NONE: LazyLock<Arc<str>> = LazyLock::new(|| "".into());
    Arc::clone(&NONE)
}
