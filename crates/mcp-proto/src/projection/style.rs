//! The alphabets accepted by clients in tool names. Does not make names unique.

use banyan_model::{QualifiedName, Route, Segment};

/// The form of names for a client.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Style {
    /// `[A-Za-z0-9_.-]{1,128}`, the set of the MCP specification since 2025-11-25: `mount.tool`.
    Dotted,
    /// The name in the tree itself, `[a-z0-9_.-]{1,255}` (AX-10): for other gates.
    Qualified,
    /// `[a-zA-Z0-9_-]{1,64}`, accepted by every known client: `mount__tool`.
    Safe,
}

/// Clients seen to list and call dotted names. Everyone else gets [`Style::Safe`], because one name outside
/// `^[a-zA-Z0-9_-]{1,64}$` makes claude.ai and Claude Desktop drop the whole server, the interface behind Codex
/// refuses the request, and Copilot CLI refuses the tool, although the specification allows the dot.
const TAKES_DOTS: [&str; 3] = ["inspector-cli", "mcp-inspector", "mcp-inspector-tui"];

/// Chooses the style for a client by the `name` in `clientInfo`: safe unless known to take dots.
pub fn style_for(client_name: &str) -> Style {
    if TAKES_DOTS.contains(&client_name) { Style::Dotted } else { Style::Safe }
}

impl Style {
    /// The most bytes a name may have.
    pub fn limit(self) -> usize {
        match self {
            Self::Dotted => 128,
            Self::Qualified => QualifiedName::MAX,
            Self::Safe => 64,
        }
    }

    /// Tells if `name` may be shown unchanged.
    pub fn is_legal(self, name: &str) -> bool {
        !name.is_empty() && name.len() <= self.limit() && name.chars().all(|c| self.allows(c))
    }

    fn allows(self, c: char) -> bool {
        match c {
            '_' | '-' => true,
            '.' => self != Self::Safe,
            c if c.is_ascii_uppercase() => self != Self::Qualified,
            c => c.is_ascii_alphanumeric(),
        }
    }

    /// Composes the name of a tool before length and uniqueness are settled, and tells if the original is in the name unchanged.
    pub(super) fn compose(self, mount: Option<&Segment>, original: &str, local: &Route) -> (String, bool) {
        let (text, whole) = match self {
            Self::Qualified => (local.to_string(), true),
            Self::Dotted if !original.chars().all(|c| self.allows(c)) => (local.to_string(), false),
            // Below a gate every dot stands for a mount, as the first one does.
            Self::Safe if local.0.len() > 1 => (local.joined("__"), false),
            Self::Dotted | Self::Safe => self.legal_text(original, &local.to_string()),
        };
        match mount {
            Some(mount) => (self.prefix(mount) + &text, whole),
            None => (text, whole),
        }
    }

    /// Gives the prefix of the names of a mount.
    pub(super) fn prefix(self, mount: &Segment) -> String {
        let separator = if self == Self::Safe { "__" } else { "." };
        format!("{mount}{separator}")
    }

    /// `text` with `_` in place of every illegal character, and whether there was none; `instead` where nothing legible
    /// would be left.
    pub(super) fn legal_text(self, text: &str, instead: &str) -> (String, bool) {
        if !text.is_empty() && text.chars().all(|c| self.allows(c)) {
            return (text.to_owned(), true);
        }
        let legal: String = text.chars().map(|c| if self.allows(c) { c } else { '_' }).collect();
        let legible = legal.bytes().any(|b| b.is_ascii_alphanumeric());
        (if legible { legal } else { instead.to_owned() }, false)
    }
}
