//! The written form of references, such as `${env:NAME}`. Does not fetch anything.

use std::path::{Path, PathBuf};

use super::Piece;

/// The reason for which a text has no pieces.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSecretRef {
    /// A default without a written form.
    #[error("the default of `${{env:{0}:-…}}` holds `}}`, which would end the reference: leave it out")]
    Default(String),
    /// Unknown text between `${` and `}`.
    #[error(
        "`${{{0}}}` is not a reference: write ${{env:NAME}}, ${{env:NAME:-default}}, ${{file:/path}} or ${{keyring:NAME}}, or `$${{` for a plain `${{`"
    )]
    Kind(String),
    /// An impossible name of a variable or an entry.
    #[error("`{name}` is not a name for ${{{kind}:…}}: {rule}")]
    Name {
        /// `env` or `keyring`.
        kind: &'static str,
        name: String,
        rule: &'static str,
    },
    /// A `${` without a `}`.
    #[error("`${{` is not closed: end the reference with `}}`, or write `$${{` for a plain `${{`")]
    Open,
    /// A relative path.
    #[error("`{0}` in ${{file:…}} is not an absolute path: start it at the root, or with `~/` for the home directory")]
    Relative(String),
}

/// Splits a text into its pieces. Of `$`s right before a `{`, each two stand for a plain one; an odd one left over
/// begins a reference.
pub(super) fn pieces(text: &str) -> Result<Vec<Piece>, BadSecretRef> {
    let mut found = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let before = rest[..at].trim_end_matches('$');
        let dollars = at - before.len() + 1;
        let after = &rest[at + 2..];
        plain.push_str(before);
        plain.push_str(&"$".repeat(dollars / 2));
        if dollars.is_multiple_of(2) {
            plain.push('{');
            rest = after;
            continue;
        }
        let end = after.find('}').ok_or(BadSecretRef::Open)?;
        if !plain.is_empty() {
            found.push(Piece::Plain(std::mem::take(&mut plain)));
        }
        found.push(reference(&after[..end])?);
        rest = &after[end + 1..];
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        found.push(Piece::Plain(plain));
    }
    Ok(found)
}

/// Joins neighbouring plain pieces, and refuses pieces without a written form.
pub(super) fn checked(pieces: Vec<Piece>) -> Result<Vec<Piece>, BadSecretRef> {
    let mut joined: Vec<Piece> = Vec::new();
    for piece in pieces {
        match (piece, joined.last_mut()) {
            (Piece::Plain(text), _) if text.is_empty() => {}
            (Piece::Plain(text), Some(Piece::Plain(last))) => last.push_str(&text),
            (piece, _) => joined.push(legal(piece)?),
        }
    }
    Ok(joined)
}

/// Writes pieces in the form of [`pieces`].
pub(super) fn written(pieces: &[Piece]) -> String {
    let mut text = String::new();
    for (i, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Plain(plain) => text.push_str(&escaped(plain, i + 1 < pieces.len())),
            Piece::Env { .. } | Piece::File(_) | Piece::Keyring(_) => text.push_str(&shown(piece)),
        }
    }
    text
}

/// Writes a piece in the form of [`pieces`].
pub(super) fn shown(piece: &Piece) -> String {
    match piece {
        Piece::Env { name, default: None } => format!("${{env:{name}}}"),
        Piece::Env { name, default: Some(default) } => format!("${{env:{name}:-{default}}}"),
        Piece::File(path) => format!("${{file:{}}}", path.display()),
        Piece::Keyring(name) => format!("${{keyring:{name}}}"),
        Piece::Plain(text) => text.clone(),
    }
}

fn escaped(plain: &str, before_reference: bool) -> String {
    let mut text = String::with_capacity(plain.len());
    let mut dollars = 0;
    for c in plain.chars() {
        match c {
            '$' => dollars += 1,
            '{' => text.push_str(&"$".repeat(std::mem::take(&mut dollars))),
            _ => dollars = 0,
        }
        text.push(c);
    }
    if before_reference {
        text.push_str(&"$".repeat(dollars));
    }
    text
}

fn reference(inside: &str) -> Result<Piece, BadSecretRef> {
    let piece = match inside.split_once(':') {
        Some(("env", rest)) => match rest.split_once(":-") {
            Some((name, default)) => Piece::Env { name: name.to_owned(), default: Some(default.to_owned()) },
            None => Piece::Env { name: rest.to_owned(), default: None },
        },
        Some(("file", path)) => Piece::File(PathBuf::from(path)),
        Some(("keyring", name)) => Piece::Keyring(name.to_owned()),
        _ => return Err(BadSecretRef::Kind(inside.to_owned())),
    };
    legal(piece)
}

fn legal(piece: Piece) -> Result<Piece, BadSecretRef> {
    match &piece {
        Piece::Env { name, default } => {
            let bad = |c: char| !(c.is_ascii_alphanumeric() || "_.()-".contains(c));
            if name.is_empty() || name.contains(bad) {
                let rule = "use letters, digits and `_`";
                return Err(BadSecretRef::Name { kind: "env", name: name.clone(), rule });
            }
            if default.as_ref().is_some_and(|text| text.contains('}')) {
                return Err(BadSecretRef::Default(name.clone()));
            }
        }
        Piece::File(path) => {
            let text = path.to_str().unwrap_or_default();
            let home = path.starts_with("~") && path != Path::new("~");
            if text.contains('}') || !(path.is_absolute() || home) {
                return Err(BadSecretRef::Relative(path.display().to_string()));
            }
        }
        Piece::Keyring(name) => {
            let bad = |c: char| c.is_control() || c == '}' || c == '{';
            if name.is_empty() || name.len() > 200 || name.contains(bad) {
                let rule = "use 1 to 200 characters, no braces";
                return Err(BadSecretRef::Name { kind: "keyring", name: name.clone(), rule });
            }
        }
        Piece::Plain(_) => {}
    }
    Ok(piece)
}
