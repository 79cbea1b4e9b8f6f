//! Approvals, grants and operators as the admin API shows them (docs/approvals.md). These shapes only ever grow; nothing is decided here.

use bytes::Bytes;
use policy::approval::{Approval, Cause, Desk, Event, Grant, News, Operator, Standing, Terms, Vote, hex};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use crate::judge::gate::Gate;

/// `GET /-/approvals`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApprovalsShown {
    /// Unix time at the gate, in seconds.
    pub now: u64,
    /// The oldest first.
    pub approvals: Vec<ApprovalShown>,
    /// Calls that gates below hold.
    pub below: Vec<BelowShown>,
}

/// One approval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApprovalShown {
    /// Its id.
    pub id: String,
    /// How it stands.
    pub standing: Standing,
    /// The tool's dotted name.
    pub tool: String,
    /// Who calls.
    pub caller: String,
    /// The way to the tool.
    pub route: Vec<String>,
    /// Canonical JSON: what is shown is what is hashed.
    pub arguments: String,
    /// SHA-256 of the arguments, in hexadecimal.
    pub arguments_sha256: String,
    /// The other members of the request that go out, in canonical form; absent where there are none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub others: String,
    /// Words of the request about its client, in canonical form; absent where there are none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub client: String,
    /// SHA-256 of the tool's definition, in hexadecimal.
    pub definition_sha256: String,
    /// What is known of the tool.
    pub annotation: serde_json::Value,
    /// Why somebody has to agree.
    pub causes: Vec<Cause>,
    /// How many different people have to.
    pub required: u8,
    /// Who has.
    pub votes: Vec<Vote>,
    /// Unix time, in seconds.
    pub requested: u64,
    /// Since when it stands like this.
    pub since: u64,
    /// Until when it can be agreed to.
    pub expires: u64,
    /// What is signed.
    pub challenge: String,
    /// Its SHA-256, in hexadecimal.
    pub digest: String,
    /// Why somebody said no, or what changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The room in which it is asked for or proposed, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<String>,
    /// Whether the caller waits.
    pub attended: bool,
    /// Where a person agrees.
    pub url: String,
    /// The last call of the same tool that was agreed to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Previous>,
}

/// An earlier call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Previous {
    /// Its id.
    pub id: String,
    /// Its arguments.
    pub arguments: String,
    /// When it was last moved.
    pub since: u64,
}

/// A call that a gate below holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BelowShown {
    /// The id that the other gate gave it.
    pub id: String,
    /// Behind which mount.
    pub mount: String,
    /// The id of the gate that holds it: what is signed is good there, and nowhere else.
    #[serde(default)]
    pub gate: String,
    /// Whether the configuration says that a gate is behind the mount, or a proof does; else only the server there says so.
    #[serde(default)]
    pub vouched: bool,
    /// What the other gate says of it.
    pub data: Box<RawValue>,
}

/// One enrolled key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorShown {
    /// Its fingerprint.
    pub id: String,
    /// Whose it is.
    pub name: String,
    /// The principals of that person.
    pub principals: Vec<String>,
    /// The key, as OpenSSH writes it.
    pub key: String,
    /// Whether it is a passkey.
    pub passkey: bool,
    /// Since when it counts.
    pub enrolled: u64,
}

/// One grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantShown {
    /// Its id.
    pub id: String,
    /// What it is about.
    pub terms: Terms,
    /// Who gave it.
    pub given: Vec<Vote>,
    /// How many calls it has let through.
    pub used: u32,
    /// When it was taken back.
    pub revoked: Option<u64>,
    /// Whether it holds now.
    pub holds: bool,
}

impl ApprovalShown {
    /// Describes an approval for people.
    pub fn of(gate: &Gate, desk: &Desk, approval: &Approval) -> Self {
        let previous = desk.previous(approval).map(|previous| Previous {
            id: previous.id().to_owned(),
            arguments: previous.challenge.call.arguments.clone(),
            since: previous.since,
        });
        Self { previous, ..Self::alone(gate, approval) }
    }

    /// Without the call before it.
    pub fn alone(gate: &Gate, approval: &Approval) -> Self {
        let Approval { challenge, causes, annotation, standing, requested, since, votes, reason, room, attended, .. } = approval.clone();
        let statement = challenge.statement();
        Self {
            url: link(gate, &challenge.id),
            arguments_sha256: challenge.call.arguments_hash(),
            digest: hex(&statement.digest()),
            challenge: statement.text,
            id: challenge.id,
            standing,
            tool: challenge.call.tool,
            caller: challenge.call.caller,
            route: challenge.call.route,
            arguments: challenge.call.arguments,
            others: challenge.call.others,
            client: challenge.call.client,
            definition_sha256: challenge.call.definition,
            annotation: serde_json::from_str(&annotation).unwrap_or_default(),
            causes,
            required: challenge.required,
            votes,
            requested,
            since,
            expires: challenge.expires,
            reason,
            room,
            attended,
            previous: None,
        }
    }
}

impl From<&Operator> for OperatorShown {
    fn from(operator: &Operator) -> Self {
        Self {
            id: operator.id.clone(),
            name: operator.name.clone(),
            principals: operator.principals.iter().cloned().collect(),
            key: operator.key.line(),
            passkey: operator.passkey.is_some(),
            enrolled: operator.enrolled,
        }
    }
}

impl GrantShown {
    /// Describes a grant for people.
    pub fn of(desk: &Desk, grant: &Grant) -> Self {
        let Grant { id, terms, given, used, revoked, .. } = grant.clone();
        Self { id, terms, given, used, revoked, holds: desk.holds(grant) }
    }
}

/// The name of an event.
pub fn name_of(event: Event) -> &'static str {
    match event {
        Event::Requested => "requested",
        Event::Approved => "approved",
        Event::Expiring => "expiring",
        Event::Moved(standing) => standing.as_str(),
    }
}

/// A line of `GET /-/approvals/events`.
pub fn line(gate: &Gate, desk: &Desk, news: &News, approval: &Approval) -> Bytes {
    let shown = ApprovalShown::of(gate, desk, approval);
    Bytes::from(format!("{}\n", json!({ "event": name_of(news.event), "approval": shown })))
}

/// Where people approve at this gate: an address without a path; `None`: it does not listen.
pub fn base(gate: &Gate) -> Option<String> {
    let url = gate.config.load().gate.as_deref().and_then(|gate| gate.url.clone());
    if let Some(url) = url {
        return Some(url.as_str().trim_end_matches('/').to_owned());
    }
    let own = url::Url::parse(gate.rules.approvals.listens.get()?).ok()?;
    // Passkeys belong to names, not to addresses.
    let is_loopback = own.host_str().is_some_and(|host| host.starts_with("127.") || host == "[::1]");
    let host = if is_loopback { "localhost" } else { own.host_str()? };
    Some(format!("{}://{host}:{}", own.scheme(), own.port_or_known_default()?))
}

/// Where a person agrees to one call; empty where the gate does not listen.
pub fn link(gate: &Gate, id: &str) -> String {
    base(gate).map_or_else(String::new, |base| format!("{base}/-/console/#/approvals/{id}"))
}
