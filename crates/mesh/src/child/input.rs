//! What the task of a membership is told. Nothing is decided here.

use mcp_proto::envelope::Answer;
use mesh_proto::id::{CallId, LinkId};
use mesh_proto::refusal::Refusal;
use mesh_proto::reply::Reply;
use tokio::sync::oneshot;

use crate::link::Dialled;

/// One input.
pub enum Input {
    /// What became of a request.
    Answered(CallId, Option<Answer>),
    /// A parent asks, by a request or over a link.
    Asked { method: String, params: Vec<u8>, reply: oneshot::Sender<Result<String, Refusal>> },
    /// What became of dialling a parent.
    Dialled(usize, Result<Dialled, String>),
    /// Leave the tree; the sender is told when that is done.
    Leave(oneshot::Sender<()>),
    /// A link is gone.
    LinkLost(LinkId),
    /// The gates below mounts may be others.
    MountsChanged,
}

/// How the machine takes an answer; `None`: none will come.
pub fn reply(answer: Option<&Answer>) -> Reply<'_> {
    match answer {
        Some(Answer::Error(error)) => Reply::Error(error),
        Some(Answer::Result(result)) => Reply::Result(result.text()),
        None => Reply::Lost,
    }
}
