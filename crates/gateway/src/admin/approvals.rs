//! Approvals, operators and grants below `/-/` (docs/approvals.md). Does not judge agreement: the owner of the gate may look, deny and
//! enrol, and agrees to nothing without a key.

use std::sync::Arc;
use std::time::Instant;

use banyan_model::{Machine, Principal};
use bytes::Bytes;
use futures_util::stream;
use http::request::Parts;
use http::{Method, Response};
use hyper::body::Incoming;
use mcp_proto::client::{Identity, stateless_meta};
use mcp_proto::envelope::{Answer, Request};
use mcp_proto::json::quote;
use policy::approval::{Approval, Operator, Proof, PublicKey, Refusal as ApprovalRefusal, Registration, Terms, Wrong, hex};
use runtime::random;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::broadcast::error::RecvError;

use crate::Gateway;
use crate::admin::routes::{LINES, is_owner, json, owner, streamed};
use call::judge::approvals::shown::{ApprovalShown, ApprovalsShown, BelowShown, GrantShown, OperatorShown};
use call::judge::approvals::{now, recorded, relying_party, request};
use call::tree::back::{Back, Sink};
use call::tree::snapshot::Sight;
use call::way::gate::unconfirmed;
use call::way::{Errand, confirm_below, own_caller};
use call::words::cancel::Cancel;
use call::words::entered::scope_of;
use call::words::node::Node;
use call::words::party::Party;
use call::words::refusal::Refusal;
use door::body;
use door::entry;
use door::port::Remote;
use door::port::fields;
use door::reply::Payload;

const POSTED_BYTES: usize = 256 << 10;

