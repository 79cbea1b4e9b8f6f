//! A server as clients write it, turned into a mount. The keys of all clients are read alike, because people carry
//! entries from one to another. Does not decide the final name of the mount.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};
use url::Url;

use config::resolved::{Mount, Process, Remote, Transport};
use config::secret::{Piece, SecretRef};
use config::{is_own_header, suggest};

use super::found::{Origin, Server};
use super::note::NoteKind;
use super::reading::Reading;
use super::text::{self, Texts};
use super::{json, oauth, own};

/// A year, the longest time in `banyan.toml`.
const MAX_MILLIS: f64 = 365.0 * 86_400_000.0;

/// Differences between clients.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dialect {
    /// References in texts.
    pub(super) texts: Texts,
    /// A `url` without a type is HTTP+SSE.
    pub(super) url_is_sse: bool,
    /// Unit of a number in `timeout`.
    pub(super) timeout: Unit,
}

/// Unit of a number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unit {
    /// Seconds below a thousand, and thousandths above.
    Guess,
    Milliseconds,
    Seconds,
}

impl Dialect {
    /// `${…}` in texts, and nothing special.
    pub(super) const BRACES: Self = Self { texts: Texts::Braces, url_is_sse: false, timeout: Unit::Guess };
    /// Texts stand for themselves, and nothing special.
    pub(super) const LITERAL: Self = Self { texts: Texts::Literal, url_is_sse: false, timeout: Unit::Guess };
}

/// Takes the server `name`, or reports the reason for leaving it out.
pub(super) fn read(reading: &mut Reading<'_>, path: &str, name: &str, value: Value, dialect: Dialect) {
    let Value::Object(members) = value else {
        return reading.note(NoteKind::Skipped, path, "it is not an object with `command` or `url`");
    };
    if own::is_banyan(name, &members, reading.places) {
        return reading.note(NoteKind::Banyan, path, "it points at Banyan itself, and is left out");
    }
    let mut entry = Entry { reading, path, members, dialect };
    match entry.server(name) {
        Ok(server) => {
            entry.report_rest();
            reading.servers.push(server);
        }
        Err(problem) => reading.note(NoteKind::Skipped, path, format!("the server is left out: {problem}")),
    }
}

/// The members of an entry that are not yet understood.
pub(super) struct Entry<'r, 'a> {
    pub(super) reading: &'r mut Reading<'a>,
    path: &'r str,
    members: Map<String, Value>,
    dialect: Dialect,
}

impl Entry<'_, '_> {
    fn server(&mut self, name: &str) -> Result<Server, String> {
        self.flatten_command();
        let enabled = self.enabled();
        let transport = self.transport()?;
        let Reading { client, file, project, .. } = &*self.reading;
        let origin = Origin { client: *client, file: file.clone(), path: self.path.to_owned(), project: project.clone() };
        let mut mount = Mount::new(suggest::segment(name), transport, origin.to_string());
        if let Some(timeout) =
            self.timeout(&[("tool_timeout_sec", Unit::Seconds), ("networkTimeout", Unit::Milliseconds), ("timeout", self.dialect.timeout)])
        {
            mount.timeout = timeout;
        }
        if let Some(timeout) = self.timeout(&[("startup_timeout_sec", Unit::Seconds), ("startup_timeout_ms", Unit::Milliseconds)]) {
            mount.start_timeout = timeout;
        }
        mount.include = self.tools(&["includeTools", "enabledTools", "enabled_tools"]);
        mount.exclude = self.tools(&["excludeTools", "disabledTools", "disabled_tools"]);
        self.trust();
        Ok(Server { mount, name: name.to_owned(), enabled, origins: vec![origin] })
    }

    /// Zed once wrote `"command": {"path": …, "args": …, "env": …}`.
    fn flatten_command(&mut self) {
        if let Some(Value::Object(_)) = self.members.get("command")
            && let Some(Value::Object(mut command)) = self.members.shift_remove("command")
        {
            if let Some(path) = command.shift_remove("path") {
                self.members.insert("command".into(), path);
            }
            for (key, value) in command {
                self.members.entry(key).or_insert(value);
            }
        }
    }

    fn enabled(&mut self) -> bool {
        let disabled = self.boolean("disabled").unwrap_or(false);
        let enabled = self.boolean("enabled").unwrap_or(true);
        enabled && !disabled
    }

