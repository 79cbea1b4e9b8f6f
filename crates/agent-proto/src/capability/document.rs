//! Capability documents (AEPB, section 3): read from raw JSON, and kept with the raw text. Fetches and compares none.

use json::{Duplicates, Members};
use url::{Host, Url};

use super::constraints::{AssuranceLevel, ProtocolSecurity};
use super::lifecycle::LifecycleStatus;

/// Path of a document, below the origin of its agent.
pub const CAPABILITIES: &str = "/.well-known/aepb";
/// Path of the pairs that a gateway translates.
pub const TRANSLATIONS: &str = "/.well-known/aepb/gateway";
/// Version of the documents.
pub const AEPB_VERSION: &str = "1.0";
/// Longest document, in bytes.
pub const LONGEST_DOCUMENT: usize = 256 << 10;
/// Most protocols of a document.
pub const MOST_PROTOCOLS: usize = 64;
/// Priority of a protocol without one.
pub const DEFAULT_PRIORITY: u32 = 100;
/// Most gateways, and most namespaces, of a document.
const MOST_LISTED: usize = 64;
/// Longest text of a member, in bytes.
const LONGEST_MEMBER: usize = 2048;

/// Reasons to refuse a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CapabilityError {
    #[error("its capability document is no JSON object: {0}")]
    Malformed(String),
    #[error("its capability document has no `{0}`")]
    Missing(&'static str),
    #[error("its capability document has more entries in `{0}` than are read here")]
    TooMany(&'static str),
    #[error("its capability document is longer than {LONGEST_DOCUMENT} bytes")]
    TooLong,
    #[error("its capability document has a `{0}` that has no meaning")]
    Wrong(&'static str),
    #[error("its capability document is of AEPB {0}, and {AEPB_VERSION} is read here")]
    OtherVersion(String),
}

/// Capabilities of an agent, in its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapabilityDocument {
    /// Text of the document as it came, unknown members included.
    pub raw: Vec<u8>,
    pub agent: String,
    pub protocols: Vec<OfferedProtocol>,
    pub gateways: Vec<String>,
    pub assurance: AssuranceLevel,
    pub namespaces: Vec<String>,
    pub lifecycle: LifecycleNotice,
}

/// A protocol at an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OfferedProtocol {
    /// Identifier of the binding, such as `a2a-v1`.
    pub id: String,
    pub version: String,
    pub endpoint: String,
    /// Preference: a lower one is preferred.
    pub priority: u32,
    /// Security of the endpoint, by its scheme and the member `security` (a local profile).
    pub security: ProtocolSecurity,
}

/// Life of an agent, in its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LifecycleNotice {
    pub status: LifecycleStatus,
    /// Semantic version of the agent.
    pub version: String,
    /// Time in RFC 3339.
    pub deprecated_at: Option<String>,
    /// Time in RFC 3339.
    pub sunset_at: Option<String>,
    /// Address of the successor's document.
    pub successor: Option<String>,
}

impl CapabilityDocument {
    /// Reads a document. Unknown members stay in `raw`.
    pub fn read(text: &[u8]) -> Result<Self, CapabilityError> {
        if text.len() > LONGEST_DOCUMENT {
            return Err(CapabilityError::TooLong);
        }
        let whole = Members::parse(text, Duplicates::RefuseDeep).map_err(|error| CapabilityError::Malformed(error.to_string()))?;
        let version = text_at(&whole, "aepb_version")?;
        if version.split('.').next() != AEPB_VERSION.split('.').next() {
            return Err(CapabilityError::OtherVersion(version.chars().take(40).collect()));
        }
        let protocols =
            elements(&whole, "protocols", MOST_PROTOCOLS)?.into_iter().map(OfferedProtocol::read).collect::<Result<Vec<_>, _>>()?;
        if protocols.is_empty() {
            return Err(CapabilityError::Missing("protocols"));
        }
        let assurance = AssuranceLevel::parse(&text_at(&whole, "ect_assurance_level")?);
        Ok(Self {
            raw: text.to_vec(),
            agent: text_at(&whole, "agent_id").and_then(|agent| address(agent, "agent_id"))?,
            protocols,
            gateways: addresses(&whole, "translation_gateways")?,
            assurance: assurance.ok_or(CapabilityError::Wrong("ect_assurance_level"))?,
            namespaces: texts(&whole, "ect_namespaces")?,
            lifecycle: LifecycleNotice::read(&whole.object("lifecycle").ok_or(CapabilityError::Missing("lifecycle"))?)?,
        })
    }
}

impl OfferedProtocol {
    fn read(text: &[u8]) -> Result<Self, CapabilityError> {
        let wrong = CapabilityError::Wrong;
        let whole = Members::parse(text, Duplicates::RefuseTop).map_err(|_| wrong("protocols"))?;
        let endpoint = address(text_at(&whole, "endpoint")?, "endpoint")?;
        let priority = match whole.get("priority") {
            None | Some(b"null") => DEFAULT_PRIORITY,
            Some(raw) => std::str::from_utf8(raw).ok().and_then(|text| text.parse().ok()).ok_or(wrong("priority"))?,
        };
        let claimed = whole.get("security").map(|raw| json::as_str(raw).and_then(|text| ProtocolSecurity::parse(&text)));
        let security = security_of(&endpoint, claimed);
        Ok(Self { id: text_at(&whole, "id")?, version: text_at(&whole, "version")?, endpoint, priority, security })
    }

