//! `mcpax/confirm` (AX-45): a proof of agreement, for a call held by this gate or a gate below. Does not judge a proof on its way down; the
//! holder of the call does.

use bytes::Bytes;
use mcp_proto::envelope::Answer;
use mcp_proto::json::{Members, Object, quote};
use policy::approval::{Confirm, Refusal, Standing};

use crate::judge::approvals::now;
use crate::way::error::CallError;
use crate::way::forward::forward;
use crate::way::gate::hold::not_kept;
use crate::way::gate::unconfirmed::unconfirmed;
use crate::way::resolve;
use crate::way::resolve::Aim;
use crate::way::{Errand, adapted};

/// Answers a confirmation.
pub async fn confirm(errand: &Errand<'_>) -> Result<Answer, CallError> {
    let Errand { gate, request, back, .. } = *errand;
    let named = request.params.str("id").unwrap_or_default();
    if gate.rules.approvals.below.find(&named).is_some() {
        return confirm_below(errand, &named).await;
    }
    let confirmed = match Confirm::read(request.params.text()) {
        Ok(Confirm { id, proof }) => gate.rules.approvals.confirm(gate, &id, proof).await.map_err(not_kept)?.map(|how| (id, how)),
        Err(wrong) => Err(wrong.into()),
    };
    let (id, (standing, approvals, required)) = match confirmed {
        Ok(confirmed) => confirmed,
        Err(why) => {
            unconfirmed(gate, &named, &back.caller.principal.name, &why);
            return Err(CallError::Approval(why));
        }
    };
    let standing = standing.as_str();
    let raw = format!("{{\"id\":{},\"standing\":\"{standing}\",\"approvals\":{approvals},\"required\":{required}}}", quote(&id));
    Ok(Answer::Result(adapted(Bytes::from(raw).into(), back.caller.era)))
}

/// Passes a confirmation down to the gate that holds the call.
pub async fn confirm_below(errand: &Errand<'_>, id: &str) -> Result<Answer, CallError> {
    let Errand { gate, sight, request, back } = *errand;
    let unknown = || CallError::Approval(Refusal::Unknown);
    let held = gate.rules.approvals.below.find(id).ok_or_else(unknown)?;
    let branch = sight.tree.branch(&held.mount).filter(|branch| branch.is_gate()).ok_or_else(unknown)?;
    let resolved = resolve::at(branch.clone(), &back.caller, request, (Aim::Confirmation, id.to_owned()));
    let answer = errand.to(resolved, |cleared, trace| forward(cleared, back, trace)).await?;
    let Answer::Result(result) = &answer else { return Ok(answer) };
    match is_released(result, id, &held.data) {
        Ok(true) => gate.rules.approvals.below.freed(id, now()),
        Ok(false) => {}
        Err(wrong) => {
            let why = Refusal::FalseAnswer(wrong);
            unconfirmed(gate, id, &back.caller.principal.name, &why);
            return Err(CallError::Approval(why));
        }
    }
    Ok(answer)
}

/// Reads from the holding gate's answer if the call is free; `held` is its earlier notice. Another implementation may leave members out.
///
/// # Errors
/// If the answer contradicts the notice. A gate below can lie about its own calls undetected, but would have to hold them itself.
fn is_released(result: &Object, id: &str, held: &Bytes) -> Result<bool, &'static str> {
    let number = |members: &Members<'_>, key: &str| members.get(key).and_then(|raw| std::str::from_utf8(raw).ok()?.parse::<u8>().ok());
    let (said, before) = (result.members(), Members::again(held));
    if result.str("id").is_some_and(|named| named != id) {
        return Err("an answer about another call");
    }
    let required = number(&said, "required");
    if required.is_some() && number(&before, "required").is_some_and(|before| required != Some(before)) {
        return Err("another number of people who have to agree than before");
    }
    let is_enough = number(&said, "approvals").zip(required).map(|(approvals, required)| approvals >= required);
    match result.str("standing").as_deref() {
        Some(standing) if standing == Standing::Released.as_str() && is_enough != Some(false) => Ok(true),
        Some(standing) if standing == Standing::Pending.as_str() && is_enough != Some(true) => Ok(false),
        Some(_) => Err("an answer that does not go with how many have agreed"),
        None => Ok(false),
    }
}
