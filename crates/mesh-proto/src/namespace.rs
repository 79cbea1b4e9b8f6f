//! The table of names of one aggregator: what its subservers list, merged under their segments (MCP-AX 4, 5.1).
//!
//! It is made of one [`Part`] a subserver, each with a table of its own, behind one index by segment. A change of one subserver makes a
//! new part and a new index of pointers; the other parts are shared with the table before. A table never changes: who holds one keeps what
//! it saw. A name is resolved once, to a [`Handle`]; what follows works with numbers. When lists are fetched, and what clients are shown of
//! a name, is not decided here.

mod build;
mod page;
mod part;
mod tool;

use std::sync::Arc;

use banyan_model::{QualifiedName, Route};

use crate::route_cursor::Hop;

pub use build::{Limits, Offer, Refused, Withheld};
pub use page::{Page, PageCursor};
pub use part::{Holding, Part, Seniority};
pub use tool::Tool;

/// All the names of one aggregator. Clones share everything.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Namespace {
    /// By segment, rising.
    parts: Arc<[Arc<Part>]>,
}

/// A tool of one table: numbers, good for the table that gave them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Handle {
    part: u32,
    tool: u32,
}

impl Namespace {
    /// The same table with this part in place of whatever had its segment.
    #[must_use]
    pub fn with(&self, part: Arc<Part>) -> Self {
        let mut parts = self.parts.to_vec();
        match self.place(part.segment().as_str()) {
            Ok(at) => parts[at] = part,
            Err(at) => parts.insert(at, part),
        }
        Self { parts: parts.into() }
    }

    /// The same table without what has this segment.
    #[must_use]
    pub fn without(&self, segment: &str) -> Self {
        let Ok(at) = self.place(segment) else { return self.clone() };
        let mut parts = self.parts.to_vec();
        parts.remove(at);
        Self { parts: parts.into() }
    }

    /// Both tables as one. Where both have a segment, the part that was registered first stays (AX-11). The outcome does not
    /// depend on which is merged into which, nor on how often.
    #[must_use]
    pub fn merge(&self, other: &Self) -> Self {
        let (mut ours, mut theirs) = (self.parts.iter().peekable(), other.parts.iter().peekable());
        let mut parts = Vec::with_capacity(self.parts.len().max(other.parts.len()));
        while let (Some(a), Some(b)) = (ours.peek(), theirs.peek()) {
            let order = a.segment().cmp(b.segment());
            let first = if order.is_eq() { a.seniority() <= b.seniority() } else { order.is_lt() };
            parts.push(Arc::clone(if first { a } else { b }));
            if order.is_le() {
                ours.next();
            }
            if order.is_ge() {
                theirs.next();
            }
        }
        parts.extend(ours.chain(theirs).cloned());
        Self { parts: parts.into() }
    }

    /// The part that has this segment.
    pub fn part(&self, segment: &str) -> Option<&Arc<Part>> {
        self.place(segment).ok().map(|at| &self.parts[at])
    }

    /// Every part, by segment.
    pub fn parts(&self) -> impl ExactSizeIterator<Item = &Arc<Part>> {
        self.parts.iter()
    }

    /// The tool of this dotted name, unless it is withheld: one search among the parts and one within the part.
    pub fn resolve(&self, name: &str) -> Option<Handle> {
        let (segment, rest) = name.split_once('.')?;
        let part = self.place(segment).ok()?;
        let tool = self.parts[part].find(rest)?;
        Some(Handle { part: u32::try_from(part).ok()?, tool: u32::try_from(tool).ok()? })
    }

    /// The tool that a routed call names, unless it is withheld: what follows the cursor must be what the subserver lists.
    pub fn resolve_hop(&self, hop: &Hop<'_>) -> Option<Handle> {
        let part = self.place(hop.segment()).ok()?;
        let tool = self.parts[part].find_path(|| hop.rest())?;
        Some(Handle { part: u32::try_from(part).ok()?, tool: u32::try_from(tool).ok()? })
    }

    /// The tool of a handle, and the part it stands in; `None` for a handle of another table.
    pub fn tool(&self, handle: Handle) -> Option<(&Arc<Part>, &Tool)> {
        let part = self.parts.get(usize::try_from(handle.part).ok()?)?;
        Some((part, part.tool(usize::try_from(handle.tool).ok()?)?))
    }

    /// The segments from here to a tool, the tool last.
    pub fn route(&self, handle: Handle) -> Option<Route> {
        let (part, tool) = self.tool(handle)?;
        Some(Route(std::iter::once(part.segment()).chain(tool.path()).cloned().collect()))
    }

    /// The dotted name of a tool.
    pub fn name(&self, handle: Handle) -> Option<QualifiedName> {
        QualifiedName::of(&self.route(handle)?)
    }

    /// How many tools are listed; those withheld are not.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.listed()).sum()
    }

    /// Whether no tool is listed.
    pub fn is_empty(&self) -> bool {
        self.parts.iter().all(|part| part.listed() == 0)
    }

    fn place(&self, segment: &str) -> Result<usize, usize> {
        self.parts.binary_search_by(|part| part.segment().as_str().cmp(segment))
    }
}
