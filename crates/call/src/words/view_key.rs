//! The key of a view: which part of the tree a caller is shown, and how. Views are not made here.

use std::sync::Arc;

use banyan_model::Segment;
use mcp_proto::projection::Style;

/// Which part of the tree is shown, and how.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ViewKey {
    /// One mount without prefix, or the whole tree.
    pub mount: Option<Segment>,
    /// The profile's name; empty where none applies.
    pub profile: Arc<str>,
    /// How names are spelled. Only another gate is shown them as they are in the tree.
    pub style: Style,
    /// Whether tools are listed with what MCP-AX says of them.
    pub annotated: bool,
    /// Whether it sits in a room: what stands in rooms is not shown there, so that no call leads from a room into a room.
    pub is_seated: bool,
}

impl ViewKey {
    /// Whether it is another gate that looks.
    pub fn is_for_gate(&self) -> bool {
        self.style == Style::Qualified
    }
}
