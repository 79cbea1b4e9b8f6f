//! The lists that a participant may offer, as an MCP server has them. Reads no entries.

/// A list of MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ListKind {
    Prompts,
    Resources,
    Templates,
    Tools,
}

impl ListKind {
    pub const ALL: [Self; 4] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    /// Gives the method of requests for the list.
    pub fn method(self) -> &'static str {
        match self {
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
            Self::Tools => "tools/list",
        }
    }

    /// Gives the capability needed for answering a request for the list.
    pub fn answer(self) -> &'static str {
        match self {
            Self::Prompts => "mcp/response:prompts/list",
            Self::Resources => "mcp/response:resources/list",
            Self::Templates => "mcp/response:resources/templates/list",
            Self::Tools => "mcp/response:tools/list",
        }
    }

    /// Gives the member of a result with the entries.
    pub fn member(self) -> &'static str {
        match self {
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Tools => "tools",
        }
    }

    /// Finds the list that a method asks for.
    pub fn of_method(method: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.method() == method)
    }

    /// Finds the lists that a notification calls changed.
    pub fn changed(notification: &str) -> &'static [Self] {
        match notification {
            "notifications/prompts/list_changed" => &[Self::Prompts],
            "notifications/resources/list_changed" => &[Self::Resources, Self::Templates],
            "notifications/tools/list_changed" => &[Self::Tools],
            _ => &[],
        }
    }
}
