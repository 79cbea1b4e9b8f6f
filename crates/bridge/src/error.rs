//! Reasons to translate nothing. The answers to the outside stand in `problem.rs` alone.

use std::borrow::Cow;

use crate::loss::Loss;

/// Reasons for a refusal, one for each reaction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BridgeError {
    /// The sender has to mend the message.
    #[error("the message is not as its binding has it, at `{at}`: {why}")]
    Malformed { at: &'static str, why: Cow<'static, str> },
    /// The sender has to send less at once.
    #[error("the message is too long, too deep or has too many elements")]
    TooLarge,
    /// Another gate may know the way.
    #[error("no translation is known for {0}")]
    NoPath(Cow<'static, str>),
    /// Nothing is sent, since the receiver would not get the meaning.
    #[error("the translation would lose `{}`: {}", .0.path, .0.note)]
    SemanticLoss(Loss),
    /// The caller of this crate has left out a fact of the hop.
    #[error("the hop lacks its {0}")]
    Hop(&'static str),
}

impl BridgeError {
    pub(crate) const fn malformed(at: &'static str, why: &'static str) -> Self {
        Self::Malformed { at, why: Cow::Borrowed(why) }
    }
}
