//! Inputs of a membership's task. Decides nothing.

use mcp_proto::envelope::Answer;
use mesh_proto::id::{CallId, LinkId};
use mesh_proto::refusal::Refusal;
use mesh_proto::reply::Reply;
use tokio::sync::oneshot;

use crate::link::DialledLink;

/// An input.
pub enum Input {
    /// The result of a request.
    Answered(CallId, Option<Answer>),
    /// A parent's question, by a request or over a link.
    Asked {
        method: String,
        params: Vec<u8>,
        reply: oneshot::Sender<Result<String, Refusal>>,
    },
    /// The result of dialling a parent.
    Dialled(usize, Result<DialledLink, String>),
    /// An order to leave the tree; the sender fires when done.
    Leave(oneshot::Sender<()>),
    LinkLost(LinkId),
    /// Possibly other gates below mounts.
    MountsChanged,
}

/// Reads an answer for the machine; `None`: none will come.
pub fn reply(answer: Option<&Answer>) -> Reply<'_> {
    match answer {
        Some(Answer::Error(error)) => Reply::Error(error),
        Some(Answer::Result(result)) => Reply::Result(result.text()),
        None => Reply::Lost,
    }
}
