//! Execution Context Tokens (draft-nennemann-wimse-ect): claims, limits, and the graph of a workflow, for the names of draft -00 and of
//! draft -01. Signatures and keys are not known here, and a token is evidence, never authorization.

pub mod claims;
pub mod compact;
pub mod graph;
pub mod lineage;
pub mod replay;
pub mod work;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::hash::sha256;

/// Tolerated seconds between clocks.
pub const SKEW: u64 = 30;
/// Longest time between `iat` and the check, in seconds.
pub const MOST_AGE: u64 = 900;
/// Longest token, in bytes.
pub const LONGEST_TOKEN: usize = 16 << 10;
/// Most predecessors of a token.
pub const MOST_PARENTS: usize = 100;
/// Longest extension object, in bytes.
pub const LONGEST_EXTENSION: usize = 4096;
/// Deepest nesting of the extension object, which counts itself.
pub const DEEPEST_EXTENSION: usize = 5;

/// A draft, by the names of its claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EctDraft {
    /// `par`, `ext`, `wimse-exec+jwt`.
    Draft00,
    /// `pred`, `ect_ext`, `exec+jwt`.
    Draft01,
}

impl EctDraft {
    /// Gives the `typ` of the header.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Draft00 => "wimse-exec+jwt",
            Self::Draft01 => "exec+jwt",
        }
    }

    pub(crate) fn parents(self) -> &'static str {
        match self {
            Self::Draft00 => "par",
            Self::Draft01 => "pred",
        }
    }

    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Draft00 => "ext",
            Self::Draft01 => "ect_ext",
        }
    }
}

/// Reasons to refuse a token. One variant, one reaction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EctFault {
    /// Signed with none of ES256 and EdDSA.
    #[error("the token names the algorithm {0:?}: sign with ES256 or EdDSA")]
    Algorithm(String),
    #[error("the workflow has more than {0} tokens behind the message, which are the most that are followed: begin another workflow")]
    Ancestry(usize),
    #[error("`aud` does not name this verifier: have a token made for it")]
    Audience,
    /// No room for the ids of more tokens of a holder, and the seconds until ids expire.
    #[error("the ids of too many tokens are held: come again in {0} seconds")]
    Crowded(u64),
    #[error("the predecessors of {0} lead in a circle: a token was changed or invented")]
    Cycle(String),
    #[error("`iat` lies in the future: compare the clocks of both machines")]
    Early,
    #[error("the token has expired (`exp`): make a new one")]
    Expired,
    #[error("the token has no sound form: {0}")]
    Form(String),
    /// No room for another token until some expire.
    #[error("no more than {0} tokens are held: try again later")]
    Full(usize),
    /// More translations under way than allowed.
    #[error("the message has passed {0} gateways, which is the most that is allowed: call its target directly")]
    Hops(usize),
    /// A token of this verifier from the midst of a task.
    #[error("the token {0} is of this gate and ends no task: follow the gate's last token")]
    Inner(String),
    #[error("the key belongs to another issuer than `iss`: sign with a key of the issuer")]
    Issuer,
    #[error("no known issuer has the key {0:?}: add the issuer's keys, or sign with a key that is known")]
    Key(String),
    #[error("the token is not signed, and signed ones (L2) are wanted")]
    Level,
    /// A gateway that the message is inside already.
    #[error("the message has passed {0} before, and goes in a circle: call its target directly")]
    Loop(String),
    /// Claims of both drafts in one token.
    #[error("the token has names of draft -00 and of draft -01: use `par` and `ext`, or `pred` and `ect_ext`")]
    Names,
    #[error("the token has more than {0}: shorten it")]
    Oversized(&'static str),
    #[error("the predecessor {0} began after its successor: compare the clocks of their machines")]
    Order(String),
    #[error("the predecessor {0} is not known, or no longer: send it along")]
    Parent(String),
    #[error("the token {0} was seen before: make a new one for each task")]
    Replayed(String),
    #[error("the key did not sign the token: it was changed, or signed with another key")]
    Signature,
    #[error("`iat` is older than {MOST_AGE} seconds: make a new token")]
    Stale,
    #[error("`typ` is {0:?}, and not that of an execution context token")]
    Type(String),
    #[error("the predecessor {0} belongs to another workflow: name one of the same `wid`")]
    Workflow(String),
}

/// Kind of a fault: what may be told of the fault, and to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EctFaultKind {
    /// More tokens than there is room for.
    Crowd,
    /// A wrong place among the tokens of the workflow.
    Link,
    /// Made for another verifier.
    Misdirected,
    Oversized,
    Replay,
    /// Too early, or too late.
    Time,
    /// No signature of a known issuer, or no token at all.
    Unsigned,
}

impl EctFaultKind {
    /// Checks for a fault that tokens of known issuers alone have. Nobody else hears of one.
    pub fn has_issuer(self) -> bool {
        !matches!(self, Self::Oversized | Self::Unsigned)
    }

    /// Names the kind in words without text of a token.
    pub fn words(self) -> &'static str {
        match self {
            Self::Crowd | Self::Oversized => "too many",
            Self::Link => "not linked to the call",
            Self::Misdirected => "made for others",
            Self::Replay => "replayed",
            Self::Time => "out of time",
            Self::Unsigned => "not signed by a known issuer",
        }
    }
}

impl EctFault {
    /// Gives the kind of the fault.
    pub fn kind(&self) -> EctFaultKind {
        match self {
            Self::Ancestry(_) | Self::Crowded(_) | Self::Full(_) => EctFaultKind::Crowd,
            Self::Cycle(_) | Self::Hops(_) | Self::Inner(_) | Self::Loop(_) | Self::Order(_) | Self::Parent(_) | Self::Workflow(_) => {
                EctFaultKind::Link
            }
            Self::Audience => EctFaultKind::Misdirected,
            Self::Oversized(_) => EctFaultKind::Oversized,
            Self::Replayed(_) => EctFaultKind::Replay,
            Self::Early | Self::Expired | Self::Stale => EctFaultKind::Time,
            Self::Algorithm(_)
            | Self::Form(_)
            | Self::Issuer
            | Self::Key(_)
            | Self::Level
            | Self::Names
            | Self::Signature
            | Self::Type(_) => EctFaultKind::Unsigned,
        }
    }

    pub(crate) fn form(why: impl Into<String>) -> Self {
        Self::Form(why.into())
    }
}

/// Spells the hash of raw bytes as `inp_hash` and `out_hash` do: SHA-256 in base64url without padding.
pub fn spelled_hash(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(sha256(bytes).0)
}

#[cfg(test)]
mod tests;
