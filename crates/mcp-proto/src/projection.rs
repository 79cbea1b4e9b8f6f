//! The names shown to a client in place of dotted names, and the way back.
//!
//! A projection is built once for a set of tools (or prompts) and a [`Style`], and then only read: both directions are
//! look-ups. Does not decide which tools a client may see, and does not rewrite messages.

mod apart;
mod distinct;
mod local;
mod style;

use std::collections::HashMap;
use std::sync::Arc;

use banyan_model::{Route, Segment};
use foldhash::fast::RandomState;

pub use apart::{Apart, apart};
use distinct::Candidate;
pub use local::{local_names, local_routes};
pub use style::{Style, style_for};

/// A tool or prompt to be shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The segment of the owning mount; `None` on an endpoint that shows one mount without a prefix.
    pub mount: Option<Segment>,
    /// The owner's name, any text.
    pub original: Arc<str>,
    /// The form of `original` in the dotted name; see [`local_names`] and [`local_routes`].
    pub local: Arc<Route>,
    /// The whole shown name, if configured.
    pub rename: Option<Arc<str>>,
}

impl Entry {
    /// The name in the tree: `mount.local`, or `local` alone where there is no mount.
    pub fn dotted(&self) -> String {
        match &self.mount {
            Some(mount) => format!("{mount}.{}", self.local),
            None => self.local.to_string(),
        }
    }
}

/// Reasons for the form of a shown name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reason {
    /// Another tool has an equal or stronger claim to the name, so a tail of the hash was added.
    Disambiguated,
    /// Characters beyond the style were replaced.
    Escaped,
    /// Nothing had to be changed.
    Kept,
    /// Named by the configuration.
    Renamed,
    /// Cut to the length of the style.
    Shortened,
}

/// A line of `banyan names`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row<'a> {
    /// The name in the tree.
    pub dotted: String,
    /// The name the client sees.
    pub shown: &'a str,
    /// The owner's name.
    pub original: &'a str,
    /// The owner's segment, if any.
    pub mount: Option<&'a Segment>,
    pub reason: Reason,
}

/// A reversible, collision-free table of shown names.
///
/// A set of entries gives the same names in any order and in any run. Entries that agree in mount, original
/// and rename are duplicates and share one name. Of several claims to a name the strongest wins:
/// a rename first; then the longest mount segment, so that no server can take a name from under another
/// mount's prefix; within one mount an unchanged name. Equal claims all get a tail.
#[derive(Clone, Debug)]
pub struct Projection {
    style: Style,
    entries: Arc<[Entry]>,
    shown: Vec<(Arc<str>, Reason)>,
    by_shown: HashMap<Arc<str>, usize, RandomState>,
}

impl Projection {
    /// Names all `entries` in `style`. Work and memory grow linearly with their number.
    pub fn build(style: Style, entries: impl Into<Arc<[Entry]>>) -> Self {
        let entries: Arc<[Entry]> = entries.into();
        let claims: Vec<Claim<'_>> = entries.iter().map(|entry| Claim::new(style, entry)).collect();
        let names = distinct::settle(&claims);
        let mut by_shown = HashMap::with_capacity_and_hasher(entries.len(), RandomState::default());
        let mut shown = Vec::with_capacity(entries.len());
        for (index, (settled, claim)) in names.into_iter().zip(&claims).enumerate() {
            by_shown.entry(Arc::clone(&settled.name)).or_insert(index);
            let reason = if settled.tailed { Reason::Disambiguated } else { claim.reason };
            shown.push((settled.name, reason));
        }
        Self { style, entries: Arc::clone(&entries), shown, by_shown }
    }

    /// The style the names follow.
    pub fn style(&self) -> Style {
        self.style
    }

    /// Gives the entries in their original order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Finds the index of the entry shown as `shown`.
    pub fn find(&self, shown: &str) -> Option<usize> {
        self.by_shown.get(shown).copied()
    }

    /// Finds the entry shown as `shown`.
    pub fn entry(&self, shown: &str) -> Option<&Entry> {
        self.entries.get(self.find(shown)?)
    }

    /// Gives the shown name of the entry with this index.
    pub fn shown(&self, index: usize) -> Option<&Arc<str>> {
        self.shown.get(index).map(|(name, _)| name)
    }

    /// Gives the reason for the shown name of the entry with this index.
    pub fn reason(&self, index: usize) -> Option<Reason> {
        self.shown.get(index).map(|(_, reason)| *reason)
    }

    /// Lists a row for each shown name, in the order of the entries.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        let named = self.entries.iter().zip(&self.shown).enumerate();
        named.filter(|(index, (_, (shown, _)))| self.find(shown) == Some(*index)).map(|(_, (entry, (shown, reason)))| Row {
            dotted: entry.dotted(),
            shown,
            original: &entry.original,
            mount: entry.mount.as_ref(),
            reason: *reason,
        })
    }
}

/// An entry's claim to a name.
struct Claim<'a> {
    entry: &'a Entry,
    style: Style,
    stem: String,
    /// The stem is the wanted name, unchanged.
    whole: bool,
    reason: Reason,
}

impl<'a> Claim<'a> {
    fn new(style: Style, entry: &'a Entry) -> Self {
        let (stem, whole) = match &entry.rename {
            Some(rename) => style.legal_text(rename, "tool"),
            None => style.compose(entry.mount.as_ref(), &entry.original, &entry.local),
        };
        let reason = if entry.rename.is_some() {
            Reason::Renamed
        } else if stem.len() > style.limit() {
            Reason::Shortened
        } else if whole {
            Reason::Kept
        } else {
            Reason::Escaped
        };
        Self { entry, style, stem, whole, reason }
    }
}

impl Candidate for Claim<'_> {
    fn stem(&self) -> &str {
        &self.stem
    }

    fn limit(&self) -> usize {
        self.style.limit()
    }

    fn rank(&self) -> u32 {
        let fits = self.whole && self.stem.len() <= self.limit();
        if fits && self.entry.rename.is_some() {
            return 0;
        }
        let mount = self.entry.mount.as_ref().map_or(0, |mount| mount.as_str().len());
        (1 + Segment::MAX - mount) as u32 * 2 + u32::from(!fits)
    }

    fn identity(&self) -> [&str; 4] {
        let (renamed, rename) = self.entry.rename.as_deref().map_or(("", ""), |rename| ("renamed", rename));
        [self.entry.mount.as_ref().map_or("", Segment::as_str), &self.entry.original, renamed, rename]
    }
}

#[cfg(test)]
mod tests;
