//! Proofs of agreement: read here, and verified by the keys they name. The number of proofs needed is not decided here.

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::hex;
use super::sshsig::SshSignature;
use super::webauthn::Assertion;

/// Longest proof, in bytes.
const LONGEST: usize = 64 << 10;

/// A text to be signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    pub text: String,
    /// The namespace of SSH signatures over the text.
    pub namespace: &'static str,
}

impl Statement {
    /// SHA-256 of the text: the challenge of a passkey, and `digest` of a token.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(&self.text).into()
    }
}

/// A proof, read and not verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// A bare signature by an operator's Ed25519 key over the text itself.
    Ed25519 {
        /// Fingerprint of the key.
        key: String,
        /// 64 bytes.
        signature: Vec<u8>,
    },
    /// A signed token of an approval service or a policy engine.
    Jws(String),
    /// A signature by `ssh-keygen -Y sign` or an SSH agent.
    Ssh(Box<SshSignature>),
    WebAuthn(Box<Assertion>),
}

/// Faults of a proof. One variant, one remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// A token for somebody else.
    #[error("the token is meant for somebody else (`aud`): ask for one for this gate")]
    Audience,
    /// The counter of a passkey went back.
    #[error("the passkey's counter went back: it was copied, or this is an old answer. Have the operator removed and enrolled again")]
    Counter,
    /// Another text was signed.
    #[error("it agrees to another call, or to this one with other arguments: sign the challenge that is shown now")]
    Digest,
    /// A token before its time.
    #[error("the token is not good yet (`nbf`): check the clocks of both machines")]
    Early,
    /// A token of somebody nobody here knows.
    #[error("the token's issuer (`iss`) is no approval service of this gate: name it in `[approvals.service.NAME]`")]
    Issuer,
    /// A key nobody here knows.
    #[error("the key is nobody's who may approve here: `banyan operator enroll NAME --key FILE` makes it so")]
    Key,
    /// Unreadable.
    #[error("it can't be read: {0}")]
    Malformed(&'static str),
    /// An SSH signature for something else.
    #[error("the SSH signature was made for `{0}`: make it with `-n {1}`")]
    Namespace(String, &'static str),
    /// A page that may not use passkeys of this gate.
    #[error("the page at {0} is none where calls of this gate are approved: open the address that `gate.url` names")]
    Origin(String),
    /// An expired token.
    #[error("the token has expired (`exp`): get a new one")]
    Over,
    /// A passkey of another site.
    #[error("the passkey was made for another address than the one where this gate's calls are approved: enrol it there")]
    RelyingParty,
    /// Not by the named key, or over another text.
    #[error("the signature is not over this challenge: sign the one that is shown now, all of it and nothing else")]
    Signature,
    /// A passkey that was not unlocked.
    #[error("the passkey did not verify who used it: use one with a PIN, a fingerprint or the like")]
    Unverified,
}

impl Wrong {
    /// The reason for programs.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Audience => "wrong_audience",
            Self::Counter => "counter_went_back",
            Self::Digest => "other_call",
            Self::Early => "token_not_yet_valid",
            Self::Issuer => "unknown_issuer",
            Self::Key => "unknown_key",
            Self::Malformed(_) => "proof_malformed",
            Self::Namespace(..) => "wrong_namespace",
            Self::Origin(_) => "wrong_origin",
            Self::Over => "token_expired",
            Self::RelyingParty => "wrong_relying_party",
            Self::Signature => "bad_signature",
            Self::Unverified => "user_not_verified",
        }
    }
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum WrittenProof {
    Ed25519 { key: String, signature: String },
    Jws { token: String },
    Sshsig { signature: String },
    Webauthn { credential: Assertion },
}

impl Proof {
    /// Reads a proof: an object with a `type`, or an SSH signature or token as a bare string.
    ///
    /// # Errors
    /// [`Wrong::Malformed`], with the fault.
    pub fn read(json: &[u8]) -> Result<Self, Wrong> {
        const KINDS: Wrong =
            Wrong::Malformed("its `type` must be `ed25519`, `jws`, `sshsig` or `webauthn`, with the members that belong to it");
        if json.len() > LONGEST {
            return Err(Wrong::Malformed("it is too long"));
        }
        if json.trim_ascii_start().starts_with(b"\"") {
            let text: String = serde_json::from_slice(json).map_err(|_| KINDS)?;
            return Self::of_text(&text);
        }
        match serde_json::from_slice(json).map_err(|_| KINDS)? {
            WrittenProof::Ed25519 { key, signature } => {
                let signature = decoded(&signature).ok_or(Wrong::Malformed("`signature` is not base64"))?;
                Ok(Self::Ed25519 { key, signature })
            }
            WrittenProof::Jws { token } => Ok(Self::Jws(token)),
            WrittenProof::Sshsig { signature } => Ok(Self::Ssh(Box::new(SshSignature::parse(&signature)?))),
            WrittenProof::Webauthn { credential } => Ok(Self::WebAuthn(Box::new(credential))),
        }
    }

    /// Hashes the proof for later reference: SHA-256 of the signature's bytes, or of the token, in hexadecimal.
    pub fn digest(&self) -> String {
        hex(&match self {
            Self::Ed25519 { signature, .. } => Sha256::digest(signature),
            Self::Jws(token) => Sha256::digest(token),
            Self::Ssh(signature) => Sha256::digest(signature.bytes()),
            Self::WebAuthn(assertion) => Sha256::digest(decoded(&assertion.response.signature).unwrap_or_default()),
        })
    }

    /// Reads a bare SSH signature or token.
    ///
    /// # Errors
    /// [`Wrong::Malformed`], with the fault.
    pub fn of_text(text: &str) -> Result<Self, Wrong> {
        if SshSignature::is_begun(text) {
            return Ok(Self::Ssh(Box::new(SshSignature::parse(text)?)));
        }
        match text.matches('.').count() {
            2 => Ok(Self::Jws(text.trim().to_owned())),
            _ => Err(Wrong::Malformed("it is neither an SSH signature nor a token")),
        }
    }
}

/// Base64 in either alphabet, with or without padding.
fn decoded(text: &str) -> Option<Vec<u8>> {
    use base64::Engine;
    let plain: String = text
        .trim_end_matches('=')
        .chars()
        .map(|c| {
            if c == '-' {
                '+'
            } else if c == '_' {
                '/'
            } else {
                c
            }
        })
        .collect();
    base64::engine::general_purpose::STANDARD_NO_PAD.decode(plain).ok()
}
