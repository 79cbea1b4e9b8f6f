//! Revocation of bearer tokens. Ends no session.

use toml::Value;

use super::resolved::Token;
use crate::revoked::{RefusedFile, is_hash};

/// Keeps the tokens of the refused file.
pub(super) fn keep(tokens: &mut Vec<Token>, refused: &RefusedFile<'_>) {
    tokens.retain(|token| match refused {
        RefusedFile::Table(file) => is_in_table(token, file),
        RefusedFile::Text(text) => RefusedFile::mentions(text, &token.sha256),
    });
}

fn is_in_table(token: &Token, file: &Value) -> bool {
    let is_same = |entry: &Value| entry.get("name").and_then(Value::as_str) == Some(&*token.name) && is_hash(&token.sha256, entry);
    file.get("token").and_then(Value::as_array).is_some_and(|entries| entries.iter().any(is_same))
}
