//! What somebody agrees to: one call, in one text that is shown, signed and compared. Who may agree is not known here.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::hex;
use super::proof::Statement;

/// A call that has to be agreed to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The principal who calls.
    pub caller: String,
    /// The tool's dotted name at this gate.
    pub tool: String,
    /// The way to it: its segments, and the tool's own name.
    pub route: Vec<String>,
    /// SHA-256 of the tool's definition, in hexadecimal.
    pub definition: String,
    /// Its arguments, in canonical form (RFC 8785).
    pub arguments: String,
    /// All other members of the request that go out, in canonical form; empty: there are none.
    #[serde(default)]
    pub others: String,
    /// By what the server is known that the call goes to, in hexadecimal.
    #[serde(default)]
    pub server: String,
    /// SHA-256 of what the request says of its client, in hexadecimal; empty: nothing.
    #[serde(default)]
    pub client: String,
    /// The version of the policy that wants agreement.
    pub policy: String,
}

impl Call {
    /// SHA-256 of the arguments, in hexadecimal.
    pub fn arguments_hash(&self) -> String {
        hex(&Sha256::digest(&self.arguments))
    }

    /// SHA-256 of the other members, in hexadecimal; empty: there are none.
    pub fn others_hash(&self) -> String {
        if self.others.is_empty() { String::new() } else { hex(&Sha256::digest(&self.others)) }
    }

    /// What is different in `other`, in the words of the challenge; `None`: it is the same call.
    pub fn difference(&self, other: &Self) -> Option<&'static str> {
        let differs = [
            (self.caller != other.caller, "caller"),
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

    /// One value for one call and the state with which its server asked for input.
    pub(super) fn round(&self, state: [u8; 32]) -> [u8; 32] {
        Sha256::new().chain_update(self.key()).chain_update(state).finalize().into()
    }

    /// One value for one call.
    pub(super) fn key(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        let arguments = self.arguments_hash();
        let (others, server, client) = (&self.others, &self.server, &self.client);
        let parts = [&self.caller, &self.tool, &self.definition, &arguments, &self.policy, others, server, client];
        for part in parts.into_iter().chain(&self.route) {
            hash.update(part.len().to_be_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }
}

/// One call at one time, as it is put before those who may agree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Challenge {
    /// The approval's id: 32 hexadecimal digits.
    pub id: String,
    /// The id of the gate that asks.
    pub gate: String,
    /// The call.
    pub call: Call,
    /// How many different people have to agree.
    pub required: u8,
    /// Random, for this challenge alone.
    pub nonce: String,
    /// Until when it can be agreed to: Unix time, in seconds.
    pub expires: u64,
}

/// The members in the order of RFC 8785.
#[derive(Serialize)]
struct Written<'a> {
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
    required: u8,
    route: &'a [String],
    #[serde(skip_serializing_if = "str::is_empty")]
    server: &'a str,
    tool: &'a str,
    r#type: &'static str,
}

impl Challenge {
    /// What an SSH signature over it is made for, and its `type`.
    pub const NAMESPACE: &'static str = "banyan-approval-v1";
    /// The same where the request has other members than its arguments. Whoever knows only the first has not shown these to anybody.
    pub const NAMESPACE_OF_MORE: &'static str = "banyan-approval-v2";

    /// What a proof has to be made for.
    pub fn namespace(&self) -> &'static str {
        if self.call.others.is_empty() { Self::NAMESPACE } else { Self::NAMESPACE_OF_MORE }
    }

    /// The text that is signed: canonical JSON (RFC 8785).
    pub fn text(&self) -> String {
        let call = &self.call;
        let written = Written {
            arguments_sha256: &call.arguments_hash(),
            caller: &call.caller,
            client_sha256: &call.client,
            definition_sha256: &call.definition,
            expires: self.expires,
            gate: &self.gate,
            id: &self.id,
            nonce: &self.nonce,
            others_sha256: &call.others_hash(),
            policy: &call.policy,
            required: self.required,
            route: &call.route,
            server: &call.server,
            tool: &call.tool,
            r#type: self.namespace(),
        };
        // Strings and small numbers: it is never refused.
        serde_json::to_string(&written).unwrap_or_default()
    }

    /// What is signed, and what for.
    pub fn statement(&self) -> Statement {
        Statement { text: self.text(), namespace: self.namespace() }
    }
}
