//! Signatures as `ssh-keygen -Y sign` makes them (OpenSSH, PROTOCOL.sshsig). Whether a key may approve anything is not known here.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256, Sha512};

use super::key::{PublicKey, Spelling};
use super::proof::Wrong;
use super::wire::{Reader, put};

const BEGIN: &str = "-----BEGIN SSH SIGNATURE-----";
const END: &str = "-----END SSH SIGNATURE-----";
const MAGIC: &[u8] = b"SSHSIG";
/// Longest signature read; longer ones are of another kind.
const LONGEST: usize = 4096;

/// A signature, read and not verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshSignature {
    /// The claimed key.
    pub key: PublicKey,
    pub namespace: String,
    hash: Hash,
    /// Spelled as [`PublicKey::verifies`] takes it.
    signature: [u8; 64],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hash {
    Sha256,
    Sha512,
}

impl SshSignature {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.signature
    }

    /// Tells if a text begins like an SSH signature.
    pub fn is_begun(text: &str) -> bool {
        text.trim_start().starts_with(BEGIN)
    }

    /// Reads an SSH signature.
    ///
    /// # Errors
    /// [`Wrong::Malformed`], with the fault.
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        let body = text.trim().strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END));
        let body = body.filter(|body| body.len() <= LONGEST).ok_or(Wrong::Malformed("it is no SSH signature"))?;
        let body: String = body.split_ascii_whitespace().collect();
        let blob = STANDARD.decode(body).map_err(|_| Wrong::Malformed("the SSH signature is not base64"))?;
        Self::read(&blob).ok_or(Wrong::Malformed("the SSH signature is broken, or not by an Ed25519 or ECDSA P-256 key"))
    }

    fn read(blob: &[u8]) -> Option<Self> {
        let mut reader = Reader(blob);
        if reader.take_bytes(MAGIC.len())? != MAGIC || reader.number()? != 1 {
            return None;
        }
        let key = PublicKey::of_ssh(reader.string()?).ok()?;
        let namespace = reader.text()?.to_owned();
        let _reserved = reader.string().filter(|reserved| reserved.is_empty())?;
        let hash = match reader.text()? {
            "sha256" => Hash::Sha256,
            "sha512" => Hash::Sha512,
            _ => return None,
        };
        let mut inner = Reader(reader.string()?);
        let kind = inner.text()?;
        let body = inner.string()?;
        if kind != key.ssh_kind() || !inner.0.is_empty() || !reader.0.is_empty() {
            return None;
        }
        let signature = match &key {
            PublicKey::Ed25519(_) => body.try_into().ok()?,
            PublicKey::P256(_) => pair(body)?,
        };
        Some(Self { key, namespace, hash, signature })
    }

    /// Verifies the signature over `message`, in any namespace.
    pub fn verifies(&self, message: &[u8]) -> bool {
        let (name, digest): (&str, Vec<u8>) = match self.hash {
            Hash::Sha256 => ("sha256", Sha256::digest(message).to_vec()),
            Hash::Sha512 => ("sha512", Sha512::digest(message).to_vec()),
        };
        let mut signed = MAGIC.to_vec();
        for part in [self.namespace.as_bytes(), b"", name.as_bytes(), &digest] {
            put(&mut signed, part);
        }
        self.key.verifies(&signed, &self.signature, Spelling::Fixed)
    }
}

/// Two numbers of SSH as 32 bytes each.
fn pair(body: &[u8]) -> Option<[u8; 64]> {
    let mut reader = Reader(body);
    let mut out = [0; 64];
    for half in out.chunks_exact_mut(32) {
        let number = reader.string()?;
        let bare = number.iter().position(|byte| *byte != 0).map_or(&[][..], |from| &number[from..]);
        half.get_mut(32usize.checked_sub(bare.len())?..)?.copy_from_slice(bare);
    }
    reader.0.is_empty().then_some(out)
}
