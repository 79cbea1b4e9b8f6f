//! What an envelope is for: `CLASS[:METHOD[:CONTEXT]]` (MCPx v0.1, 3). Who may send which kind is not known here.

/// Only the gateway sends kinds that begin with this (4.1).
const RESERVED: [&str; 2] = ["system", "presence"];

/// A kind, taken apart. The class ends at the first colon, the method at the second; a context may hold more of them, as URIs do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind<'a> {
    text: &'a str,
    class: usize,
    method: usize,
}

impl<'a> Kind<'a> {
    /// Every text is a kind.
    pub fn new(text: &'a str) -> Self {
        let colon = |from: usize| text.bytes().skip(from).position(|b| b == b':').map_or(text.len(), |at| from + at);
        let class = colon(0);
        let method = colon(class + 1);
        Self { text, class, method }
    }

    /// As it was written.
    pub fn as_str(self) -> &'a str {
        self.text
    }

    /// `mcp/request`, `mcp/response`, `mcp/proposal`, `chat`, or another.
    pub fn class(self) -> &'a str {
        &self.text[..self.class]
    }

    /// The MCP method, such as `tools/call`.
    pub fn method(self) -> Option<&'a str> {
        self.text.get(self.class + 1..self.method)
    }

    /// Which tool, resource or prompt.
    pub fn context(self) -> Option<&'a str> {
        self.text.get(self.method + 1..)
    }

    /// The kind without its context.
    pub fn without_context(self) -> &'a str {
        &self.text[..self.method]
    }

    /// Whether it is the gateway's own: `system/...`, and `system` and `presence` as some write them (3, 3.4, 4.1).
    pub fn is_reserved(self) -> bool {
        let goes_on = |rest: &str| rest.is_empty() || rest.starts_with(['/', ':']);
        RESERVED.iter().any(|word| self.text.strip_prefix(word).is_some_and(goes_on))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mx_02_a_kind_is_a_class_a_method_and_a_context_that_may_hold_colons() {
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
    fn mx_13_what_begins_with_system_is_the_gateways_however_it_goes_on() {
        for kind in ["system", "system/welcome", "system/x/y", "system:x", "system/error:a:b", "presence", "presence:join", "presence/x"] {
            assert!(Kind::new(kind).is_reserved(), "{kind}");
        }
        for kind in ["systems", "mcp/system", "chat", "mcp/request:system/x", "presences", ""] {
            assert!(!Kind::new(kind).is_reserved(), "{kind}");
        }
    }
}
