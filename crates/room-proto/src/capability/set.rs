//! All patterns of a participant, compiled. Writes no texts about them.

use std::fmt;

use super::{Glob, Pattern, PatternError, Shape};
use crate::kind::Kind;

/// More patterns are no use to readers.
const MAX_PATTERNS: usize = 256;

/// Capabilities of a participant, in the order given.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Capabilities {
    patterns: Box<[Pattern]>,
    /// Kinds, and methods with every context, in order.
    exact: Box<[Box<str>]>,
    prefixes: Box<[Box<str>]>,
    globs: Box<[Glob]>,
}

impl Capabilities {
    /// Compiles patterns. Duplicates count once; more than 256 are refused.
    pub fn new(patterns: impl IntoIterator<Item = Pattern>) -> Result<Self, PatternError> {
        let mut kept: Vec<Pattern> = Vec::new();
        for pattern in patterns {
            if !kept.contains(&pattern) {
                kept.push(pattern);
            }
            if kept.len() > MAX_PATTERNS {
                return Err(PatternError::TooMany);
            }
        }
        let (mut exact, mut prefixes, mut globs) = (Vec::new(), Vec::new(), Vec::new());
        for pattern in &kept {
            match pattern.shape() {
                Shape::Exact(text) => exact.push(text.into()),
                Shape::Glob(glob) => globs.push(glob),
                Shape::Prefix(text) => prefixes.push(text.into()),
            }
        }
        exact.sort_unstable();
        Ok(Self { patterns: kept.into(), exact: exact.into(), prefixes: prefixes.into(), globs: globs.into() })
    }

    /// Reads and compiles patterns of the configuration.
    pub fn read<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, PatternError> {
        let patterns = texts.into_iter().map(Pattern::new).collect::<Result<Vec<_>, _>>()?;
        Self::new(patterns)
    }

    /// Checks `kind` against all patterns. No pattern covers a reserved kind.
    pub fn cover(&self, kind: Kind<'_>) -> bool {
        let is_exact = |text: &str| self.exact.binary_search_by(|known| (**known).cmp(text)).is_ok();
        // Without a context, the text is that of a method, and no pattern for a single context is spelled so.
        let covers = self.prefixes.iter().any(|prefix| kind.as_str().starts_with(&**prefix))
            || is_exact(kind.as_str())
            || (kind.context().is_some() && is_exact(kind.without_context()))
            || self.globs.iter().any(|glob| glob.covers(kind));
        covers && !kind.is_reserved()
    }

    /// Gives the patterns, in the order given.
    pub fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }

    /// Gives a copy with patterns added and removed. A pattern both removed and added is in the copy.
    pub fn with(&self, add: &[Pattern], remove: &[Pattern]) -> Result<Self, PatternError> {
        let kept = self.patterns.iter().filter(|pattern| !remove.contains(pattern));
        Self::new(kept.chain(add).cloned())
    }
}

impl fmt::Debug for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.patterns.iter().map(Pattern::as_str)).finish()
    }
}
