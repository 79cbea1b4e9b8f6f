//! Revocation by a refused file: a credential missing from the file is void all the same. Nothing else of a refused file counts.

use std::path::{Component, Path, PathBuf};

use toml::{Table, Value};
use url::Url;

use super::resolved::{Config, Keys};
use super::secret::SecretRef;

/// A refused file, searched by sections for the credentials in force.
pub enum RefusedFile<'a> {
    Table(Value),
    /// A text that is no TOML, searched for the hashes of tokens only.
    Text(&'a str),
}

/// Makes the configuration in force without the credentials that `text` has no more, or has otherwise: tokens, issuers, participants,
/// approval services, keys of authorities, the authority of client certificates, and makers of tokens for rooms; `None` where all are there.
///
/// An empty text is most likely a file that an editor is about to write.
pub fn without_revoked(current: &Config, text: &str) -> Option<Config> {
    if text.is_empty() {
        return None;
    }
    let refused = text.parse::<Table>().map_or(RefusedFile::Text(text), |table| RefusedFile::Table(Value::Table(table)));
    let mut left = current.clone();
    current.sections.revoke(&refused, &mut left);
    // The last credential that goes must not let everybody in.
    left.shut |= current.wants_credential() && !left.wants_credential();
    (left != *current).then_some(left)
}

impl RefusedFile<'_> {
    /// Searches the lines of a text that is no TOML for a hash, comments left out.
    pub(crate) fn mentions(text: &str, sha256: &[u8; 32]) -> bool {
        let hash = hex(sha256);
        text.lines().filter(|line| !line.trim_start().starts_with('#')).any(|line| line.to_ascii_lowercase().contains(&hash))
    }
}

/// Follows a way through tables to a value of the file.
pub(crate) fn at<'a>(file: &'a Value, way: &[&str]) -> Option<&'a Value> {
    way.iter().try_fold(file, |table, name| table.get(name))
}

pub(crate) fn lists(entries: Option<&Value>, wanted: &str) -> bool {
    entries.and_then(Value::as_array).is_some_and(|entries| entries.iter().any(|entry| entry.as_str() == Some(wanted)))
}

pub(crate) fn is_hash(sha256: &[u8; 32], entry: &Value) -> bool {
    entry.get("sha256").and_then(Value::as_str).is_some_and(|text| text.eq_ignore_ascii_case(&hex(sha256)))
}

pub(crate) fn is_secret(secret: &SecretRef, entry: Option<&Value>) -> bool {
    entry.and_then(Value::as_str).and_then(|text| SecretRef::parse(text).ok()).is_some_and(|written| written == *secret)
}

pub(crate) fn is_keys(keys: &Keys, entry: Option<&Value>) -> bool {
    match keys {
        Keys::File(path) => is_path(path, entry),
        // What a reference in an address stands for is not looked up for a refused file.
        Keys::Url(url) => {
            entry.and_then(Value::as_str).is_some_and(|text| text.contains("${") || Url::parse(text).is_ok_and(|written| written == *url))
        }
    }
}

/// Checks whether the path in force is the written one, which may begin beside the file or at home.
pub(crate) fn is_path(path: &Path, entry: Option<&Value>) -> bool {
    let Some(written) = entry.and_then(Value::as_str) else { return false };
    let written = Path::new(written.strip_prefix("~/").unwrap_or(written)).components();
    let written: PathBuf = written.filter(|part| *part != Component::CurDir).collect();
    !written.as_os_str().is_empty() && path.ends_with(written)
}

fn hex(sha256: &[u8; 32]) -> String {
    sha256.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::parse;
    use crate::secret::SystemSources;

    fn token(name: &str, digit: &str) -> String {
        format!("[[token]]\nname = \"{name}\"\nsha256 = \"{}\"\n", digit.repeat(64))
    }

    /// Good tokens after a refused file, and `shut`; `None`: nothing changes.
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
    fn e5_whatever_makes_somebody_known_is_void_when_a_refused_file_has_it_otherwise_or_no_more() {
        let full = "resource = \"https://gate.example/mcp\"\n\
            [tls]\ncertificate = \"g.pem\"\nkey = \"g.key\"\nclient_ca = \"./ca.pem\"\n\
            [issuer.login]\nissuer = \"https://login.example\"\nkeys = \"https://login.example/jwks\"\n\
            [issuer.desk]\nissuer = \"https://desk.example\"\nkeys = \"desk.jwks\"\n\
            [authority.plant]\nkeys = \"plant.jwks\"\nnames = [\"*.plant.example\", \"plant.example\"]\n\
            [gate.service.bot]\nissuer = \"https://bot.example\"\nkeys = \"bot.pem\"\n\
            [rooms]\nissuers = [\"login\"]\nsecret = \"${env:ROOM_SECRET}\"\n[room.ops]\nmembers = [\"al\", \"bo\"]\n\
            [participant.al]\nrooms = [\"ops\"]\ntoken = \"${env:AL}\"\n\
            [participant.bo]\nrooms = [\"ops\"]\nsha256 = \"0000000000000000000000000000000000000000000000000000000000000001\"\n";
        let current = parse(full, Path::new("/etc/banyan/banyan.toml"), &SystemSources).unwrap();
        let refused = |from: &str, to: &str| {
            let changed = full.replacen(from, to, 1);
            assert!(from.is_empty() || changed != full, "{from}");
            without_revoked(&current, &format!("bogus = 1\n{changed}"))
        };
        assert_eq!(refused("", ""), None, "all of it is there as it was");
        let issuers = |left: &Config| left.trust.issuers.iter().map(|issuer| issuer.name.to_string()).collect::<Vec<_>>();
        assert_eq!(issuers(&refused("login.example/jwks", "other.example/jwks").unwrap()), ["desk"]);
        assert_eq!(issuers(&refused("\"desk.jwks\"", "\"new.jwks\"").unwrap()), ["login"]);
        assert_eq!(refused("\"*.plant.example\", ", "").unwrap().trust.authorities[0].names, ["plant.example"]);
        assert!(refused("plant.jwks", "new.jwks").unwrap().trust.authorities.is_empty());
        assert_eq!(refused("client_ca = \"./ca.pem\"\n", "").unwrap().trust.tls.unwrap().client_ca, None);
        assert_eq!(refused("./ca.pem", "new.pem").unwrap().trust.tls.unwrap().client_ca, None);
        assert!(refused("bot.pem", "new.pem").unwrap().gate.unwrap().services.is_empty());
        assert_eq!(refused("[gate.service.bot]", "[approvals.service.bot]"), None, "the former name of the section");
        let participants = |left: Config| left.rooms.participants.keys().map(|id| id.as_str().to_owned()).collect::<Vec<_>>();
        assert_eq!(participants(refused("${env:AL}", "${env:NEW}").unwrap()), ["bo"]);
        assert_eq!(participants(refused("0001\"", "0002\"").unwrap()), ["al"]);
        assert_eq!(refused("${env:ROOM_SECRET}", "${env:NEW}").unwrap().rooms.secret, None);
        assert!(refused("issuers = [\"login\"]", "issuers = []").unwrap().rooms.issuers.is_empty());
        let no_toml = without_revoked(&current, &format!("bogus = \n{}", full.replace("0001\"", "0002\""))).unwrap();
        assert_eq!(participants(no_toml), ["al"]);
    }

    #[test]
    fn a_gate_without_credentials_stays_as_it_is() {
        assert_eq!(left("[mount.a]\ncommand = 'x'", "bogus = 1"), None);
    }
}