    /// Makes a protocol of a gate's own, with the security of its endpoint.
    pub fn at(id: &str, version: &str, endpoint: String, priority: u32) -> Self {
        let security = security_of(&endpoint, None);
        Self { id: id.to_owned(), version: version.to_owned(), endpoint, priority, security }
    }
}

/// Finds the security of an endpoint: a claim counts unless the scheme says the contrary, and an unknown claim means no security.
fn security_of(endpoint: &str, claimed: Option<Option<ProtocolSecurity>>) -> ProtocolSecurity {
    let Ok(url) = Url::parse(endpoint) else { return ProtocolSecurity::Plain };
    let claimed = claimed.map(|claimed| claimed.unwrap_or(ProtocolSecurity::Plain));
    match url.scheme() {
        "https" | "wss" => claimed.unwrap_or(ProtocolSecurity::Tls13),
        "http" | "ws" if is_this_machine(&url) => ProtocolSecurity::Loopback,
        "http" | "ws" => ProtocolSecurity::Plain,
        _ => claimed.unwrap_or(ProtocolSecurity::Plain),
    }
}

/// Checks for the host of a loopback address.
pub fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

impl LifecycleNotice {
    fn read(whole: &Members<'_>) -> Result<Self, CapabilityError> {
        let status = LifecycleStatus::parse(&text_at(whole, "status")?);
        let version = text_at(whole, "version")?;
        if major(&version).is_none() {
            return Err(CapabilityError::Wrong("lifecycle.version"));
        }
        Ok(Self {
            status: status.ok_or(CapabilityError::Wrong("lifecycle.status"))?,
            version,
            deprecated_at: time_at(whole, "deprecated_at")?,
            sunset_at: time_at(whole, "sunset_at")?,
            successor: optional(whole, "successor")?.map(|text| address(text, "successor")).transpose()?,
        })
    }
}

/// Reads the major number of a semantic version; `None` for any other text.
pub fn major(version: &str) -> Option<u64> {
    let (core, build) = version.split_once('+').map_or((version, None), |(core, build)| (core, Some(build)));
    let (core, before) = core.split_once('-').map_or((core, None), |(core, before)| (core, Some(before)));
    let is_word = |text: &str| text.split('.').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'));
    if !build.is_none_or(is_word) || !before.is_none_or(is_word) {
        return None;
    }
    let is_number = |part: &&str| part.bytes().all(|b| b.is_ascii_digit()) && (*part == "0" || !part.starts_with('0'));
    let numbers: Option<Vec<u64>> = core.split('.').map(|part| Some(part).filter(is_number)?.parse().ok()).collect();
    numbers.filter(|numbers| numbers.len() == 3).map(|numbers| numbers[0])
}

fn text_at(whole: &Members<'_>, member: &'static str) -> Result<String, CapabilityError> {
    optional(whole, member)?.filter(|text| !text.is_empty()).ok_or(CapabilityError::Missing(member))
}

fn optional(whole: &Members<'_>, member: &'static str) -> Result<Option<String>, CapabilityError> {
    let raw = whole.get(member).filter(|raw| *raw != b"null");
    raw.map(|raw| word(raw, member)).transpose()
}

fn word(raw: &[u8], member: &'static str) -> Result<String, CapabilityError> {
    let text = json::as_str(raw).filter(|text| text.len() <= LONGEST_MEMBER && !text.chars().any(char::is_control));
    text.map(std::borrow::Cow::into_owned).ok_or(CapabilityError::Wrong(member))
}

fn time_at(whole: &Members<'_>, member: &'static str) -> Result<Option<String>, CapabilityError> {
    let text = optional(whole, member)?;
    if text.as_deref().is_some_and(|text| !banyan_model::Timestamp::is_legal(text)) {
        return Err(CapabilityError::Wrong(member));
    }
    Ok(text)
}

/// Checks for an absolute address with a host and without credentials, and gives the text unchanged.
fn address(text: String, member: &'static str) -> Result<String, CapabilityError> {
    let url = Url::parse(&text).ok().filter(|url| url.has_host() && url.username().is_empty() && url.password().is_none());
    url.map(|_| text).ok_or(CapabilityError::Wrong(member))
}

fn addresses(whole: &Members<'_>, member: &'static str) -> Result<Vec<String>, CapabilityError> {
    texts(whole, member)?.into_iter().map(|text| address(text, member)).collect()
}

fn texts(whole: &Members<'_>, member: &'static str) -> Result<Vec<String>, CapabilityError> {
    if whole.get(member).is_none_or(|raw| raw == b"null") {
        return Ok(Vec::new());
    }
    elements(whole, member, MOST_LISTED)?.into_iter().map(|raw| word(raw, member)).collect()
}

fn elements<'a>(whole: &Members<'a>, member: &'static str, most: usize) -> Result<Vec<&'a [u8]>, CapabilityError> {
    let raw = whole.get(member).ok_or(CapabilityError::Missing(member))?;
    let elements = json::elements(raw).ok_or(CapabilityError::Wrong(member))?;
    if elements.len() > most { Err(CapabilityError::TooMany(member)) } else { Ok(elements) }
}
