//! Values with secrets in them: references, and resolved values. Does not print or log any.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Serialize, Serializer};
use subtle::ConstantTimeEq;

pub mod keyring;
mod parse;
mod store;

pub use keyring::KeyringError;
pub use parse::BadSecretRef;
pub use store::{SecretStore, StoreError};

/// A text as the configuration writes it: plain pieces and references to secrets.
///
/// References are `${env:NAME}`, `${env:NAME:-default}`, `${file:/path}` and `${keyring:NAME}`. Right before a `{`, `$$`
/// stands for a plain `$`; elsewhere `$` has no meaning. `Display` writes it back in that form; `Debug` shows references, but never plain text.
#[derive(Clone)]
pub struct SecretRef {
    pieces: Vec<Piece>,
    used_by: Option<Arc<str>>,
}

/// A part of a [`SecretRef`].
#[derive(Clone, PartialEq, Eq)]
pub enum Piece {
    /// A variable of Banyan's own environment; the default stands in when it is unset or empty.
    Env {
        name: String,
        /// Taken when the variable is unset or empty.
        default: Option<String>,
    },
    /// The content of a file, without the line end at its end. Absolute, or below the home directory (`~/`).
    File(PathBuf),
    /// An entry of the system's keyring, under the service `banyan`.
    Keyring(String),
    Plain(String),
}

impl SecretRef {
    /// Reads the form described at the type.
    pub fn parse(text: &str) -> Result<Self, BadSecretRef> {
        Ok(Self { pieces: parse::pieces(text)?, used_by: None })
    }

    /// Takes a text as written: `${` has no meaning.
    pub fn plain(text: impl Into<String>) -> Self {
        let text = text.into();
        let pieces = if text.is_empty() { Vec::new() } else { vec![Piece::Plain(text)] };
        Self { pieces, used_by: None }
    }

    /// Joins pieces made elsewhere; refuses names without a written form.
    pub fn of(pieces: Vec<Piece>) -> Result<Self, BadSecretRef> {
        Ok(Self { pieces: parse::checked(pieces)?, used_by: None })
    }

    /// Remembers the user of a reference, for errors: `mount.github.env.TOKEN`.
    #[must_use]
    pub fn used_by(mut self, place: &str) -> Self {
        self.used_by = Some(place.into());
        self
    }

    /// Pieces in order. No two plain pieces follow each other, and none is empty.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The whole text, where no part is a reference.
    pub fn as_plain(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [] => Some(""),
            [Piece::Plain(text)] => Some(text),
            _ => None,
        }
    }

    /// Puts the secrets in. Reads files and may wait for the keyring: not for an async task.
    pub fn resolve(&self, sources: &dyn Sources) -> Result<Secret, SecretError> {
        let mut text = String::new();
        for piece in &self.pieces {
            text.push_str(&self.fetch(piece, sources)?);
        }
        Ok(Secret(text.into()))
    }

    fn fetch(&self, piece: &Piece, sources: &dyn Sources) -> Result<String, SecretError> {
        let used_by = || UsedBy(self.used_by.clone());
        match piece {
            Piece::Plain(text) => Ok(text.clone()),
            Piece::Env { name, default } => sources
                .env(name)
                .filter(|value| !value.is_empty())
                .or_else(|| default.clone())
                .ok_or_else(|| SecretError::Unset { name: name.clone(), used_by: used_by() }),
            Piece::File(path) => match sources.file(path) {
                Ok(text) => Ok(without_line_end(text)),
                Err(source) => Err(SecretError::File { path: path.clone(), used_by: used_by(), source }),
            },
            Piece::Keyring(name) => match sources.keyring(name) {
                Ok(Some(value)) => Ok(value),
                Ok(None) => Err(SecretError::NotInKeyring { name: name.clone(), used_by: used_by() }),
                Err(source) => Err(SecretError::NoKeyring { name: name.clone(), used_by: used_by(), source }),
            },
        }
    }
}

/// References with the same pieces are equal, whatever their users.
impl PartialEq for SecretRef {
    fn eq(&self, other: &Self) -> bool {
        self.pieces == other.pieces
    }
}

impl Eq for SecretRef {}

