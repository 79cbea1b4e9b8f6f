//! Writes the findings as a `banyan.toml` with comments: the origin of each server, the keys left out, and
//! secrets in plain text. Does not write to disk.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fmt::Write as _;
use std::time::Duration;

use config::resolved::{Mount, OAuth, Process, Remote, Transport};
use config::secret::SecretRef;

use super::found::{Found, Server};
use super::note::NoteKind;
use super::plain::{PlainSecret, SecretPlace};

/// Writes a `banyan.toml` that mounts the findings. Reading it gives the same mounts.
pub fn to_toml(found: &Found) -> String {
    let mut out = Out(String::new());
    out.comment("Written by Banyan. `banyan check` reads it and starts nothing.");
    out.comment("From:");
    for file in &found.files {
        let whose = file.client.map_or("a file", |client| client.label());
        let plural = if file.servers == 1 { "" } else { "s" };
        out.comment(&format!("  {whose}: {} ({} server{plural})", file.path.display(), file.servers));
    }
    for question in &found.questions {
        out.comment(&format!("To be answered with `banyan secret set {}`: {}", question.name, question.prompt));
    }
    let secrets = found.plain_secrets();
    for server in &found.servers {
        out.line("");
        out.server(found, server, &secrets);
    }
    out.0
}

struct Out(String);

impl Out {
    fn line(&mut self, text: &str) {
        self.0.push_str(text);
        self.0.push('\n');
    }

    fn comment(&mut self, text: &str) {
        for line in text.lines() {
            let clean: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            self.line(format!("# {clean}").trim_end());
        }
    }

    fn key(&mut self, key: &str, value: impl Display) {
        // Writing to a String does not fail.
        writeln!(self.0, "{key} = {value}").ok();
    }

    fn server(&mut self, found: &Found, server: &Server, secrets: &[PlainSecret]) {
        for (i, origin) in server.origins.iter().enumerate() {
            let from = if i == 0 { "From" } else { "Also in" };
            self.comment(&format!("{from} {origin}, {}", origin.path));
        }
        for note in found.notes.iter().filter(|note| matches!(note.kind, NoteKind::Changed | NoteKind::NotTaken | NoteKind::Trust)) {
            let below = |path: &str| note.path.strip_prefix(path).is_some_and(|rest| rest.starts_with(['.', '[']));
            if server.origins.iter().any(|origin| origin.file == note.file && below(&origin.path)) {
                self.comment(&format!("{}: {}", note.path, note.text));
            }
        }
        for secret in secrets.iter().filter(|secret| secret.mount == server.mount.name) {
            let what = match &secret.place {
                SecretPlace::Arg(index) => format!("args[{index}]"),
                SecretPlace::Env(name) => format!("env.{name}"),
                SecretPlace::Header(name) => format!("headers.{name}"),
            };
            self.comment(&format!("{what} is plain text: `banyan secret set {0}`, then write ${{keyring:{0}}}", secret.name));
        }
        self.mount(&server.mount, server.enabled);
    }

    fn mount(&mut self, mount: &Mount, enabled: bool) {
        let table = format!("mount.{}", mount.name);
        self.line(&format!("[{table}]"));
        match &mount.transport {
            Transport::Http(remote) => self.address(remote),
            Transport::Sse(remote) => {
                self.address(remote);
                self.key("transport", text("sse"));
            }
            // Other families have sections of their own.
            Transport::Family(_) => {}
            Transport::Stdio(process) => self.process(process),
        }
        let defaults = Mount::new(mount.name.clone(), mount.transport.clone(), "");
        if mount.timeout != defaults.timeout {
            self.key("timeout", text(duration(mount.timeout)));
        }
        if mount.start_timeout != defaults.start_timeout {
            self.key("start_timeout", text(duration(mount.start_timeout)));
        }
        self.list("include", &mount.include);
        self.list("exclude", &mount.exclude);
        if !enabled {
            self.key("disabled", true);
        }
        match &mount.transport {
            Transport::Http(remote) | Transport::Sse(remote) => self.remote(&table, remote),
            Transport::Family(_) => {}
            Transport::Stdio(process) => self.table(&format!("{table}.env"), &process.env),
        }
    }

    fn address(&mut self, remote: &Remote) {
        self.key("url", text(SecretRef::plain(remote.url.as_str()).to_string()));
    }

    fn process(&mut self, process: &Process) {
        self.key("command", text(&process.command));
        let args: Vec<String> = process.args.iter().map(SecretRef::to_string).collect();
        self.list("args", &args);
        self.list("pass_env", &process.pass_env);
        if let Some(cwd) = &process.cwd {
            self.key("cwd", text(cwd.to_string_lossy()));
        }
    }

    fn remote(&mut self, table: &str, remote: &Remote) {
        let unsaid = Remote::default_oauth(&remote.url, &remote.headers);
        if unsaid != remote.oauth && remote.oauth.as_ref().is_none_or(|oauth| *oauth == OAuth::default()) {
            self.key("oauth", remote.oauth.is_some());
        }
        self.table(&format!("{table}.headers"), &remote.headers);
        if let Some(oauth) = remote.oauth.as_ref().filter(|oauth| **oauth != OAuth::default()) {
            self.line(&format!("[{table}.oauth]"));
            if let Some(id) = &oauth.client_id {
                self.key("client_id", text(id));
            }
            if let Some(secret) = &oauth.client_secret {
                self.key("client_secret", text(secret.to_string()));
            }
            self.list("scopes", &oauth.scopes);
            if let Some(port) = oauth.redirect_port {
                self.key("redirect_port", port);
            }
        }
    }

    fn list(&mut self, key: &str, items: &[String]) {
        if !items.is_empty() {
            let items: Vec<String> = items.iter().map(text).collect();
            self.key(key, format!("[{}]", items.join(", ")));
        }
    }

    fn table(&mut self, name: &str, texts: &BTreeMap<String, SecretRef>) {
        if texts.is_empty() {
            return;
        }
        self.line(&format!("[{name}]"));
        for (key, value) in texts {
            let key = toml_edit::Key::new(key.as_str()).to_string();
            self.key(&key, text(value.to_string()));
        }
    }
}

fn text(text: impl AsRef<str>) -> String {
    toml_edit::Value::from(text.as_ref()).to_string()
}

fn duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    if millis.is_multiple_of(1000) { format!("{}s", millis / 1000) } else { format!("{millis}ms") }
}
