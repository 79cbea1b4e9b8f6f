//! Approvals, grants and operators as the admin API shows them (docs/approvals.md). These shapes only ever grow; nothing is decided here.

use bytes::Bytes;
use policy::approval::{Approval, Cause, Desk, Event, Grant, News, Operator, Preview, Standing, Terms, Vote, hex};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use crate::judge::gate::Gate;

/// Answer to `GET /-/approvals`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApprovalsShown {
    /// Unix time at the gate, in seconds.
    pub now: u64,
    pub approvals: Vec<ApprovalShown>,
    /// Calls held by gates below.
    pub below: Vec<BelowShown>,
}

/// Approval in the admin API.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApprovalShown {
    pub id: String,
    pub standing: Standing,
    /// Dotted name of the tool.
    pub tool: String,
    pub caller: String,
    pub route: Vec<String>,
    /// Canonical JSON: the text that is shown is the text that is hashed.
    pub arguments: String,
    /// SHA-256 of the arguments, in hexadecimal.
    pub arguments_sha256: String,
    /// Other members of the outgoing request, in canonical form; absent if none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub others: String,
    /// Words of the request about its client, in canonical form; absent where there are none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub client: String,
    /// Preview by the call's own server, as signed; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// Reason for the lack of a preview that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview_missing: Option<String>,
    /// SHA-256 of the tool's definition, in hexadecimal.
    pub definition_sha256: String,
    pub annotation: serde_json::Value,
    /// Reasons for asking.
    pub causes: Vec<Cause>,
    /// Number of different people who have to agree.
    pub required: u8,
    pub votes: Vec<Vote>,
    /// Unix time, in seconds.
    pub requested: u64,
    /// Time of the present standing.
    pub since: u64,
    /// Last time for agreement.
    pub expires: u64,
    /// Text to be signed.
    pub challenge: String,
    /// SHA-256 of the challenge, in hexadecimal.
    pub digest: String,
    /// Reason given by a person, or the change that voided it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Room in which the call was asked for or proposed, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<String>,
    /// The caller waits.
    pub attended: bool,
    /// Address where a person agrees.
    pub url: String,
    /// Last call of the same tool that was agreed to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Previous>,
}

/// An earlier call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Previous {
    pub id: String,
    pub arguments: String,
    /// Time of its last transition.
    pub since: u64,
}

/// Call held by a gate below, in the admin API.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BelowShown {
    /// Id given by the other gate.
    pub id: String,
    pub mount: String,
    /// Id of the holding gate: a signature counts there, and nowhere else.
    #[serde(default)]
    pub gate: String,
    /// The gate behind the mount is vouched for by the configuration or a proof, and not only by the server's claim.
    #[serde(default)]
    pub vouched: bool,
    /// Notice of the other gate.
    pub data: Box<RawValue>,
}

/// Operator's key, in the admin API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorShown {
    /// Fingerprint.
    pub id: String,
    /// Name of the person.
    pub name: String,
    /// Principals of the person.
    pub principals: Vec<String>,
    /// Key in the form of OpenSSH.
    pub key: String,
    pub passkey: bool,
    /// Time from which the key counts.
    pub enrolled: u64,
}

/// Grant in the admin API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantShown {
    pub id: String,
    pub terms: Terms,
    /// People who gave it.
    pub given: Vec<Vote>,
    /// Number of calls let through.
    pub used: u32,
    /// Time of revocation.
    pub revoked: Option<u64>,
    /// The grant holds now.
    pub holds: bool,
}

impl ApprovalShown {
    /// Describes an approval for people.
    pub fn of_approval(gate: &Gate, desk: &Desk, approval: &Approval) -> Self {
        let previous = desk.previous(approval).map(|previous| Previous {
            id: previous.id().to_owned(),
            arguments: previous.challenge.call.arguments.clone(),
            since: previous.since,
        });
        Self { previous, ..Self::alone(gate, approval) }
    }

    /// Describes an approval without the earlier call.
    pub fn alone(gate: &Gate, approval: &Approval) -> Self {
        let Approval { challenge, causes, annotation, standing, requested, since, votes, reason, room, attended, .. } = approval.clone();
        let statement = challenge.statement();
        let (preview, preview_missing) = match challenge.call.preview.clone() {
            Some(Preview::Shown(text)) => (Some(text), None),
            Some(Preview::Missing(why)) => (None, Some(why)),
            None => (None, None),
        };
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
            preview,
            preview_missing,
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
    pub fn of_grant(desk: &Desk, grant: &Grant) -> Self {
        let Grant { id, terms, given, used, revoked, .. } = grant.clone();
        Self { id, terms, given, used, revoked, holds: desk.holds(grant) }
    }
}

/// Name of an event.
pub fn name_of(event: Event) -> &'static str {
    match event {
        Event::Requested => "requested",
        Event::Approved => "approved",
        Event::Expiring => "expiring",
        Event::Moved(standing) => standing.as_str(),
    }
}

/// Line of `GET /-/approvals/events`.
pub fn line(gate: &Gate, desk: &Desk, news: &News, approval: &Approval) -> Bytes {
    let shown = ApprovalShown::of_approval(gate, desk, approval);
    Bytes::from(format!("{}\n", json!({ "event": name_of(news.event), "approval": shown })))
}

/// Address, without a path, where people approve at this gate; `None` if the gate does not listen.
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

/// Address where a person agrees to a call; empty if the gate does not listen.
pub fn link(gate: &Gate, id: &str) -> String {
    base(gate).map_or_else(String::new, |base| format!("{base}/-/console/#/approvals/{id}"))
}
