//! A list of commands and addresses for people to agree to: servers by their file, command lines in full, secrets hidden.
//! Asks nobody.

use std::collections::BTreeSet;
use std::path::Path;

use config::looks_secret;
use config::resolved::{Process, Remote, Transport};
use import::{Found, NoteKind, PlainSecret, SecretPlace, Server};

use crate::output::{Look, Output};
use crate::printable::printable;
use crate::table::{self, Align};

/// The servers under the files that name them, on standard error's colours. Files without servers are left out.
pub(crate) fn servers(found: &Found, output: &Output) -> Vec<String> {
    let secrets = found.plain_secrets();
    let mut lines = Vec::new();
    for file in &found.files {
        let of_file: Vec<&Server> = found.servers.iter().filter(|s| s.origins.first().is_some_and(|o| o.file == file.path)).collect();
        if of_file.is_empty() {
            continue;
        }
        let client = file.client.map(|c| format!("{c}  ")).unwrap_or_default();
        lines.push(format!("{}{}", output.paint_remark(Look::Strong, &client), output.paint_remark(Look::Dim, &shown_path(&file.path))));
        let rows: Vec<Vec<String>> = of_file.iter().map(|s| row(s, &secrets)).collect();
        lines.extend(table::lines(&[Align::Left, Align::Left, Align::Left], &rows));
    }
    lines
}

/// Lists notes on the files, a line each, the least surprising left out unless `all`.
pub(crate) fn notes(found: &Found, all: bool) -> Vec<String> {
    let quiet = |kind| matches!(kind, NoteKind::Same | NoteKind::Disabled);
    let is_told = |kind| kind != NoteKind::Banyan && (all || !quiet(kind));
    let mut lines: Vec<String> = found.notes.iter().filter(|n| is_told(n.kind)).map(|n| printable(&n.to_string())).collect();
    let files: BTreeSet<String> = found.notes.iter().filter(|n| n.kind == NoteKind::Banyan).map(|n| shown_path(&n.file)).collect();
    if all && !files.is_empty() {
        let files: Vec<String> = files.iter().map(|file| printable(file)).collect();
        lines.push(format!("the clients of these files use Banyan already: {}", files.join(", ")));
    }
    lines
}

/// Describes everything that a server runs or reaches, in one line.
pub(crate) fn command(server: &Server, secrets: &[PlainSecret]) -> String {
    let text = match &server.mount.transport {
        Transport::Stdio(process) => command_line(process, server, secrets),
        Transport::Http(remote) | Transport::Sse(remote) => address(remote),
        Transport::Family(family) => family.description(),
    };
    printable(&text)
}

fn row(server: &Server, secrets: &[PlainSecret]) -> Vec<String> {
    let off = if server.enabled { "" } else { "(switched off there: not started)" };
    vec![format!("  {}", server.mount.name), command(server, secrets), off.to_owned()]
}

fn command_line(process: &Process, server: &Server, secrets: &[PlainSecret]) -> String {
    let hidden = |i: usize, text: String| {
        let secret = secrets.iter().find(|s| s.mount == server.mount.name && s.place == SecretPlace::Arg(i));
        secret.and_then(|s| text.strip_suffix(s.value.expose()).map(|t| format!("{t}***"))).unwrap_or(text)
    };
    let arguments = process.args.iter().enumerate().map(|(i, a)| quoted(&hidden(i, a.to_string())));
    let mut words: Vec<String> = std::iter::once(quoted(&process.command)).chain(arguments).collect();
    if let Some(cwd) = &process.cwd {
        words.push(format!("(in {})", cwd.display()));
    }
    if !process.env.is_empty() {
        let names: Vec<&str> = process.env.keys().map(String::as_str).collect();
        words.push(format!("(sets {})", names.join(", ")));
    }
    words.join(" ")
}

fn address(remote: &Remote) -> String {
    let mut url = remote.url.clone();
    let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    if pairs.iter().any(|(key, _)| looks_secret(key)) {
        let hidden = pairs.iter().map(|(k, v)| (k.as_str(), if looks_secret(k) { "***" } else { v.as_str() }));
        url.query_pairs_mut().clear().extend_pairs(hidden);
    }
    let headers: Vec<&str> = remote.headers.keys().map(String::as_str).collect();
    if headers.is_empty() { url.to_string() } else { format!("{url} (sends {})", headers.join(", ")) }
}

/// Quotes a word as for a shell, so that one argument can't pass for two.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:@=+,%~${}*".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// With `~` for the home directory.
fn shown_path(path: &Path) -> String {
    let home = std::env::home_dir().unwrap_or_default();
    let text = match path.strip_prefix(&home) {
        Ok(rest) if !home.as_os_str().is_empty() => format!("~/{}", rest.display()),
        Ok(_) | Err(_) => path.display().to_string(),
    };
    printable(&text)
}

#[cfg(test)]
mod tests {
    use import::{Places, from_file};

    use super::*;

    fn found(servers: &str) -> Found {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("servers.json");
        std::fs::write(&path, format!("{{\"mcpServers\": {servers}}}")).unwrap();
        from_file(&path, &Places::here().unwrap()).unwrap()
    }

    #[test]
    fn a_command_line_is_whole_and_can_not_pass_for_another() {
        let found = found(r#"{"a": {"command": "npx", "args": ["-y", "two words", "it's", "", "x\u001b[2K"], "env": {"A": "1"}}}"#);
        let line = command(&found.servers[0], &found.plain_secrets());
        assert_eq!(line, r"npx -y 'two words' 'it'\''s' '' 'x\u{1b}[2K' (sets A)");
    }

    #[test]
    fn secrets_are_hidden_wherever_they_stand() {
        let found = found(
            r#"{"a": {"command": "x", "args": ["--api-key=hunter2", "--token", "hunter2"], "env": {"TOKEN": "hunter2"}},
                "b": {"type": "http", "url": "https://h.example/mcp?api_key=hunter2&v=1", "headers": {"Authorization": "Bearer hunter2"}}}"#,
        );
        let lines: Vec<String> = found.servers.iter().map(|s| command(s, &found.plain_secrets())).collect();
        assert!(!lines.join("\n").contains("hunter2"), "{lines:?}");
        assert!(lines[0].contains("--api-key=*** --token ***"), "{lines:?}");
        assert!(lines[1].contains("(sends Authorization)"), "{lines:?}");
    }
}
