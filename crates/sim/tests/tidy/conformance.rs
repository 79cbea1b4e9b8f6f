//! `docs/conformance.md` agrees with the tests: whoever claims a row has a test with its id, and no such test is unlisted.
//! Does not know the wording of the requirements.

use std::collections::{BTreeMap, BTreeSet};

use crate::documents::{quoted, tests};
use crate::tree::{read, sources};

/// Families of requirements with their ids in test names, as `ax_15_...` for AX-15.
const FAMILIES: &[&str] = &["ae", "ax", "mx", "nm", "xc"];

/// Reads the id at the beginning of a test's name: `ax_15_x` gives `AX-15`.
fn id_of(test: &str) -> Option<String> {
    let mut parts = test.splitn(3, '_');
    let (family, number, _) = (parts.next()?, parts.next()?, parts.next()?);
    let numeric = number.len() == 2 && number.bytes().all(|b| b.is_ascii_digit());
    (FAMILIES.contains(&family) && numeric).then(|| format!("{}-{number}", family.to_uppercase()))
}

/// Rows `| AX-15 | wording | tests |`: id to the last cell.
fn rows() -> BTreeMap<String, String> {
    let text = read("docs/conformance.md");
    let mut rows = BTreeMap::new();
    for line in text.lines().filter(|l| l.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        if cells[0].split_once('-').is_some_and(|(_, n)| n.bytes().all(|b| b.is_ascii_digit())) {
            assert_eq!(cells.len(), 3, "three cells a row: {line}");
            assert!(!cells[1].is_empty() && !cells[2].is_empty(), "an empty cell: {line}");
            assert!(rows.insert(cells[0].to_owned(), cells[2].to_owned()).is_none(), "{} has two rows", cells[0]);
        }
    }
    assert!(rows.len() > 30, "docs/conformance.md lists the requirements, one a row");
    rows
}

/// Reads the files of the peer tests, whose checks carry no ids in their names.
fn peers() -> BTreeMap<String, String> {
    sources(&[".py"]).into_iter().filter(|f| f.path.starts_with("tests/peers/")).map(|f| (f.path, f.text)).collect()
}

/// Finds the ids, like AX-05, in a text.
fn ids_in(text: &str) -> BTreeSet<String> {
    let upper: Vec<String> = FAMILIES.iter().map(|f| format!("{}-", f.to_uppercase())).collect();
    let found =
        upper.iter().flat_map(|family| text.match_indices(family.as_str()).filter_map(|(at, _)| text.get(at..at + family.len() + 2)));
    found.filter(|id| id.ends_with(|c: char| c.is_ascii_digit())).map(str::to_owned).collect()
}

#[test]
fn a_row_names_tests_of_its_own_id_that_exist_or_is_open() {
    let (tests, peers) = (tests(), peers());
    for (id, cell) in rows() {
        let named = quoted(&cell);
        assert!(!named.is_empty() || cell.starts_with("open"), "{id}: name a test, or say `open`");
        for test in named {
            if test.contains('/') {
                let text = peers.get(test).unwrap_or_else(|| panic!("{id} names `{test}`, which is no file of the peer tests"));
                assert!(ids_in(text).contains(&id), "{id} names `{test}`, which does not speak of it");
                continue;
            }
            assert_eq!(id_of(test).as_ref(), Some(&id), "{id} names `{test}`, whose name does not begin with the id");
            assert!(tests.contains(test), "{id} names `{test}`, which does not exist");
        }
    }
}

#[test]
fn every_test_that_carries_an_id_is_listed() {
    let rows = rows();
    let listed: BTreeSet<(String, String)> =
        rows.iter().flat_map(|(id, cell)| quoted(cell).into_iter().map(|t| (id.clone(), t.to_owned()))).collect();
    let functions = tests().into_iter().filter_map(|t| Some((id_of(&t)?, t)));
    let files = peers().into_iter().flat_map(|(path, text)| ids_in(&text).into_iter().map(move |id| (id, path.clone())));
    let unlisted: Vec<(String, String)> = functions.chain(files).filter(|pair| !listed.contains(pair)).collect();
    assert!(unlisted.is_empty(), "add to docs/conformance.md: {unlisted:?}");
}

#[test]
fn an_id_is_read_from_a_test_name() {
    assert_eq!(id_of("ax_15_names_are_mapped").as_deref(), Some("AX-15"));
    assert_eq!(id_of("ax_1_x"), None);
    assert_eq!(id_of("axis_15_x"), None);
    assert_eq!(id_of("names_are_mapped"), None);
    assert_eq!(ids_in("proves AX-05 and AX-40; not MAX-1"), BTreeSet::from(["AX-05".to_owned(), "AX-40".to_owned()]));
}
