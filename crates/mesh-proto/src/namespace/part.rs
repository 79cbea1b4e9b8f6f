//! The part of the table that one subserver holds: its segment, and its tools in order. Nothing about other subservers.

use std::cmp::Ordering;
use std::time::Instant;

use banyan_model::Segment;

use super::build::{Limits, Offer, Refused, build, withhold};
use super::tool::Tool;
use crate::id::NodeId;
use crate::refusal::{Ended, Refusal};

/// Who came first: lower is earlier. Two subservers never have the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Seniority {
    /// Counts registrations.
    pub order: u64,
    /// Tells apart what two aggregators counted.
    pub subserver: NodeId,
}

/// Whether the subserver is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holding {
    /// Calls are routed.
    Live,
    /// Its tools stay listed as degraded for a while, and calls are refused (AX-61).
    Degraded {
        /// Since when.
        since: Instant,
        /// Why.
        why: Ended,
    },
}

/// What one subserver lists.
#[derive(Clone, PartialEq, Debug)]
pub struct Part {
    segment: Segment,
    seniority: Seniority,
    holding: Holding,
    /// Rising by path.
    tools: std::sync::Arc<[Tool]>,
    refused: Vec<Refused>,
    listed: usize,
    longest: usize,
}

impl Part {
    /// A part made of a subserver's list. Of two entries with one name the first stays.
    ///
    /// # Errors
    /// [`Refusal::DottedName`] when a plain subserver lists a dotted name.
    pub fn new(segment: Segment, seniority: Seniority, offers: Vec<Offer>, limits: &Limits) -> Result<Self, Refusal> {
        let built = build(offers, limits)?;
        let longest = built.tools.iter().map(Tool::length).max().unwrap_or_default();
        let listed = built.tools.iter().filter(|tool| tool.withheld.is_none()).count();
        Ok(Self { segment, seniority, holding: Holding::Live, tools: built.tools.into(), refused: built.refused, listed, longest })
    }

    /// The same list under other limits; `None` when nothing would change.
    pub fn limited(&self, limits: &Limits) -> Option<Self> {
        let mut tools = self.tools.to_vec();
        withhold(&mut tools, limits);
        if tools.iter().zip(&*self.tools).all(|(new, old)| new.withheld == old.withheld) {
            return None;
        }
        let listed = tools.iter().filter(|tool| tool.withheld.is_none()).count();
        Some(Self { tools: tools.into(), listed, ..self.clone() })
    }

    /// The same list, its subserver there or not. Shares the tools.
    #[must_use]
    pub fn held(&self, holding: Holding) -> Self {
        Self { holding, ..self.clone() }
    }

    /// Its segment.
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// When it came, compared with others.
    pub fn seniority(&self) -> Seniority {
        self.seniority
    }

    /// Whether its subserver is there.
    pub fn holding(&self) -> Holding {
        self.holding
    }

    /// Whether its tools are listed as degraded.
    pub fn is_degraded(&self) -> bool {
        matches!(self.holding, Holding::Degraded { .. })
    }

    /// Its tools, those withheld too, in order.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// The entries of the list that became no tools.
    pub fn refused(&self) -> &[Refused] {
        &self.refused
    }

    /// How many tools are listed.
    pub fn listed(&self) -> usize {
        self.listed
    }

    /// How many characters its longest name has.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// The place of the tool that its subserver calls `name`, unless it is withheld.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        let at = self.tools.binary_search_by(|tool| compare(tool, name)).ok()?;
        self.tools[at].withheld.is_none().then_some(at)
    }

    /// The tool at a place.
    pub(super) fn tool(&self, at: usize) -> Option<&Tool> {
        self.tools.get(at)
    }

    /// The place of the tool with this path, unless it is withheld. `path` gives the segments, from the first, as often as asked.
    pub(super) fn find_path<'a, I: Iterator<Item = &'a str>>(&self, path: impl Fn() -> I) -> Option<usize> {
        let compare = |tool: &Tool| tool.path().map(Segment::as_str).cmp(path().map(|segment| -> &str { segment }));
        let at = self.tools.binary_search_by(compare).ok()?;
        self.tools[at].withheld.is_none().then_some(at)
    }

    /// The first place that stands behind this name.
    pub(super) fn behind(&self, name: &str) -> usize {
        self.tools.partition_point(|tool| compare(tool, name) != Ordering::Greater)
    }
}

fn compare(tool: &Tool, name: &str) -> Ordering {
    tool.path().map(Segment::as_str).cmp(name.split('.'))
}
