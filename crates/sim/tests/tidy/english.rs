//! Plain English, measured: docs that name instead of pointing, type names that a stranger can place, functions that say what they do,
//! test names that one can read. Does not judge a sentence.
//!
//! Budgets in `english/budgets/`, a file a crate, say how much worse than the rule a crate is, and only shrink: far below its budget a crate
//! fails as well as above. `LOWER_BUDGETS=1 cargo nextest run -p sim --test tidy english` writes the smaller numbers.

use std::collections::BTreeMap;
use std::fs;

use crate::english::measure::Share;
use crate::english::source::Outline;
use crate::tree::{root, sources};

mod measure;
mod source;

const BUDGETS: &str = "crates/sim/tests/tidy/english/budgets";

/// Pointing words that every crate may have, in a thousand.
const POINTING_PER_MILLE: usize = 60;
/// Definitions of one type name allowed in the workspace.
const SAME_NAME: usize = 3;
/// Names that every crate may give to a type of its own.
const SHARED_NAMES: &[&str] = &["Command", "Config", "Error", "Event", "State"];
/// Part of a budget by which a crate may stay below it unnoticed, so that branches need not lower the same number.
const SLACK: usize = 20;
/// Words allowed in a test name behind its id.
const TEST_WORDS: usize = 9;

/// A parsed file of a crate.
struct File {
    package: String,
    path: String,
    outline: Outline,
}

fn files() -> Vec<File> {
    let files = sources(&[".rs"]).into_iter().filter(|file| file.path.starts_with("crates/"));
    let read = files.map(|file| {
        let outline = Outline::read(&file.text, file.is_test()).unwrap_or_else(|e| panic!("{}: {e}", file.path));
        File { package: file.path.split('/').nth(1).unwrap_or_default().to_owned(), path: file.path, outline }
    });
    read.collect()
}

/// Places where a rule is broken, by crate.
fn found<'a>(files: &'a [File], broken: impl Fn(&'a File) -> Vec<&'a str>) -> BTreeMap<&'a str, Vec<String>> {
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for file in files {
        let here = places.entry(&file.package).or_default();
        here.extend(broken(file).into_iter().map(|text| format!("{}: {text}", file.path)));
    }
    places
}

fn matching(names: &[String], breaks: impl Fn(&str) -> bool) -> Vec<&str> {
    names.iter().map(String::as_str).filter(|name| breaks(name)).collect()
}

/// Reads a file of budgets: of a crate, or of names.
fn budgets(file: &str) -> toml::Table {
    let path = root().join(BUDGETS).join(format!("{file}.toml"));
    let text = fs::read_to_string(path).unwrap_or_default();
    text.parse().unwrap_or_else(|e| panic!("{BUDGETS}/{file}.toml: {e}"))
}

/// Compares a measured number with its budget and gives the complaint, if any. `least` needs no budget.
fn complaint(file: &str, key: &str, measured: usize, least: usize) -> Option<String> {
    let mut table = budgets(file);
    let stands = table.get(key).and_then(toml::Value::as_integer);
    let budget = stands.map_or(least, |number| usize::try_from(number).unwrap_or(0));
    if measured > budget.max(least) {
        return Some(format!("{file}: {key} is {measured}, {budget} are allowed"));
    }
    let lowered = (measured > least).then_some(measured);
    if stands.is_none() || lowered == Some(budget) {
        return None;
    }
    if std::env::var_os("LOWER_BUDGETS").is_none() {
        if lowered.is_some_and(|number| budget - number <= budget / SLACK) {
            return None;
        }
        let asked = lowered.map_or_else(|| format!("take the line `{key}` out of"), |number| format!("write `{key} = {number}` into"));
        return Some(format!(
            "{file}: {key} is only {measured} by now, {budget} are allowed: {asked} {BUDGETS}/{file}.toml (LOWER_BUDGETS=1)"
        ));
    }
    match lowered.and_then(|number| i64::try_from(number).ok()) {
        Some(number) => table.insert(key.to_owned(), number.into()),
        None => table.remove(key),
    };
    let path = root().join(BUDGETS).join(format!("{file}.toml"));
    let written = if table.is_empty() { fs::remove_file(path) } else { fs::write(path, table.to_string()) };
    written.err().map(|e| format!("{BUDGETS}/{file}.toml: {e}"))
}

/// Makes the complaints of a rule, with all places in crates beyond their budget.
fn hold(key: &str, rule: &str, places: &BTreeMap<&str, Vec<String>>) -> Vec<String> {
    let mut complaints = Vec::new();
    for (package, places) in places {
        if let Some(complaint) = complaint(package, key, places.len(), 0) {
            let more = if complaint.contains("only") { String::new() } else { places.join("\n") };
            complaints.push(format!("{rule}\n{complaint}\n{more}"));
        }
    }
    complaints
}

fn shares(files: &[File]) -> BTreeMap<&str, Share> {
    let mut shares: BTreeMap<&str, Share> = BTreeMap::new();
    for file in files {
        shares.entry(&file.package).or_default().add(&file.outline.docs);
    }
    shares
}