    fn transport(&mut self) -> Result<Transport, String> {
        if self.members.get("source").is_some_and(|source| source == "extension") {
            return Err("an extension of the client starts it, so the file does not say how".into());
        }
        let kind = self.first_string(&["type", "transport", "transportType"])?.map(|(_, kind)| kind);
        let kind = kind.map(|kind| kind.to_ascii_lowercase().replace(['-', '_'], ""));
        let has_command = self.members.contains_key("command");
        match kind.as_deref() {
            Some("stdio" | "local") => self.process(),
            Some("http" | "streamablehttp" | "remote") => self.remote(Some(false)),
            Some("sse") => self.remote(Some(true)),
            Some(other) => Err(format!("it is reached by `{other}`, which Banyan does not speak")),
            None if has_command => self.process(),
            None => self.remote(None),
        }
    }

    fn process(&mut self) -> Result<Transport, String> {
        let command = self.first_string(&["command"])?.ok_or("it has no `command`")?.1;
        let command = self.expanded(&command, "command")?;
        if command.trim().is_empty() {
            return Err("its `command` is empty".into());
        }
        let mut args = Vec::new();
        for arg in self.strings("args")? {
            args.push(self.reference(&arg)?);
        }
        let mut env = self.env_file()?;
        env.extend(self.references("env")?);
        env.retain(|name, _| {
            let legal = !name.is_empty() && !name.contains(['=', '\0']);
            if !legal {
                self.reading.note(NoteKind::NotTaken, &json::joined(self.path, "env"), "a name in it can't be that of a variable");
            }
            legal
        });
        let pass_env = self.passed_names();
        let cwd = match self.first_string(&["cwd", "workingDirectory"])? {
            Some((_, cwd)) => Some(self.directory(&cwd)?),
            None => self.project_for(&command, &args),
        };
        Ok(Transport::Stdio(Process { command, args, env, pass_env, cwd, shared: None }))
    }

    /// Gives the project's directory for a server that may count on it: clients start a project's servers there.
    fn project_for(&self, command: &str, args: &[SecretRef]) -> Option<PathBuf> {
        let relative = |text: &str| text == "." || text.starts_with("./") || text.starts_with("../") || text.starts_with(".\\");
        let path_below = |text: &str| text.contains('/') && !Path::new(text).is_absolute();
        let counts = relative(command) || path_below(command) || args.iter().filter_map(SecretRef::as_plain).any(relative);
        self.reading.project.clone().filter(|_| counts)
    }

    fn directory(&mut self, cwd: &str) -> Result<PathBuf, String> {
        let cwd = self.expanded(cwd, "cwd")?;
        let places = self.reading.places;
        if let Some(rest) = cwd.strip_prefix("~/") {
            return Ok(places.home.join(rest));
        }
        Ok(self.reading.project.as_ref().unwrap_or(&places.cwd).join(cwd))
    }

    /// Reads the `KEY=value` lines of an environment file.
    fn env_file(&mut self) -> Result<BTreeMap<String, SecretRef>, String> {
        let Some((_, file)) = self.first_string(&["envFile"])? else { return Ok(BTreeMap::new()) };
        let path = self.directory(&file)?;
        let Ok(Some(text)) = super::read(&path) else {
            self.note(NoteKind::NotTaken, "envFile", format!("the variables in `{}` can't be read", path.display()));
            return Ok(BTreeMap::new());
        };
        self.note(NoteKind::Changed, "envFile", format!("its variables were read from `{}` once, and are kept in `env`", path.display()));
        let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
        let pairs = lines.filter_map(|line| line.strip_prefix("export ").unwrap_or(line).split_once('='));
        Ok(pairs.map(|(name, value)| (name.trim().to_owned(), SecretRef::plain(unquoted(value.trim())))).collect())
    }

    /// Codex names variables to pass on in `env_vars`, as texts or as objects with `name`.
    fn passed_names(&mut self) -> Vec<String> {
        let names = self.take(&["env_vars"]).map(|(_, value)| value);
        let names = names.as_ref().and_then(Value::as_array).into_iter().flatten();
        names
            .filter_map(|name| name.as_str().or_else(|| name.get("name")?.as_str()))
            .filter(|name| !name.trim().is_empty())
            .map(str::to_owned)
            .collect()
    }

    fn remote(&mut self, is_sse: Option<bool>) -> Result<Transport, String> {
        let (key, address) = self.first_string(&["httpUrl", "serverUrl", "url"])?.ok_or("it has neither `command` nor `url`")?;
        let address = self.expanded(&address, &key)?;
        let url = Url::parse(&address).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let url = url.ok_or_else(|| format!("its `{key}` is not an http:// or https:// address"))?;
        let is_sse = is_sse.unwrap_or_else(|| key != "httpUrl" && (self.dialect.url_is_sse || url.path().ends_with("/sse")));
        let headers = self.headers()?;
        let oauth = oauth::read(self)?.unwrap_or_else(|| Remote::default_oauth(&url, &headers));
        let remote = Remote { url, headers, oauth, tls: None, insecure: false };
        Ok(if is_sse { Transport::Sse(remote) } else { Transport::Http(remote) })
    }

