//! The key of a view: a part of the tree, and its form for a caller. Views are not made here.

use std::sync::Arc;

use banyan_model::Segment;
use mcp_proto::projection::Style;

/// Part of the tree that is shown, and its form.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ViewKey {
    /// A single mount, without prefix, or the whole tree.
    pub mount: Option<Segment>,
    /// The profile's name; empty where none applies.
    pub profile: Arc<str>,
    /// Spelling of names. Only gates see the tree's own.
    pub style: Style,
    /// Tools are listed with their MCP-AX annotations.
    pub annotated: bool,
    /// The client names the MCP-AX extension: waiting calls, losses and floods are told in the terms of MCP-AX.
    pub speaks_mesh: bool,
    /// The caller sits in a room, and so sees nothing of rooms: no call leads from a room into a room.
    pub is_seated: bool,
}

impl ViewKey {
    /// Checks for the view of another gate.
    pub fn is_for_gate(&self) -> bool {
        self.style == Style::Qualified
    }
}
