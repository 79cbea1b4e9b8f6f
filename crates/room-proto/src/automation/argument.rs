//! Expectations of one argument, learnt from the values people agreed to, and never wider than a sentence can say. Does not choose the
//! decisions to learn from.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::case::Leaf;

/// Bound of exact numbers.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Expectation of one argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Argument {
    pub expected: ExpectedValues,
    pub optional: bool,
}

/// Values accepted by a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpectedValues {
    /// Numbers from `least` to `most`, in their original spelling.
    Between {
        least: String,
        most: String,
        /// Takes whole numbers only.
        whole: bool,
    },
    /// Values agreed to.
    OneOf(BTreeSet<Leaf>),
    /// Texts with a common beginning and letters of common classes.
    Text {
        /// Up to the last sign shared by all.
        begins: String,
        rest: Letters,
    },
}

/// Characters of a text.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Letters {
    /// `a` to `z`, upper and lower case.
    pub latin: bool,
    /// Letters of other alphabets.
    pub foreign: bool,
    /// `0` to `9`.
    pub digits: bool,
    /// All other characters seen.
    pub signs: BTreeSet<char>,
    /// Fewest characters.
    pub least: usize,
    /// Most characters.
    pub most: usize,
}

impl ExpectedValues {
    /// Generalises `values`; `None`: nothing in common. With `exactly`, takes only the values themselves.
    pub(super) fn learn(values: &[&Leaf], exactly: bool) -> Option<Self> {
        let distinct: BTreeSet<Leaf> = values.iter().map(|leaf| (*leaf).clone()).collect();
        // Values that come again and again are a choice; those that never do are not.
        if exactly || distinct.len() == 1 || distinct.len() * 2 <= values.len() {
            return Some(Self::OneOf(distinct));
        }
        let numbers: Option<Vec<&str>> =
            values.iter().map(|leaf| if let Leaf::Number(text) = leaf { Some(text.as_str()) } else { None }).collect();
        let texts: Option<Vec<&str>> =
            values.iter().map(|leaf| if let Leaf::Text(text) = leaf { Some(text.as_str()) } else { None }).collect();
        match (numbers, texts) {
            (Some(numbers), _) => between(&numbers),
            (_, Some(texts)) => Some(alike(&texts)),
            (None, None) => None,
        }
    }

    /// Matches a value.
    pub fn takes(&self, leaf: &Leaf) -> bool {
        match (self, leaf) {
            (Self::OneOf(values), _) => values.contains(leaf),
            (Self::Between { least, most, whole }, Leaf::Number(text)) => {
                let inside = number(text).zip(number(least)).zip(number(most)).is_some_and(|((n, least), most)| least <= n && n <= most);
                inside && (!whole || is_whole(text))
            }
            (Self::Text { begins, rest }, Leaf::Text(text)) => text.strip_prefix(begins.as_str()).is_some_and(|text| {
                // From where a path begins, two dots lead out again.
                rest.accept(text) && (begins.is_empty() || !text.contains(".."))
            }),
            (Self::Between { .. } | Self::Text { .. }, _) => false,
        }
    }
}

impl Letters {
    fn seen_in<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        let mut letters = Self { least: usize::MAX, ..Self::default() };
        for text in texts {
            for c in text.chars() {
                match Class::of_char(c) {
                    Class::Latin => letters.latin = true,
                    Class::Foreign => letters.foreign = true,
                    Class::Digit => letters.digits = true,
                    Class::Sign => _ = letters.signs.insert(c),
                }
            }
            let length = text.chars().count();
            (letters.least, letters.most) = (letters.least.min(length), letters.most.max(length));
        }
        letters
    }

    fn accept(&self, text: &str) -> bool {
        let takes = |c| match Class::of_char(c) {
            Class::Latin => self.latin,
            Class::Foreign => self.foreign,
            Class::Digit => self.digits,
            Class::Sign => self.signs.contains(&c),
        };
        (self.least..=self.most).contains(&text.chars().count()) && text.chars().all(takes)
    }
}

enum Class {
    Latin,
    Foreign,
    Digit,
    Sign,
}

impl Class {
    fn of_char(c: char) -> Self {
        match c {
            _ if c.is_ascii_alphabetic() => Self::Latin,
            _ if c.is_ascii_digit() => Self::Digit,
            _ if c.is_alphabetic() => Self::Foreign,
            _ => Self::Sign,
        }
    }
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|n: &f64| n.abs() <= EXACT)
}

fn is_whole(text: &str) -> bool {
    !text.contains(['.', 'e', 'E'])
}

fn between(texts: &[&str]) -> Option<ExpectedValues> {
    let mut numbers = texts.iter().map(|text| number(text).map(|n| (n, *text))).collect::<Option<Vec<_>>>()?;
    numbers.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (least, most) = (numbers.first()?.1.to_owned(), numbers.last()?.1.to_owned());
    Some(ExpectedValues::Between { least, most, whole: texts.iter().all(|text| is_whole(text)) })
}

fn alike(texts: &[&str]) -> ExpectedValues {
    let first = texts.first().copied().unwrap_or_default();
    let shared =
        |a: &str, b: &str| a.char_indices().zip(b.chars()).find(|((_, a), b)| a != b).map_or(a.len().min(b.len()), |((at, _), _)| at);
    let common = texts.iter().map(|text| shared(first, text)).min().unwrap_or(0);
    let common = first.get(..common).unwrap_or_default();
    let begins =
        common.rfind(|c: char| !c.is_alphanumeric()).and_then(|at| common.get(..common.ceil_char_boundary(at + 1))).unwrap_or_default();
    let rest = Letters::seen_in(texts.iter().filter_map(|text| text.strip_prefix(begins)));
    ExpectedValues::Text { begins: begins.to_owned(), rest }
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.expected, if self.optional { ", or is left out" } else { "" })
    }
}

impl fmt::Display for ExpectedValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Between { least, most, whole } => {
                write!(f, "is a {}number from {least} to {most}", if *whole { "whole " } else { "" })
            }
            Self::OneOf(values) => {
                let values: Vec<String> = values.iter().map(ToString::to_string).collect();
                write!(f, "is {}{}", if values.len() > 1 { "one of " } else { "" }, values.join(", "))
            }
            Self::Text { begins, rest } if begins.is_empty() => write!(f, "is {rest}"),
            Self::Text { begins, rest } => write!(f, "is {} and then {rest}, without `..`", json::quote(begins)),
        }
    }
}

impl fmt::Display for Letters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.least, self.most) {
            (1, 1) => f.write_str("1 character")?,
            (least, most) if least == most => write!(f, "{least} characters")?,
            (least, most) => write!(f, "{least} to {most} characters")?,
        }
        let signs: String = self.signs.iter().collect();
        let signs = (!signs.is_empty()).then(|| format!("any of {}", json::quote(&signs)));
        let words = [(self.latin, "letters"), (self.foreign, "letters of other alphabets"), (self.digits, "digits")];
        let words: Vec<String> = words.iter().filter(|(is, _)| *is).map(|(_, word)| (*word).to_owned()).chain(signs).collect();
        if words.is_empty() { Ok(()) } else { write!(f, " of {}", words.join(", ")) }
    }
}

impl fmt::Display for Leaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(text) | Self::Number(text) => f.write_str(text),
            Self::Text(text) => f.write_str(&json::quote(text)),
        }
    }
}
