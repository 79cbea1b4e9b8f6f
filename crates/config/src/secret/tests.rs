use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Default)]
struct Fake {
    env: BTreeMap<String, String>,
    files: BTreeMap<PathBuf, String>,
    keyring: Option<BTreeMap<String, String>>,
}

impl Sources for Fake {
    fn env(&self, name: &str) -> Option<String> {
        self.env.get(name).cloned()
    }

    fn file(&self, path: &Path) -> std::io::Result<String> {
        self.files.get(path).cloned().ok_or_else(|| std::io::ErrorKind::NotFound.into())
    }

    fn keyring(&self, name: &str) -> Result<Option<String>, KeyringError> {
        let kept = self.keyring.as_ref().ok_or_else(|| KeyringError::Unavailable("no bus".into()))?;
        Ok(kept.get(name).cloned())
    }
}

fn resolved(text: &str, sources: &Fake) -> String {
    SecretRef::parse(text).unwrap().resolve(sources).unwrap().expose().to_owned()
}

fn refused(text: &str, sources: &Fake) -> String {
    let place = "mount.github.env.TOKEN";
    SecretRef::parse(text).unwrap().used_by(place).resolve(sources).unwrap_err().to_string()
}

#[test]
fn each_kind_of_reference_is_replaced_in_place() {
    let sources = Fake {
        env: [("A".into(), "env".into()), ("EMPTY".into(), String::new())].into(),
        files: [(PathBuf::from("/run/s"), "file\n".into())].into(),
        keyring: Some([("k".into(), "ring".into())].into()),
    };
    for (text, expected) in [
        ("plain", "plain"),
        ("", ""),
        ("Bearer ${env:A}", "Bearer env"),
        ("${env:B:-x:-y}", "x:-y"),
        ("${env:EMPTY:-other}", "other"),
        ("<${file:/run/s}>", "<file>"),
        ("${keyring:k}${env:A}", "ringenv"),
        ("$HOME $5 $$ {x}", "$HOME $5 $$ {x}"),
        ("$${env:A}", "${env:A}"),
        ("$$${env:A}", "$env"),
    ] {
        assert_eq!(resolved(text, &sources), expected, "{text}");
    }
}

#[test]
fn what_is_no_reference_is_refused_with_the_forms_there_are() {
    for (text, part) in [
        ("${A}", "is not a reference: write ${env:NAME}"),
        ("${input:token}", "is not a reference"),
        ("${env:A", "is not closed"),
        ("${env:}", "is not a name for ${env:…}"),
        ("${env:A B}", "use letters, digits and `_`"),
        ("${keyring:}", "use 1 to 200 characters"),
        ("${file:secret.txt}", "is not an absolute path"),
        ("${file:}", "is not an absolute path"),
    ] {
        let error = SecretRef::parse(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn a_missing_secret_is_named_with_its_place_and_the_remedy() {
    let none = Fake { keyring: Some(BTreeMap::new()), ..Fake::default() };
    assert_eq!(
        refused("${env:TOKEN}", &none),
        "the environment variable `TOKEN` (used by mount.github.env.TOKEN) is not set\n  \
         set it where Banyan is started, give a default with ${env:TOKEN:-default}, or store it with \
         `banyan secret set TOKEN` and write ${keyring:TOKEN}"
    );
    assert_eq!(
        refused("${keyring:github}", &none),
        "the secret `github` (used by mount.github.env.TOKEN) is not in the keyring\n  \
         store it with `banyan secret set github`"
    );
    assert!(
        refused("${file:/none}", &none)
            .starts_with("the secret in file `/none` (used by mount.github.env.TOKEN) can't be read: entity not found")
    );
}

#[test]
fn without_a_keyring_the_other_ways_are_named() {
    assert_eq!(
        refused("${keyring:github}", &Fake::default()),
        "the secret `github` (used by mount.github.env.TOKEN) is kept in the keyring, and no keyring can be reached \
         here (no bus)\n  use ${env:NAME} or ${file:/path} in its place, or start Banyan in a session that has a keyring"
    );
}

#[test]
fn nothing_that_may_be_secret_is_printed() {
    let reference = SecretRef::parse("Bearer sk-1 ${env:T:-sk-2} ${keyring:k}").unwrap();
    let shown = format!("{reference:?}");
    assert_eq!(shown, "SecretRef([redacted]${env:T:-[redacted]}[redacted]${keyring:k})");

    let secret = Secret::new("sk-3");
    assert_eq!(format!("{secret} {secret:?} {}", serde_json::to_string(&secret).unwrap()).matches("[redacted]").count(), 3);
    assert_eq!(secret.expose(), "sk-3");
    assert_eq!(secret, Secret::new("sk-3"));
    assert_ne!(secret, Secret::new("sk-4"));
}

#[test]
fn a_secret_file_is_read_up_to_its_limit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    std::fs::write(&path, "x\r\n").unwrap();
    let reference = SecretRef::of(vec![Piece::File(path.clone())]).unwrap();
    assert_eq!(reference.resolve(&SystemSources).unwrap().expose(), "x");
    std::fs::write(&path, vec![b'x'; 70_000]).unwrap();
    assert!(reference.resolve(&SystemSources).unwrap_err().to_string().contains("longer than 64 KiB"));
}

/// A keyring or none, by the machine; an answer must come, within an async task too.
#[tokio::test]
async fn the_keyring_answers_or_says_why_not_even_inside_a_task() {
    match SystemSources.keyring("banyan-test/there-is-no-such-entry") {
        Ok(value) => assert_eq!(value, None),
        Err(error) => assert!(error.to_string().contains("keyring"), "{error}"),
    }
}

fn piece() -> impl Strategy<Value = Piece> {
    prop_oneof![
        "[${}a:-]{0,8}".prop_map(Piece::Plain),
        any::<String>().prop_map(Piece::Plain),
        ("[A-Za-z_][A-Za-z0-9_]{0,8}", proptest::option::of("[^}]{0,8}")).prop_map(|(name, default)| Piece::Env { name, default }),
        "/[a-z $./-]{0,12}".prop_map(|path| Piece::File(path.into())),
        "[a-zA-Z0-9_. /-]{1,20}".prop_map(Piece::Keyring),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(pieces in proptest::collection::vec(piece(), 0..6)) {
        let reference = SecretRef::of(pieces).unwrap();
        let written = reference.to_string();
        prop_assert_eq!(SecretRef::parse(&written).unwrap(), reference, "{}", written);
    }

    #[test]
    fn whatever_parses_is_written_to_something_equal(text in "[${}envfilkyrg:A/~-]{0,24}") {
        if let Ok(reference) = SecretRef::parse(&text) {
            prop_assert_eq!(SecretRef::parse(&reference.to_string()).unwrap(), reference);
        }
    }

    #[test]
    fn plain_text_is_kept_whatever_it_holds(text in any::<String>()) {
        let reference = SecretRef::plain(text.as_str());
        prop_assert_eq!(reference.as_plain(), Some(text.as_str()));
        prop_assert_eq!(SecretRef::parse(&reference.to_string()).unwrap(), reference);
    }
}
