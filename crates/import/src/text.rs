//! References as clients write them (`${VAR}`, `${env:VAR}`, `${input:id}`, `$VAR`), turned into Banyan's. Does not look
//! any of them up.

use serde::Serialize;
use serde_json::Value;

use config::secret::{Piece, SecretRef};

use super::places::Platform;
use super::reading::Reading;

/// The references known to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Texts {
    /// `${…}` only.
    Braces,
    /// `${…}`, and `$NAME`.
    BracesAndBare,
    /// None: every text stands for itself.
    Literal,
}

/// A client's question to its user, with an answer kept in the keyring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Question {
    /// The name in the keyring: `banyan secret set NAME` answers the question, too.
    pub name: String,
    pub prompt: String,
    /// Typed text must not be shown.
    pub hidden: bool,
    /// The meaning of an empty answer.
    pub default: Option<String>,
    /// The only possible answers; empty for any.
    pub choices: Vec<String>,
}

impl Question {
    /// Reads an element of VS Code's `inputs`, with its id.
    pub(super) fn of_input(input: &Value) -> Option<(String, Self)> {
        let text = |key: &str| input.get(key).and_then(Value::as_str).map(str::to_owned);
        let id = text("id")?;
        let option = |option: &Value| option.as_str().or_else(|| option.get("value")?.as_str()).map(str::to_owned);
        let question = Self {
            name: keyring_name(&id),
            prompt: text("description").unwrap_or_else(|| id.clone()),
            hidden: input.get("password").and_then(Value::as_bool).unwrap_or(false),
            default: text("default"),
            choices: input.get("options").and_then(Value::as_array).into_iter().flatten().filter_map(option).collect(),
        };
        Some((id, question))
    }

    /// Makes a question for an id without a description.
    pub(super) fn unknown(id: &str) -> Self {
        let name = keyring_name(id);
        Self { name, prompt: id.to_owned(), hidden: true, default: None, choices: Vec::new() }
    }
}

/// Reads a text of a client's file. The error names the reference without meaning outside of that client.
pub(super) fn reference(reading: &mut Reading<'_>, texts: Texts, raw: &str) -> Result<SecretRef, String> {
    if texts == Texts::Literal {
        return Ok(SecretRef::plain(raw));
    }
    let mut pieces = Vec::new();
    let mut rest = raw;
    while let Some(at) = rest.find('$') {
        pieces.push(Piece::Plain(rest[..at].to_owned()));
        let (piece, after) = one(reading, texts, &rest[at..])?;
        pieces.push(piece);
        rest = after;
    }
    pieces.push(Piece::Plain(rest.to_owned()));
    SecretRef::of(pieces).map_err(|error| error.to_string())
}

/// Reads the reference at the `$` in front, and gives the text behind it.
fn one<'t>(reading: &mut Reading<'_>, texts: Texts, text: &'t str) -> Result<(Piece, &'t str), String> {
    let after = &text[1..];
    if let Some(inside) = after.strip_prefix('{')
        && let Some(end) = inside.find('}')
    {
        return Ok((braced(reading, &inside[..end])?, &inside[end + 1..]));
    }
    let name = &after[..after.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(after.len())];
    if texts == Texts::BracesAndBare && is_variable(name) {
        return Ok((Piece::Env { name: name.to_owned(), default: None }, &after[name.len()..]));
    }
    Ok((Piece::Plain("$".into()), after))
}

fn braced(reading: &mut Reading<'_>, inside: &str) -> Result<Piece, String> {
    let plain = |text: &str| Ok(Piece::Plain(text.to_owned()));
    let of_project = |reading: &Reading<'_>| reading.project.clone().ok_or_else(|| outside(inside));
    match inside.split_once(':') {
        Some(("env", name)) if is_variable(name) => Ok(Piece::Env { name: name.to_owned(), default: None }),
        Some(("file", path)) => Ok(Piece::File(path.into())),
        Some(("input", id)) => Ok(Piece::Keyring(reading.ask(id))),
        Some((name, default)) if is_variable(name) && default.starts_with('-') => {
            Ok(Piece::Env { name: name.to_owned(), default: Some(default[1..].to_owned()) })
        }
        Some(_) => Err(outside(inside)),
        None => match inside {
            "/" | "pathSeparator" => plain(if reading.places.platform == Platform::Windows { "\\" } else { "/" }),
            "userHome" => plain(&reading.places.home.to_string_lossy()),
            "workspaceFolder" | "workspaceRoot" => plain(&of_project(reading)?.to_string_lossy()),
            "workspaceFolderBasename" => {
                let project = of_project(reading)?;
                plain(&project.file_name().unwrap_or_default().to_string_lossy())
            }
            name if is_variable(name) => Ok(Piece::Env { name: name.to_owned(), default: None }),
            _ => Err(outside(inside)),
        },
    }
}

fn outside(inside: &str) -> String {
    format!("`${{{inside}}}` has no meaning outside of that client: write what it stands for")
}

fn is_variable(name: &str) -> bool {
    let rest = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(rest)
}

fn keyring_name(id: &str) -> String {
    let name: String = id.chars().map(|c| if c.is_control() || "{}".contains(c) { '-' } else { c }).take(100).collect();
    if name.is_empty() { "input".into() } else { name }
}
