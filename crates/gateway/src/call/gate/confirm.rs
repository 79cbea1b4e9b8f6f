//! `mcpax/confirm` (AX-45): a proof that somebody agrees, for a call that this gate holds, or one below. Whether the proof counts is decided
//! by whoever holds the call, not by whoever passes the confirmation on.

use std::sync::Arc;

use bytes::Bytes;
use mcp_proto::envelope::{Answer, Request};
use mcp_proto::json::quote;
use policy::approval::{Confirm, Refusal};

use super::hold::not_kept;
use crate::Inner;
use crate::approvals::recorded;
use crate::call::back::Back;
use crate::call::error::CallError;
use crate::call::{adapted, passing};
use crate::tree::Tree;

/// Answers a confirmation.
pub(crate) async fn confirm(gateway: &Arc<Inner>, tree: &Tree, request: &Request, back: &Arc<Back>) -> Result<Answer, CallError> {
    let named = request.params.str("id").unwrap_or_default();
    if gateway.approvals.below.find(&named).is_some() {
        return confirm_below(gateway, tree, &named, request, back).await;
    }
    let confirmed = match Confirm::read(request.params.text()) {
        Ok(Confirm { id, proof }) => gateway.approvals.confirm(gateway, &id, proof).await.map_err(not_kept)?.map(|how| (id, how)),
        Err(wrong) => Err(wrong.into()),
    };
    let (id, (standing, approvals, required)) = match confirmed {
        Ok(confirmed) => confirmed,
        Err(why) => {
            recorded::unconfirmed(gateway, &named, &back.caller.principal.name, &why).await;
            return Err(CallError::Approval(why));
        }
    };
    let standing = standing.as_str();
    let raw = format!("{{\"id\":{},\"standing\":\"{standing}\",\"approvals\":{approvals},\"required\":{required}}}", quote(&id));
    Ok(Answer::Result(adapted(Bytes::from(raw).into(), back.caller.era)))
}

/// Passes a confirmation down to the gate that holds the call.
pub(crate) async fn confirm_below(
    gateway: &Arc<Inner>,
    tree: &Tree,
    id: &str,
    request: &Request,
    back: &Arc<Back>,
) -> Result<Answer, CallError> {
    let unknown = || CallError::Approval(Refusal::Unknown);
    let held = gateway.approvals.below.find(id).ok_or_else(unknown)?;
    let branch = tree.branch(&held.mount).filter(|branch| branch.is_gate).ok_or_else(unknown)?;
    let answer = passing::ask(branch, request, back).await?;
    if let Answer::Result(result) = &answer
        && result.str("standing").as_deref() == Some("released")
    {
        gateway.approvals.below.forget(id);
    }
    Ok(answer)
}
