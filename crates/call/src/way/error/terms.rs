//! Terms in which a caller hears of an unknown tool: those of MCP, or those of MCP-AX. Does not choose codes, and leaves the kind of an error alone.

use crate::way::error::CallError;

impl CallError {
    /// Gives the error in the terms of MCP-AX, for callers with the extension: an unknown tool is an unknown method (5.2, AX-04).
    pub fn for_mesh(self) -> Self {
        // A caller with a way to sign in again for more scope hears so in any terms.
        let like = if let Self::Denied(denied) = &self { &denied.like } else { &self };
        if self.wanted_scope().is_none() && matches!(like, Self::UnknownTool(_)) { Self::UnknownRoute(Box::new(self)) } else { self }
    }

    /// Gives the error as a caller without MCP-AX hears of the same: undoes [`Self::for_mesh`]. Drivers name kinds of errors by these terms.
    pub fn in_plain_terms(&self) -> &Self {
        if let Self::UnknownRoute(plain) = self { plain } else { self }
    }
}
