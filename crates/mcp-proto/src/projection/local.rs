//! Local names of a server's tools below its mount: a segment (AX-15), or a path below another gate.
//! Does not know mounts or clients.

use std::collections::HashSet;

use banyan_model::{Route, Segment};

use super::distinct::{Candidate, settle};

/// Maps the names of one server to local segments, in the same order.
///
/// A legal name stays unchanged. Any other is lower-cased, split at camelCase by `_`, and remaining illegal characters become
/// `_`; an overlong name, or one equal to another name, gets a tail of the original's
/// hash. The outcome depends on the set of names only, not on their order; equal names get equal segments.
pub fn local_names<S: AsRef<str>>(originals: &[S]) -> Vec<Segment> {
    let claims: Vec<SegmentClaim<'_>> = originals.iter().map(|original| SegmentClaim::new(original.as_ref())).collect();
    settle(&claims).into_iter().map(|settled| Segment::nearest(&settled.name)).collect()
}

/// Maps the names of another gate to local paths, in the same order.
///
/// A name of legal segments and dots is kept as a path. Any other is mapped to one segment, as
/// [`local_names`] does, and thus never equals a path of several segments.
pub fn local_routes<S: AsRef<str>>(originals: &[S]) -> Vec<Route> {
    let mut known: HashSet<Segment> = HashSet::new();
    let paths: Vec<Option<Route>> = originals.iter().map(|original| path(original.as_ref(), &mut known)).collect();
    let rest: Vec<&str> = originals.iter().zip(&paths).filter(|(_, path)| path.is_none()).map(|(name, _)| name.as_ref()).collect();
    let mut single = local_names(&rest).into_iter();
    paths.into_iter().map(|path| path.unwrap_or_else(|| Route(single.next().into_iter().collect()))).collect()
}

/// Reads the path spelled by `name`, for several segments. Equal segments share memory.
fn path(name: &str, known: &mut HashSet<Segment>) -> Option<Route> {
    if !name.contains('.') {
        return None;
    }
    let segment = |text: &str| {
        let new = Segment::new(text).ok()?;
        let kept = known.get(&new).cloned();
        Some(kept.unwrap_or_else(|| {
            known.insert(new.clone());
            new
        }))
    };
    name.split('.').map(segment).collect::<Option<Vec<_>>>().map(Route)
}

struct SegmentClaim<'a> {
    original: &'a str,
    stem: String,
    legal: bool,
}

impl<'a> SegmentClaim<'a> {
    fn new(original: &'a str) -> Self {
        let legal = Segment::new(original).is_ok();
        let stem = if legal { original.to_owned() } else { snake_case(original) };
        Self { original, stem, legal }
    }
}

impl Candidate for SegmentClaim<'_> {
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
