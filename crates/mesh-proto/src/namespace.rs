//! The table of names of an aggregator: the lists of its subservers, merged under their segments (MCP-AX 4, 5.1).
//!
//! A table has one [`Part`] a subserver, each with a table of its own, behind one index by segment. A change of one subserver makes a new
//! part and a new index of pointers; all other parts are shared with the previous table. Tables are immutable: an old table stays valid for
//! its holders. A name is resolved once, to a [`Handle`]; later steps work with numbers. Fetches no lists, and does not decide what clients
//! see of a name.

mod build;
mod part;
mod tool;

use std::sync::Arc;

use banyan_model::{QualifiedName, Route};

use crate::route_cursor::Hop;

pub use build::{Limits, Offer, RefusedOffer, WithholdReason};
pub use part::{Part, Presence};
pub use tool::Tool;

/// All names of one aggregator. Clones share everything.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Namespace {
    /// By segment, rising.
    parts: Arc<[Arc<Part>]>,
}

/// A tool of one table: numbers, valid for that table alone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Handle {
    part: u32,
    tool: u32,
}

impl Namespace {
    /// Gives a table with this part in the place of its segment.
    #[must_use]
    pub fn with(&self, part: Arc<Part>) -> Self {
        let mut parts = self.parts.to_vec();
        match self.place(part.segment().as_str()) {
            Ok(at) => parts[at] = part,
            Err(at) => parts.insert(at, part),
        }
        Self { parts: parts.into() }
    }

    /// Gives a table without this segment.
    #[must_use]
    pub fn without(&self, segment: &str) -> Self {
        let Ok(at) = self.place(segment) else { return self.clone() };
        let mut parts = self.parts.to_vec();
        parts.remove(at);
        Self { parts: parts.into() }
    }

    /// Finds the part of a segment.
    pub fn part(&self, segment: &str) -> Option<&Arc<Part>> {
        self.place(segment).ok().map(|at| &self.parts[at])
    }

    /// Lists all parts, by segment.
    pub fn parts(&self) -> impl ExactSizeIterator<Item = &Arc<Part>> {
        self.parts.iter()
    }

    /// Finds the tool of a dotted name, unless withheld: one search among the parts and one within the part.
    pub fn resolve(&self, name: &str) -> Option<Handle> {
        let (segment, rest) = name.split_once('.')?;
        let part = self.place(segment).ok()?;
        let tool = self.parts[part].find(rest)?;
        Some(Handle { part: u32::try_from(part).ok()?, tool: u32::try_from(tool).ok()? })
    }

    /// Finds the tool of a routed call, unless withheld: the segments behind the cursor must match the subserver's list.
    pub fn resolve_hop(&self, hop: &Hop<'_>) -> Option<Handle> {
        let part = self.place(hop.segment()).ok()?;
        let tool = self.parts[part].find_path(|| hop.rest())?;
        Some(Handle { part: u32::try_from(part).ok()?, tool: u32::try_from(tool).ok()? })
    }

    /// Gives the tool of a handle, with its part; `None`: a handle of another table.
    pub fn tool(&self, handle: Handle) -> Option<(&Arc<Part>, &Tool)> {
        let part = self.parts.get(usize::try_from(handle.part).ok()?)?;
        Some((part, part.tool(usize::try_from(handle.tool).ok()?)?))
    }

    /// Gives the segments from here to a tool, the tool last.
    pub fn route(&self, handle: Handle) -> Option<Route> {
        let (part, tool) = self.tool(handle)?;
        Some(Route(std::iter::once(part.segment()).chain(tool.path()).cloned().collect()))
    }

    /// Gives the dotted name of a tool.
    pub fn name(&self, handle: Handle) -> Option<QualifiedName> {
        QualifiedName::of(&self.route(handle)?)
    }

    /// Lists all tools, in order, without withheld ones.
    pub fn listed(&self) -> impl Iterator<Item = Handle> {
        (0..).zip(&*self.parts).flat_map(|(part, tools)| {
            let listed = (0..).zip(tools.tools()).filter(|(_, tool)| tool.withheld().is_none());
            listed.map(move |(tool, _)| Handle { part, tool })
        })
    }

    /// Counts listed tools, without withheld ones.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.listed()).sum()
    }

    /// Tells whether no tool is listed.
    pub fn is_empty(&self) -> bool {
        self.parts.iter().all(|part| part.listed() == 0)
    }

    fn place(&self, segment: &str) -> Result<usize, usize> {
        self.parts.binary_search_by(|part| part.segment().as_str().cmp(segment))
    }
}
