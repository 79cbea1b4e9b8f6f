//! Demands on protocols: their security, the level of evidence, and the constraints of a node (AEPB, sections 4.1 and 6.5). Chooses none.

use json::{Duplicates, Members};

use super::document::CapabilityError;

/// Translation hops where no constraint names a number.
pub const DEFAULT_HOPS: u64 = 3;
/// Most protocols in a list of constraints.
const MOST_LISTED: usize = 64;

/// Security of a protocol's transport, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProtocolSecurity {
    /// No known protection.
    Plain,
    /// Plain text within one machine.
    Loopback,
    Tls13,
    Tls13Mtls,
    Tls13Wpt,
}

impl ProtocolSecurity {
    const NAMED: [Self; 3] = [Self::Tls13, Self::Tls13Mtls, Self::Tls13Wpt];

    /// Reads a value of `aepb.min_protocol_security`; the order of the values is a decision of this project.
    pub fn parse(text: &str) -> Option<Self> {
        Self::NAMED.into_iter().find(|security| security.name() == text)
    }

    /// Word for the security, in constraints and in texts for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "none",
            Self::Loopback => "loopback",
            Self::Tls13 => "tls-1.3",
            Self::Tls13Mtls => "tls-1.3+mtls",
            Self::Tls13Wpt => "tls-1.3+wpt",
        }
    }
}

/// Level of evidence by Execution Context Tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AssuranceLevel {
    L1,
    L2,
    L3,
}

impl AssuranceLevel {
    /// Reads a level.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::L1, Self::L2, Self::L3].into_iter().find(|level| level.name() == text)
    }

    /// Word of the draft for the level.
    pub fn name(self) -> &'static str {
        match self {
            Self::L1 => "L1",
            Self::L2 => "L2",
            Self::L3 => "L3",
        }
    }
}

/// Constraints of a node. An absent list allows every protocol, an empty one none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeConstraints {
    pub sources: Option<Vec<String>>,
    pub destinations: Option<Vec<String>>,
    pub most_hops: u64,
    pub least_security: ProtocolSecurity,
}

impl Default for NodeConstraints {
    fn default() -> Self {
        Self { sources: None, destinations: None, most_hops: DEFAULT_HOPS, least_security: ProtocolSecurity::Tls13 }
    }
}

impl NodeConstraints {
    /// Reads `{"constraints": {"aepb.…": …}}`.
    ///
    /// # Errors
    /// When a known constraint has a value without sense: an unknown security is refused, never ignored.
    pub fn read(text: &[u8]) -> Result<Self, CapabilityError> {
        let whole = Members::parse(text, Duplicates::RefuseDeep).map_err(|error| CapabilityError::Malformed(error.to_string()))?;
        let named = whole.object("constraints").ok_or(CapabilityError::Missing("constraints"))?;
        let mut read = Self::default();
        if let Some(raw) = named.get("aepb.min_protocol_security") {
            let security = json::as_str(raw).and_then(|text| ProtocolSecurity::parse(&text));
            read.least_security = security.ok_or(CapabilityError::Wrong("aepb.min_protocol_security"))?;
        }
        if let Some(raw) = named.get("aepb.max_translation_hops") {
            let hops = std::str::from_utf8(raw).ok().and_then(|text| text.parse().ok());
            read.most_hops = hops.ok_or(CapabilityError::Wrong("aepb.max_translation_hops"))?;
        }
        read.sources = listed(&named, "aepb.allowed_source_protocols")?;
        read.destinations = listed(&named, "aepb.allowed_dest_protocols")?;
        Ok(read)
    }

    /// Joins the constraints of two policies: the stricter of both counts, member by member.
    #[must_use]
    pub fn stricter(&self, other: &Self) -> Self {
        Self {
            sources: both(self.sources.as_ref(), other.sources.as_ref()),
            destinations: both(self.destinations.as_ref(), other.destinations.as_ref()),
            most_hops: self.most_hops.min(other.most_hops),
            least_security: self.least_security.max(other.least_security),
        }
    }
}

fn listed(named: &Members<'_>, member: &'static str) -> Result<Option<Vec<String>>, CapabilityError> {
    let Some(raw) = named.get(member) else { return Ok(None) };
    let elements = json::elements(raw).ok_or(CapabilityError::Wrong(member))?;
    if elements.len() > MOST_LISTED {
        return Err(CapabilityError::TooMany(member));
    }
    let names: Option<Vec<String>> = elements.into_iter().map(|one| json::as_str(one).map(std::borrow::Cow::into_owned)).collect();
    names.map(Some).ok_or(CapabilityError::Wrong(member))
}

fn both(one: Option<&Vec<String>>, other: Option<&Vec<String>>) -> Option<Vec<String>> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.iter().filter(|name| other.contains(name)).cloned().collect()),
        (one, other) => one.or(other).cloned(),
    }
}
