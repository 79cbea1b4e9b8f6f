//! Required and forbidden words of source files. Does not judge style.

use crate::tree::sources;

/// Lists forbidden marks, put together here so that this file does not hold them.
fn forbidden() -> Vec<String> {
    let marks = [
        ("TO", "DO"),
        ("FIX", "ME"),
        ("XX", "X"),
        ("todo", "!"),
        ("unimplemented", "!"),
        ("#[igno", "re"),
        ("#[al", "low("),
        ("#![al", "low("),
    ];
    marks.iter().map(|(a, b)| format!("{a}{b}")).collect()
}

/// File names without a meaning.
const DRAWERS: &[&str] = &["common", "core", "helper", "helpers", "manager", "misc", "shared", "util", "utils"];

/// Limiting words, one of which has to be in a head, so that the head says where the module ends.
const LIMITS: &[&str] = &["not", "no", "nor", "never", "nothing", "none", "neither", "only", "without", "cannot", "nobody", "nowhere"];

#[test]
fn nothing_is_left_for_later() {
    let forbidden = forbidden();
    let mut found = Vec::new();
    for file in sources(&[".rs", ".ts", ".tsx", ".py", ".sh", ".toml"]) {
        for (number, line) in file.text.lines().enumerate() {
            for mark in forbidden.iter().filter(|m| holds(line, m)) {
                found.push(format!("{}:{}: {mark}", file.path, number + 1));
            }
        }
    }
    assert!(found.is_empty(), "finish it or leave it out:\n{}", found.join("\n"));
}

/// Tells if `mark` stands in `line` as a word of its own (marks that start with `#` anywhere).
fn holds(line: &str, mark: &str) -> bool {
    let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(mark).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + mark.len()..].chars().next();
        mark.starts_with('#') || !(word(before) || (mark.ends_with(char::is_alphabetic) && word(after)))
    })
}

/// Skips `tests.rs` beside a module, which is a part of it and needs no head of its own.
#[test]
fn every_module_has_a_head_that_says_what_it_is_not() {
    let mut bad = Vec::new();
    for file in sources(&[".rs"]) {
        let head: String = file.text.lines().take_while(|l| l.starts_with("//!")).map(|l| format!("{l} ")).collect();
        let says = |w: &str| head.to_lowercase().split(|c: char| !c.is_alphanumeric()).any(|x| x == w);
        if file.name() == "tests.rs" {
            continue;
        }
        if head.is_empty() {
            bad.push(format!("{}: does not begin with `//!`", file.path));
        } else if !file.is_test() && !LIMITS.iter().any(|w| says(w)) {
            bad.push(format!("{}: its head does not say what it leaves to others", file.path));
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn no_file_is_a_drawer() {
    for file in sources(&[".rs", ".ts", ".tsx", ".py"]) {
        let mut parts = file.path.split('/').map(|p| p.split('.').next().unwrap_or(p));
        assert!(!parts.any(|p| DRAWERS.contains(&p)), "{}: name it after what it is", file.path);
    }
}

#[test]
fn a_mark_is_found_as_a_word_only() {
    let [todo, allow] = [0, 6].map(|i| forbidden()[i].clone());
    assert!(holds(&format!("// {todo}: later"), &todo));
    assert!(!holds(&format!("a{todo}B"), &todo));
    assert!(holds(&format!("    {allow}dead_code)]"), &allow));
}
