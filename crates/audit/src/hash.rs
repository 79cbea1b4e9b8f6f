//! Hashes of the tree (RFC 6962, section 2.1) and how they are spelled. Does not keep any.

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::AuditError;

/// 32 bytes of SHA-256. Spelled in base64 (RFC 4648, section 4, padded), as checkpoints do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// The previous hash of the first entry of a chain.
    pub const ZERO: Self = Self([0; 32]);

    /// Reads the spelling.
    ///
    /// # Errors
    /// When `text` is not base64 of 32 bytes in canonical spelling.
    pub fn parse(text: &str) -> Result<Self, AuditError> {
        let wrong = || AuditError::form("a hash", "44 characters of base64 are wanted");
        let bytes = STANDARD.decode(text).map_err(|_| wrong())?;
        bytes.try_into().map(Self).map_err(|_| wrong())
    }

    pub(crate) fn spelled(&self) -> [u8; 44] {
        let mut text = [b'='; 44];
        // 32 bytes take exactly that many.
        _ = STANDARD.encode_slice(self.0, &mut text);
        text
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.spelled()).unwrap_or_default())
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// Computes the SHA-256 of `data`.
pub fn sha256(data: &[u8]) -> Hash {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, data).as_ref());
    Hash(hash)
}

/// Longest entry hashed on the stack, in one go.
const SHORT: usize = 1023;

/// The hash of an entry: SHA-256 of a zero byte and the entry.
pub fn leaf(entry: &[u8]) -> Hash {
    if entry.len() > SHORT {
        return sha256(&[&[0], entry].concat());
    }
    let mut data = [0; SHORT + 1];
    data[1..=entry.len()].copy_from_slice(entry);
    sha256(&data[..=entry.len()])
}

/// Hashes the entry from `start` to the end of `text`. An entry behind other text is not copied: the last byte before the entry gives
/// place to the zero meanwhile.
pub(crate) fn leaf_at(text: &mut [u8], start: usize) -> Hash {
    let Some(before) = start.checked_sub(1) else { return leaf(text) };
    let last = std::mem::replace(&mut text[before], 0);
    let hash = sha256(&text[before..]);
    text[before] = last;
    hash
}

/// The hash of two subtrees: SHA-256 of a one byte, the left and the right hash.
pub fn node(left: &Hash, right: &Hash) -> Hash {
    let mut data = [1; 65];
    data[1..33].copy_from_slice(&left.0);
    data[33..].copy_from_slice(&right.0);
    sha256(&data)
}

/// The root of the tree without entries: SHA-256 of nothing.
pub fn empty_root() -> Hash {
    sha256(b"")
}
