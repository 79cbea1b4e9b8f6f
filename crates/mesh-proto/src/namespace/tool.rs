//! A tool of a subserver's list. The definition is kept as received, and not read again.

use std::sync::Arc;

use banyan_model::Segment;
use bytes::Bytes;

use super::build::WithholdReason;
use crate::annotation::Annotation;

/// A tool below one segment.
#[derive(Clone, PartialEq, Debug)]
pub struct Tool {
    /// The segments above the tool's own name, shared by all tools below them.
    pub(super) prefix: Arc<[Segment]>,
    pub(super) local: Segment,
    pub(super) definition: Bytes,
    pub(super) annotation: Annotation,
    pub(super) withheld: Option<WithholdReason>,
}

impl Tool {
    /// Gives the segments of the subserver's name for the tool: one for a tool of a plain subserver.
    pub fn path(&self) -> impl Iterator<Item = &Segment> {
        self.prefix.iter().chain([&self.local])
    }

    /// Gives the tool's own name: the last segment.
    pub fn local(&self) -> &Segment {
        &self.local
    }

    /// Gives the raw tool object as received.
    pub fn definition(&self) -> &Bytes {
        &self.definition
    }

    /// Gives the annotation.
    pub fn annotation(&self) -> &Annotation {
        &self.annotation
    }

    /// Gives the reason for withholding the tool; `None`: listed.
    pub fn withheld(&self) -> Option<WithholdReason> {
        self.withheld
    }

    /// Counts the characters of the name, dots included.
    pub(super) fn length(&self) -> usize {
        self.path().map(|segment| segment.as_str().len() + 1).sum::<usize>() - 1
    }
}
