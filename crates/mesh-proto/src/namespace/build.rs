//! From what a subserver lists to the tools of its part: legal names only, sorted, each once (AX-10, AX-14), and what must not
//! be shown yet marked as withheld. Lists are not fetched here, and definitions not read.

use std::collections::BTreeSet;
use std::sync::Arc;

use banyan_model::{QualifiedName, Segment};
use bytes::Bytes;

use super::tool::Tool;
use crate::annotation::{Annotation, AuthScope};
use crate::refusal::Refusal;

/// One entry of a subserver's list.
#[derive(Clone, PartialEq, Debug)]
pub struct Offer {
    /// The name as the subserver says it; dotted from an aggregator.
    pub name: String,
    /// The raw tool object.
    pub definition: Bytes,
    /// What a call costs, risks and promises.
    pub annotation: Annotation,
}

/// What holds for the tools of one subserver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Whether names may hold dots (AX-14).
    pub dotted: bool,
    /// How many characters stand before the tool's name, all prefixes and dots included (AX-10).
    pub before: usize,
    /// Whether tools that change something are withheld, as the authority is not proved (AX-13).
    pub unproven: bool,
    /// What may be asked of the subserver (AX-41).
    pub scope: AuthScope,
}

/// Why a tool is neither listed nor called.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Withheld {
    /// It changes something, and its subserver's authority is not proved.
    AuthorityRequired,
    /// An earlier tool of the list has the name.
    DuplicateName,
    /// With what stands before it, its name would be longer than 255 characters.
    NameTooLong,
    /// Its name is not made of legal segments.
    SegmentInvalid,
    /// It needs more than its subserver was registered for.
    ScopeExceeded,
}

impl Withheld {
    /// The stable word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AuthorityRequired => "authority_required",
            Self::DuplicateName => "duplicate_name",
            Self::NameTooLong => "name_too_long",
            Self::ScopeExceeded => "scope_exceeded",
            Self::SegmentInvalid => "segment_invalid",
        }
    }
}

/// An entry that has no place in the table: its name, cut to a readable length, and why.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Refused {
    /// The name.
    pub name: String,
    /// Why.
    pub why: Withheld,
}

/// The tools of a list, and the entries that are none.
pub(super) struct Built {
    pub(super) tools: Vec<Tool>,
    pub(super) refused: Vec<Refused>,
}

/// Sorts a list into tools.
///
/// # Errors
/// [`Refusal::DottedName`] when a plain subserver lists a dotted name: then nothing of the list is taken.
pub(super) fn build(offers: Vec<Offer>, limits: &Limits) -> Result<Built, Refusal> {
    if !limits.dotted
        && let Some(offer) = offers.iter().find(|offer| offer.name.contains('.'))
    {
        return Err(Refusal::DottedName { name: readable(&offer.name) });
    }
    let mut interned = Interned::default();
    let mut refused = Vec::new();
    let mut tools = Vec::with_capacity(offers.len());
    for offer in offers {
        match interned.path(&offer.name) {
            Some((prefix, local)) => {
                tools.push(Tool { prefix, local, definition: offer.definition, annotation: offer.annotation, withheld: None });
            }
            None => refused.push(Refused { name: readable(&offer.name), why: Withheld::SegmentInvalid }),
        }
    }
    tools.sort_by(|a, b| a.path().cmp(b.path()));
    tools.dedup_by(|later, first| {
        let same = later.path().eq(first.path());
        if same {
            let name = later.path().map(Segment::as_str).collect::<Vec<_>>().join(".");
            refused.push(Refused { name: readable(&name), why: Withheld::DuplicateName });
        }
        same
    });
    withhold(&mut tools, limits);
    refused.sort();
    Ok(Built { tools, refused })
}

/// Marks what must not be shown under these limits, and nothing else.
pub(super) fn withhold(tools: &mut [Tool], limits: &Limits) {
    for tool in tools {
        let needs = if tool.annotation.mutable { tool.annotation.auth_scope.max(AuthScope::Write) } else { tool.annotation.auth_scope };
        tool.withheld = if limits.before + tool.length() > QualifiedName::MAX {
            Some(Withheld::NameTooLong)
        } else if needs > limits.scope {
            Some(Withheld::ScopeExceeded)
        } else if limits.unproven && tool.annotation.mutable {
            Some(Withheld::AuthorityRequired)
        } else {
            None
        };
    }
}

fn readable(name: &str) -> String {
    name.chars().take(80).collect()
}

/// Segments and paths that are already there, so that each is kept once.
#[derive(Default)]
struct Interned {
    segments: BTreeSet<Segment>,
    prefixes: BTreeSet<Arc<[Segment]>>,
}

impl Interned {
    /// The path of a dotted name, unless a segment of it is not legal.
    fn path(&mut self, name: &str) -> Option<(Arc<[Segment]>, Segment)> {
        if name.len() > QualifiedName::MAX {
            return None;
        }
        let (above, local) = name.rsplit_once('.').map_or((None, name), |(above, local)| (Some(above), local));
        let above: Option<Vec<Segment>> = above.into_iter().flat_map(|above| above.split('.')).map(|s| self.segment(s)).collect();
        let local = self.segment(local)?;
        Some((self.prefix(above?), local))
    }

    fn segment(&mut self, text: &str) -> Option<Segment> {
        if let Some(known) = self.segments.get(text) {
            return Some(known.clone());
        }
        let segment = Segment::new(text).ok()?;
        self.segments.insert(segment.clone());
        Some(segment)
    }

    fn prefix(&mut self, segments: Vec<Segment>) -> Arc<[Segment]> {
        if let Some(known) = self.prefixes.get(segments.as_slice()) {
            return Arc::clone(known);
        }
        let prefix: Arc<[Segment]> = segments.into();
        self.prefixes.insert(Arc::clone(&prefix));
        prefix
    }
}
