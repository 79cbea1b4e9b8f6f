//! Dialect of a client: the draft's own shapes, or MCP's where the two differ. Looks at the client's capabilities; changes no content.

use serde_json::Value;

/// Choice of the dialect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compat {
    /// The draft's for a client with the capability `network`, MCP's for others.
    #[default]
    Auto,
    Draft,
    Mcp,
}

impl Compat {
    /// Checks that a client with these capabilities is served in the draft's dialect.
    pub(crate) fn is_draft(self, capabilities: &Value) -> bool {
        let names_network = |holder: &Value| holder.get("network").is_some_and(|network| !network.is_null());
        match self {
            Self::Draft => true,
            Self::Mcp => false,
            Self::Auto => names_network(capabilities) || capabilities.get("experimental").is_some_and(names_network),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn clients_of_the_draft_have_its_capability() {
        let (draft, experimental, other) = (json!({ "network": {} }), json!({ "experimental": { "network": {} } }), json!({ "roots": {} }));
        assert!(Compat::Auto.is_draft(&draft) && Compat::Auto.is_draft(&experimental) && !Compat::Auto.is_draft(&other));
        assert!(Compat::Draft.is_draft(&other) && !Compat::Mcp.is_draft(&draft));
    }
}
