//! Tests of how slips of a key are shown: alone, and without the texts beside the slip.

use super::{problems, refused};

#[test]
fn a_slip_in_a_token_is_told_alone() {
    let hash = "01".repeat(32);
    let slips = [
        format!("[[token]]\nnmae = \"ci\"\nsha256 = \"{hash}\"\n"),
        format!("[[token]]\nname = \"ci\"\nsha526 = \"{hash}\"\n"),
        format!("[[tokn]]\nname = \"ci\"\nsha256 = \"{hash}\"\n"),
        "[[token]]\nname = \"ci\"\nsha256 = \"0101\"\n".to_owned(),
        "token = [{ name = \"ci\", sha256 = 7 }]\n".to_owned(),
    ];
    for slip in slips {
        let (listen, rest) = ("listen = \"0.0.0.0:7411\"\n", &slip);
        let text = if slip.starts_with("token") { format!("{rest}{listen}") } else { format!("{listen}{rest}") };
        let told = refused(&text);
        assert!(!told.contains("no token is configured") && !told.contains("needs `"), "{text}{told}");
        assert!(told.contains("may only follow from these"), "{text}{told}");
        assert_eq!(problems(&text).len(), 1, "{text}{told}");
    }
    let told = refused("listen = \"0.0.0.0:7411\"\n[mount.a]\ncomand = \"x\"\n");
    assert!(told.contains("no token is configured") && told.contains("did you mean `command`?"), "{told}");
}

#[test]
fn a_hidden_text_does_not_tell_its_length() {
    let told = |secret: &str| refused(&format!("mount.a = {{ comand = \"{secret}\", env = {{ A = \"{secret}\" }} }}\n"));
    assert_eq!(told("x"), told("a much longer text of many words").as_str());
    let shown = "1 | mount.a = { comand = \"***\", env = { A = \"***\" } }\n  |             ^^^^^^";
    assert!(told("x").contains(shown), "{}", told("x"));
}
