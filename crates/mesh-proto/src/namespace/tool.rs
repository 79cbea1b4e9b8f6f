//! One tool as its subserver lists it. Its definition is kept as the bytes that came, and never read again here.

use std::sync::Arc;

use banyan_model::Segment;
use bytes::Bytes;

use super::build::Withheld;
use crate::annotation::Annotation;

/// A tool below one segment.
#[derive(Clone, PartialEq, Debug)]
pub struct Tool {
    /// The segments above its own name, shared by all the tools that have them.
    pub(super) prefix: Arc<[Segment]>,
    pub(super) local: Segment,
    pub(super) definition: Bytes,
    pub(super) annotation: Annotation,
    pub(super) withheld: Option<Withheld>,
}

impl Tool {
    /// The segments of its name as the subserver says it: one for a tool of a plain subserver.
    pub fn path(&self) -> impl Iterator<Item = &Segment> {
        self.prefix.iter().chain([&self.local])
    }

    /// Its own name: the last segment.
    pub fn local(&self) -> &Segment {
        &self.local
    }

    /// The raw tool object as it came.
    pub fn definition(&self) -> &Bytes {
        &self.definition
    }

    /// What a call costs, risks and promises.
    pub fn annotation(&self) -> &Annotation {
        &self.annotation
    }

    /// Why it is neither listed nor called; `None` for what is.
    pub fn withheld(&self) -> Option<Withheld> {
        self.withheld
    }

    /// How many characters its name has, dots included.
    pub(super) fn length(&self) -> usize {
        self.path().map(|segment| segment.as_str().len() + 1).sum::<usize>() - 1
    }
}
