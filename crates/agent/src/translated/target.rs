//! Targets of translated requests: a mount of the gate, and one of its tools by any of its names. Calls none.

use banyan_model::Segment;
use bridge::BindingId;
use call::tree::snapshot::Sight;
use config::resolved::{Config, Mount, RemoteAgent, Transport};

/// Finds the binding that a mount is called in.
pub fn binding_of(mount: &Mount) -> BindingId {
    match &mount.transport {
        Transport::Family(family) if family.settings::<RemoteAgent>().is_some() => BindingId::A2a,
        Transport::Family(_) | Transport::Http(_) | Transport::Sse(_) | Transport::Stdio(_) => BindingId::Mcp,
    }
}

/// Finds the mount that a target names: by its name, or by the address in the configuration.
pub fn mount<'c>(config: &'c Config, target: &str) -> Option<&'c Mount> {
    let is_meant = |mount: &&std::sync::Arc<Mount>| mount.name.as_str() == target || address(mount).is_some_and(|url| url == target);
    config.mounts.values().find(is_meant).map(|mount| &**mount)
}

fn address(mount: &Mount) -> Option<&str> {
    match &mount.transport {
        Transport::Family(family) => family.settings::<RemoteAgent>().map(|remote| remote.0.url.as_str()),
        Transport::Http(remote) | Transport::Sse(remote) => Some(remote.url.as_str()),
        Transport::Stdio(_) => None,
    }
}

/// Tells if the caller is shown a tool of a mount. The tools of a mount that has not answered yet are unknown: such a mount is seen.
pub fn is_seen(sight: &Sight, mount: &Segment) -> bool {
    let branches = &sight.tree.branches;
    let Some(place) = branches.iter().position(|branch| branch.mount.config.name == *mount) else { return false };
    let is_new = branches.get(place).is_some_and(|branch| branch.negotiated.is_none());
    sight.view.mounts.contains(&place) && (is_new || sight.view.servers(&|_| true).contains(&place))
}

/// Finds the name for a call of the tool of a mount: `tool` is the name shown to the caller, or the owner's. A tool that the caller is not
/// shown gets a name of no tool, for the way of the call to refuse and record.
pub fn name_of(sight: &Sight, mount: &Segment, tool: &str) -> String {
    let names = [tool.to_owned(), format!("{mount}__{tool}"), format!("{mount}.{tool}")];
    let shown = names.iter().find(|name| owner_of(sight, name) == Some(mount));
    let unknown = || {
        let name = format!("{mount}__{tool}");
        // With more underscores, the name may be that of another mount's tool.
        if owner_of(sight, &name).is_some() { format!("{mount} {tool}") } else { name }
    };
    shown.cloned().unwrap_or_else(unknown)
}

/// Tells if a call of `name` is one of the mount, or was when its tool was there.
pub fn is_of(sight: &Sight, mount: &Segment, name: &str) -> bool {
    owner_of(sight, name).map_or_else(|| name.starts_with(mount.as_str()), |owner| owner == mount)
}

fn owner_of<'s>(sight: &'s Sight, name: &str) -> Option<&'s Segment> {
    let (branch, _) = sight.view.tools.find(name)?;
    sight.tree.branches.get(branch).map(|branch| &branch.mount.config.name)
}