    fn headers(&mut self) -> Result<BTreeMap<String, SecretRef>, String> {
        let mut headers = self.references("headers")?;
        headers.extend(self.references("http_headers")?);
        for (name, variable) in self.references("env_http_headers")? {
            let variable = variable.as_plain().unwrap_or_default().to_owned();
            headers.insert(name, self.variable("", variable)?);
        }
        if let Some((_, variable)) = self.first_string(&["bearer_token_env_var"])? {
            headers.insert("Authorization".into(), self.variable("Bearer ", variable)?);
        }
        if let Some((_, token)) = self.first_string(&["bearer_token"])? {
            headers.insert("Authorization".into(), SecretRef::plain(format!("Bearer {token}")));
        }
        let mut taken = BTreeSet::new();
        headers.retain(|name, value| {
            let illegal = http::HeaderName::from_bytes(name.as_bytes()).is_err() || value.to_string().contains(char::is_control);
            let wrong = match () {
                () if is_own_header(name) => "Banyan writes this header itself",
                () if illegal => "this can't be a header",
                () if !taken.insert(name.to_ascii_lowercase()) => "the header is there twice, in another spelling",
                () => return true,
            };
            self.reading.note(NoteKind::NotTaken, &json::joined(&json::joined(self.path, "headers"), name), wrong);
            false
        });
        Ok(headers)
    }

    fn variable(&self, before: &str, name: String) -> Result<SecretRef, String> {
        let pieces = vec![Piece::Plain(before.to_owned()), Piece::Env { name, default: None }];
        SecretRef::of(pieces).map_err(|error| error.to_string())
    }

    fn timeout(&mut self, keys: &[(&str, Unit)]) -> Option<Duration> {
        let mut found = None;
        for (key, unit) in keys {
            let Some((key, value)) = self.take(&[key]) else { continue };
            let millis = value.as_f64().map(|number| match unit {
                Unit::Guess if number < 1000.0 => number * 1000.0,
                Unit::Guess | Unit::Milliseconds => number,
                Unit::Seconds => number * 1000.0,
            });
            match millis.map(f64::round).filter(|millis| (1.0..=MAX_MILLIS).contains(millis)) {
                Some(millis) => found = found.or(Some(Duration::from_secs_f64(millis / 1000.0))),
                None => self.note(NoteKind::NotTaken, &key, "it is not a number of seconds or milliseconds between 1 ms and a year"),
            }
        }
        found
    }

    /// Reads names of tools; Gemini appends arguments that may run without asking.
    fn tools(&mut self, keys: &[&str]) -> Vec<String> {
        let value = self.take(keys).map(|(_, value)| value);
        let names = value.as_ref().and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        names.map(|name| name.split('(').next().unwrap_or(name).trim().to_owned()).filter(|name| !name.is_empty()).collect()
    }

    /// Reports permissions to run without asking, a decision about the other client only.
    fn trust(&mut self) {
        for key in ["alwaysAllow", "autoApprove", "trust", "default_tools_approval_mode"] {
            let Some((key, value)) = self.take(&[key]) else { continue };
            let trusted = match &value {
                Value::Array(tools) if tools.is_empty() => continue,
                Value::Bool(false) | Value::Null => continue,
                Value::Array(tools) if *tools == ["*"] => "all its tools".into(),
                Value::Array(tools) => quoted(tools.iter().filter_map(Value::as_str)),
                Value::String(mode) if mode != "approve" => continue,
                Value::Bool(true) | Value::Number(_) | Value::Object(_) | Value::String(_) => "all its tools".into(),
            };
            self.note(NoteKind::Trust, &key, format!("there {trusted} may run without asking; Banyan does not take that over"));
        }
        match self.take(&["tools"]) {
            Some((_, Value::Object(tools))) => {
                let approved = tools.iter().filter(|(_, tool)| tool.get("approval_mode").is_some_and(|mode| mode == "approve"));
                let approved = quoted(approved.map(|(name, _)| name.as_str()));
                if !approved.is_empty() {
                    self.note(NoteKind::Trust, "tools", format!("there {approved} may run without asking; Banyan does not take that over"));
                }
            }
            Some((key, value)) => drop(self.members.insert(key, value)),
            None => {}
        }
    }

