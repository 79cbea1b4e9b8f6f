//! A call that needs a person's approval: its presentation and its outcome. Does not know how its caller is told.

use std::sync::Arc;
use std::time::Duration;

use mcp_proto::json::Object;
use policy::approval::{Agreement, Approval, Call, Cause, Held, Refusal, Standing, canonical, hex};
use sha2::{Digest, Sha256};

use crate::judge::approvals::{NotKept, WaitingCall, policy_version};
use crate::judge::gate::{Gate, Rules};
use crate::judge::pins;
use crate::tree::annotation::ToolFacts;
use crate::tree::back::Back;
use crate::way::error::CallError;
use crate::way::gate::bound;
use crate::way::gate::bound::Bound;
use crate::way::gate::preview::CallPreview;
use crate::way::gate::told::{Pending, Way, returned, token};
use crate::way::gate::wait::{WaitOutcome, wait};
use crate::way::gate::{Cleared, GateOutcome, GrantedCall, Release};
use crate::way::reserve::Reservation;
use crate::way::resolve::{Aim, Resolved};
use crate::words::seated::RoomAgreement;

/// Most bytes of arguments that a person may be asked to read.
const LONGEST: usize = 256 << 10;
/// Shortest wait of a caller that comes back after asking a person.
const RETURNED: Duration = Duration::from_secs(20);

/// Presents a call for approval, and waits as long as its caller does.
pub async fn hold(
    gate: &Arc<Gate>,
    reservation: Reservation,
    noted: Option<&ToolFacts>,
    back: &Arc<Back>,
    causes: Vec<Cause>,
) -> Result<GateOutcome, CallError> {
    let Reservation { mut resolved, decision, room } = reservation;
    let returned = returned(gate, &mut resolved);
    if let Some((call, release, agreed)) = gone_on(gate, &resolved).await? {
        shown(&mut resolved, &call);
        return Ok(GateOutcome::Cleared(Cleared { resolved, decision, room, release: Some(release), agreed: Some(agreed) }));
    }
    let mut call = called(gate, &resolved, &resolved.params)?;
    let has_returned = match returned {
        Some(returned) => come_back(gate, &returned, &call).await?,
        None => false,
    };
    let previewed = CallPreview { gate, resolved: &resolved, rules: decision.as_ref(), back };
    call.preview = previewed.before_people(&call).await?;
    let way = Way::of_caller(back);
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
                seated.fulfil(RoomAgreement { id: grant.to_string(), by }, &back.cancel).await?;
            }
            shown(&mut resolved, &call);
            return Ok(GateOutcome::Cleared(Cleared {
                resolved,
                decision,
                room,
                release: Some(Release::Grant(Arc::clone(&grant), Box::new(GrantedCall { call, state: None }))),
                agreed: Some(grant),
            }));
        }
        (Held::NoApprover { reachable, required }, _) => return Err(CallError::NoApprover { reachable, required }),
        (Held::Full(most), _) => return Err(CallError::Overloaded { what: "calls that wait for approval", most }),
        (Held::TooOften(wait), _) => return Err(CallError::WithdrawnTooOften { wait }),
        (Held::Over(_), Some(WaitingCall { approval, .. })) => return Err(over(&approval)),
        (Held::Waits(id), Some(waiting)) => match wait(gate, back, &waiting, way, patience, token(&resolved)).await {
            Ok(WaitOutcome::Free) => id.into(),
            Ok(WaitOutcome::Waits) => return Pending::of_approval(gate, &waiting.approval).answer(gate, back).map(GateOutcome::Answered),
            Err(error) => {
                let_go(&gate.rules, &id, &error);
                return Err(error);
            }
        },
        (Held::Over(_) | Held::Waits(_), None) => return Err(CallError::Approval(Refusal::Unknown)),
    };
    let seen = CallPreview { gate, resolved: &resolved, rules: decision.as_ref(), back }.before_leaving(&id, &call).await?;
    fulfil(&gate.rules, back, &id).await?;
    // Whoever took the call back, or lost the credential, at the moment of the agreement gets no claim.
    if back.cancel.is_cancelled() {
        gate.rules.approvals.take_back(&id, back.seated.as_ref().and_then(|seated| seated.why())).await;
        return Err(CallError::Cancelled);
    }
    // The listing may have changed while people decided.
    let call = Call { preview: seen, ..called(gate, &resolved, &resolved.params)? };
    shown(&mut resolved, &call);
    let claimed = gate.rules.approvals.claim(&id, call).await.map_err(not_kept).inspect_err(|error| let_go(&gate.rules, &id, error));
    claimed?.map_err(CallError::Approval)?;
    Ok(GateOutcome::Cleared(Cleared { resolved, decision, room, agreed: Some(Arc::clone(&id)), release: Some(Release::Approval(id)) }))
}

