//! Kinds of envelopes: `CLASS[:METHOD[:CONTEXT]]` (MCPx v0.1, 3). Does not know who may send a kind.

/// Classes only the gateway sends (4.1).
const RESERVED: [&str; 2] = ["system", "presence"];

/// A kind, taken apart. The class ends at the first colon, the method at the second; a context may hold further colons, as URIs do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind<'a> {
    text: &'a str,
    class: usize,
    method: usize,
}

impl<'a> Kind<'a> {
    /// Takes a kind apart. Every text is a kind.
    pub fn new(text: &'a str) -> Self {
        let colon = |from: usize| text.bytes().skip(from).position(|b| b == b':').map_or(text.len(), |at| from + at);
        let class = colon(0);
        let method = colon(class + 1);
        Self { text, class, method }
    }

    /// Gives the original text.
    pub fn as_str(self) -> &'a str {
        self.text
    }

    /// Gives the class: `mcp/request`, `mcp/response`, `mcp/proposal`, `chat`, or another.
    pub fn class(self) -> &'a str {
        &self.text[..self.class]
    }

    /// Gives the MCP method, such as `tools/call`.
    pub fn method(self) -> Option<&'a str> {
        self.text.get(self.class + 1..self.method)
    }

    /// Gives the name of the tool, resource or prompt.
    pub fn context(self) -> Option<&'a str> {
        self.text.get(self.method + 1..)
    }

    /// Gives the kind without its context.
    pub fn without_context(self) -> &'a str {
        &self.text[..self.method]
    }

    /// Tells whether the kind belongs to the gateway: `system/...`, and the variants `system` and `presence` (3, 3.4, 4.1).
    pub fn is_reserved(self) -> bool {
        let goes_on = |rest: &str| rest.is_empty() || rest.starts_with(['/', ':']);
        RESERVED.iter().any(|word| self.text.strip_prefix(word).is_some_and(goes_on))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mx_02_a_kind_is_class_method_and_context() {
        let parts = |text| {
            let kind = Kind::new(text);
            (kind.class(), kind.method(), kind.context(), kind.without_context())
        };
        assert_eq!(parts("chat"), ("chat", None, None, "chat"));
        assert_eq!(parts("mcp/request:tools/list"), ("mcp/request", Some("tools/list"), None, "mcp/request:tools/list"));
        let read = "mcp/request:resources/read:file:///a:b";
        assert_eq!(parts(read), ("mcp/request", Some("resources/read"), Some("file:///a:b"), "mcp/request:resources/read"));
        assert_eq!(parts("a:"), ("a", Some(""), None, "a:"));
        assert_eq!(parts("::"), ("", Some(""), Some(""), ":"));
        assert_eq!(parts(""), ("", None, None, ""));
    }

    #[test]
    fn mx_13_every_kind_of_class_system_is_reserved() {
        for kind in ["system", "system/welcome", "system/x/y", "system:x", "system/error:a:b", "presence", "presence:join", "presence/x"] {
            assert!(Kind::new(kind).is_reserved(), "{kind}");
        }
        for kind in ["systems", "mcp/system", "chat", "mcp/request:system/x", "presences", ""] {
            assert!(!Kind::new(kind).is_reserved(), "{kind}");
        }
    }
}
