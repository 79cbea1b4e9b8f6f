//! Tools of a part, made from a subserver's list: legal names only, sorted, without duplicates (AX-10, AX-14), and with the tools to
//! withhold marked. Fetches no lists, and reads no definitions.

use std::collections::BTreeSet;
use std::sync::Arc;

use banyan_model::{QualifiedName, Segment};
use bytes::Bytes;

use super::tool::Tool;
use crate::annotation::{Annotation, AuthScope};
use crate::refusal::Refusal;

/// An entry of a subserver's list.
#[derive(Clone, PartialEq, Debug)]
pub struct Offer {
    /// The subserver's own name for the tool; dotted from an aggregator.
    pub name: String,
    /// The raw tool object.
    pub definition: Bytes,
    pub annotation: Annotation,
}

/// Limits on the tools of a subserver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Names may hold dots (AX-14).
    pub dotted: bool,
    /// Characters before the tool's name, all prefixes and dots included (AX-10).
    pub before: usize,
    /// Withholds tools that change something, for lack of a proved authority (AX-13).
    pub unproven: bool,
    /// Permission for calls of the subserver (AX-41).
    pub scope: AuthScope,
}

/// Reasons for neither listing nor calling a tool.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum WithholdReason {
    /// The tool changes something, and the authority of the subserver is not proved.
    AuthorityRequired,
    /// An earlier tool of the list has the same name.
    DuplicateName,
    /// The whole name would be longer than 255 characters.
    NameTooLong,
    /// A segment of the name is not legal.
    SegmentInvalid,
    /// The tool needs more than the subserver was registered for.
    ScopeExceeded,
}

impl WithholdReason {
    /// Gives the stable word.
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

/// An entry without a place in the table.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RefusedOffer {
    /// Cut to a readable length.
    pub name: String,
    pub why: WithholdReason,
}

/// Tools of a list, and entries refused.
pub(super) struct BuiltTools {
    pub(super) tools: Vec<Tool>,
    pub(super) refused: Vec<RefusedOffer>,
}

/// Sorts a list into tools.
///
/// # Errors
/// [`Refusal::DottedName`] when a plain subserver lists a dotted name: then nothing of the list is taken.
pub(super) fn build(offers: Vec<Offer>, limits: &Limits) -> Result<BuiltTools, Refusal> {
    if !limits.dotted
        && let Some(offer) = offers.iter().find(|offer| offer.name.contains('.'))
    {
        return Err(Refusal::DottedName { name: readable(&offer.name) });
    }
    let mut interned = Interner::default();
    let mut refused = Vec::new();
    let mut tools = Vec::with_capacity(offers.len());
    for offer in offers {
        match interned.path(&offer.name) {
            Some((prefix, local)) => {
                tools.push(Tool { prefix, local, definition: offer.definition, annotation: offer.annotation, withheld: None });
            }
            None => refused.push(RefusedOffer { name: readable(&offer.name), why: WithholdReason::SegmentInvalid }),
        }
    }
    tools.sort_by(|a, b| a.path().cmp(b.path()));
    tools.dedup_by(|later, first| {
        let same = later.path().eq(first.path());
        if same {
            let name = later.path().map(Segment::as_str).collect::<Vec<_>>().join(".");
            refused.push(RefusedOffer { name: readable(&name), why: WithholdReason::DuplicateName });
        }
        same
    });
    withhold(&mut tools, limits);
    refused.sort();
    Ok(BuiltTools { tools, refused })
}

/// Marks the tools to withhold under these limits, and no others.
pub(super) fn withhold(tools: &mut [Tool], limits: &Limits) {
    for tool in tools {
        let needs = if tool.annotation.mutable { tool.annotation.auth_scope.max(AuthScope::Write) } else { tool.annotation.auth_scope };
        tool.withheld = if limits.before + tool.length() > QualifiedName::MAX {
            Some(WithholdReason::NameTooLong)
        } else if needs > limits.scope {
            Some(WithholdReason::ScopeExceeded)
        } else if limits.unproven && tool.annotation.mutable {
            Some(WithholdReason::AuthorityRequired)
        } else {
            None
        };
    }
}

fn readable(name: &str) -> String {
    name.chars().take(80).collect()
}

/// Segments and paths seen before, so that each is kept once.
#[derive(Default)]
struct Interner {
    segments: BTreeSet<Segment>,
    prefixes: BTreeSet<Arc<[Segment]>>,
}

impl Interner {
    /// Splits a dotted name into its path; `None`: a segment is not legal.
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