/// Replaces the params by those shown.
fn shown(resolved: &mut Resolved, call: &Call) {
    let is_call = matches!(resolved.aim, Aim::Tool(_));
    resolved.params = bound::as_shown(&resolved.params, call, is_call);
}

/// Recognises the next round of a call that went out and was asked for input; returns the call, its approval or grant, and the id of that.
async fn gone_on(gate: &Gate, resolved: &Resolved) -> Result<Option<(Call, Release, Arc<str>)>, CallError> {
    let Some((before, state)) = bound::round(&resolved.params) else { return Ok(None) };
    let call = called(gate, resolved, &before)?;
    let (release, id) = match gate.rules.approvals.go_on(call.clone(), state).await.map_err(not_kept)? {
        Some(Agreement::Approval(id)) => (Release::Approval(id.as_str().into()), id),
        Some(Agreement::Grant(id)) => {
            (Release::Grant(id.as_str().into(), Box::new(GrantedCall { call: call.clone(), state: Some(state) })), id)
        }
        None => return Ok(None),
    };
    Ok(Some((call, release, id.into())))
}

/// Stops waiting, after the caller is told of a failed write.
fn let_go(rules: &Rules, id: &str, error: &CallError) {
    if matches!(error, CallError::Policy(_)) {
        rules.approvals.let_go(id);
    }
}

/// Waits until the room has seen the approval of a call proposed there, unless the room settled the proposal before.
async fn fulfil(rules: &Rules, back: &Back, id: &str) -> Result<(), CallError> {
    let Some(seated) = &back.seated else { return Ok(()) };
    let votes = rules.approvals.look(id).await.map_err(not_kept)?.map(|approval| approval.votes).unwrap_or_default();
    let by = votes.into_iter().map(|vote| vote.person).collect();
    let fulfilled = seated.fulfil(RoomAgreement { id: id.to_owned(), by }, &back.cancel).await;
    if fulfilled.is_err() {
        rules.approvals.take_back(id, seated.why()).await;
    }
    Ok(fulfilled?)
}

/// Checks that a state of ours came back with the call for which it was given.
async fn come_back(gate: &Arc<Gate>, returned: &crate::way::gate::told::ReturnedCall, call: &Call) -> Result<bool, CallError> {
    let Some(approval) = gate.rules.approvals.look(&returned.id).await.map_err(not_kept)? else { return Ok(false) };
    if let Some(what) = approval.challenge.call.difference(call) {
        return Err(CallError::Approval(Refusal::Changed(what)));
    }
    // To send the call once more, its caller makes it anew, without the state of the first.
    if matches!(approval.standing, Standing::Dispatched | Standing::Done) {
        return Err(CallError::Approval(Refusal::Over(approval.standing)));
    }
    if returned.is_declined && approval.standing.is_held() {
        gate.rules.approvals.leave(&returned.id, false).await;
        return Err(CallError::Approval(Refusal::Over(Standing::Withdrawn)));
    }
    Ok(true)
}

/// Longest wait of the caller.
fn patience(gate: &Gate, resolved: &Resolved, back: &Back, has_returned: bool) -> Duration {
    let config = gate.config.load();
    let Some(gate) = config.gate.as_deref() else { return Duration::ZERO };
    // A caller that hears progress, asks a person meanwhile, sits in a room or stays as a task waits as long as people may take.
    if token(resolved).is_some() || Way::of_caller(back) == Way::Elicits || back.seated.is_some() || back.attends.is_some() {
        return gate.expires + Duration::from_secs(2);
    }
    if has_returned { gate.wait.max(RETURNED) } else { gate.wait }
}

/// Describes the call for people, with the tool as listed now; `params` are the part to look at. A request other than a tool call is named
/// by its method behind the way to its subject, and its arguments are all its params.
fn called(gate: &Gate, resolved: &Resolved, params: &Object) -> Result<Call, CallError> {
    let bad =
        |why: String| CallError::BadParams(format!("this call waits for approval, and its arguments can't be shown to anybody: {why}"));
    let is_call = matches!(resolved.aim, Aim::Tool(_));
    let Bound { arguments, others, client } = Bound::of_params(params, is_call).map_err(|why| bad(why.to_string()))?;
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
        kind: resolved.caller.principal.kind.as_str().to_owned(),
        tool: name,
        route,
        definition: hex(&definition),
        arguments,
        others,
        server: pins::server(&resolved.branch.mount, tool.unwrap_or_default()),
        client,
        preview: None,
        policy: policy_version(&gate.config.load()),
    })
}

/// Annotation of the tool, as a raw object.
fn annotation(noted: Option<&ToolFacts>) -> String {
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

/// Error for the caller of an approval that is over.
pub fn over(approval: &Approval) -> CallError {
    let why = approval.reason.clone().unwrap_or_default();
    CallError::NotApproved { id: approval.id().to_owned(), standing: approval.standing, why }
}

/// Makes the error for an approval that could not be kept.
pub fn not_kept(why: NotKept) -> CallError {
    CallError::Policy(why.to_string())
}
