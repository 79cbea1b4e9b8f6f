//! Pages that people read, measured: short sentences, and few clauses that stand for a noun. Tables, code and links' targets are left out.
//! Does not judge a sentence.

use std::collections::BTreeSet;

use crate::tree::{read, root};

/// Words of the longest sentence.
const LONGEST: usize = 25;
/// Words of a sentence, on average over a page.
const AVERAGE: usize = 18;
/// Words like *what* and *whoever*, in a thousand.
const RELATIVES_PER_MILLE: usize = 8;
const RELATIVES: [&str; 11] = ["nobody", "somebody", "such", "what", "whatever", "which", "whichever", "who", "whoever", "whom", "whose"];

/// Pages that are not there yet. The list only shrinks: a page that is there leaves the list.
const NOT_YET: [&str; 5] = ["docs/agents.md", "docs/configuration.md", "docs/devices.md", "docs/performance.md", "docs/rooms.md"];

/// Figures of a page.
struct Figures {
    longest: String,
    average: usize,
    relatives: usize,
}

impl Figures {
    fn of(page: &str) -> Self {
        let sentences: Vec<String> = paragraphs(page).iter().flat_map(|paragraph| sentences(paragraph)).collect();
        let words = |text: &str| text.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).count();
        let all: usize = sentences.iter().map(|sentence| words(sentence)).sum();
        let is_relative = |word: &&str| RELATIVES.contains(&word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase().as_str());
        let relatives = sentences.iter().flat_map(|sentence| sentence.split_whitespace()).filter(is_relative).count();
        Self {
            average: all.div_ceil(sentences.len().max(1)),
            relatives: relatives * 1000 / all.max(1),
            longest: sentences.into_iter().max_by_key(|sentence| words(sentence)).unwrap_or_default(),
        }
    }

    fn complaints(&self) -> Vec<String> {
        let words = self.longest.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).count();
        let told = [
            (words > LONGEST, format!("a sentence has {words} words, {LONGEST} are allowed: {}", self.longest)),
            (self.average > AVERAGE, format!("a sentence has {} words on average, {AVERAGE} are allowed", self.average)),
            (
                self.relatives > RELATIVES_PER_MILLE,
                format!("{} words in a thousand are like `what` and `whoever`, {RELATIVES_PER_MILLE} are allowed", self.relatives),
            ),
        ];
        told.into_iter().filter(|(is_so, _)| *is_so).map(|(_, text)| text).collect()
    }
}

/// Lists the paragraphs and items of a page: no headings, tables and code.
fn paragraphs(page: &str) -> Vec<String> {
    let (mut found, mut is_code) = (vec![String::new()], false);
    for line in page.lines() {
        let text = line.trim_start();
        is_code ^= text.starts_with("```");
        let is_item = text.starts_with("- ") || text.split_once(". ").is_some_and(|(number, _)| number.parse::<u32>().is_ok());
        let is_left_out = is_code || text.starts_with("```") || text.starts_with(['|', '#', '<']) || line.starts_with("    ");
        if is_left_out || is_item || text.is_empty() {
            found.push(String::new());
        }
        if !is_left_out && let Some(paragraph) = found.last_mut() {
            let text = if is_item { text.split_once(' ').map_or("", |(_, text)| text) } else { text };
            paragraph.push_str(text);
            paragraph.push(' ');
        }
    }
    found
}

/// Splits a paragraph at the ends of sentences. Text between backticks is one word.
fn sentences(paragraph: &str) -> Vec<String> {
    let parts = paragraph.split('`').enumerate();
    let plain: String = parts.map(|(at, part)| if at % 2 == 0 { part.to_owned() } else { "CODE".to_owned() }).collect();
    let mut left = plain.as_str();
    let mut text = String::new();
    // The target of a link is no word.
    while let Some((before, after)) = left.split_once("](") {
        text.push_str(before);
        left = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    text.push_str(left);
    let ends = text.replace(". ", ".\n").replace(": ", ":\n").replace("; ", ";\n").replace("! ", "!\n").replace("? ", "?\n");
    ends.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
}

/// Lists the pages that people read.
fn pages() -> BTreeSet<String> {
    let docs = std::fs::read_dir(root().join("docs")).expect("docs");
    let docs = docs.flatten().map(|entry| format!("docs/{}", entry.file_name().to_string_lossy()));
    let own = ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md", "packaging/README.md"];
    docs.filter(|name| name.ends_with(".md")).chain(own.map(str::to_owned)).collect()
}

#[test]
fn pages_have_short_sentences_that_name_their_subject() {
    let pages = pages();
    let of_page = |page: &String| (page.clone(), Figures::of(&read(page)).complaints());
    let measured: Vec<(String, Vec<String>)> = pages.iter().map(of_page).collect();
    let is_excused = |page: &str| NOT_YET.contains(&page);
    let bad: Vec<_> = measured.iter().filter(|(page, complaints)| !complaints.is_empty() && !is_excused(page)).collect();
    assert!(bad.is_empty(), "{bad:#?}");
    let there: Vec<&str> =
        measured.iter().filter(|(page, told)| told.is_empty() && is_excused(page)).map(|(page, _)| page.as_str()).collect();
    assert!(there.is_empty(), "take these out of NOT_YET: {there:?}");
    let gone: Vec<&&str> = NOT_YET.iter().filter(|page| !pages.contains(**page)).collect();
    assert!(gone.is_empty(), "there are no such pages: {gone:?}");
}

#[test]
fn tables_code_and_targets_of_links_are_no_prose() {
    let page =
        "# Head\n\nOne two `three four` [five](six.md).\nSeven.\n\n| a | b |\n\n    code here\n\n- Item one.\n\n```\nmore code\n```\n";
    let found: Vec<String> = paragraphs(page).iter().flat_map(|paragraph| sentences(paragraph)).collect();
    assert_eq!(found, ["One two CODE [five.", "Seven.", "Item one."]);
}
