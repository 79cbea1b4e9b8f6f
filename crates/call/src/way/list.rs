//! Lists, and the servers' descriptions of themselves, answered from the tree without asking anybody.

use std::collections::BTreeMap;
use std::sync::Arc;

use banyan_model::Era;
use bytes::Bytes;
use config::resolved::Policy;
use mcp_proto::catalog::Kind;
use mcp_proto::cursor::ListCursor;
use mcp_proto::envelope::{Answer, Request};
use mcp_proto::era::STATELESS;
use mcp_proto::json::{self, Members};
use mcp_proto::mcpax;
use policy::decide::Action;

use crate::judge::gate::Gate;
use crate::tree::caller::Caller;
use crate::tree::own;
use crate::tree::snapshot::{Branch, Tree};
use crate::tree::standing::Standing;
use crate::tree::view::list::EntryList;
use crate::tree::view::{Item, View};
use crate::way::authorize;
use crate::way::error::CallError;
use crate::way::usable::usable;
use crate::words::node::SERVER_INFO;
use crate::words::view_key::ViewKey;

/// Time for which a stateless client may keep a list, in milliseconds. Listening clients hear of changes at once.
const TTL_MS: &str = "5000";

/// Capabilities of servers that MCP names: each is answered for the gate as a whole.
const NAMED: [&str; 8] = ["tools", "prompts", "resources", "completions", "logging", "tasks", "experimental", "extensions"];

/// Answers with a page of a list.
pub async fn list(gate: &Gate, kind: Kind, request: &Request, caller: &Caller) -> Result<Answer, CallError> {
    // Clients that list only once must not miss a server that is starting.
    if !gate.mounts.is_settled_in(caller.scope.mount.as_ref()) {
        gate.mounts.settled_in(caller.scope.mount.as_ref(), gate.mounts.startup_wait()).await;
    }
    let tree = gate.mounts.tree.load_full();
    let members = request.params.members();
    let behind = match members.get("cursor") {
        None | Some(b"null") => None,
        Some(raw) => Some(json::as_str(raw).and_then(|cursor| ListCursor::decode(kind, &cursor)).ok_or(CallError::BadCursor)?),
    };
    let view = tree.shown(caller);
    let own = if tree.config.policy.is_some() { permitted(&tree, &view, kind, caller).await } else { None };
    let list = own.as_ref().or_else(|| view.list(kind)).ok_or(CallError::BadCursor)?;
    let page = list.page(behind.as_ref());
    let mut out = Vec::with_capacity(page.size() + BESIDE);
    out.extend_from_slice(b"{\"");
    out.extend_from_slice(kind.member().as_bytes());
    out.extend_from_slice(b"\":");
    page.write(&mut out);
    if let Some(next) = &page.next {
        out.extend_from_slice(format!(",\"nextCursor\":\"{}\"", next.encode(kind)).as_bytes());
    }
    if kind == Kind::Tools && caller.scope.is_for_gate() {
        let ids = gate.gates(&tree);
        let ids = mcpax::write_ids(ids.iter().map(String::as_str));
        let failed = if behind.is_none() { failed(gate, &tree, caller) } else { String::new() };
        out.extend_from_slice(format!(",\"_meta\":{{\"{}\":{ids}{failed}}}", mcpax::SUBTREE_IDS).as_bytes());
    }
    if caller.era == Era::Stateless {
        for member in [",\"resultType\":\"complete\",\"ttlMs\":", TTL_MS, ",\"cacheScope\":\"private\""] {
            out.extend_from_slice(member.as_bytes());
        }
    }
    out.push(b'}');
    Ok(Answer::Result(Bytes::from(out).into()))
}

/// The member about failed servers, for a gate above from which nothing is hidden: rules and profiles name tools, and a failed server has
/// none to judge by.
fn failed(gate: &Gate, tree: &Tree, caller: &Caller) -> String {
    let is_whole = tree.config.policy.is_none() && caller.scope.profile.is_empty() && caller.scope.mount.is_none();
    let failed: Vec<String> = if is_whole { gate.failed_servers().into_iter().collect() } else { Vec::new() };
    if failed.is_empty() { String::new() } else { format!(",\"{}\":{}", mcpax::FAILED_SERVERS, mcpax::write_paths(&failed)) }
}

/// Room for the members beside a page, in bytes: a page that grew out of its place would be copied whole.
const BESIDE: usize = 160;

/// A list without the entries that this caller can never use; `None` if the caller may use all.
async fn permitted(tree: &Arc<Tree>, view: &Arc<View>, kind: Kind, caller: &Caller) -> Option<Arc<EntryList>> {
    let (standing, key) = (tree.standing(caller), caller.scope.clone());
    if let Some(known) = standing.list(&key, kind) {
        return Some(known);
    }
    let (tree, view) = (Arc::clone(tree), Arc::clone(view));
    // Judging a hundred thousand tools takes seconds, and other calls go on meanwhile.
    let made = tokio::task::spawn_blocking(move || {
        let rules = tree.config.policy.as_ref()?;
        let keeps_own = !standing.foresee(rules, &own::target(), &key.profile).is_hopeless();
        let list = Arc::new(view.kept(&tree, &key, kind, (&|item| listed(&standing, rules, &tree, &key, kind, item), keeps_own)));
        standing.keep_list(&key, kind, &list);
        Some(list)
    });
    // A failure shows nothing rather than everything.
    made.await.unwrap_or_else(|_| Some(Arc::new(EntryList::of_parts(kind, []))))
}

