//! A call that somebody has to agree to: what is put before them, and what becomes of it. How its caller is told is not known here.

use std::sync::Arc;
use std::time::Duration;

use mcp_proto::json::Object;
use policy::approval::{Agreement, Approval, Call, Cause, Held, Refusal, Standing, canonical, hex};
use sha2::{Digest, Sha256};

use crate::judge::approvals::{NotKept, Waiting, policy_version};
use crate::judge::gate::{Gate, Rules};
use crate::judge::pins;
use crate::tree::annotation::Noted;
use crate::tree::back::Back;
use crate::way::error::CallError;
use crate::way::gate::bound;
use crate::way::gate::bound::Bound;
use crate::way::gate::told::{Pending, Way, returned, token};
use crate::way::gate::wait::{Waited, wait};
use crate::way::gate::{Begun, Cleared, Gated, Release};
use crate::way::reserve::Reservation;
use crate::way::resolve::{Aim, Resolved};
use crate::words::seated::Agreed;

/// Longer arguments are read by nobody, in bytes.
const LONGEST: usize = 256 << 10;
/// How long a caller that comes back from asking somebody is kept waiting at least.
const RETURNED: Duration = Duration::from_secs(20);

/// Puts a call before those who may agree, and waits as long as its caller does.
pub async fn hold(
    gate: &Arc<Gate>,
    reservation: Reservation,
    noted: Option<&Noted>,
    back: &Arc<Back>,
    causes: Vec<Cause>,
) -> Result<Gated, CallError> {
    let Reservation { mut resolved, decision, room } = reservation;
    let returned = returned(gate, &mut resolved);
    if let Some((call, release, agreed)) = gone_on(gate, &resolved).await? {
        shown(&mut resolved, &call);
        return Ok(Gated::Cleared(Cleared { resolved, decision, room, release: Some(release), agreed: Some(agreed) }));
    }
    let call = called(gate, &resolved, &resolved.params)?;
    let has_returned = match returned {
        Some(returned) => come_back(gate, &returned, &call).await?,
        None => false,
    };
    let way = Way::of(back);
    let patience = patience(gate, &resolved, back, has_returned);
    let from = back.seated.as_ref().map(|seated| Arc::clone(&seated.room));
    let held = gate.rules.approvals.hold(call.clone(), (causes, annotation(noted)), !patience.is_zero(), from).await;
    let (held, waiting) = held.map_err(not_kept)?;
    let id: Arc<str> = match (held, waiting) {
        (Held::Free(id), _) => id.into(),
        (Held::Granted(grant), _) => {
            let grant: Arc<str> = grant.into();
            if let Some(seated) = &back.seated {
                let by = gate.rules.approvals.gave(&grant).await;
                seated.fulfil(Agreed { id: grant.to_string(), by }, &back.cancel).await?;
            }
            shown(&mut resolved, &call);
            return Ok(Gated::Cleared(Cleared {
                resolved,
                decision,
                room,
                release: Some(Release::Grant(Arc::clone(&grant), Box::new(Begun { call, state: None }))),
                agreed: Some(grant),
            }));
        }
        (Held::NoApprover { reachable, required }, _) => return Err(CallError::NoApprover { reachable, required }),
        (Held::Full(most), _) => return Err(CallError::Overloaded { what: "calls that wait for approval", most }),
        (Held::TooOften(wait), _) => return Err(CallError::WithdrawnTooOften { wait }),
        (Held::Over(_), Some(Waiting { approval, .. })) => return Err(over(&approval)),
        (Held::Waits(id), Some(waiting)) => match wait(gate, back, &waiting, way, patience, token(&resolved)).await {
            Ok(Waited::Free) => id.into(),
            Ok(Waited::Waits) => return Pending::of(gate, &waiting.approval).answer(gate, back).map(Gated::Answered),
            Err(error) => {
                let_go(&gate.rules, &id, &error);
                return Err(error);
            }
        },
        (Held::Over(_) | Held::Waits(_), None) => return Err(CallError::Approval(Refusal::Unknown)),
    };
    fulfil(&gate.rules, back, &id).await?;
    // What is listed may have changed while somebody thought about it.
    let call = called(gate, &resolved, &resolved.params)?;
    shown(&mut resolved, &call);
    let claimed = gate.rules.approvals.claim(&id, call).await.map_err(not_kept).inspect_err(|error| let_go(&gate.rules, &id, error));
    claimed?.map_err(CallError::Approval)?;
    Ok(Gated::Cleared(Cleared { resolved, decision, room, agreed: Some(Arc::clone(&id)), release: Some(Release::Approval(id)) }))
}

/// What goes out is what was shown.
fn shown(resolved: &mut Resolved, call: &Call) {
    let is_call = matches!(resolved.aim, Aim::Tool(_));
    resolved.params = bound::as_shown(&resolved.params, call, is_call);
}

/// Whether a request is the next round of a call that went out and was asked for input: the call, what lets it out, once, and the id of that.
async fn gone_on(gate: &Gate, resolved: &Resolved) -> Result<Option<(Call, Release, Arc<str>)>, CallError> {
    let Some((before, state)) = bound::round(&resolved.params) else { return Ok(None) };
    let call = called(gate, resolved, &before)?;
    let (release, id) = match gate.rules.approvals.go_on(call.clone(), state).await.map_err(not_kept)? {
        Some(Agreement::Approval(id)) => (Release::Approval(id.as_str().into()), id),
        Some(Agreement::Grant(id)) => (Release::Grant(id.as_str().into(), Box::new(Begun { call: call.clone(), state: Some(state) })), id),
        None => return Ok(None),
    };
    Ok(Some((call, release, id.into())))
}

