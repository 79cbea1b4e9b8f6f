//! `mcpax/confirm` (MCP-AX 11.3): reading the request, and the reasons for refusing it. The desk decides if a confirmation is taken, not
//! this module.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::proof::{Proof, Wrong};
use super::standing::Standing;

/// The params of `mcpax/confirm`: `{"id": …, "proof": …}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirm {
    pub id: String,
    /// Proof of somebody's agreement.
    pub proof: Proof,
}

impl Confirm {
    /// The method.
    pub const METHOD: &'static str = "mcpax/confirm";

    /// Reads the params and ignores unknown members.
    ///
    /// # Errors
    /// [`Wrong::Malformed`], with the fault.
    pub fn read(params: &[u8]) -> Result<Self, Wrong> {
        #[derive(Deserialize)]
        struct Params<'a> {
            id: String,
            #[serde(borrow)]
            proof: &'a RawValue,
        }
        let params: Params<'_> = serde_json::from_slice(params).map_err(|_| Wrong::Malformed("`id` and `proof` are needed, once each"))?;
        Ok(Self { id: params.id, proof: Proof::read(params.proof.get().as_bytes())? })
    }
}

/// Reasons for refusing a confirmation, a claim or a decision. One variant, one answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The call differs from the call that was shown.
    #[error("the {0} changed since the call was shown, so that what was agreed to does not hold: make the call anew")]
    Changed(&'static str),
    /// The holding gate below answered a confirmation with an impossible answer.
    #[error("the gate below that holds this call gave {0}: nothing that is held here is changed by it; ask whoever runs that gate")]
    FalseAnswer(&'static str),
    /// A preview has to be seen, and there is none.
    #[error("no preview of the call can be had, and without one it does not go out: {0}; nothing was sent")]
    NoPreview(String),
    /// Denied, expired, used or withdrawn already.
    #[error("{}", over(*.0))]
    Over(Standing),
    /// The call would do something else by now than what people saw.
    #[error(
        "the preview of the call is not the one that was agreed to any more: what the call would do has changed since, and nothing was \
         sent. Make the same call again: it waits once more, and is shown with its new preview"
    )]
    PreviewChanged,
    /// The proof is not taken.
    #[error("the proof is not taken: {0}")]
    Proof(#[from] Wrong),
    /// Two people have to agree, and this person already has.
    #[error("{0} has agreed already, and {1} different people have to: somebody else is needed")]
    SamePerson(String, u8),
    /// The caller of a call may not agree to it.
    #[error("{0} makes this call and may not approve it: somebody else has to")]
    SelfApproval(String),
    /// Nothing waits under this id.
    #[error("nothing waits for approval under this id: `banyan approvals` shows what does")]
    Unknown,
}

impl Refusal {
    /// The reason for programs.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Changed(_) => "approval_void",
            Self::FalseAnswer(_) => "false_answer",
            Self::Over(standing) => match standing {
                Standing::Denied => "approval_denied",
                Standing::Expired => "approval_expired",
                Standing::Void => "approval_void",
                Standing::Withdrawn => "approval_withdrawn",
                Standing::OutcomeUnknown => "outcome_unknown",
                Standing::Pending => "confirmation_required",
                Standing::Released | Standing::Dispatched | Standing::Below | Standing::Done => "approval_used",
            },
            Self::NoPreview(_) => "no_preview",
            Self::PreviewChanged => "preview_changed",
            Self::Proof(wrong) => wrong.reason(),
            Self::SamePerson(..) => "second_person_needed",
            Self::SelfApproval(_) => "self_approval",
            Self::Unknown => "unknown_approval",
        }
    }
}

fn over(standing: Standing) -> &'static str {
    match standing {
        Standing::Denied => "it was denied: the call does not go out",
        Standing::Expired => "it expired before enough people agreed: make the call anew",
        Standing::Void => "the definition, the arguments, the preview or the policy changed meanwhile: make the call anew",
        Standing::Withdrawn => "its caller withdrew the call",
        Standing::OutcomeUnknown => {
            "the gate ended while the call was on its way: look whether it took effect before anybody makes it again"
        }
        Standing::Pending => "it still waits: not enough people have agreed",
        Standing::Released => "enough people have agreed already: the call is free to go out, once",
        Standing::Dispatched | Standing::Below => "the call is on its way already, and goes out once only",
        Standing::Done => "the call went out already, and goes out once only",
    }
}
