//! Permission to send: patterns over kinds, compiled once and checked for every message (MCPx v0.1, 4.1). A check allocates nothing and
//! looks at no payload (4.2).
//!
//! A `*` at the end of a pattern takes the whole rest. Any other `*` takes the text up to the next colon, slashes included, so that
//! `mcp/request:*/list` covers `resources/templates/list`, and never a URI that happens to end in `/list`. A pattern without a context
//! covers its method with every context; a pattern with a context never covers a kind without a context.

mod set;

pub use set::Capabilities;

use crate::kind::Kind;

/// Longest pattern, in bytes.
const MAX_LENGTH: usize = 1024;
/// Stars within one pattern. Each could be tried at every place of a kind.
const MAX_STARS: usize = 8;

/// A pattern such as `mcp/request:tools/*`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pattern(Box<str>);

/// Reasons for refusing a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// The pattern would match nothing, or nothing legible.
    #[error("the capability {0:?} is empty or holds a control character: write a kind, such as `chat` or `mcp/request:tools/*`")]
    Illegible(String),
    #[error("a capability has at most {MAX_LENGTH} bytes and {MAX_STARS} stars: use several, or a shorter one")]
    TooLarge,
    #[error("a participant has at most 256 capabilities: use patterns with a star, such as `mcp/request:tools/*`")]
    TooMany,
    /// Only the gateway sends such kinds.
    #[error("the capability `{0}` is the gateway's own and gives nothing: leave it out")]
    Reserved(String),
}

impl Pattern {
    /// Reads a pattern.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        if text.len() > MAX_LENGTH || text.matches('*').count() > MAX_STARS {
            return Err(PatternError::TooLarge);
        }
        if text.is_empty() || text.contains(char::is_control) {
            return Err(PatternError::Illegible(text.to_owned()));
        }
        if Kind::new(text).is_reserved() {
            return Err(PatternError::Reserved(text.to_owned()));
        }
        Ok(Self(text.into()))
    }

    /// Gives the original text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Compiled form of a pattern. None is asked about reserved kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Shape<'a> {
    /// A single kind, or a method with every context.
    Exact(&'a str),
    /// All kinds with this beginning.
    Prefix(&'a str),
    Glob(Glob),
}

impl Pattern {
    fn shape(&self) -> Shape<'_> {
        // `CLASS:METHOD:*` says the same as `CLASS:METHOD`: every context, and none.
        let text = match self.0.strip_suffix(":*") {
            Some(method) if method.matches(':').count() == 1 => method,
            Some(_) | None => &*self.0,
        };
        match text.find('*') {
            None => Shape::Exact(text),
            Some(star) if star + 1 == text.len() => Shape::Prefix(&text[..star]),
            Some(_) => Shape::Glob(Glob::new(text)),
        }
    }
}

/// A pattern with stars before its end.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Glob {
    text: Box<str>,
    /// The pattern ends with a method, and so covers every context.
    any_context: bool,
}

impl Glob {
    fn new(text: &str) -> Self {
        Self { text: text.into(), any_context: text.matches(':').count() == 1 && !text.ends_with('*') }
    }

    fn covers(&self, kind: Kind<'_>) -> bool {
        let text = if self.any_context { kind.without_context() } else { kind.as_str() };
        matches(self.text.as_bytes(), text.as_bytes())
    }
}

/// Matches in at most pattern length times text length steps, without memory.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut place) = (0, 0);
    // Behind the last star: where the pattern goes on, and where in the text it was last tried.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        match (pattern.get(at), text.get(place)) {
            (Some(b'*'), _) if at + 1 == pattern.len() => return true,
            (Some(b'*'), _) => {
                at += 1;
                retry = Some((at, place));
                continue;
            }
            (Some(wanted), Some(byte)) if wanted == byte => {
                (at, place) = (at + 1, place + 1);
                continue;
            }
            (None, None) => return true,
            (_, _) => {}
        }
        // Only the last star has to take more: what an earlier one would gain it can take too, and none takes a colon.
        let Some((after, begun)) = &mut retry else { return false };
        if matches!(text.get(*begun), None | Some(b':')) {
            return false;
        }
        *begun += 1;
        (at, place) = (*after, *begun);
    }
}

#[cfg(test)]
mod tests;