/// Whoever is told that something could not be written down does not wait any more.
fn let_go(rules: &Rules, id: &str, error: &CallError) {
    if matches!(error, CallError::Policy(_)) {
        rules.approvals.let_go(id);
    }
}

/// Somebody has agreed to what is proposed in a room: the call goes out once the room has seen that, unless somebody there was faster.
async fn fulfil(rules: &Rules, back: &Back, id: &str) -> Result<(), CallError> {
    let Some(seated) = &back.seated else { return Ok(()) };
    let votes = rules.approvals.look(id).await.map_err(not_kept)?.map(|approval| approval.votes).unwrap_or_default();
    let by = votes.into_iter().map(|vote| vote.person).collect();
    let fulfilled = seated.fulfil(Agreed { id: id.to_owned(), by }, &back.cancel).await;
    if fulfilled.is_err() {
        rules.approvals.take_back(id, seated.why()).await;
    }
    Ok(fulfilled?)
}

/// A caller came back with a state of ours: to the very call that it was given for?
async fn come_back(gate: &Arc<Gate>, returned: &crate::way::gate::told::Returned, call: &Call) -> Result<bool, CallError> {
    let Some(approval) = gate.rules.approvals.look(&returned.id).await.map_err(not_kept)? else { return Ok(false) };
    if let Some(what) = approval.challenge.call.difference(call) {
        return Err(CallError::Approval(Refusal::Changed(what)));
    }
    // Whoever wants it to go out once more makes it anew, without the state that it went out with.
    if matches!(approval.standing, Standing::Dispatched | Standing::Done) {
        return Err(CallError::Approval(Refusal::Over(approval.standing)));
    }
    if returned.is_declined && approval.standing.is_held() {
        gate.rules.approvals.leave(&returned.id, false).await;
        return Err(CallError::Approval(Refusal::Over(Standing::Withdrawn)));
    }
    Ok(true)
}

/// How long its caller is kept waiting.
fn patience(gate: &Gate, resolved: &Resolved, back: &Back, has_returned: bool) -> Duration {
    let config = gate.config.load();
    let Some(gate) = config.gate.as_deref() else { return Duration::ZERO };
    // Whoever hears progress, asks a person meanwhile or sits in a room waits as long as somebody may take.
    if token(resolved).is_some() || Way::of(back) == Way::Elicits || back.seated.is_some() {
        return gate.expires + Duration::from_secs(2);
    }
    if has_returned { gate.wait.max(RETURNED) } else { gate.wait }
}

/// The call as it is put before people, with the tool as it is listed now; `params`: what of it is looked at. What is no call of a tool is
/// named by its method, behind the way to what it is about, and its arguments are all that it says.
fn called(gate: &Gate, resolved: &Resolved, params: &Object) -> Result<Call, CallError> {
    let bad =
        |why: String| CallError::BadParams(format!("this call waits for approval, and its arguments can't be shown to anybody: {why}"));
    let is_call = matches!(resolved.aim, Aim::Tool(_));
    let Bound { arguments, others, client } = Bound::of(params, is_call).map_err(|why| bad(why.to_string()))?;
    if arguments.len() + others.len() + client.len() > LONGEST {
        return Err(bad(format!("they are longer than {LONGEST} bytes")));
    }
    let mount = &resolved.branch.mount.config.name;
    let tree = gate.mounts.tree.load();
    let tool = if is_call { Some(&*resolved.name) } else { resolved.aim.began() };
    let listed = |tool| tree.branch(mount).and_then(|branch| branch.catalog.tools.iter().find(|offer| offer.entry.key == tool));
    let offer = tool.and_then(listed);
    if is_call && offer.is_none() {
        return Err(CallError::UnknownTool(resolved.name.clone()));
    }
    let below = offer.iter().flat_map(|offer| &offer.local.0);
    let mut route: Vec<String> = std::iter::once(mount).chain(below).map(ToString::to_string).collect();
    let mut name = route.join(".");
    if !is_call {
        name = format!("{name}: {}", resolved.wire_method);
        route.push(resolved.wire_method.to_string());
    }
    let definition = offer.map_or(&b""[..], |offer| &offer.entry.raw);
    let definition = canonical(definition).map_or_else(|_| Sha256::digest(definition), Sha256::digest);
    Ok(Call {
        caller: resolved.caller.principal.name.to_string(),
        tool: name,
        route,
        definition: hex(&definition),
        arguments,
        others,
        server: pins::server(&resolved.branch.mount, tool.unwrap_or_default()),
        client,
        policy: policy_version(&gate.config.load()),
    })
}

/// What is known of the tool, as a raw object.
fn annotation(noted: Option<&Noted>) -> String {
    let Some(noted) = noted else { return r#"{"mutable":true,"reversible":false}"#.to_owned() };
    let annotation = noted.annotation();
    serde_json::json!({
        "mutable": annotation.mutable,
        "reversible": annotation.reversible,
        "idempotent": annotation.idempotent,
        "cost_class": annotation.cost_class.as_str(),
        "latency_class": noted.class().as_str(),
        "hops": annotation.hops,
    })
    .to_string()
}

/// How an approval ended, as its caller is told.
pub fn over(approval: &Approval) -> CallError {
    let why = approval.reason.clone().unwrap_or_default();
    CallError::NotApproved { id: approval.id().to_owned(), standing: approval.standing, why }
}

/// Makes the error for an approval that could not be kept.
pub fn not_kept(why: NotKept) -> CallError {
    CallError::Policy(why.to_string())
}
