//! All patterns of one participant, compiled. What is told of them is not written here.

use std::fmt;

use super::{Glob, Pattern, PatternError, Shape};
use crate::kind::Kind;

/// More patterns than this are no use to anybody who has to read them.
const MAX_PATTERNS: usize = 256;

/// The capabilities of one participant. The order in which they were given is kept.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Capabilities {
    patterns: Box<[Pattern]>,
    /// Kinds, and methods with every context, in order.
    exact: Box<[Box<str>]>,
    prefixes: Box<[Box<str>]>,
    globs: Box<[Glob]>,
}

impl Capabilities {
    /// Compiles patterns. One that is there twice counts once; more than 256 are refused.
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

    /// Reads and compiles patterns as they are configured.
    pub fn read<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, PatternError> {
        let patterns = texts.into_iter().map(Pattern::new).collect::<Result<Vec<_>, _>>()?;
        Self::new(patterns)
    }

    /// Whether one of them covers `kind`. What is reserved is covered by none.
    pub fn cover(&self, kind: Kind<'_>) -> bool {
        let is_exact = |text: &str| self.exact.binary_search_by(|known| (**known).cmp(text)).is_ok();
        // Without a context, the text is that of a method, and no pattern for a single context is spelled so.
        let covers = self.prefixes.iter().any(|prefix| kind.as_str().starts_with(&**prefix))
            || is_exact(kind.as_str())
            || (kind.context().is_some() && is_exact(kind.without_context()))
            || self.globs.iter().any(|glob| glob.covers(kind));
        covers && !kind.is_reserved()
    }

    /// The patterns, as they were given.
    pub fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }

    /// The same with some more and some less. What is removed and added is there.
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
