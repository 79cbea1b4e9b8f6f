//! Calls that wait for somebody's agreement (MCP-AX 11.3): the text shown and signed, the signers, and the fate of a call.
//!
//! Nothing is kept, sent or asked here: [`Desk`] names changes to be kept and reports events.

mod anchor;
mod challenge;
mod confirm;
mod desk;
mod grant;
mod kept;
mod key;
mod mode;
mod preview;
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
mod withdrawn;

use json::canonical::Numbers;

pub use anchor::{Anchors, Operator, Verified};
pub use challenge::{Call, Challenge};
pub use confirm::{Confirm, Refusal};
pub use desk::{Change, Claimed, Desk, Event, Fresh, Held, News, Settings};
pub use grant::{Grant, Terms};
pub use json::canonical::NotCanonical;
pub use key::{NoKey, PublicKey, Spelling};
pub use mode::{Cause, Mode, Risk};
pub use preview::{Demand, Foreknown, Preview};
pub use proof::{Proof, Statement, Wrong};
pub use rounds::Agreement;
pub use sshsig::SshSignature;
pub use standing::{Approval, End, Standing, Vote};
pub use token::Service;
pub use webauthn::{Assertion, AssertionResponse, Passkey, Registration, RegistrationResponse, RelyingParty};

/// Writes the canonical text of a JSON value (RFC 8785), so that the text shown, the text signed and the outgoing text can be compared.
/// Nothing is
/// rounded: a value without an exact form has no canonical text.
///
/// # Errors
/// When `text` is no JSON, a member is doubled, or a number is not exact as a double.
pub fn canonical(text: &[u8]) -> Result<String, NotCanonical> {
    json::canonical::canonical(text, Numbers::Exact)
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
