//! Bearer tokens, kept as hashes. Compares none.

use std::sync::Arc;

/// A bearer token, kept as a hash.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    /// The principal it stands for.
    pub name: Arc<str>,
    /// SHA-256 of the token.
    pub sha256: [u8; 32],
    /// The profile this principal always gets.
    pub profile: Option<Arc<str>>,
    /// Set if its holder may read the metrics.
    pub metrics: bool,
}