impl fmt::Debug for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretRef(")?;
        self.pieces.iter().try_for_each(|piece| write!(f, "{piece:?}"))?;
        f.write_str(")")
    }
}

impl fmt::Debug for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(_) => f.write_str("[redacted]"),
            Self::Env { name, default: Some(_) } => write!(f, "${{env:{name}:-[redacted]}}"),
            Self::Env { .. } | Self::File(_) | Self::Keyring(_) => f.write_str(&parse::shown(self)),
        }
    }
}

/// Writes the form of [`SecretRef::parse`]. Shows plain text: for configuration files, not for logs.
impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&parse::written(&self.pieces))
    }
}

/// A value with its secrets. Prints and serialises as `[redacted]`; comparison takes the same time for all texts of a length.
#[derive(Clone)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Wraps a known value.
    pub fn new(value: impl Into<Arc<str>>) -> Self {
        Self(value.into())
    }

    /// Reveals the value, for sending.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_bytes().ct_eq(other.0.as_bytes()).into()
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("[redacted]")
    }
}

/// Places to fetch secrets from.
pub trait Sources: Send + Sync {
    /// A variable of the environment; `None` when unset or not UTF-8.
    fn env(&self, name: &str) -> Option<String>;
    /// A whole text file; a leading `~/` means the home directory.
    fn file(&self, path: &Path) -> std::io::Result<String>;
    /// Fetches an entry of the keyring.
    fn keyring(&self, name: &str) -> Result<Option<String>, KeyringError>;
}

/// The environment, file system and keyring of this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemSources;

impl SystemSources {
    /// Longest secret file, in bytes.
    pub const MAX_FILE: u64 = 64 << 10;
}

impl Sources for SystemSources {
    fn env(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn file(&self, path: &Path) -> std::io::Result<String> {
        use std::io::{Error, ErrorKind, Read};
        let path = match path.strip_prefix("~") {
            Ok(rest) => std::env::home_dir().ok_or_else(|| Error::other("no home directory is known"))?.join(rest),
            Err(_) => path.to_owned(),
        };
        let mut text = String::new();
        std::fs::File::open(path)?.take(Self::MAX_FILE + 1).read_to_string(&mut text)?;
        if text.len() as u64 > Self::MAX_FILE {
            return Err(Error::new(ErrorKind::FileTooLarge, "it is longer than 64 KiB, too long for a secret"));
        }
        Ok(text)
    }

    fn keyring(&self, name: &str) -> Result<Option<String>, KeyringError> {
        keyring::get(name)
    }
}

/// The reason for which a reference has no value. Never holds a value.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The file could not be read.
    #[error("the secret in file `{}`{used_by} can't be read: {source}\n  create the file with the secret as its only text (chmod 600), or use ${{env:NAME}} or ${{keyring:NAME}}", path.display())]
    File {
        /// As written in the configuration.
        path: PathBuf,
        used_by: UsedBy,
        source: std::io::Error,
    },
    /// The keyring could not be asked.
    #[error(
        "the secret `{name}`{used_by} is kept in the keyring, and {source}\n  use ${{env:NAME}} or ${{file:/path}} in its place, or start Banyan in a session that has a keyring"
    )]
    NoKeyring {
        /// The entry's name.
        name: String,
        used_by: UsedBy,
        source: KeyringError,
    },
    /// The keyring answered, and has no such entry.
    #[error("the secret `{name}`{used_by} is not in the keyring\n  store it with `banyan secret set {name}`")]
    NotInKeyring {
        /// The entry's name.
        name: String,
        used_by: UsedBy,
    },
    /// The variable is unset or empty.
    #[error(
        "the environment variable `{name}`{used_by} is not set\n  set it where Banyan is started, give a default with ${{env:{name}:-default}}, or store it with `banyan secret set {name}` and write ${{keyring:{name}}}"
    )]
    Unset {
        /// The variable's name.
        name: String,
        used_by: UsedBy,
    },
}

/// The user of a reference, as errors print it: empty, or ` (used by PLACE)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedBy(Option<Arc<str>>);

impl fmt::Display for UsedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(place) => write!(f, " (used by {place})"),
            None => Ok(()),
        }
    }
}

fn without_line_end(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    text
}

#[cfg(test)]
mod tests;