pub(super) fn is_here(path: &str) -> bool {
    ["/-/approvals", "/-/operators", "/-/grants"]
        .iter()
        .any(|own| path.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

pub(super) async fn answer(
    gateway: &Gateway,
    parts: &Parts,
    body: &mut Incoming,
    party: Option<&Arc<Party>>,
) -> Result<Response<Payload>, Refusal> {
    let path: Vec<&str> = parts.uri.path().trim_start_matches("/-/").split('/').collect();
    // Only the proof counts, so anybody may bring a confirmation.
    if let (&Method::POST, ["approvals", id, "confirm"]) = (&parts.method, &path[..]) {
        if is_owner(gateway, parts) {
            return confirm(gateway, id, &Principal::local().name, posted(body).await?).await;
        }
        return confirm_of_stranger(gateway, id, (parts, party), body).await;
    }
    owner(gateway, parts)?;
    match path[..] {
        ["approvals", ref rest @ ..] => approvals_answer(gateway, parts, rest, body).await,
        ["operators", ref rest @ ..] => operators_answer(gateway, parts, rest, body).await,
        ["grants", ref rest @ ..] => grants_answer(gateway, parts, rest, body).await,
        _ => Err(nothing(parts)),
    }
}

async fn approvals_answer(gateway: &Gateway, parts: &Parts, rest: &[&str], body: &mut Incoming) -> Result<Response<Payload>, Refusal> {
    match (&parts.method, rest) {
        (&Method::GET, []) => Ok(json(&gateway.approvals(parts.uri.query() == Some("all=true")).await?)),
        (&Method::GET, ["events"]) => Ok(events(gateway, parts)),
        (&Method::GET, [id]) => Ok(json(&gateway.approval(id).await?)),
        (&Method::GET, [id, "webauthn"]) => webauthn(gateway, id).await,
        (&Method::POST, [id, "deny"]) => deny(gateway, id, posted(body).await?).await,
        _ => Err(nothing(parts)),
    }
}

async fn operators_answer(gateway: &Gateway, parts: &Parts, rest: &[&str], body: &mut Incoming) -> Result<Response<Payload>, Refusal> {
    match (&parts.method, rest) {
        (&Method::GET, []) => operators(gateway).await,
        (&Method::POST, []) => enroll(gateway, posted(body).await?).await,
        (&Method::POST, ["webauthn"]) => begin_passkey(gateway, posted(body).await?).await,
        (&Method::POST, ["remove"]) => remove(gateway, posted(body).await?).await,
        _ => Err(nothing(parts)),
    }
}

async fn grants_answer(gateway: &Gateway, parts: &Parts, rest: &[&str], body: &mut Incoming) -> Result<Response<Payload>, Refusal> {
    match (&parts.method, rest) {
        (&Method::GET, []) => grants(gateway).await,
        (&Method::POST, []) => give(gateway, posted(body).await?).await,
        (&Method::POST, ["statement"]) => statement(gateway, &posted(body).await?).await,
        (&Method::POST, [id, "revoke"]) => revoke(gateway, id).await,
        _ => Err(nothing(parts)),
    }
}

fn nothing(parts: &Parts) -> Refusal {
    Refusal::not_found(format!("there is no {} {} here", parts.method, parts.uri.path()))
}

impl Gateway {
    /// Lists calls waiting for approval, and unknown outcomes; with `all`, finished ones too.
    pub async fn approvals(&self, all: bool) -> Result<ApprovalsShown, Refusal> {
        let gateway = Arc::clone(&self.0);
        let approvals = self.0.gate.rules.approvals.ask(move |room, now| {
            room.desk.handle_timeout(now);
            // Unknown outcomes need a person, so they stay in the list.
            let wanted = |a: &&Approval| all || !a.standing.is_over() || a.standing == policy::approval::Standing::OutcomeUnknown;
            let mut found: Vec<ApprovalShown> =
                room.desk.approvals().filter(wanted).map(|a| ApprovalShown::of_approval(&gateway.gate, &room.desk, a)).collect();
            found.sort_by(|a, b| (a.requested, &a.id).cmp(&(b.requested, &b.id)));
            found
        });
        let below = self.0.gate.rules.approvals.below.all(now()).into_iter().filter_map(|(id, held)| {
            let data = RawValue::from_string(String::from_utf8_lossy(&held.data).into_owned()).ok()?;
            Some(BelowShown { id, mount: held.mount.to_string(), gate: held.gate, vouched: held.is_vouched, data })
        });
        Ok(ApprovalsShown { now: now(), approvals: approvals.await?, below: below.collect() })
    }

    /// Finds an approval by id.
    pub async fn approval(&self, id: &str) -> Result<ApprovalShown, Refusal> {
        let (gateway, id) = (Arc::clone(&self.0), id.to_owned());
        let found = self.0.gate.rules.approvals.ask(move |room, now| {
            room.desk.handle_timeout(now);
            room.desk.approval(&id).map(|approval| ApprovalShown::of_approval(&gateway.gate, &room.desk, approval))
        });
        found.await?.ok_or_else(|| ApprovalRefusal::Unknown.into())
    }
}

#[derive(Deserialize)]
struct Confirmation {
    proof: Box<RawValue>,
}

/// Takes a confirmation from a stranger who shows nothing but a proof. The rules of the door hold, and each address may fail only so often
/// at one call.
async fn confirm_of_stranger(
    gateway: &Gateway,
    id: &str,
    (parts, party): (&Parts, Option<&Arc<Party>>),
    body: &mut Incoming,
) -> Result<Response<Payload>, Refusal> {
    entry::outer(&gateway.0.gate.config.load(), party, &fields(parts)).map_err(|refused| Refusal::refused(refused.why))?;
    // Before anything is counted: made-up ids must not use up the attempts of others at the same address.
    if !gateway.0.gate.rules.approvals.may_know(id) && gateway.0.gate.rules.approvals.below.find(id).is_none() {
        return Err(ApprovalRefusal::Unknown.into());
    }
    let (attempts, remote) = (&gateway.0.admin.attempts, parts.extensions.get::<Remote>());
    if !attempts.take_one(id, remote, Instant::now()) {
        let why = "too many confirmations of this call from this address were not taken in the last minute: try again in a minute";
        return Err(Refusal::too_many(why));
    }
    let confirmed = confirm(gateway, id, "", posted(body).await?).await;
    if confirmed.is_ok() {
        attempts.give_back(id, remote);
    }
    confirmed
}

async fn confirm(gateway: &Gateway, id: &str, who: &str, posted: Confirmation) -> Result<Response<Payload>, Refusal> {
    if gateway.0.gate.rules.approvals.below.find(id).is_some() {
        let meta = stateless_meta(&Identity { info: Node::info(), capabilities: Bytes::from_static(b"{}") });
        let params = format!("{{\"id\":{},\"proof\":{},\"_meta\":{meta}}}", quote(id), posted.proof.get());
        let asked = Request { id: Bytes::from_static(b"0"), method: "mcpax/confirm".into(), params: Bytes::from(params).into() };
        let back = Back::new(own_caller(scope_of(&gateway.0.gate.config.load(), "")), Sink::None, None, Cancel::default());
        let sight = Sight::of_caller(gateway.0.gate.mounts.tree.load_full(), &back.caller);
        let errand = Errand { gate: &gateway.0.gate, sight: &sight, request: &asked, back: &back };
        return match confirm_below(&errand, id).await {
            Ok(Answer::Result(result)) => Ok(json(&serde_json::from_slice::<serde_json::Value>(&result).unwrap_or_default())),
            Ok(Answer::Error(error)) => Err(Refusal::refused(crate::admin::routes::message_of(&error))),
            Err(error) => Err(Refusal::failed(error.to_string())),
        };
    }
    let confirmed = match Proof::read(posted.proof.get().as_bytes()) {
        Ok(proof) => gateway.0.gate.rules.approvals.confirm(&gateway.0.gate, id, proof).await?,
        Err(wrong) => Err(wrong.into()),
    };
    let (standing, approvals, required) = match confirmed {
        Ok(confirmed) => confirmed,
        Err(why) => {
            unconfirmed(&gateway.0.gate, id, who, &why);
            return Err(why.into());
        }
    };
    Ok(json(&json!({ "id": id, "standing": standing, "approvals": approvals, "required": required })))
}

#[derive(Deserialize)]
struct Denial {
    #[serde(default)]
    reason: String,
}

async fn deny(gateway: &Gateway, id: &str, posted: Denial) -> Result<Response<Payload>, Refusal> {
    let own = id.to_owned();
    gateway.0.gate.rules.approvals.ask(move |room, now| room.desk.deny(now, &own, &posted.reason)).await??;
    Ok(json(&gateway.approval(id).await?))
}

async fn webauthn(gateway: &Gateway, id: &str) -> Result<Response<Payload>, Refusal> {
    let (own, party) = (id.to_owned(), relying_party(&gateway.0.gate).ok_or_else(no_party)?);
    let options = gateway.0.gate.rules.approvals.ask(move |room, now| {
        let challenge = &room.desk.approval(&own)?.challenge;
        Some(request(room.desk.anchors(), challenge.statement().digest(), &party, (now.unix_seconds(), challenge.expires)))
    });
    Ok(json(&options.await?.ok_or(ApprovalRefusal::Unknown)?))
}

fn events(gateway: &Gateway, parts: &Parts) -> Response<Payload> {
    let live = gateway.0.gate.rules.approvals.events();
    let from_now_on = stream::unfold(live, |mut live| async move {
        match live.recv().await {
            Ok(line) => Some((line, live)),
            // A reader that fell behind asks for the whole list again.
            Err(RecvError::Lagged(_)) => Some((Bytes::from_static(b"{\"event\":\"missed\"}\n"), live)),
            Err(RecvError::Closed) => None,
        }
    });
    streamed(gateway, parts, LINES, from_now_on)
}

async fn operators(gateway: &Gateway) -> Result<Response<Payload>, Refusal> {
    let all =
        gateway.0.gate.rules.approvals.ask(|room, _| room.desk.anchors().operators.values().map(OperatorShown::from).collect::<Vec<_>>());
    Ok(json(&json!({ "operators": all.await? })))
}

#[derive(Deserialize)]
struct Enrolment {
    name: String,
    #[serde(default)]
    principals: Vec<String>,
    key: Option<String>,
    credential: Option<Registration>,
}

async fn enroll(gateway: &Gateway, posted: Enrolment) -> Result<Response<Payload>, Refusal> {
    let name = posted.name.trim().to_owned();
    if name.is_empty() || name.len() > 100 || name.chars().any(char::is_control) {
        return Err(Refusal::refused("an operator needs a name of 1 to 100 characters"));
    }
    let (party, of_key) = (relying_party(&gateway.0.gate), posted.key.as_deref().map(PublicKey::parse));
    let of_key = of_key.transpose().map_err(|none| Refusal::refused(none.to_string()))?;
    let principals = posted.principals.into_iter().collect();
    let enrolled = gateway.0.gate.rules.approvals.ask(move |room, now| {
        let (key, passkey) = match (of_key, posted.credential, party) {
            (Some(key), None, _) => (key, None),
            (None, Some(made), Some(party)) => {
                let (key, passkey) = room.passkeys.finish(&name, &made, &party, now.unix_seconds())?;
                (key, Some(passkey))
            }
            _ => return Err(ApprovalRefusal::Proof(Wrong::Malformed("either `key` or `credential` is needed"))),
        };
        let operator = Operator { id: key.fingerprint(), name, principals, key, passkey, enrolled: now.unix_seconds() };
        Ok(OperatorShown::from(&room.desk.enroll(operator)))
    });
    let operator = enrolled.await??;
    tracing::warn!(operator = operator.name, key = operator.id, "from now on this key approves calls");
    recorded::operator(&gateway.0.gate.record, "enrolled", &operator);
    Ok(json(&operator))
}

#[derive(Deserialize)]
struct KeyName {
    name: String,
}

async fn begin_passkey(gateway: &Gateway, posted: KeyName) -> Result<Response<Payload>, Refusal> {
    let party = relying_party(&gateway.0.gate).ok_or_else(no_party)?;
    let options = gateway
        .0
        .gate
        .rules
        .approvals
        .ask(move |room, now| room.passkeys.begin(posted.name.trim(), room.desk.anchors(), &party, now.unix_seconds()));
    Ok(json(&options.await?))
}

#[derive(Deserialize)]
struct ById {
    id: String,
}

async fn remove(gateway: &Gateway, posted: ById) -> Result<Response<Payload>, Refusal> {
    let ById { id } = posted;
    let removed = gateway.0.gate.rules.approvals.ask(move |room, now| room.desk.remove(now, &id)).await?;
    let removed = removed.ok_or_else(|| Refusal::not_found("there is no such key: `banyan operator list` shows them"))?;
    tracing::warn!(operator = removed.name, key = removed.id, "this key approves nothing any more");
    let removed = OperatorShown::from(&removed);
    recorded::operator(&gateway.0.gate.record, "removed", &removed);
    Ok(json(&removed))
}

async fn grants(gateway: &Gateway) -> Result<Response<Payload>, Refusal> {
    let all = gateway.0.gate.rules.approvals.ask(|room, now| {
        room.desk.handle_timeout(now);
        room.desk.grants().map(|grant| GrantShown::of_grant(&room.desk, grant)).collect::<Vec<_>>()
    });
    Ok(json(&json!({ "grants": all.await? })))
}

#[derive(Deserialize)]
struct StatementRequest {
    terms: Terms,
}

/// A grant's statement, to be signed.
#[derive(Serialize)]
struct ToSign {
    id: String,
    text: String,
    digest: String,
    namespace: &'static str,
    required: u8,
    /// Options for a passkey's signature in the browser, where people approve in a browser.
    webauthn: Option<serde_json::Value>,
}

async fn statement(gateway: &Gateway, posted: &StatementRequest) -> Result<Response<Payload>, Refusal> {
    if posted.terms.expires <= now() {
        return Err(Refusal::refused("`expires` is over already: give a time to come, in seconds since 1970"));
    }
    let id = random::token();
    let statement = posted.terms.statement(&id, &gateway.0.gate.node.id);
    let required = gateway.0.gate.config.load().gate.as_deref().map_or(1, |gate| gate.approvals);
    let (digest, until) = (statement.digest(), posted.terms.expires);
    let party = relying_party(&gateway.0.gate);
    let asked = |party| {
        gateway.0.gate.rules.approvals.ask(move |room, now| request(room.desk.anchors(), digest, &party, (now.unix_seconds(), until)))
    };
    let webauthn = match party {
        Some(party) => Some(asked(party).await?),
        None => None,
    };
    let digest = hex(&digest);
    Ok(json(&ToSign { id, text: statement.text, digest, namespace: statement.namespace, required, webauthn }))
}

#[derive(Deserialize)]
struct SignedGrant {
    id: String,
    terms: Terms,
    proofs: Vec<Box<RawValue>>,
}

async fn give(gateway: &Gateway, posted: SignedGrant) -> Result<Response<Payload>, Refusal> {
    let SignedGrant { id, terms, proofs } = posted;
    let proofs: Vec<Proof> = proofs.iter().map(|proof| Proof::read(proof.get().as_bytes())).collect::<Result<_, _>>()?;
    let party = relying_party(&gateway.0.gate);
    let given = gateway.0.gate.rules.approvals.ask(move |room, now| {
        room.desk.set_relying_party(party);
        room.desk.give(now, &id, terms, &proofs).map(|grant| GrantShown::of_grant(&room.desk, &grant))
    });
    let grant = given.await??;
    tracing::warn!(grant = grant.id, tool = grant.terms.tool, caller = grant.terms.caller, "calls go out by this grant from now on");
    recorded::grant(&gateway.0.gate.record, "given", &grant);
    Ok(json(&grant))
}

async fn revoke(gateway: &Gateway, id: &str) -> Result<Response<Payload>, Refusal> {
    let id = id.to_owned();
    let revoked = gateway.0.gate.rules.approvals.ask(move |room, now| {
        room.desk.revoke(now, &id);
        room.desk.grant(&id).map(|grant| GrantShown::of_grant(&room.desk, grant))
    });
    let grant = revoked.await?.ok_or_else(|| Refusal::not_found("there is no such grant: `banyan grants list` shows them"))?;
    recorded::grant(&gateway.0.gate.record, "revoked", &grant);
    Ok(json(&grant))
}

fn no_party() -> Refusal {
    Refusal::failed("nobody knows where this gate's calls are approved: let it listen, or set `gate.url`")
}

pub(super) async fn posted<T: DeserializeOwned>(body: &mut Incoming) -> Result<T, Refusal> {
    let body = body::posted(body, POSTED_BYTES).await.map_err(|why| Refusal::failed(why.to_string()))?;
    let bytes: &[u8] = if body.is_empty() { b"{}" } else { &body };
    serde_json::from_slice(bytes).map_err(|e| Refusal::failed(format!("the request is not what belongs here: {e}")))
}
