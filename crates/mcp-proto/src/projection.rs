//! What a client is shown in place of a dotted name, and the way back.
//!
//! A projection is built once for a set of tools (or prompts) and a [`Style`], and then only read: both directions are
//! look-ups. It does not decide which tools a client may see, and it does not rewrite messages.

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

/// One tool or prompt that is to be shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The segment of the mount that owns it; `None` on an endpoint that shows one mount without a prefix.
    pub mount: Option<Segment>,
    /// The name its owner gave it, any text.
    pub original: Arc<str>,
    /// What stands for `original` in the dotted name; see [`local_names`] and [`local_routes`].
    pub local: Arc<Route>,
    /// The whole name the configuration wants shown, if it wants one.
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

/// Why a shown name looks as it does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reason {
    /// Another tool has the same or a stronger claim to the name, so it got a tail of its hash.
    Disambiguated,
    /// It held characters that the style does not allow.
    Escaped,
    /// Nothing had to be changed.
    Kept,
    /// The configuration names it.
    Renamed,
    /// It was longer than the style allows.
    Shortened,
}

/// One line of `banyan names`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row<'a> {
    /// The name in the tree.
    pub dotted: String,
    /// The name the client sees.
    pub shown: &'a str,
    /// The name its owner gave it.
    pub original: &'a str,
    /// The owner's segment, if it has one.
    pub mount: Option<&'a Segment>,
    /// Why `shown` is what it is.
    pub reason: Reason,
}

/// A reversible, collision-free table of shown names.
///
/// The same set of entries gives the same names in any order and in any run. Entries that agree in mount, original
/// and rename are one thing said twice and share one name. Of several claims to one name the strongest keeps it:
/// a rename first; then the one under the longest mount segment, so that no server can take a name from under another
/// mount's prefix; within one mount a name that needed no change. Equal claims all get a tail.
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

    /// The entries in the order in which they came.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The index of the entry that is shown as `shown`.
    pub fn find(&self, shown: &str) -> Option<usize> {
        self.by_shown.get(shown).copied()
    }

    /// The entry that is shown as `shown`.
    pub fn entry(&self, shown: &str) -> Option<&Entry> {
        self.entries.get(self.find(shown)?)
    }

    /// The name under which the entry with this index is shown.
    pub fn shown(&self, index: usize) -> Option<&Arc<str>> {
        self.shown.get(index).map(|(name, _)| name)
    }

    /// Why the entry with this index is shown as it is.
    pub fn reason(&self, index: usize) -> Option<Reason> {
        self.shown.get(index).map(|(_, reason)| *reason)
    }

    /// One row for each shown name, in the order of the entries.
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

/// What one entry asks for.
struct Claim<'a> {
    entry: &'a Entry,
    style: Style,
    stem: String,
    /// Whether the stem is what was asked for, unchanged.
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
