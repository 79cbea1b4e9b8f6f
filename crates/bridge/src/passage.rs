//! Ends of a translation: a message from a peer, and a message to a peer with a report of losses. Reads and writes none.

use crate::loss::{Loss, Severity};
use crate::message::{CanonicalMessage, Hop};

/// A message from a peer. Nothing is lost so far: unknown members are residue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncomingMessage<'a> {
    pub message: CanonicalMessage<'a>,
    pub hop: Hop<'a>,
}

/// A message to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingText {
    pub text: Vec<u8>,
    pub losses: Vec<Loss>,
}

impl OutgoingText {
    /// Checks for a loss worth a warning.
    pub fn has_warning(&self) -> bool {
        self.losses.iter().any(|loss| loss.severity >= Severity::Warn)
    }
}