    fn report_rest(&mut self) {
        let rest = std::mem::take(&mut self.members);
        for (key, _) in rest.iter().filter(|(key, value)| !(*key == "source" && *value == "custom")) {
            let text = match key.as_str() {
                "headersHelper" => "a program makes the headers there; give `headers` or `oauth` here",
                "sandbox" | "sandboxEnabled" => "the client runs it in a sandbox; Banyan does not",
                "command" | "args" | "env" | "cwd" => "it belongs to a program, and the server is reached by its address",
                "url" | "serverUrl" | "httpUrl" | "headers" => "it belongs to an address, and the server is a program or has another one",
                _ => "this key is not understood, and not taken",
            };
            self.note(NoteKind::NotTaken, key, text);
        }
    }

    /// A note about a member.
    pub(super) fn note(&mut self, kind: NoteKind, key: &str, text: impl Into<String>) {
        self.reading.note(kind, &json::joined(self.path, key), text);
    }

    /// A note about a member of a member.
    pub(super) fn note_below(&mut self, kind: NoteKind, key: &str, below: &str, text: &str) {
        self.reading.note(kind, &json::joined(&json::joined(self.path, key), below), text);
    }

    /// Takes the first present member that is not null.
    pub(super) fn take(&mut self, keys: &[&str]) -> Option<(String, Value)> {
        let key = keys.iter().find(|key| self.members.contains_key(**key))?;
        let value = self.members.shift_remove(*key)?;
        (!value.is_null()).then(|| ((*key).to_owned(), value))
    }

    fn boolean(&mut self, key: &str) -> Option<bool> {
        match self.take(&[key])? {
            (_, Value::Bool(value)) => Some(value),
            (key, _) => {
                self.note(NoteKind::NotTaken, &key, "it is neither true nor false");
                None
            }
        }
    }

    pub(super) fn first_string(&mut self, keys: &[&str]) -> Result<Option<(String, String)>, String> {
        match self.take(keys) {
            None => Ok(None),
            Some((key, Value::String(text))) => Ok(Some((key, text))),
            Some((key, _)) => Err(format!("its `{key}` is not a text")),
        }
    }

    fn strings(&mut self, key: &str) -> Result<Vec<String>, String> {
        let Some((_, value)) = self.take(&[key]) else { return Ok(Vec::new()) };
        let texts = value.as_array().and_then(|items| items.iter().map(scalar).collect());
        texts.ok_or_else(|| format!("its `{key}` is not a list of texts"))
    }

    fn references(&mut self, key: &str) -> Result<BTreeMap<String, SecretRef>, String> {
        let Some((_, value)) = self.take(&[key]) else { return Ok(BTreeMap::new()) };
        let Value::Object(members) = value else { return Err(format!("its `{key}` is not an object of texts")) };
        let mut found = BTreeMap::new();
        for (name, value) in members.into_iter().filter(|(_, value)| !value.is_null()) {
            let text = scalar(&value).ok_or_else(|| format!("its `{key}.{name}` is not a text"))?;
            found.insert(name, self.reference(&text)?);
        }
        Ok(found)
    }

    pub(super) fn reference(&mut self, text: &str) -> Result<SecretRef, String> {
        text::reference(self.reading, self.dialect.texts, text)
    }

    /// Expands a text with variables, which is shown and so holds no secrets, for Banyan to keep as it is.
    fn expanded(&mut self, text: &str, key: &str) -> Result<String, String> {
        let reference = self.reference(text)?;
        if let Some(plain) = reference.as_plain() {
            return Ok(plain.to_owned());
        }
        if reference.pieces().iter().any(|piece| matches!(piece, Piece::File(_) | Piece::Keyring(_))) {
            return Err(format!("its `{key}` takes a secret, and would show it: put it into `headers` or `env`"));
        }
        let value = reference.resolve(self.reading.places).map_err(|_| unset(&reference, self.reading, key))?;
        self.note(NoteKind::Changed, key, "its variables were replaced by what they stand for at the moment");
        Ok(value.expose().to_owned())
    }
}

fn unset(reference: &SecretRef, reading: &Reading<'_>, key: &str) -> String {
    let is_unset = |name: &str| reading.places.env.get(name).is_none_or(String::is_empty);
    let names = reference.pieces().iter().filter_map(|piece| match piece {
        Piece::Env { name, default: None } if is_unset(name) => Some(format!("`{name}`")),
        Piece::Env { .. } | Piece::File(_) | Piece::Keyring(_) | Piece::Plain(_) => None,
    });
    let names = names.collect::<Vec<_>>().join(", ");
    format!("its `{key}` takes the variable {names}, which is not set: set it and import again")
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(value) => Some(value.to_string()),
        Value::String(text) => Some(text.clone()),
        Value::Array(_) | Value::Null | Value::Object(_) => None,
    }
}

fn unquoted(text: &str) -> &str {
    let inside = |quote| text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
    inside('"').or_else(|| inside('\'')).unwrap_or(text)
}

fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
