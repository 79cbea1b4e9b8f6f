//! The subject of an agreement: one call, as one text to be shown, signed and compared. Who may agree is not known here.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::hex;
use super::preview::Preview;
use super::proof::Statement;

/// A call that needs agreement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The calling principal.
    pub caller: String,
    /// Kind of the calling principal: what one was granted is nothing to another of the same name. Empty: kept by a release without kinds.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The tool's dotted name at this gate.
    pub tool: String,
    /// The way to the tool: segments, then the tool's own name.
    pub route: Vec<String>,
    /// SHA-256 of the tool's definition, in hexadecimal.
    pub definition: String,
    /// Arguments in canonical form (RFC 8785).
    pub arguments: String,
    /// All other outgoing members of the request, in canonical form; empty: none.
    #[serde(default)]
    pub others: String,
    /// Identity of the server, in hexadecimal.
    #[serde(default)]
    pub server: String,
    /// Words of the request about its client, in canonical form; empty: none.
    #[serde(default)]
    pub client: String,
    /// Preview by the server; `None` where none was asked for. Two calls that differ in their previews alone are one call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<Preview>,
    /// The version of the policy.
    pub policy: String,
}

impl Call {
    /// SHA-256 of the arguments, in hexadecimal.
    pub fn arguments_hash(&self) -> String {
        hex(&Sha256::digest(&self.arguments))
    }

    /// Hashes the other members (SHA-256, in hexadecimal); empty without other members.
    pub fn others_hash(&self) -> String {
        if self.others.is_empty() { String::new() } else { hex(&Sha256::digest(&self.others)) }
    }

    /// Hashes the words about the client: SHA-256 in hexadecimal; empty: none.
    pub fn client_hash(&self) -> String {
        if self.client.is_empty() { String::new() } else { hex(&Sha256::digest(&self.client)) }
    }

    /// Names the first difference to `other`, in the words of the challenge; `None` for the same call. Previews are compared by the desk.
    pub fn difference(&self, other: &Self) -> Option<&'static str> {
        let differs = [
            ((&self.caller, &self.kind) != (&other.caller, &other.kind), "caller"),
            (self.tool != other.tool || self.route != other.route, "tool"),
            (self.arguments != other.arguments, "arguments"),
            (self.others != other.others, "other members"),
            (self.server != other.server, "server"),
            (self.client != other.client, "client"),
            (self.definition != other.definition, "definition"),
            (self.policy != other.policy, "policy"),
        ];
        differs.into_iter().find_map(|(differs, what)| differs.then_some(what))
    }

    /// Identifies a call together with the state by which its server asked for input.
    pub(super) fn round(&self, state: [u8; 32]) -> [u8; 32] {
        Sha256::new().chain_update(self.key()).chain_update(state).finalize().into()
    }

    /// Identifies a call.
    pub(super) fn key(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        let arguments = self.arguments_hash();
        let (others, server, client) = (&self.others, &self.server, &self.client);
        let parts = [&self.caller, &self.kind, &self.tool, &self.definition, &arguments, &self.policy, others, server, client];
        for part in parts.into_iter().chain(&self.route) {
            hash.update(part.len().to_be_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }
}

/// A call at a certain time, as put before the people who may agree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Challenge {
    /// The approval's id: 32 hexadecimal digits.
    pub id: String,
    /// The id of the asking gate.
    pub gate: String,
    pub call: Call,
    /// Number of different people who have to agree.
    pub required: u8,
    /// Random, for this challenge alone.
    pub nonce: String,
    /// The last moment for agreement: Unix time, in seconds.
    pub expires: u64,
}

/// The members in the order of RFC 8785.
#[derive(Serialize)]
struct WrittenChallenge<'a> {
    arguments_sha256: &'a str,
    caller: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    client_sha256: &'a str,
    definition_sha256: &'a str,
    expires: u64,
    gate: &'a str,
    id: &'a str,
    nonce: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    others_sha256: &'a str,
    policy: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    preview_sha256: &'a str,
    required: u8,
    route: &'a [String],
    #[serde(skip_serializing_if = "str::is_empty")]
    server: &'a str,
    tool: &'a str,
    r#type: &'static str,
}

impl Challenge {
    /// Namespace of SSH signatures over the text, and the `type` of the text.
    pub const NAMESPACE: &'static str = "banyan-approval-v1";
    /// The namespace for requests with members besides the arguments. A signer who knows only the first namespace has not shown these
    /// members to anybody.
    pub const NAMESPACE_OF_MORE: &'static str = "banyan-approval-v2";
    /// The namespace for calls with a preview. A signer who knows only the others has shown no preview to anybody.
    pub const NAMESPACE_OF_PREVIEWS: &'static str = "banyan-approval-v3";

    /// Gives the namespace that a proof must carry.
    pub fn namespace(&self) -> &'static str {
        if self.call.shown_preview().is_some() {
            return Self::NAMESPACE_OF_PREVIEWS;
        }
        if self.call.others.is_empty() { Self::NAMESPACE } else { Self::NAMESPACE_OF_MORE }
    }

    /// Writes the text to be signed: canonical JSON (RFC 8785).
    pub fn text(&self) -> String {
        let call = &self.call;
        let written = WrittenChallenge {
            arguments_sha256: &call.arguments_hash(),
            caller: &call.caller,
            client_sha256: &call.client_hash(),
            definition_sha256: &call.definition,
            expires: self.expires,
            gate: &self.gate,
            id: &self.id,
            nonce: &self.nonce,
            others_sha256: &call.others_hash(),
            policy: &call.policy,
            preview_sha256: &call.preview_hash(),
            required: self.required,
            route: &call.route,
            server: &call.server,
            tool: &call.tool,
            r#type: self.namespace(),
        };
        // Strings and small numbers: it is never refused.
        serde_json::to_string(&written).unwrap_or_default()
    }

    /// Gives text and namespace to be signed.
    pub fn statement(&self) -> Statement {
        Statement { text: self.text(), namespace: self.namespace() }
    }
}
