//! Commands as words that may be shortened: a tree of keywords, and the meanings of a shortened command. Knows no roles.

use std::collections::BTreeMap;

use super::command::CommandClass;
use crate::numbers::{listed, ranges};

/// Words of a rule or a verb; `*` stands for any word. Compared in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WordPattern(Vec<String>);

impl WordPattern {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.split_whitespace().map(str::to_lowercase).collect())
    }

    /// Do these words, each in full, begin with the pattern?
    pub(crate) fn begins(&self, words: &[String]) -> bool {
        self.0.len() <= words.len() && self.0.iter().zip(words).all(|(own, word)| own == "*" || own == word)
    }

    /// May these words, each perhaps shortened, begin with the pattern?
    pub(crate) fn may_begin(&self, words: &[String]) -> bool {
        self.0.len() <= words.len() && self.0.iter().zip(words).all(|(own, word)| own == "*" || own.starts_with(word.as_str()))
    }

    /// May these words of a line, each perhaps shortened, begin with the pattern, for any number of their lists?
    pub(crate) fn may_touch(&self, words: &[String]) -> bool {
        behind(&self.0, words, |own, word| own.starts_with(word)).is_some()
    }

    /// Do these words of a line, each in full, stand above the pattern, for any number of their lists?
    pub(crate) fn may_be_below(&self, words: &[String]) -> bool {
        let is_whole = |above: usize| behind(&self.0[..above], words, |own, word| own == word).is_some_and(<[String]>::is_empty);
        (0..self.0.len()).any(is_whole)
    }

    pub(crate) fn first(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }
}

/// Words behind those that meet a pattern; `None`: the words do not. A number of the pattern is met by any list with this number.
fn behind<'w>(own: &[String], mut words: &'w [String], is_same: impl Fn(&str, &str) -> bool) -> Option<&'w [String]> {
    for own in own {
        let word = words.first()?;
        let (found, used) = listed(words);
        let wanted = ranges(own).filter(|_| used > 0);
        let is_met = wanted.as_ref().map_or_else(
            || own == "*" || is_same(own, word),
            |wanted| wanted.iter().any(|(first, last)| found.iter().any(|(begin, end)| first <= end && begin <= last)),
        );
        if !is_met {
            return None;
        }
        words = &words[if wanted.is_some() { used } else { 1 }..];
    }
    Some(words)
}

/// Tree of keywords.
#[derive(Debug, Default)]
pub(super) struct Vocabulary {
    root: KeywordNode,
}

#[derive(Debug, Default)]
struct KeywordNode {
    children: BTreeMap<String, KeywordNode>,
    any: Option<Box<KeywordNode>>,
    class: Option<CommandClass>,
}

/// Meaning of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandMeaning {
    /// Words in full as far as the vocabulary knows them.
    pub(super) words: Vec<String>,
    pub(super) class: CommandClass,
    /// A word may be short for several.
    pub(super) is_ambiguous: bool,
}

impl Vocabulary {
    /// From the lists of commands that read, configure, are dangerous, and are known only as words.
    pub(super) fn new(lists: &[&Vec<String>; 4]) -> Self {
        let mut made = Self::default();
        for (list, class) in
            lists.iter().zip([Some(CommandClass::Read), Some(CommandClass::Configure), Some(CommandClass::Dangerous), None])
        {
            for command in *list {
                made.insert(command, class);
            }
        }
        made
    }

    /// Of two classes for one command the worse counts.
    fn insert(&mut self, command: &str, class: Option<CommandClass>) {
        let mut node = &mut self.root;
        for word in command.split_whitespace() {
            node = if word == "*" { node.any.get_or_insert_default() } else { node.children.entry(word.to_lowercase()).or_default() };
        }
        node.class = node.class.max(class);
    }

    pub(super) fn meaning(&self, words: &[String]) -> CommandMeaning {
        let (mut node, mut class, mut full) = (&self.root, CommandClass::Unknown, Vec::with_capacity(words.len()));
        for (at, word) in words.iter().enumerate() {
            let rest = &words[at + 1..];
            let mut found = node.step(word);
            if found.len() > 1 {
                found.retain(|(_, next)| next.fits(rest));
            }
            match found.as_slice() {
                [] => {
                    full.extend_from_slice(&words[at..]);
                    return CommandMeaning { words: full, class, is_ambiguous: false };
                }
                [(name, next)] => {
                    full.push(name.clone());
                    class = next.class.unwrap_or(class);
                    node = next;
                }
                several => {
                    full.extend_from_slice(&words[at..]);
                    let worst = several.iter().map(|(_, next)| next.worst(rest, class)).max();
                    return CommandMeaning { words: full, class: worst.unwrap_or(CommandClass::Unknown), is_ambiguous: true };
                }
            }
        }
        CommandMeaning { words: full, class, is_ambiguous: false }
    }
}

impl KeywordNode {
    /// Keywords that `word` may mean: the same keyword, else the keywords that begin so, and the place of any word.
    fn step(&self, word: &str) -> Vec<(String, &KeywordNode)> {
        if let Some(child) = self.children.get(word) {
            return vec![(word.to_owned(), child)];
        }
        let from = self.children.range(word.to_owned()..).take_while(|(name, _)| name.starts_with(word));
        let mut found: Vec<_> = from.map(|(name, child)| (name.clone(), child)).collect();
        if let Some(any) = &self.any {
            found.push((word.to_owned(), any));
        }
        found
    }

    /// Can these words stand behind this keyword? Behind a keyword with a class, any can.
    fn fits(&self, words: &[String]) -> bool {
        let may_go_on = |(word, rest): (&String, &[String])| self.step(word).iter().any(|(_, next)| next.fits(rest));
        self.class.is_some() || words.split_first().is_some_and(may_go_on)
    }

    /// Worst class among the meanings of these words below here. Each node is seen once at most.
    fn worst(&self, words: &[String], above: CommandClass) -> CommandClass {
        let class = self.class.unwrap_or(above);
        let Some((word, rest)) = words.split_first() else { return class };
        let next = self.step(word);
        next.iter().map(|(_, next)| next.worst(rest, class)).max().unwrap_or(class)
    }
}
