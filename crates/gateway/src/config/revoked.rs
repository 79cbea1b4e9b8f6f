//! Revocation by a file that is not in force: a credential that stands in it no more is void all the same. Nothing else of such a file counts.

use std::sync::Arc;

use toml::{Table, Value};

use super::resolved::{Config, Token};

/// The configuration in force without the tokens, issuers and participants that `text` has no more; `None`: all are there.
///
/// A text that is no TOML is searched for the hashes of tokens, and takes nothing else away. An empty text is most likely a file that an
/// editor is about to write.
pub(crate) fn without_revoked(current: &Config, text: &str) -> Option<Config> {
    if text.is_empty() {
        return None;
    }
    let table = text.parse::<Table>().ok();
    let has =
        |section: &str, name: &str| table.as_ref().is_none_or(|table| table.get(section).is_some_and(|named| named.get(name).is_some()));
    let mut left = current.clone();
    left.tokens.retain(|token| table.as_ref().map_or_else(|| is_in_lines(token, text), |table| is_in_table(token, table)));
    left.trust.issuers.retain(|issuer| has("issuer", &issuer.name));
    if left.rooms.participants.keys().any(|id| !has("participant", id.as_str())) {
        Arc::make_mut(&mut left.rooms).participants.retain(|id, _| has("participant", id.as_str()));
    }
    // The last credential that goes must not let everybody in.
    left.shut |= current.wants_credential() && !left.wants_credential();
    (left != *current).then_some(left)
}

fn is_in_table(token: &Token, table: &Table) -> bool {
    let hash = hex(token);
    let is_same = |entry: &Value| {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
        text("name") == &*token.name && text("sha256").eq_ignore_ascii_case(&hash)
    };
    table.get("token").and_then(Value::as_array).is_some_and(|entries| entries.iter().any(is_same))
}

fn is_in_lines(token: &Token, text: &str) -> bool {
    let hash = hex(token);
    text.lines().filter(|line| !line.trim_start().starts_with('#')).any(|line| line.to_ascii_lowercase().contains(&hash))
}

fn hex(token: &Token) -> String {
    token.sha256.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::parse;
    use crate::config::secret::SystemSources;

    fn token(name: &str, digit: &str) -> String {
        format!("[[token]]\nname = \"{name}\"\nsha256 = \"{}\"\n", digit.repeat(64))
    }

    /// The tokens that are good after a refused file, and whether nobody else is let in; `None`: nothing changes.
    fn left(current: &str, refused: &str) -> Option<(Vec<String>, bool)> {
        let current = parse(current, Path::new("banyan.toml"), &SystemSources).unwrap();
        let left = without_revoked(&current, refused)?;
        Some((left.tokens.iter().map(|token| token.name.to_string()).collect(), left.shut))
    }

    #[test]
    fn a_token_is_void_when_its_hash_stands_in_no_refused_file_any_more() {
        let (a, b) = (token("a", "A"), token("b", "b"));
        let both = format!("{a}{b}");
        let good = |names: &[&str], shut: bool| Some((names.iter().map(ToString::to_string).collect(), shut));
        assert_eq!(left(&both, &format!("bogus = 1\n{both}")), None);
        assert_eq!(left(&both, &format!("bogus = 1\n{a}")), good(&["a"], false));
        assert_eq!(left(&both, "bogus = 1"), good(&[], true));
        assert_eq!(left(&both, &format!("bogus = 1\n{}", both.replace("\"a\"", "\"c\""))), good(&["b"], false), "another name");
        assert_eq!(left(&both, &format!("bogus = 1\n{}", both.replace('A', "1"))), good(&["b"], false), "another token");
        // No TOML.
        assert_eq!(left(&both, &format!("bogus = \n{both}")), None);
        assert_eq!(left(&both, &format!("bogus = \n{a}# {}", b.replace('\n', " "))), good(&["a"], false), "a comment");
        assert_eq!(left(&both, ""), None, "an editor is about to write it");
    }

    #[test]
    fn a_gate_without_credentials_stays_as_it_is() {
        assert_eq!(left("[mount.a]\ncommand = 'x'", "bogus = 1"), None);
    }
}
