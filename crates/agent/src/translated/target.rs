//! Targets of translated requests: a mount of the gate, and one of its tools by any of its names. Calls none.

use banyan_model::Segment;
use bridge::BindingId;
use call::judge::gate::Gate;
use call::tree::caller::Caller;
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

/// Finds the name under which the caller is shown the tool of a mount: `tool` is that name already, or the owner's.
pub fn shown(gate: &Gate, caller: &Caller, mount: &Segment, tool: &str) -> Option<String> {
    let sight = Sight::of_caller(gate.mounts.tree.load_full(), caller);
    let names = [tool.to_owned(), format!("{mount}__{tool}"), format!("{mount}.{tool}")];
    names.into_iter().find(|name| {
        let branch = sight.view.tools.find(name).and_then(|(branch, _)| sight.tree.branches.get(branch));
        branch.is_some_and(|branch| branch.mount.config.name == *mount)
    })
}
