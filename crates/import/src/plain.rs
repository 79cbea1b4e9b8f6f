//! Secrets that stand in clients' files as plain text: found, shown by place, and replaced by references when somebody
//! has stored them. Does not store them.

use std::collections::BTreeSet;
use std::fmt;

use banyan_model::Segment;

use config::looks_secret;
use config::resolved::{Remote, Transport};
use config::secret::{Piece, Secret, SecretRef};

use super::found::Found;

/// A probable secret in plain text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainSecret {
    pub mount: Segment,
    pub place: SecretPlace,
    /// A name for the secret in the keyring: `github/GITHUB_TOKEN`.
    pub name: String,
    /// The value, without words in front like `Bearer`.
    pub value: Secret,
    /// Text in front of the secret.
    before: String,
}

/// The place of a secret in a mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretPlace {
    /// The argument with this number, from 0.
    Arg(usize),
    Env(String),
    Header(String),
}

/// Writes `github: env GITHUB_TOKEN`.
impl fmt::Display for PlainSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            SecretPlace::Arg(index) => write!(f, "{}: args[{index}]", self.mount),
            SecretPlace::Env(name) => write!(f, "{}: env {name}", self.mount),
            SecretPlace::Header(name) => write!(f, "{}: header {name}", self.mount),
        }
    }
}

impl Found {
    /// The values that look like secrets and are plain text, in the order of the servers.
    pub fn plain_secrets(&self) -> Vec<PlainSecret> {
        let of_server = |server: &super::Server| of_mount(&server.mount.name, &server.mount.transport);
        let mut secrets: Vec<PlainSecret> = self.servers.iter().flat_map(of_server).collect();
        let mut taken = BTreeSet::new();
        for secret in &mut secrets {
            let numbered = (2..).map(|number| format!("{}-{number}", secret.name));
            let free = std::iter::once(secret.name.clone()).chain(numbered).find(|name| !taken.contains(name));
            secret.name = free.unwrap_or_default();
            taken.insert(secret.name.clone());
        }
        secrets
    }

    /// Puts a reference to the keyring in place of a secret stored there under its name.
    pub fn refer(&mut self, secret: &PlainSecret) {
        let Some(server) = self.servers.iter_mut().find(|server| server.mount.name == secret.mount) else { return };
        let text = match (&mut server.mount.transport, &secret.place) {
            (Transport::Stdio(process), SecretPlace::Arg(index)) => process.args.get_mut(*index),
            (Transport::Stdio(process), SecretPlace::Env(name)) => process.env.get_mut(name),
            (Transport::Http(remote) | Transport::Sse(remote), SecretPlace::Header(name)) => remote.headers.get_mut(name),
            (Transport::Stdio(_), SecretPlace::Header(_))
            | (Transport::Http(_) | Transport::Sse(_), SecretPlace::Arg(_) | SecretPlace::Env(_))
            | (Transport::Family(_), _) => None,
        };
        let reference = SecretRef::of(vec![Piece::Plain(secret.before.clone()), Piece::Keyring(secret.name.clone())]);
        if let (Some(text), Ok(reference)) = (text, reference) {
            *text = reference;
        }
    }
}

/// Lists the numbers of arguments with a secret.
pub(super) fn args_with_secrets(texts: &[SecretRef]) -> Vec<usize> {
    args(texts).into_iter().map(|(i, ..)| i).collect()
}

fn of_mount(mount: &Segment, transport: &Transport) -> Vec<PlainSecret> {
    let secret = |place: SecretPlace, key: &str, before: &str, value: &str| PlainSecret {
        mount: mount.clone(),
        place,
        name: format!("{mount}/{}", key.trim_start_matches('-')),
        value: Secret::new(value),
        before: before.to_owned(),
    };
    match transport {
        Transport::Http(Remote { headers, .. }) | Transport::Sse(Remote { headers, .. }) => named(headers)
            .map(|(name, value)| {
                let (before, value) = without_scheme(value);
                secret(SecretPlace::Header(name.to_owned()), name, before, value)
            })
            .collect(),
        Transport::Family(_) => Vec::new(),
        Transport::Stdio(process) => {
            let args = args(&process.args).into_iter().map(|(i, key, before, value)| secret(SecretPlace::Arg(i), key, before, value));
            let env = named(&process.env).map(|(name, value)| secret(SecretPlace::Env(name.to_owned()), name, "", value));
            args.chain(env).collect()
        }
    }
}

fn named(texts: &std::collections::BTreeMap<String, SecretRef>) -> impl Iterator<Item = (&str, &str)> {
    let plain = texts.iter().filter_map(|(name, text)| Some((name.as_str(), text.as_plain()?)));
    plain.filter(|(name, value)| looks_secret(name) && !value.trim().is_empty())
}

/// Lists arguments with a secret: number, naming text, text in front, and value.
fn args(args: &[SecretRef]) -> Vec<(usize, &str, &str, &str)> {
    let mut found = Vec::new();
    let mut named_before: Option<&str> = None;
    for (i, arg) in args.iter().enumerate() {
        let Some(text) = arg.as_plain() else {
            named_before = None;
            continue;
        };
        if let Some(key) = named_before.take().filter(|_| !text.starts_with('-') && !text.is_empty()) {
            found.push((i, key, "", text));
        } else if let Some((key, before, value)) = assigned(text) {
            found.push((i, key, before, value));
        } else if text.starts_with("--") && !text.contains(['=', ':']) && looks_secret(text) {
            named_before = Some(text);
        }
    }
    found
}

/// Splits `--api-key=VALUE`, `API_KEY=VALUE`, `Authorization: Bearer VALUE`.
fn assigned(text: &str) -> Option<(&str, &str, &str)> {
    let at = text.char_indices().find(|(at, c)| "=:".contains(*c) && looks_secret(&text[..*at]))?.0;
    let key = text[..at].rsplit(|c: char| !(c.is_ascii_alphanumeric() || "_-".contains(c))).next().unwrap_or_default();
    let value = &text[at + 1..];
    let (scheme, value) = without_scheme(value.trim_start());
    let before = &text[..text.len() - value.len()];
    (!value.is_empty() && !scheme.starts_with("//") && !value.starts_with("//")).then_some((key, before, value))
}

fn without_scheme(value: &str) -> (&str, &str) {
    let schemes = ["Bearer ", "bearer ", "Basic ", "Token ", "token "];
    match schemes.iter().find(|scheme| value.starts_with(**scheme)) {
        Some(scheme) => value.split_at(scheme.len()),
        None => ("", value),
    }
}
