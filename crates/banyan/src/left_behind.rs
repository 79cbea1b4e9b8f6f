//! Remains of a client's former setting once the client uses the gate: other servers, permissions, plain secrets, sign-ins. Changes nothing.

use std::path::PathBuf;

use import::connect::Plan;
use import::{Client, Found, NoteKind, Places, Server};

use config::resolved::Transport;

use crate::printable::printable;

/// Lines about the remains, to be read before the plan is carried out: `found` holds the servers of all clients.
pub(crate) fn lines(plan: &Plan, found: &Found, places: &Places, config: &str) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(servers(plan, found));
    lines.extend(projects(plan, found));
    lines.extend(permissions(plan, places));
    lines.extend(secrets(plan, config));
    lines.extend(sign_ins(plan));
    lines
}

/// Servers of the client in files that the plan does not change.
fn servers(plan: &Plan, found: &Found) -> Option<String> {
    let stays = |server: &&Server| {
        let origins = || server.origins.iter().filter(|origin| origin.client == Some(plan.client));
        let leaves = |path: &str| plan.removed.iter().flat_map(|one| &one.origins).any(|one| one.path == path);
        origins().any(|origin| !(is_same_file(&origin.file, &plan.file) && (leaves(&origin.path) || plan.kept.contains(&server.name))))
    };
    let place = |server: &Server| {
        let mut origins = server.origins.iter().filter(|origin| origin.client == Some(plan.client));
        let file = origins.next_back().map(|origin| origin.file.display().to_string()).unwrap_or_default();
        format!("{} ({file})", printable(&server.name))
    };
    let names: Vec<String> = found.servers.iter().filter(stays).map(place).collect();
    (!names.is_empty()).then(|| format!("{} goes on to start these by itself, beside the gate: {}", plan.client, names.join(", ")))
}

/// Servers of projects in which this command does not run.
fn projects(plan: &Plan, found: &Found) -> Option<String> {
    let is_project =
        |note: &&import::Note| is_same_file(&note.file, &plan.file) && note.kind == NoteKind::Skipped && note.path.starts_with("projects");
    let count = found.notes.iter().filter(is_project).count();
    (count > 0).then(|| format!("servers of other projects stay with {}: `banyan import` there lists them ({count})", plan.client))
}

/// Permissions of Claude Code, which name tools by their server.
fn permissions(plan: &Plan, places: &Places) -> Option<String> {
    if plan.client != Client::ClaudeCode {
        return None;
    }
    let settings = |dir: PathBuf| ["settings.json", "settings.local.json"].map(|name| dir.join(".claude").join(name));
    let files = [settings(places.home.clone()), settings(places.cwd.clone())].into_iter().flatten().chain([plan.file.clone()]);
    let texts: Vec<String> = files.filter_map(|file| std::fs::read_to_string(file).ok()).collect();
    let named = plan.removed.iter().find(|server| texts.iter().any(|text| text.contains(&format!("mcp__{}", server.name))))?;
    let name = printable(&named.name);
    Some(format!(
        "permissions name `mcp__{name}__…`, and its tools are `mcp__banyan__{}__…` from now on: Claude Code asks again for each",
        named.mount.name
    ))
}

fn secrets(plan: &Plan, config: &str) -> Option<String> {
    let found = Found { servers: plan.removed.clone(), ..Found::default() };
    let places: Vec<String> = found.plain_secrets().iter().map(|secret| printable(&secret.to_string())).collect();
    (!places.is_empty()).then(|| {
        format!(
            "secrets stand in {config} as plain text, also after `banyan disconnect`: {}\n  `banyan secret set NAME` keeps a secret in \
             the system's keyring, and \"${{keyring:NAME}}\" stands for it",
            places.join(", ")
        )
    })
}

/// Servers at which the client may have been signed in.
fn sign_ins(plan: &Plan) -> Option<String> {
    let may_sign_in = |server: &&Server| match &server.mount.transport {
        Transport::Http(remote) | Transport::Sse(remote) => remote.url.scheme() == "https" && remote.headers.is_empty(),
        Transport::Family(_) | Transport::Stdio(_) => false,
    };
    let names: Vec<String> = plan.removed.iter().filter(may_sign_in).map(|server| format!("`banyan auth {}`", server.mount.name)).collect();
    (!names.is_empty()).then(|| format!("sign-ins stay with the client: {} signs the gate in, if the server asks", names.join(", ")))
}

fn is_same_file(a: &std::path::Path, b: &std::path::Path) -> bool {
    a == b || std::fs::canonicalize(a).is_ok_and(|a| std::fs::canonicalize(b).is_ok_and(|b| a == b))
}
