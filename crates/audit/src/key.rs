//! The keys of a log: Ed25519, named and numbered as C2SP signed-note has it. Where the secret half is kept is not known here.

use std::fmt;

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::AuditError;
use crate::hash::sha256;

/// Ed25519 signatures of the note itself.
const ALGORITHM: u8 = 1;

/// A possible signer: a name, and the public half of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verifier {
    name: String,
    public: [u8; 32],
}

/// A signer: a name and a key pair.
pub struct Signer {
    name: String,
    pair: Ed25519KeyPair,
}

impl Verifier {
    /// The key `public` under this name.
    ///
    /// # Errors
    /// When the name is empty or holds space or `+`.
    pub fn new(name: &str, public: [u8; 32]) -> Result<Self, AuditError> {
        is_name(name)?;
        Ok(Self { name: name.to_owned(), public })
    }

    /// Reads the published form of a key: `NAME+ID+KEY`.
    ///
    /// # Errors
    /// When `text` has another form or algorithm, or the id is not that of the key.
    pub fn parse(text: &str) -> Result<Self, AuditError> {
        let wrong = |why: &str| AuditError::form("a public key", why);
        let mut parts = text.splitn(3, '+');
        let (Some(name), Some(id), Some(key)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(wrong("NAME+ID+KEY is wanted"));
        };
        let key = STANDARD.decode(key).map_err(|_| wrong("the key is not base64"))?;
        let Some((&ALGORITHM, public)) = key.split_first() else { return Err(wrong("it is no Ed25519 key")) };
        let verifier = Self::new(name, public.try_into().map_err(|_| wrong("it is no Ed25519 key"))?)?;
        if hex(verifier.id()) != id { Err(wrong("its id is not that of the key")) } else { Ok(verifier) }
    }

    /// The same key under another name.
    ///
    /// # Errors
    /// As [`Verifier::new`].
    pub fn named(&self, name: &str) -> Result<Self, AuditError> {
        Self::new(name, self.public)
    }

    /// Compares keys, whatever their names.
    pub fn is_same_key(&self, other: &Self) -> bool {
        self.public == other.public
    }

    /// Gives the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number by which signatures name the key: the beginning of SHA-256 over name, newline, algorithm and key.
    pub fn id(&self) -> [u8; 4] {
        let mut data = format!("{}\n", self.name).into_bytes();
        data.push(ALGORITHM);
        data.extend_from_slice(&self.public);
        let hash = sha256(&data).0;
        [hash[0], hash[1], hash[2], hash[3]]
    }

    /// Verifies a signature of the text.
    pub fn has_signed(&self, text: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.public).verify(text, signature).is_ok()
    }
}

impl fmt::Display for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key: Vec<u8> = std::iter::once(ALGORITHM).chain(self.public).collect();
        write!(f, "{}+{}+{}", self.name, hex(self.id()), STANDARD.encode(key))
    }
}

impl Signer {
    /// Makes the key with this seed (RFC 8032), under this name.
    ///
    /// # Errors
    /// When the name is empty or holds space or `+`.
    pub fn new(name: &str, seed: &[u8; 32]) -> Result<Self, AuditError> {
        is_name(name)?;
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| AuditError::form("a seed", "the key can't be made of it"))?;
        Ok(Self { name: name.to_owned(), pair })
    }

    /// Gives the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Gives the public half.
    ///
    /// # Errors
    /// Never: an Ed25519 key has 32 bytes.
    pub fn verifier(&self) -> Result<Verifier, AuditError> {
        let public = self.pair.public_key().as_ref().try_into().map_err(|_| AuditError::form("a key", "it has not 32 bytes"))?;
        Verifier::new(&self.name, public)
    }

    /// Signs the text: 64 bytes.
    pub fn sign(&self, text: &[u8]) -> Vec<u8> {
        self.pair.sign(text).as_ref().to_vec()
    }
}

/// Does not show the key.
impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("name", &self.name).finish_non_exhaustive()
    }
}

fn is_name(name: &str) -> Result<(), AuditError> {
    let is_sound = !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c.is_control() || c == '+');
    if is_sound { Ok(()) } else { Err(AuditError::form("the name of a key", "it may hold neither space nor `+`")) }
}

fn hex(id: [u8; 4]) -> String {
    format!("{:08x}", u32::from_be_bytes(id))
}
