//! The part of a subserver in the table: segment, and tools in order. Knows no other subservers.

use std::cmp::Ordering;
use std::time::Instant;

use banyan_model::Segment;

use super::build::{Limits, Offer, RefusedOffer, build, withhold};
use super::tool::Tool;
use crate::refusal::{Refusal, SessionEnd};

/// Presence of a subserver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence {
    /// Calls are routed.
    Live,
    /// The tools stay listed as degraded for a while, and calls are refused (AX-61).
    Degraded { since: Instant, why: SessionEnd },
}

/// Tools of a subserver.
#[derive(Clone, PartialEq, Debug)]
pub struct Part {
    segment: Segment,
    holding: Presence,
    /// Rising by path.
    tools: std::sync::Arc<[Tool]>,
    refused: Vec<RefusedOffer>,
    listed: usize,
    longest: usize,
}

impl Part {
    /// Makes a part from a subserver's list. Of two entries with one name the first stays.
    ///
    /// # Errors
    /// [`Refusal::DottedName`] when a plain subserver lists a dotted name.
    pub fn new(segment: Segment, offers: Vec<Offer>, limits: &Limits) -> Result<Self, Refusal> {
        let built = build(offers, limits)?;
        let longest = built.tools.iter().map(Tool::length).max().unwrap_or_default();
        let listed = built.tools.iter().filter(|tool| tool.withheld.is_none()).count();
        Ok(Self { segment, holding: Presence::Live, tools: built.tools.into(), refused: built.refused, listed, longest })
    }

    /// Gives the same list under other limits; `None`: nothing would change.
    pub fn limited(&self, limits: &Limits) -> Option<Self> {
        let mut tools = self.tools.to_vec();
        withhold(&mut tools, limits);
        if tools.iter().zip(&*self.tools).all(|(new, old)| new.withheld == old.withheld) {
            return None;
        }
        let listed = tools.iter().filter(|tool| tool.withheld.is_none()).count();
        Some(Self { tools: tools.into(), listed, ..self.clone() })
    }

    /// Gives the same list under another presence. Shares the tools.
    #[must_use]
    pub fn held(&self, holding: Presence) -> Self {
        Self { holding, ..self.clone() }
    }

    /// Gives the segment.
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Gives the presence of the subserver.
    pub fn holding(&self) -> Presence {
        self.holding
    }

    /// Tells whether the tools are listed as degraded.
    pub fn is_degraded(&self) -> bool {
        matches!(self.holding, Presence::Degraded { .. })
    }

    /// Lists all tools, withheld ones included, in order.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// Lists the entries refused.
    pub fn refused(&self) -> &[RefusedOffer] {
        &self.refused
    }

    /// Counts listed tools.
    pub fn listed(&self) -> usize {
        self.listed
    }

    /// Gives the length of the longest name.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Finds the place of the tool with the subserver's name `name`, unless withheld.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        let at = self.tools.binary_search_by(|tool| compare(tool, name)).ok()?;
        self.tools[at].withheld.is_none().then_some(at)
    }

    /// Gives the tool at a place.
    pub(super) fn tool(&self, at: usize) -> Option<&Tool> {
        self.tools.get(at)
    }

    /// Finds the place of the tool with this path, unless withheld. `path` gives the segments from the first, at each call.
    pub(super) fn find_path<'a, I: Iterator<Item = &'a str>>(&self, path: impl Fn() -> I) -> Option<usize> {
        let compare = |tool: &Tool| tool.path().map(Segment::as_str).cmp(path().map(|segment| -> &str { segment }));
        let at = self.tools.binary_search_by(compare).ok()?;
        self.tools[at].withheld.is_none().then_some(at)
    }
}

fn compare(tool: &Tool, name: &str) -> Ordering {
    tool.path().map(Segment::as_str).cmp(name.split('.'))
}