fn pointing(files: &[File]) -> Vec<String> {
    let complaints = shares(files).into_iter().filter_map(|(package, share)| {
        let complaint = complaint(package, "pointing_per_mille", share.per_mille(), POINTING_PER_MILLE)?;
        Some(format!("let a doc name its subject (it, that, what, who, one, which, this, they point)\n{complaint}"))
    });
    complaints.collect()
}

fn beginnings(files: &[File]) -> Vec<String> {
    let hidden = found(files, |file| matching(&file.outline.docs, measure::hides_subject));
    hold("beginnings", "begin a doc with a noun or a verb of its item, not with What, Whether, Who, Where, Which, It, Its, One", &hidden)
}

fn participles(files: &[File]) -> Vec<String> {
    let bare = found(files, |file| matching(&file.outline.types, |name| measure::is_bare_participle(name, &file.package)));
    hold("participles", "name a type by a noun that a stranger can place", &bare)
}

fn functions(files: &[File]) -> Vec<String> {
    let empty = found(files, |file| matching(&file.outline.functions, measure::is_empty_word));
    hold("empty_functions", "name a function by more than `of`, `told`, `take`, `end` or `said`", &empty)
}

fn long_tests(files: &[File]) -> Vec<String> {
    let long = found(files, |file| matching(&file.outline.tests, |name| measure::words_after_id(name) > TEST_WORDS));
    hold("long_tests", "name a test in nine words behind its id", &long)
}

fn same_names(files: &[File]) -> Vec<String> {
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for file in files {
        for name in file.outline.types.iter().filter(|name| !SHARED_NAMES.contains(&name.as_str())) {
            places.entry(name).or_default().push(file.path.clone());
        }
    }
    let known = budgets("names");
    let gone = known.keys().filter(|key| !places.contains_key(key.as_str())).map(|key| (key.as_str(), Vec::new()));
    let all = places.iter().map(|(name, places)| (*name, places.clone())).chain(gone);
    let complaints = all.filter_map(|(name, places)| {
        let complaint = complaint("names", name, places.len(), SAME_NAME)?;
        Some(format!("qualify a type name that others have too (`HeldLease`)\n{complaint}\n{}", places.join("\n")))
    });
    complaints.collect()
}

/// Fields and variants need no doc where their names say it.
fn undocumented(files: &[File]) -> Vec<String> {
    let bare = found(files, |file| matching(&file.outline.undocumented, |_| true));
    let places: Vec<String> = bare.into_values().flatten().collect();
    places.into_iter().map(|place| format!("{place}: a public function, type or trait has a doc")).collect()
}

/// Holds all rules in one test: reading every file takes most of the time.
#[test]
fn docs_and_names_are_plainer_than_before_or_as_plain() {
    let files = files();
    let rules = [pointing, beginnings, participles, functions, long_tests, same_names, undocumented];
    let complaints: Vec<String> = rules.iter().flat_map(|rule| rule(&files)).collect();
    let shares = shares(&files);
    let all =
        shares.values().fold(Share::default(), |sum, share| Share { pointing: sum.pointing + share.pointing, all: sum.all + share.all });
    for (package, share) in shares.into_iter().chain([("all", all)]) {
        println!("{package}: {} of 1,000 words of docs point, of {}", share.per_mille(), share.all);
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

const SAMPLE: &str = "//! What the module is, which nobody says.
/// Counts `it` and the rest.
/// On two lines.
pub struct Held { /** Its age. */ age: u8 }
/// Shown to users: it stays.
#[derive(Parser)]
struct Arguments { /// Whether it is.
    quiet: bool }
pub fn of() {}
trait Taker { fn take(&self); }
impl Taker for Held { fn take(&self) {} }
impl Held { fn told(&self) {} }
#[cfg(test)]
mod tests {
    struct Wanted;
    fn end() {}
    #[test]
    fn xx_15_one_two_three_four_five_six_seven_eight_nine() {}
    #[test]
    fn one_two_three_four_five_six_seven_eight_nine_ten() {}
}
";

#[test]
fn the_measures_see_what_they_count() {
    let outline = Outline::read(SAMPLE, false).expect("the sample is Rust");
    assert_eq!(outline.docs.len(), 3, "{:?}", outline.docs);
    assert_eq!(outline.docs[1], "Counts `it` and the rest. On two lines.");
    let hidden = outline.docs.iter().filter(|doc| measure::hides_subject(doc)).count();
    assert_eq!(hidden, 2);
    let mut share = Share::default();
    share.add(&outline.docs);
    assert_eq!((share.pointing, share.all), (3, 17));
    assert_eq!(share.per_mille(), 177);
    assert_eq!(outline.types, ["Held", "Arguments", "Taker"]);
    assert_eq!(outline.functions, ["of", "take", "told"]);
    assert_eq!(outline.undocumented, ["of"]);
    assert!(measure::is_bare_participle(&outline.types[0], "gateway") && !measure::is_bare_participle(&outline.types[1], "gateway"));
    assert_eq!(outline.tests.iter().map(|name| measure::words_after_id(name)).collect::<Vec<_>>(), [9, 10]);
}

#[test]
fn a_proof_of_the_one_way_may_be_a_participle() {
    assert!(!measure::is_bare_participle("Cleared", "gateway") && measure::is_bare_participle("Cleared", "policy"));
}
