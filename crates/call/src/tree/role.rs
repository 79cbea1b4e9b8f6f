//! Role of a mounted server: a server, or another gate, and by whose word. A gate is trusted with more than a server, so the operator names
//! gates, or a certificate proves them; a server's own claim relaxes nothing.

use crate::tree::mount::Mount;

/// Role of a mounted server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Role {
    /// A gate by its own claim alone, since first seen: calls and names pass as through a gate, but pins and time limits are those of a
    /// server.
    Declared,
    /// No gate.
    #[default]
    Server,
    /// A server when first seen that claims to be a gate by now; stays a server.
    Turned,
    /// A gate by the configuration, or by proof at registration.
    Vouched,
}

impl Role {
    /// Checks that calls and names pass as through a gate.
    pub fn is_gate(self) -> bool {
        matches!(self, Self::Declared | Self::Vouched)
    }

    /// Checks that its word counts as a gate's.
    pub fn is_vouched(self) -> bool {
        self == Self::Vouched
    }

    /// Note for people, where the server's claim and the operator's word differ.
    pub fn note(self, mount: &Mount) -> Option<String> {
        let name = &mount.config.name;
        let remedy = match &mount.registration {
            None => format!("if it is a gate of yours, say `gate = true` in [mount.{name}]"),
            Some(_) if self == Self::Turned => "if it is a gate of yours, let it register under another segment".to_owned(),
            Some(_) => "if it is a gate of yours, let it register with a certificate or a proof, or say `trust_gates = true` in [registry]"
                .to_owned(),
        };
        match self {
            Self::Declared => {
                Some(format!("it says that it is a gate, and only it says so: it is pinned and timed as any server; {remedy}"))
            }
            Self::Turned => Some(format!(
                "it says that it is a gate, which it was not when it was first seen: it is treated as the server that it was; {remedy}"
            )),
            Self::Server | Self::Vouched => None,
        }
    }
}
