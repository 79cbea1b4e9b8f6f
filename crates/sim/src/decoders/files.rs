//! Checks for the files that people write: none may end the program, and each mistake is shown. Nothing is read from disk.

use std::io::{Error, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use config::resolved::{Config, Mount};
use config::secret::{KeyringError, SecretRef, Sources};
use config::{ConfigError, parse};
use gateway::outside;
use gateway::trust::ca::JoinToken;
use import::connect::ENTRY;
use import::{Client, Places, Platform, from_text, to_toml};

/// A world without secrets.
struct Nothing;

impl Sources for Nothing {
    fn env(&self, _name: &str) -> Option<String> {
        None
    }

    fn file(&self, _path: &Path) -> std::io::Result<String> {
        Err(Error::from(ErrorKind::NotFound))
    }

    fn keyring(&self, _name: &str) -> Result<Option<String>, KeyringError> {
        Ok(None)
    }
}

/// A `banyan.toml` is taken, or each thing that is wrong has a place in the text.
pub(super) fn config(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let lines = text.split('\n').count();
    match parse(&text, Path::new("banyan.toml"), &Nothing) {
        Ok(_) => {}
        Err(ConfigError::Invalid { problems, .. }) => {
            assert!(!problems.is_empty());
            assert!(problems.iter().all(|problem| (1..=lines).contains(&problem.line) && problem.column > 0), "{problems:?}");
        }
        Err(other) => assert!(!other.to_string().is_empty()),
    }
}

/// A reference to a secret is read or refused; what was read is written and read again as the same, and prints no plain text.
pub(super) fn secret(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match SecretRef::parse(&text) {
        Ok(reference) => {
            assert_eq!(SecretRef::parse(&reference.to_string()).as_ref(), Ok(&reference));
            let plain = reference.as_plain().map(str::to_owned);
            assert!(plain.as_ref().is_none_or(|plain| plain.is_empty() || format!("{reference:?}") == "SecretRef([redacted])"));
            let resolved = reference.resolve(&Nothing);
            assert!(plain.is_none_or(|plain| resolved.is_ok_and(|secret| secret.expose() == plain)));
        }
        Err(refused) => assert!(!refused.to_string().is_empty()),
    }
}

/// A token for joining survives reading and writing.
pub(super) fn join(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match text.parse::<JoinToken>() {
        Ok(token) => assert_eq!(token.to_string(), text.trim()),
        Err(refused) => assert!(!refused.to_string().is_empty()),
    }
}

/// Another client's file is taken or refused, and the findings can be written as an equivalent `banyan.toml`. The
/// first byte chooses the client.
pub(super) fn import(data: &[u8]) {
    let Some((choice, text)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(text);
    let client = Client::ALL.get(usize::from(*choice)).copied();
    let path = Path::new(if usize::from(*choice) == Client::ALL.len() { "/nowhere/file.toml" } else { "/nowhere/file.json" });
    let nowhere = Path::new("/nowhere").to_owned();
    let places = Places {
        home: nowhere.clone(),
        cwd: nowhere.join("work"),
        platform: Platform::Linux,
        env: [("HOME".to_owned(), "/nowhere".to_owned())].into(),
        listen: Config::DEFAULT_LISTEN,
    };
    let found = match from_text(&text, client, path, &places) {
        Ok(found) => found,
        Err(refused) => return assert!(!refused.to_string().is_empty()),
    };
    let written = to_toml(&found);
    let read = parse(&written, &places.cwd.join("banyan.toml"), &places);
    assert!(read.is_ok(), "{written}\n{read:?}");
    let same = |mount: &Arc<Mount>| Mount { origin: String::new(), ..Mount::clone(mount) };
    let expected: Vec<Mount> = found.mounts().values().map(same).collect();
    assert_eq!(read.map_or(Vec::new(), |config| config.mounts.values().map(same).collect()), expected, "{written}");
}

/// Another client's file keeps its servers while Banyan is in it, and lists the same ones afterwards. The first byte chooses
/// the client.
pub(super) fn connect(data: &[u8]) {
    let Some((choice, text)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(text);
    let client = Client::ALL[usize::from(*choice) % Client::ALL.len()];
    let file = Path::new("/nowhere/mcp.json");
    let listed = |text: &str| {
        outside::listed(client, file, text).map(|mut names| {
            names.sort();
            names
        })
    };
    let Ok([pointed, restored, shown]) = outside::connected(client, file, &text) else { return };
    let before = listed(&text);
    let mut with: Vec<String> = before.iter().flatten().filter(|name| *name != ENTRY).cloned().collect();
    with.push(ENTRY.into());
    with.sort();
    assert_eq!(listed(&pointed), Ok(with), "{pointed}");
    assert_eq!(listed(&restored), before, "{restored}");
    // What is shown may hide more than a string: it is for people, and is read by nothing.
    assert!(!shown.is_empty() || text.trim().is_empty());
}
