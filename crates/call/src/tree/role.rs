//! The part that the server behind a mount plays: a server, or another gate, and on whose word. A gate below is trusted with more than a
//! server, so whoever runs this gate says which mounts are gates, or a certificate does; a server's own word makes nothing laxer.

use crate::tree::mount::Mount;

/// The part that a server plays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Role {
    /// A gate by its own word alone, since it was first seen: calls and names go through it as through a gate, and it is pinned and timed as
    /// a server.
    Declared,
    /// No gate.
    #[default]
    Server,
    /// A server that was no gate when it was first seen, and says now that it is one: it stays a server.
    Turned,
    /// A gate by the configuration, or by what it proved when it registered.
    Vouched,
}

impl Role {
    /// Checks whether calls and names go through it as through a gate.
    pub fn is_gate(self) -> bool {
        matches!(self, Self::Declared | Self::Vouched)
    }

    /// Checks whether its word counts as a gate's.
    pub fn is_vouched(self) -> bool {
        self == Self::Vouched
    }

    /// For people, where its own word and that of whoever runs this gate differ.
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
