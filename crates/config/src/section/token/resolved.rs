//! Bearer tokens, kept as hashes. Compares none.

use std::sync::Arc;

/// A bearer token, kept as a hash.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    /// The holder.
    pub name: Arc<str>,
    /// SHA-256 of the token.
    pub sha256: [u8; 32],
    /// The holder's profile.
    pub profile: Option<Arc<str>>,
    /// The holder may read the metrics.
    pub metrics: bool,
}
