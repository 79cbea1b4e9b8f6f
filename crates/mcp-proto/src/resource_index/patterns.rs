//! URI templates, found by their beginnings. Other ways to find a mount are not known here.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use crate::template::Template;

/// Most steps for the templates of one mount and one URI. Further templates of the mount are not tried.
const OF_MOUNT: usize = 1 << 20;
/// The same for all mounts together.
const OF_ALL: usize = 16 * OF_MOUNT;
/// Steps to find a template and to see that its ends do not fit.
const LEAST: usize = 64;

/// The cost of holding a URI against templates.
#[derive(Clone, Copy, Debug, Default)]
pub struct Effort {
    steps: usize,
}

/// The template of a URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// No template fits.
    Nothing,
    /// The fitting template, by its index in the list.
    Template(usize),
    /// Not all were tried.
    Unclear,
}

/// URI templates of one list.
#[derive(Clone, Debug)]
pub struct Templates(Patterns);

#[derive(Clone, Debug)]
pub(super) struct Pattern {
    pub(super) template: Template,
    pub(super) mount: usize,
    /// Index in a list.
    pub(super) place: usize,
    /// The mount's label in front of the shown template, and so of its URIs.
    pub(super) label: Option<Box<str>>,
}

/// Templates in order of precedence.
#[derive(Clone, Debug, Default)]
pub(super) struct Patterns {
    /// Most fixed bytes first, then in the order of the mounts.
    all: Vec<Pattern>,
    /// Sorted by their texts.
    beginnings: Vec<Beginning>,
}

/// Fixed bytes at the beginning of templates.
#[derive(Clone, Debug)]
struct Beginning {
    text: Box<[u8]>,
    /// The longest other beginning of this text.
    shorter: Option<usize>,
    /// Ascending indexes.
    patterns: Vec<usize>,
}

impl Effort {
    /// In bytes of the URI, times the parts of the templates that were tried.
    pub fn steps(&self) -> usize {
        self.steps
    }

    fn is_spent(self) -> bool {
        self.steps >= OF_ALL
    }
}

impl Templates {
    /// Collects the valid templates of a list, each with its index in the list.
    pub fn new<'a>(list: impl Iterator<Item = (usize, &'a str)>) -> Self {
        let pattern = |(place, text)| Some(Pattern { template: Template::parse(text).ok()?, mount: 0, place, label: None });
        Self(Patterns::new(list.filter_map(pattern).collect()))
    }

    /// Finds the template of `uri`, the one with the most fixed bytes of several. Takes a bounded number of steps, out of those
    /// left in `effort`.
    pub fn find(&self, uri: &str, effort: &mut Effort) -> Fit {
        let mut is_short = false;
        match self.0.find(uri, effort, &mut is_short) {
            Some((pattern, _)) => Fit::Template(pattern.place),
            None if is_short => Fit::Unclear,
            None => Fit::Nothing,
        }
    }
}

impl Pattern {
    fn beginning(&self) -> Vec<u8> {
        [self.label.as_deref().unwrap_or_default().as_bytes(), self.template.beginning()].concat()
    }

    /// Gives the owner's form of a URI; `None` for a URI that can't be of this template.
    pub(super) fn original<'a>(&self, uri: &'a str) -> Option<&'a str> {
        uri.strip_prefix(self.label.as_deref().unwrap_or_default()).filter(|uri| self.template.fits_ends(uri))
    }
}

impl Patterns {
    pub(super) fn new(mut all: Vec<Pattern>) -> Self {
        all.sort_by_key(|pattern| Reverse(pattern.template.literals()));
        let mut by_text: BTreeMap<Vec<u8>, Vec<usize>> = BTreeMap::new();
        for (at, pattern) in all.iter().enumerate() {
            by_text.entry(pattern.beginning()).or_default().push(at);
        }
        let mut beginnings: Vec<Beginning> = Vec::with_capacity(by_text.len());
        for (text, patterns) in by_text {
            // Texts that begin with one stand behind it without a gap.
            let mut shorter = beginnings.len().checked_sub(1);
            while let Some(at) = shorter.filter(|at| !text.starts_with(&beginnings[*at].text)) {
                shorter = beginnings[at].shorter;
            }
            beginnings.push(Beginning { text: text.into(), shorter, patterns });
        }
        Self { all, beginnings }
    }

