//! Documents published by a gate: capabilities, translated pairs, and the record in a zone. Serves none.

use json::quote;
use url::Url;

use super::constraints::AssuranceLevel;
use super::document::{AEPB_VERSION, CAPABILITIES, OfferedProtocol};
use super::lifecycle::Lifecycle;

/// Key for the address of the document in an SVCB record (RFC 9460), of the range for private use: the draft registers no key.
const SVCB_KEY: u16 = 65_400;
/// Time to live of the record in a zone, in seconds, equal to that of a document.
const ZONE_SECONDS: u32 = 3600;

/// Capabilities of the gate.
#[derive(Clone, Debug)]
pub struct ServedCapabilities<'a> {
    pub agent: &'a str,
    pub version: &'a str,
    pub protocols: &'a [OfferedProtocol],
    pub assurance: AssuranceLevel,
    pub lifecycle: &'a Lifecycle,
}

impl ServedCapabilities<'_> {
    /// Writes the document.
    pub fn write(&self) -> String {
        let protocols: Vec<String> = self.protocols.iter().map(protocol).collect();
        format!(
            "{{\"aepb_version\":\"{AEPB_VERSION}\",\"agent_id\":{},\"protocols\":[{}],\"translation_gateways\":[],\
             \"ect_assurance_level\":\"{}\",\"ect_namespaces\":[],\"lifecycle\":{}}}",
            quote(self.agent),
            protocols.join(","),
            self.assurance.name(),
            self.lifecycle.notice(self.version)
        )
    }
}

fn protocol(one: &OfferedProtocol) -> String {
    let (id, version, endpoint) = (quote(&one.id), quote(&one.version), quote(&one.endpoint));
    format!("{{\"id\":{id},\"version\":{version},\"endpoint\":{endpoint},\"priority\":{}}}", one.priority)
}

/// A translation from one binding to another, and the door in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranslationPair {
    pub from: &'static str,
    pub to: &'static str,
    pub endpoint: String,
}

impl TranslationPair {
    /// Writes the pair.
    pub fn write(&self) -> String {
        format!("{{\"from\":\"{}\",\"to\":\"{}\",\"endpoint\":{}}}", self.from, self.to, quote(&self.endpoint))
    }
}

/// Writes the document of a gateway: its pairs, in a member of this project.
pub fn translations(agent: &str, pairs: &[TranslationPair]) -> String {
    let written: Vec<String> = pairs.iter().map(TranslationPair::write).collect();
    format!("{{\"aepb_version\":\"{AEPB_VERSION}\",\"gateway_id\":{},\"translation_pairs\":[{}]}}", quote(agent), written.join(","))
}

/// Writes the SVCB record for the document of the agent at `url`; `None` for an agent without a domain name.
pub fn zone_record(url: &Url) -> Option<String> {
    let host = url.domain()?;
    let port = url.port_or_known_default()?;
    let document = url.join(CAPABILITIES).ok()?;
    Some(format!("_aepb._tcp.{host}. {ZONE_SECONDS} IN SVCB 1 {host}. port={port} key{SVCB_KEY}=\"{document}\"\n"))
}
