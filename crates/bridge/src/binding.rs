//! The bindings registered by AEPB, with or without a codec here. Knows no wire form.

/// A registered binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BindingId {
    A2a,
    Ainp,
    Mcp,
    Slim,
    Uacp,
}

impl BindingId {
    /// All bindings of the registry.
    pub const ALL: [Self; 5] = [Self::A2a, Self::Ainp, Self::Mcp, Self::Slim, Self::Uacp];

    /// The registered identifier.
    pub const fn id(self) -> &'static str {
        match self {
            Self::A2a => "a2a-v1",
            Self::Ainp => "ainp-v1",
            Self::Mcp => "mcp-v1",
            Self::Slim => "slim-v1",
            Self::Uacp => "uacp-v1",
        }
    }

    /// Reads a registered identifier.
    pub fn parse(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|binding| binding.id() == id)
    }

    /// Checks for a codec in this crate.
    pub const fn has_codec(self) -> bool {
        matches!(self, Self::A2a | Self::Ainp | Self::Mcp | Self::Uacp)
    }

    /// The ordered pairs of bindings with codecs.
    pub fn pairs() -> impl Iterator<Item = (Self, Self)> {
        let known = || Self::ALL.into_iter().filter(|binding| binding.has_codec());
        known().flat_map(move |from| known().filter(move |to| *to != from).map(move |to| (from, to)))
    }
}
