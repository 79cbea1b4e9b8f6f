//! Legal local names for tools whose servers know nothing of MCP-AX (AX-15). Does not know mounts or clients.

use banyan_model::Segment;

use super::distinct::{Candidate, settle};

/// Maps the names one server uses to local segments, in the same order.
///
/// A legal name stays as it is. Any other is lower-cased, its camelCase split by `_`, and what remains illegal becomes
/// `_`; where that is longer than a segment may be, or is another's name too, it carries a tail of the original's
/// hash. The outcome depends on the set of names only, not on their order; equal names get equal segments.
pub fn local_names<S: AsRef<str>>(originals: &[S]) -> Vec<Segment> {
    let claims: Vec<Wanted<'_>> = originals.iter().map(|original| Wanted::new(original.as_ref())).collect();
    settle(&claims).into_iter().map(|settled| Segment::nearest(&settled.name)).collect()
}

struct Wanted<'a> {
    original: &'a str,
    stem: String,
    legal: bool,
}

impl<'a> Wanted<'a> {
    fn new(original: &'a str) -> Self {
        let legal = Segment::new(original).is_ok();
        let stem = if legal { original.to_owned() } else { snake_case(original) };
        Self { original, stem, legal }
    }
}

impl Candidate for Wanted<'_> {
    fn stem(&self) -> &str {
        &self.stem
    }

    fn limit(&self) -> usize {
        Segment::MAX
    }

    fn rank(&self) -> u32 {
        u32::from(!self.legal)
    }

    fn identity(&self) -> [&str; 4] {
        ["", self.original, "", ""]
    }
}

/// `getUser` → `get_user`, `HTTPServer` → `http_server`, `a/b` → `a_b`; `tool` where nothing legible is left.
fn snake_case(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if c.is_ascii_uppercase() {
            let word_ends = before.is_ascii_lowercase() || before.is_ascii_digit();
            let acronym_ends = before.is_ascii_uppercase() && rest.peek().is_some_and(char::is_ascii_lowercase);
            if word_ends || acronym_ends {
                out.push('_');
            }
            out.push(c.to_ascii_lowercase());
        } else if c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-' {
            out.push(c);
        } else if !out.is_empty() && !out.ends_with('_') {
            out.push('_');
        }
        before = c;
    }
    if !out.bytes().any(|b| b.is_ascii_alphanumeric()) {
        return "tool".to_owned();
    }
    out.truncate(out.trim_end_matches('_').len());
    out
}
