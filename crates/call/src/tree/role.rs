//! The part that the server behind a mount plays: a server, or another gate, and on whose word. A gate below is trusted with more than a
//! server, so whoever runs this gate says which mounts are gates, or a certificate does; a server's own word makes nothing laxer.

use mcp_proto::mcpax::{self, Peer};

use crate::judge::pins;
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
    /// The role of the server of `mount`, which has these capabilities.
    pub async fn of(mount: &Mount, capabilities: &[u8]) -> Self {
        let declares = matches!(mcpax::peer(capabilities), Peer::Gate(_)) && !mount.opens.has_parts();
        if !declares {
            return Self::Server;
        }
        if mount.config.is_gate {
            return Self::Vouched;
        }
        let known = if is_vouched(mount) { Self::Vouched } else { Self::Declared };
        match pins::was_gate(mount).await {
            Ok(true) => known,
            Ok(false) => Self::Turned,
            Err(error) => {
                tracing::error!(mount = %mount.config.name, %error, "which servers were gates before can't be read");
                // What it was since this gate was started is all that is known.
                let is_first = mount.negotiated().is_none();
                if is_first || mount.role.load().is_gate() { known } else { Self::Turned }
            }
        }
    }

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

/// Checks whether a server that registered as a gate may be one by what it proved, or by what the configuration says of all that register.
fn is_vouched(mount: &Mount) -> bool {
    let config = mount.gate.config.load();
    let trusts_all = config.registry.as_ref().is_some_and(|registry| registry.trust_gates);
    mount.registration.as_ref().is_some_and(|registration| {
        let is_proven = registration.authority.as_ref().is_some_and(|(_, proven)| *proven);
        registration.is_gate && (is_proven || trusts_all)
    })
}
