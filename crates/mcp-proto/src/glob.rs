//! Patterns for names in profiles: `*` is any run of characters, `?` is one, everything else is itself.
//!
//! There are no classes and no escapes: names hold neither `*` nor `?`.

use std::sync::Arc;

/// A pattern such as `github__*` or `fs.read_?`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Glob(Arc<str>);

impl Glob {
    /// Every text is a pattern.
    pub fn new(pattern: &str) -> Self {
        Self(pattern.into())
    }

    /// Gives the pattern as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Tells if the pattern matches no text but itself.
    pub fn is_literal(&self) -> bool {
        !self.0.contains(['*', '?'])
    }

    /// Matches the whole of `text`. Takes at most pattern length times text length steps, and no memory.
    pub fn matches(&self, text: &str) -> bool {
        let (mut pattern, mut rest) = (self.0.chars(), text.chars());
        // Behind the last `*`: the pattern that follows it, and where in the text its match was last begun.
        let mut retry: Option<(std::str::Chars<'_>, std::str::Chars<'_>)> = None;
        loop {
            let mut ahead = pattern.clone();
            match (ahead.next(), rest.clone().next()) {
                (Some('*'), _) => {
                    retry = Some((ahead.clone(), rest.clone()));
                    pattern = ahead;
                    continue;
                }
                (Some(wanted), Some(c)) if wanted == '?' || wanted == c => {
                    pattern = ahead;
                    rest.next();
                    continue;
                }
                (None, None) => return true,
                (_, _) => {}
            }
            // Only the last `*` needs to take more: what an earlier one would gain, it can take too.
            let Some((after, begun)) = &mut retry else { return false };
            if begun.next().is_none() {
                return false;
            }
            pattern = after.clone();
            rest = begun.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_match_as_in_a_shell() {
        let yes = [("", ""), ("*", ""), ("*", "a.b/c"), ("a*", "a"), ("*b*", "abc"), ("a?c", "aäc"), ("**", "x"), ("a*b*c", "aXbXbc")];
        let no = [("", "a"), ("a*", "ba"), ("?", ""), ("a?", "a"), ("a*b", "abX"), ("A", "a"), ("*x*y", "yx")];
        assert!(yes.iter().all(|(pattern, text)| Glob::new(pattern).matches(text)));
        assert!(!no.iter().any(|(pattern, text)| Glob::new(pattern).matches(text)));
    }

    #[test]
    fn a_pattern_of_many_stars_comes_to_an_end() {
        assert!(!Glob::new(&("*a".repeat(60) + "b")).matches(&"a".repeat(20_000)));
    }

    #[test]
    fn a_pattern_without_stars_is_literal() {
        assert!(Glob::new("fs__read").is_literal());
        assert!(!Glob::new("fs__*").is_literal() && !Glob::new("fs__rea?").is_literal());
    }
}
