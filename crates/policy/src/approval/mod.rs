//! Calls that wait for somebody to agree (MCP-AX 11.3): what is shown and signed, whose signature counts, and what becomes of a call.
//!
//! Nothing is kept, sent or asked here: [`Desk`] says what has to be kept, and what has happened.

mod anchor;
pub(crate) mod canonical;
mod challenge;
mod confirm;
mod desk;
mod grant;
mod kept;
mod key;
mod mode;
mod proof;
mod rounds;
mod shelf;
mod sshsig;
mod standing;
#[cfg(test)]
mod tests;
mod token;
mod webauthn;
mod wire;

pub use anchor::{Anchors, Operator, Verified};
pub use canonical::{NotCanonical, canonical};
pub use challenge::{Call, Challenge};
pub use confirm::{Confirm, Refusal};
pub use desk::{Change, Claimed, Desk, Event, Fresh, Held, News, Settings};
pub use grant::{Grant, Terms};
pub use key::{NoKey, PublicKey, Spelling};
pub use mode::{Cause, Mode, Risk};
pub use proof::{Proof, Statement, Wrong};
pub use rounds::Agreement;
pub use sshsig::SshSignature;
pub use standing::{Approval, End, Standing, Vote};
pub use token::Service;
pub use webauthn::{Assertion, AssertionResponse, Passkey, Registration, RegistrationResponse, RelyingParty};

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
