//! Agreement of the documents with the tree: links lead somewhere, and every invariant of `ARCHITECTURE.md` names an existing test.
//! Does not fetch links that leave the repository.

use std::collections::BTreeSet;

use crate::tree::{Source, read, root, sources};

const ARCHITECTURE_LINES: usize = 150;

/// Names of all the tests: Rust functions in files with tests, and Python functions that pytest would take.
pub(crate) fn tests() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in sources(&[".rs"]) {
        let mut marked = false;
        for line in file.text.lines().map(str::trim) {
            if let Some(rest) = line.strip_prefix("async fn ").or_else(|| line.strip_prefix("fn ")) {
                if marked {
                    names.insert(identifier(rest));
                }
                marked = false;
            } else if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                marked = true;
            }
        }
    }
    for file in sources(&[".py"]) {
        let functions =
            file.text.lines().filter_map(|l| l.trim().strip_prefix("def test_").or_else(|| l.trim().strip_prefix("async def test_")));
        names.extend(functions.map(identifier));
    }
    names
}

fn identifier(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// Lists the texts between backticks in `text`.
pub(crate) fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn the_architecture_fits_on_two_pages() {
    let lines = read("ARCHITECTURE.md").lines().count();
    assert!(lines <= ARCHITECTURE_LINES, "ARCHITECTURE.md has {lines} lines, {ARCHITECTURE_LINES} are allowed");
}

#[test]
fn every_invariant_names_a_test_that_exists() {
    let tests = tests();
    let text = read("ARCHITECTURE.md");
    let part = text.split("## Invariants").nth(1).expect("ARCHITECTURE.md has a part `## Invariants`");
    let part = part.split("\n## ").next().unwrap_or(part);
    let mut count = 0;
    for item in items(part) {
        count += 1;
        let (_, held) = item.split_once("Held by").unwrap_or_else(|| panic!("this invariant names no test: {item}"));
        let named = quoted(held);
        assert!(!named.is_empty(), "this invariant names no test: {item}");
        for name in named {
            let there = if name.contains('/') { root().join(name).is_file() } else { tests.contains(name) };
            assert!(there, "there is no test `{name}`, named by: {item}");
        }
    }
    assert!(count > 0, "no numbered invariant found");
}

/// Reads the rows of the only table of `text` that begins with `heading`, by cells.
fn table<'a>(text: &'a str, heading: &'a str) -> Vec<Vec<&'a str>> {
    let cells = |line: &'a str| -> Vec<&'a str> { line.trim().trim_matches('|').split('|').map(str::trim).collect() };
    let mut heads = text.lines().enumerate().filter(|(_, line)| *line == heading);
    let (at, _) = heads.next().unwrap_or_else(|| panic!("there is no table `{heading}`"));
    assert!(heads.next().is_none(), "there is more than one table `{heading}`");
    let rows: Vec<_> = text.lines().skip(at + 2).take_while(|line| line.starts_with('|')).map(cells).collect();
    let width = cells(heading).len();
    rows.iter().for_each(|row| assert_eq!(row.len(), width, "another number of cells than `{heading}`: {row:?}"));
    rows
}

/// Checks that `cell` names at least one test between backticks, and only existing ones.
fn names_tests_that_exist(tests: &BTreeSet<String>, cell: &str, row: &[&str]) {
    let named = quoted(cell);
    assert!(!named.is_empty(), "no test is named: {row:?}");
    for name in named {
        let there = if name.contains('/') { root().join(name).is_file() } else { tests.contains(name) };
        assert!(there, "there is no test `{name}`, named by: {row:?}");
    }
}

#[test]
fn every_threat_names_tests_that_exist() {
    let (tests, text) = (tests(), read("docs/threats.md"));
    let rows = table(&text, "| threat | what a gate does | held by |");
    assert!(rows.len() > 10, "docs/threats.md has a table, a threat a row");
    rows.iter().for_each(|row| names_tests_that_exist(&tests, row[2], row));
    let threats: BTreeSet<_> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(threats.len(), rows.len(), "a threat has more than one row");
}

/// The first table lists held things and their bounds, the second the tests of each bound, or `open:` and the reason.
#[test]
fn every_bound_names_tests_that_exist_or_is_open() {
    let (tests, text) = (tests(), read("docs/threats.md"));
    let held = table(&text, "| no | what is held | for whom | bound | setting |");
    let rows = table(&text, "| no | test |");
    assert!(held.len() > 40, "docs/threats.md has a table of what a gate holds");
    let numbers = |rows: &[Vec<&str>]| rows.iter().map(|row| row[0].parse().expect("a number")).collect::<Vec<usize>>();
    assert_eq!(numbers(&held), (1..=held.len()).collect::<Vec<_>>(), "what is held is numbered from 1 on");
    assert_eq!(numbers(&rows), numbers(&held), "each bound has one row that names its tests, in the same order");
    held.iter().for_each(|row| assert!(row.iter().all(|cell| !cell.is_empty()), "a cell says nothing: {row:?}"));
    for row in rows {
        match row[1].strip_prefix("open:") {
            Some(reason) => assert!(!reason.trim().is_empty(), "it is not said why no test holds it: {row:?}"),
            None => names_tests_that_exist(&tests, row[1], &row),
        }
    }
}

/// Splits a Markdown list into numbered items, each with its following lines.
fn items(text: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for line in text.lines() {
        let number = line.split_once(". ").is_some_and(|(n, _)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
        match items.last_mut() {
            _ if number => items.push(line.to_owned()),
            Some(last) if line.starts_with(' ') => last.push_str(line),
            Some(_) | None => {}
        }
    }
    items
}

#[test]
fn links_in_documents_lead_somewhere() {
    let documents = sources(&[".md"]);
    let mut broken = Vec::new();
    for document in &documents {
        let directory = document.path.rsplit_once('/').map_or("", |(d, _)| d);
        for link in links(&document.text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { document.path.clone() } else { joined(directory, path) };
            if !root().join(&target).exists() {
                broken.push(format!("{}: {link}: there is no {target}", document.path));
            } else if !anchor.is_empty() && !has_anchor(&documents, &target, anchor) {
                broken.push(format!("{}: {link}: {target} has no such heading", document.path));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// The targets of `[text](target)` outside code.
fn links(text: &str) -> Vec<&str> {
    let mut links = Vec::new();
    let mut code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            code = !code;
        } else if !code {
            links.extend(line.split("](").skip(1).filter_map(|rest| rest.split(')').next()));
        }
    }
    links
}

fn joined(directory: &str, path: &str) -> String {
    let mut parts: Vec<&str> = directory.split('/').filter(|p| !p.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." => _ = parts.pop(),
            other => parts.push(other),
        }
    }
    parts.join("/")
}

fn has_anchor(documents: &[Source], path: &str, anchor: &str) -> bool {
    let slug = |heading: &str| -> String {
        let kept = heading.trim().to_lowercase().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).collect::<String>();
        kept.replace(' ', "-")
    };
    let document = documents.iter().find(|d| d.path == path);
    document.is_some_and(|d| d.text.lines().any(|l| l.starts_with('#') && slug(l.trim_start_matches('#')) == anchor))
}

#[test]
fn a_link_is_resolved_from_its_document() {
    assert_eq!(joined("docs/a", "../b.md"), "docs/b.md");
    assert_eq!(joined("", "./README.md"), "README.md");
    assert_eq!(links("see [a](b.md#c) and [d](e)\n```\n[x](y)\n```"), ["b.md#c", "e"]);
}

/// The console uses nothing undocumented: every path of its requests stands in the documents, up to the last part that is not a name.
#[test]
fn what_the_console_asks_for_is_documented() {
    let documents: String = sources(&[".md"]).into_iter().filter(|file| file.path.starts_with("docs/")).map(|file| file.text).collect();
    let pages = sources(&[".ts", ".tsx"]).into_iter().filter(|file| file.path.starts_with("console/src/"));
    let mut asked = BTreeSet::new();
    for page in pages {
        for quoted in ["'/-/", "`/-/", "\"/-/"] {
            let paths = page.text.split(quoted).skip(1);
            asked.extend(paths.map(|rest| rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '/').collect::<String>()));
        }
    }
    assert!(asked.len() > 15, "{asked:?}");
    for path in asked {
        assert!(documents.contains(&format!("/-/{path}")), "the console asks for /-/{path}, of which docs/ says nothing");
    }
}
