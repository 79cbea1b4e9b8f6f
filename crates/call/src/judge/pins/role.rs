//! The role of a mount's server, from its capabilities and its past. Does not know the consequences of a role.

use mcp_proto::mcpax::{self, Peer};

use crate::judge::pins::was_gate;
use crate::tree::mount::Mount;
use crate::tree::role::Role;

/// Finds the role of the server of `mount`, with these capabilities.
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
            // Without a store, only the time since this gate's start is known.
            let is_first = mount.negotiated().is_none();
            if is_first || mount.role.load().is_gate() { known } else { Role::Turned }
        }
    }
}

/// Checks that a server registered as a gate may be one: by its proof, or by the configuration for all.
fn is_vouched(mount: &Mount) -> bool {
    let config = mount.gate.config.load();
    let trusts_all = config.registry.as_ref().is_some_and(|registry| registry.trust_gates);
    mount.registration.as_ref().is_some_and(|registration| {
        let is_proven = registration.authority.as_ref().is_some_and(|(_, proven)| *proven);
        registration.is_gate && (is_proven || trusts_all)
    })
}
