//! Refusals of a peer's messages, with the codes of the specification. Sends nothing.

use crate::message::ErrorMessage;

/// Codes of an [`ErrorMessage`]. 10 and 11 are assigned to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    Unknown = 0,
    InvalidContext = 1,
    Unauthorized = 2,
    ToolNotFound = 3,
    Timeout = 4,
    UnsupportedVersion = 5,
    BadDelta = 6,
    PayloadTooLarge = 7,
    MalformedRequest = 8,
    TooManyRequests = 9,
    ProfileMismatch = 12,
    ProfileUnsupported = 13,
    ProfileNegotiationFailed = 14,
    MissingPatchRange = 15,
    DpPolicyConflict = 16,
}

impl ErrorCode {
    /// Every code, lowest first.
    pub const ALL: [Self; 15] = [
        Self::Unknown,
        Self::InvalidContext,
        Self::Unauthorized,
        Self::ToolNotFound,
        Self::Timeout,
        Self::UnsupportedVersion,
        Self::BadDelta,
        Self::PayloadTooLarge,
        Self::MalformedRequest,
        Self::TooManyRequests,
        Self::ProfileMismatch,
        Self::ProfileUnsupported,
        Self::ProfileNegotiationFailed,
        Self::MissingPatchRange,
        Self::DpPolicyConflict,
    ];

    /// Gives the number on the wire, which is also the code that closes a connection.
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// Gives the name of the specification.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "UNKNOWN",
            Self::InvalidContext => "INVALID_CONTEXT",
            Self::Unauthorized => "UNAUTHORIZED",
            Self::ToolNotFound => "TOOL_NOT_FOUND",
            Self::Timeout => "TIMEOUT",
            Self::UnsupportedVersion => "UNSUPPORTED_VERSION",
            Self::BadDelta => "BAD_DELTA",
            Self::PayloadTooLarge => "PAYLOAD_TOO_LARGE",
            Self::MalformedRequest => "MALFORMED_REQUEST",
            Self::TooManyRequests => "TOO_MANY_REQUESTS",
            Self::ProfileMismatch => "PROFILE_MISMATCH",
            Self::ProfileUnsupported => "PROFILE_UNSUPPORTED",
            Self::ProfileNegotiationFailed => "PROFILE_NEGOTIATION_FAILED",
            Self::MissingPatchRange => "MISSING_PATCH_RANGE",
            Self::DpPolicyConflict => "DP_POLICY_CONFLICT",
        }
    }

    /// Finds the code of a number; an unassigned number is [`ErrorCode::Unknown`].
    pub fn from_number(number: u32) -> Self {
        Self::ALL.into_iter().find(|code| code.number() == number).unwrap_or(Self::Unknown)
    }
}

/// Reasons for refusing a message of a peer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AxcpError {
    /// The bytes are no message, or a member breaks its rule. The sender has to mend its program.
    #[error("the message cannot be read: {0}")]
    Malformed(&'static str),
    /// An envelope comes at a time when none of its kind may. The sender has to mend its program.
    #[error("the envelope comes out of order: {0}")]
    Order(&'static str),
    /// The peer may not do what it asks for.
    #[error("{0}")]
    Unauthorized(&'static str),
    /// More bytes or entries than a node holds for a peer. The sender has to send less.
    #[error("{what} may be {most} at most: send less, or in parts")]
    TooLarge {
        /// Subject of the sentence, with its unit.
        what: &'static str,
        most: usize,
    },
    /// An operation breaks a rule of contexts. The author has to mend the operation.
    #[error("the patch is not applied: {0}")]
    BadDelta(&'static str),
    /// No tool of the name is offered to the peer. The caller asks for the offers anew.
    #[error("this node offers no tool of the name: ask for its offers with a CapabilityRequest")]
    Tool,
    /// The peer has too much under way. The sender waits for answers.
    #[error("{0}")]
    TooMany(&'static str),
    /// The patch is for a context unknown here.
    #[error("this context is not held here: subscribe to one that is")]
    Context,
    /// Versions that the node cannot give. The asker takes a snapshot.
    #[error("versions {oldest} to {newest} are held here: subscribe anew for a snapshot")]
    MissingRange { oldest: u64, newest: u64 },
    /// An envelope has a profile above the session.
    #[error("the session has profile {most}: send no higher profile")]
    ProfileMismatch { most: u32 },
    /// A profile is not spoken by the node.
    #[error("the profile is not spoken here: choose one of the mask")]
    ProfileUnsupported,
    /// The two sides have no common profile, or speak of two sessions.
    #[error("the two masks and minimums have no profile in common: raise the mask or lower the minimum")]
    Negotiation,
    /// A wish for another profile breaks a minimum, a mask, or the direction.
    #[error("a downgrade goes to a lower profile of both masks, and below no minimum: choose another")]
    Downgrade,
    /// The envelope has another version.
    #[error("version {0} of AXCP is not spoken here: send version 1")]
    Version(u32),
}

impl AxcpError {
    /// Gives the code for the peer.
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Malformed(_) | Self::Order(_) => ErrorCode::MalformedRequest,
            Self::Unauthorized(_) => ErrorCode::Unauthorized,
            Self::TooLarge { .. } => ErrorCode::PayloadTooLarge,
            Self::BadDelta(_) => ErrorCode::BadDelta,
            Self::Tool => ErrorCode::ToolNotFound,
            Self::TooMany(_) => ErrorCode::TooManyRequests,
            Self::Context => ErrorCode::InvalidContext,
            Self::MissingRange { .. } => ErrorCode::MissingPatchRange,
            Self::ProfileMismatch { .. } => ErrorCode::ProfileMismatch,
            Self::ProfileUnsupported => ErrorCode::ProfileUnsupported,
            Self::Negotiation | Self::Downgrade => ErrorCode::ProfileNegotiationFailed,
            Self::Version(_) => ErrorCode::UnsupportedVersion,
        }
    }

    /// Writes the message for the peer.
    pub fn message(&self) -> ErrorMessage {
        ErrorMessage { code: self.code().number(), reason: self.to_string(), diagnostics: bytes::Bytes::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xc_24_codes_have_the_numbers_of_the_specification() {
        let numbers: Vec<u32> = ErrorCode::ALL.into_iter().map(ErrorCode::number).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15, 16]);
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::from_number(code.number()), code);
        }
        for unassigned in [10, 11, 17, u32::MAX] {
            assert_eq!(ErrorCode::from_number(unassigned), ErrorCode::Unknown);
        }
    }

    #[test]
    fn xc_24_a_refusal_becomes_a_message_with_advice() {
        let refused = AxcpError::TooLarge { what: "the bytes of a frame", most: 10 }.message();
        assert_eq!((refused.code, refused.reason.as_str()), (7, "the bytes of a frame may be 10 at most: send less, or in parts"));
        assert_eq!(AxcpError::Version(2).message().code, 5);
        assert_eq!(AxcpError::Malformed("the end is missing").message().code, 8);
    }
}
