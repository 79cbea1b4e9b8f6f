//! The part that the server of a mount plays, found out by what is remembered of it. What follows from a part is not known here.

use mcp_proto::mcpax::{self, Peer};

use crate::judge::pins::was_gate;
use crate::tree::mount::Mount;
use crate::tree::role::Role;

/// The role of the server of `mount`, which has these capabilities.
pub async fn role_of(mount: &Mount, capabilities: &[u8]) -> Role {
    let declares = matches!(mcpax::peer(capabilities), Peer::Gate(_)) && !mount.opens.has_parts();
    if !declares {
        return Role::Server;
    }
    if mount.config.is_gate {
        return Role::Vouched;
    }
    let known = if is_vouched(mount) { Role::Vouched } else { Role::Declared };
    match was_gate(mount).await {
        Ok(true) => known,
        Ok(false) => Role::Turned,
        Err(error) => {
            tracing::error!(mount = %mount.config.name, %error, "which servers were gates before can't be read");
            // What it was since this gate was started is all that is known.
            let is_first = mount.negotiated().is_none();
            if is_first || mount.role.load().is_gate() { known } else { Role::Turned }
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
