//! Callers, by kind and name. Does not decide their permissions.

use std::fmt;
use std::sync::{Arc, LazyLock};

/// Kinds of identification. Names of different kinds may be equal, and mean different callers then.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum PrincipalKind {
    Certificate,
    /// A signed token of an authorization server.
    Issuer,
    /// Unidentified: through a loopback listener, or the command line of this machine.
    #[default]
    Local,
    /// A parent, over the link dialled by this gate.
    Parent,
    /// Somebody in a room, whom a token for rooms let in.
    Participant,
    /// A bearer token of the configuration.
    Token,
}

impl PrincipalKind {
    /// Every kind.
    pub const ALL: [Self; 6] = [Self::Certificate, Self::Issuer, Self::Local, Self::Parent, Self::Participant, Self::Token];

    /// The word in `principal.kind`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Certificate => "certificate",
            Self::Issuer => "issuer",
            Self::Local => "local",
            Self::Parent => "parent",
            Self::Participant => "participant",
            Self::Token => "token",
        }
    }

    /// The meaning of a word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// The caller of a call, as established by `authenticate`. Holds no credentials. Equal only to a caller of the same kind.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Principal {
    /// The name under which the configuration, logs and records know the caller: a token's name, or `local`.
    pub name: Arc<str>,
    pub kind: PrincipalKind,
}

impl Principal {
    /// The caller of a kind under a name.
    pub fn new(kind: PrincipalKind, name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), kind }
    }

    /// The caller at a loopback listener without tokens.
    pub fn local() -> Self {
        static LOCAL: LazyLock<Arc<str>> = LazyLock::new(|| "local".into());
        Self::new(PrincipalKind::Local, Arc::clone(&LOCAL))
    }
}

/// The kind before the name, for example `token:ada`.
impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.as_str(), self.name)
    }
}