    /// Finds the first template of `uri`, and the owner's form of `uri`. `is_short`: templates were left out, for want of steps.
    pub(super) fn find<'a>(&self, uri: &'a str, effort: &mut Effort, is_short: &mut bool) -> Option<(&Pattern, &'a str)> {
        let mut next: BinaryHeap<_> = self.begins(uri.as_bytes()).map(|one| (Reverse(one.patterns[0]), &one.patterns[1..])).collect();
        let mut of_mounts: HashMap<usize, usize> = HashMap::new();
        while let Some((Reverse(at), behind)) = next.pop() {
            if effort.is_spent() {
                *is_short = true;
                return None;
            }
            if let [following, behind @ ..] = behind {
                next.push((Reverse(*following), behind));
            }
            let pattern = &self.all[at];
            let of_mount = of_mounts.entry(pattern.mount).or_default();
            let original = pattern.original(uri);
            let is_tried = *of_mount < OF_MOUNT;
            *is_short |= !is_tried && original.is_some();
            let original = original.filter(|_| is_tried);
            let cost = LEAST + original.map_or(0, |uri| pattern.template.steps(uri.len()));
            *of_mount += cost;
            effort.steps += cost;
            if let Some(original) = original.filter(|uri| pattern.template.matches(uri)) {
                return Some((pattern, original));
            }
        }
        None
    }

    /// Lists beginnings of templates that are beginnings of `uri`.
    fn begins(&self, uri: &[u8]) -> impl Iterator<Item = &Beginning> {
        // Whatever `uri` begins with stands before it, and the last text before it begins with that as well.
        let last = self.beginnings.partition_point(|one| *one.text <= *uri).checked_sub(1);
        let common = last.map_or(0, |at| self.beginnings[at].text.iter().zip(uri).take_while(|(a, b)| a == b).count());
        let all = std::iter::successors(last.map(|at| &self.beginnings[at]), |one| one.shorter.map(|at| &self.beginnings[at]));
        all.filter(move |one| one.text.len() <= common)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(texts: impl IntoIterator<Item = String>) -> Patterns {
        let pattern = |text: String| Pattern { template: Template::parse(&text).unwrap(), mount: 0, place: 0, label: None };
        Patterns::new(texts.into_iter().map(pattern).collect())
    }

    fn steps(patterns: &Patterns, uri: &str) -> (usize, Option<usize>) {
        let mut effort = Effort::default();
        let found = patterns.find(uri, &mut effort, &mut false).map(|(pattern, _)| pattern.template.literals());
        (effort.steps(), found)
    }

    #[test]
    fn h5_a_uri_is_held_against_templates_with_its_beginning_alone() {
        let all = patterns((0..100_000).map(|n| format!("x:{n}/{{a}}")).chain(["x:7{+b}".into(), "{+all}".into()]));
        let few = patterns(["x:77777/{a}", "x:7{+b}", "{+all}"].map(str::to_owned));
        for uri in ["x:77777/y", "x:777y", "x:y", "y"] {
            assert_eq!(steps(&all, uri), steps(&few, uri), "{uri}");
        }
        assert_eq!(["x:77777/y", "x:777y", "x:y"].map(|uri| steps(&all, uri).1), [Some(8), Some(3), Some(0)]);
    }

    #[test]
    fn h5_a_mount_whose_templates_all_cost_much_has_a_bounded_part_and_the_next_mount_its_own() {
        let dear = "{+a}".repeat(30);
        let made =
            |n: usize| Pattern { template: Template::parse(&format!("x:{dear}{n:05}{{b}}!")).unwrap(), mount: 0, place: 0, label: None };
        let mut all: Vec<Pattern> = (0..10_000).map(made).collect();
        all.push(Pattern { template: Template::parse("x:{+a}").unwrap(), mount: 1, place: 0, label: None });
        let uri = format!("x:{}!", "y".repeat(8000));
        let (took, found) = steps(&Patterns::new(all), &uri);
        assert_eq!(found, Some(2));
        assert!(took < 3 * OF_MOUNT, "{took}");
    }

    #[test]
    fn h5_all_mounts_together_have_a_bounded_part() {
        let dear = "{+a}".repeat(30);
        let made = |mount| Pattern { template: Template::parse(&format!("x:{dear}0{{b}}!")).unwrap(), mount, place: 0, label: None };
        let (took, found) = steps(&Patterns::new((0..10_000).map(made).collect()), &format!("x:{}!", "y".repeat(8000)));
        assert_eq!(found, None);
        assert!(took <= OF_ALL + OF_MOUNT, "{took}");
    }
}