fn listed(standing: &Standing, rules: &Policy, tree: &Tree, key: &ViewKey, kind: Kind, item: &Item<'_>) -> bool {
    let action = match kind {
        Kind::Tools => return standing.tool(rules, tree, item.place, &key.profile).is_none_or(|known| !known.is_hopeless()),
        Kind::Prompts => Action::Prompt,
        // Rules know a template by its own text, and the resources behind it by address.
        Kind::Resources | Kind::Templates => Action::Read,
    };
    !standing.foresee(rules, &authorize::target(action, item.branch, item.name), &key.profile).is_hopeless()
}

/// Answers `server/discover`.
pub async fn discovered(gate: &Gate, tree: &Arc<Tree>, caller: &Caller) -> Bytes {
    let (capabilities, instructions) = capabilities(gate, tree, caller).await;
    let instructions = instructions.map(|i| format!(",\"instructions\":{}", json::quote(&i))).unwrap_or_default();
    Bytes::from(format!(
        "{{\"resultType\":\"complete\",\"supportedVersions\":[\"{STATELESS}\"],\"capabilities\":{capabilities}{instructions},\"ttlMs\":{TTL_MS},\"cacheScope\":\"private\",\"_meta\":{{\"{}\":{SERVER_INFO}}}}}",
        mcp_proto::era::key::SERVER_INFO
    ))
}

/// Raw `capabilities` object and instructions for this caller, from the servers of which it can use anything.
///
/// Tools are always named, since a server that is down may come back; everything else only if served.
pub async fn capabilities(gate: &Gate, tree: &Arc<Tree>, caller: &Caller) -> (String, Option<String>) {
    let usable = usable(tree, caller).await;
    let pending = tree.within(&caller.scope).any(|(_, b)| b.negotiated.is_none());
    let is_usable = |place: &usize| usable.as_ref().is_none_or(|usable| usable.contains(place));
    let branches: Vec<&Branch> = tree.within(&caller.scope).filter(|(place, _)| is_usable(place)).map(|(_, b)| b).collect();
    let mut parts: Vec<String> = vec!["\"tools\":{\"listChanged\":true}".into()];
    let any = |name: &str| branches.iter().any(|b| b.negotiated.as_ref().is_some_and(|n| mcp_proto::era::declares(&n.capabilities, name)));
    for (name, value) in [
        ("prompts", "{\"listChanged\":true}"),
        ("resources", "{\"subscribe\":true,\"listChanged\":true}"),
        ("completions", "{}"),
        ("logging", "{}"),
    ] {
        // Another gate stays connected and asks only once, so later servers count for it too.
        if pending || caller.scope.is_for_gate() || any(name) {
            parts.push(format!("\"{name}\":{value}"));
        }
    }
    let extension = if tree.config.registry.is_some() { mcpax::extension_with_registry } else { mcpax::extension };
    for group in ["experimental", "extensions"] {
        let mut merged = merged(&branches, group);
        merged.push(format!("\"{}\":{}", mcpax::ID, extension(&gate.node.id)));
        parts.push(format!("\"{group}\":{{{}}}", merged.join(",")));
    }
    if caller.era == Era::Initialize
        && let Some(tasks) = branches.iter().find_map(|b| raw(b, "tasks"))
    {
        parts.push(format!("\"tasks\":{}", String::from_utf8_lossy(&tasks)));
    }
    if caller.era == Era::Initialize
        && !caller.scope.is_for_gate()
        && let [only] = &branches[..]
    {
        parts.extend(others(only));
    }
    (format!("{{{}}}", parts.join(",")), instructions(&branches))
}

/// Capabilities of a server that MCP does not name. They are those of that server, so only whoever sees no other server is shown them.
fn others(branch: &Branch) -> Vec<String> {
    let Some(capabilities) = branch.negotiated.as_ref().map(|negotiated| &negotiated.capabilities) else { return Vec::new() };
    let members = Members::again(capabilities);
    let foreign = members.iter().filter(|(name, _)| !NAMED.contains(&name.as_ref()));
    foreign.map(|(name, value)| format!("{}:{}", json::quote(&name), String::from_utf8_lossy(value))).collect()
}

/// Members of a capability group over all servers; the first server with a name wins.
fn merged(branches: &[&Branch], group: &str) -> Vec<String> {
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    for branch in branches {
        let Some(object) = raw(branch, group) else { continue };
        for (key, value) in Members::again(&object).iter().filter(|(key, _)| key != mcpax::ID) {
            all.entry(key.into_owned()).or_insert_with(|| String::from_utf8_lossy(value).into_owned());
        }
    }
    all.into_iter().map(|(k, v)| format!("{}:{v}", json::quote(&k))).collect()
}

fn raw(branch: &Branch, name: &str) -> Option<Bytes> {
    let capabilities = &branch.negotiated.as_ref()?.capabilities;
    Members::again(capabilities).get(name).filter(|r| r.starts_with(b"{")).map(|r| capabilities.slice_ref(r))
}

/// Servers' instructions: of a single server as they are, of several under their names.
fn instructions(branches: &[&Branch]) -> Option<String> {
    let mut parts = Vec::new();
    for branch in branches {
        if let Some(text) = branch.catalog.instructions.as_deref().filter(|t| !t.trim().is_empty()) {
            parts.push((&branch.mount.config.name, text));
        }
    }
    match (&parts[..], branches.len()) {
        ([], _) => None,
        ([(_, only)], 1) => Some((*only).to_owned()),
        (parts, _) => Some(parts.iter().map(|(name, text)| format!("## {name}\n{text}")).collect::<Vec<_>>().join("\n\n")),
    }
}
