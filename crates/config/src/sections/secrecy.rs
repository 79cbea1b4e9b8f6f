//! Texts of errors show no secret, whatever slip of the finger is in the file.

use std::path::Path;

use proptest::prelude::*;

use super::tests::Fixed;
use crate::parse;

#[test]
fn no_error_shows_a_secret() {
    for text in [
        "mount.a = { command = \"x\", env = { T = \"hunter2\", U = 5 } }",
        "mount.a = { command = \"x\", env = { T = \"hunter2${x}\" } }",
        "mount.a = { comand = \"hunter2\" }",
        "[mount.a]\nheaders = { Authorization = hunter2 }",
        "[mount.a.env]\nNAME = hunter2",
        "[mount.a]\nenv = { A = \"hunter2 }",
        "[mount.a]\nenv = [\"A=hunter2\"]",
        "[mount.a]\napi_key = hunter2",
        "[[mount]]\nenv = { A = \"hunter2\" }",
        "mount = [{ env = { A = \"hunter2\" } }]",
        "[[token]]\nname = \"a\"\nsha256 = \"hunter2\"",
        "[mount.a]\nenv.T = \"\"\"\nhunter2 \\q\n\"\"\"",
        "[mount.a]\nenv = { A = \"x\nname = hunter2\n\" }",
        "[mount.a]\nenv = { A = 'x\n[hunter2]\nname = \"\n' }",
        "[mount.a]\nenv.T = \"\"\"\nname = hunter2",
        "x = 1 # hunter2",
        "mount.a = { url = \"ftp://hunter2@x\" }",
        "mount.a = { url = \"https://hunter2/${keyring:k}\" }",
        "mount.a = { command = \"x\", args = [\"--key\", \"hunter2\", 3] }",
        "mount.a = { url = \"http://x\", headers = { A = \"hunter2\\n\" } }",
    ] {
        let error = parse(text, Path::new("banyan.toml"), &Fixed).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{text}\n{error}");
    }
}

proptest! {
    /// A slip of the finger anywhere in a good file shows no secret.
    #[test]
    fn no_slip_shows_a_secret(slips in proptest::collection::vec((any::<proptest::sample::Index>(), "[\"'=\\[\\]{}#\n, x]?"), 1..4)) {
        let mut text: Vec<char> = SECRETS.chars().collect();
        for (at, with) in slips {
            let at = at.index(text.len());
            text.splice(at..=at, with.chars());
        }
        let text: String = text.into_iter().collect();
        if let Err(error) = parse(&text, Path::new("banyan.toml"), &Fixed) {
            let shown = error.to_string();
            prop_assert!(!shown.contains("hunter"), "{}\n{}", text, shown);
        }
    }
}

#[test]
fn a_text_that_came_one_table_too_high_is_not_shown() {
    let error = parse("[mount]\nurl = \"https://x/hunter2\"\n", Path::new("banyan.toml"), &Fixed).unwrap_err().to_string();
    assert!(error.contains("`mount.url` is a string, and must be a table") && !error.contains("hunter2"), "{error}");
}

const SECRETS: &str = r#"
[mount.a]
command = "x"
args = ["--key", "hunter2", '--token=hunter2']
env = { A = "hunter2", B = """
hunter2
""" }
[mount.b]
url = "https://x/hunter2"
headers = { Authorization = "Bearer hunter2", X = 'hunter2' }
oauth = { client_secret = "hunter2" }
[mount.c]
command = "x"
[mount.c.env]
C = "hunter2" # hunter2
[[token]]
name = "ci"
sha256 = "hunter2"
"#;
