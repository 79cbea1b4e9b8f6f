//! From text to stems: identifiers in any spelling are split into words first. Does not know what words mean.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use bm25::{DefaultTokenizer, Tokenizer};

/// Splits and stems, and remembers the stem of each word: the tools of a tree share a small vocabulary.
#[derive(Clone)]
pub(super) struct Words(Rc<Memory>);

struct Memory {
    stems: DefaultTokenizer,
    seen: RefCell<BTreeMap<Box<str>, Option<Box<str>>>>,
}

impl Words {
    pub(super) fn new() -> Self {
        Self(Rc::new(Memory { stems: DefaultTokenizer::default(), seen: RefCell::default() }))
    }

    /// Every stem met so far.
    pub(super) fn known(&self) -> Vec<Box<str>> {
        self.0.seen.borrow().values().flatten().cloned().collect()
    }

    /// Gives the stem of a word; `None` for a stop word.
    pub(super) fn stem(&self, word: &str) -> Option<Box<str>> {
        if let Some(known) = self.0.seen.borrow().get(word) {
            return known.clone();
        }
        let stem = self.0.stems.tokenize(word).into_iter().next().map(Into::into);
        self.0.seen.borrow_mut().insert(word.into(), stem.clone());
        stem
    }
}

impl Default for Words {
    fn default() -> Self {
        Self::new()
    }
}

impl Tokenizer for Words {
    fn tokenize(&self, text: &str) -> Vec<String> {
        split(text).filter_map(|word| self.stem(word)).map(String::from).collect()
    }
}

/// `listPullRequests`, `list_pull-requests` and `HTTPServer` fall apart into their words; digits stay with their letters.
/// Two words in one, such as `GitHub`, are kept whole beside them, because that is how names of products are written.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
    parts.flat_map(|part| {
        let mut words = split_case(part);
        if words.len() == 2 {
            words.push(part);
        }
        words
    })
}

fn split_case(part: &str) -> Vec<&str> {
    let characters: Vec<(usize, char)> = part.char_indices().collect();
    let mut words = Vec::new();
    let mut start = 0;
    for (number, &(at, character)) in characters.iter().enumerate().skip(1) {
        let before = characters[number - 1].1;
        let follows_lower = before.is_lowercase() || before.is_numeric();
        let ends_acronym = before.is_uppercase() && characters.get(number + 1).is_some_and(|(_, next)| next.is_lowercase());
        if character.is_uppercase() && (follows_lower || ends_acronym) {
            words.push(&part[start..at]);
            start = at;
        }
    }
    words.push(&part[start..]);
    words
}

/// Tells if `asked`, used by no tool, is the beginning of `known` or differs from it by a slip of the finger.
pub(super) fn look_alike(asked: &str, known: &str) -> bool {
    let long_enough = asked.chars().count();
    (long_enough >= 3 && known.starts_with(asked))
        || (known.len() >= 5 && asked.ends_with(known))
        || (long_enough >= 6 && known.chars().next() == asked.chars().next() && strsim::osa_distance(asked, known) == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_fall_apart_into_words() {
        for text in ["listPullRequests", "list_pull_requests", "list-pull.requests", "ListPullRequests", "list pull requests!"] {
            assert_eq!(Words::new().tokenize(text), ["list", "pull", "request"], "{text}");
        }
        assert_eq!(Words::new().tokenize("GitHub repo"), ["git", "hub", "github", "repo"]);
        assert_eq!(
            split("HTTPServer2 getURL sha256").collect::<Vec<_>>(),
            ["HTTP", "Server2", "HTTPServer2", "get", "URL", "getURL", "sha256"]
        );
        assert_eq!(split("naïveCafé größeÄndern").collect::<Vec<_>>(), ["naïve", "Café", "naïveCafé", "größe", "Ändern", "größeÄndern"]);
    }

    #[test]
    fn stop_words_are_left_out() {
        assert_eq!(Words::new().tokenize("what is in the file"), ["file"]);
    }

    #[test]
    fn an_unknown_word_resembles_its_continuation_and_its_misspelling() {
        assert!(look_alike("repo", "repositori"));
        assert!(look_alike("calender", "calendar"));
        assert!(!look_alike("re", "repositori"));
        assert!(!look_alike("cat", "car"));
        assert!(!look_alike("mail", "jail"));
    }
}
