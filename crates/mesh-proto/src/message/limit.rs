//! How much of anything is taken from a peer. Nothing here is negotiable on the wire.

use std::time::Duration;

/// The most bytes that params or a result of ours may have.
pub const MAX_BYTES: usize = 1 << 19;
/// The most ids of aggregators below one registration.
pub const MAX_SUBTREE_IDS: usize = 10_000;
/// The most ids of aggregators above one registration.
pub const MAX_ANCESTORS: usize = 128;
/// The longest `authority_proof`.
pub const MAX_PROOF_BYTES: usize = 16_384;
/// The longest `url`.
pub const MAX_URL_BYTES: usize = 2_048;
/// The shortest heartbeat interval that is taken.
pub const HEARTBEAT_LEAST: Duration = Duration::from_millis(100);
/// The longest.
pub const HEARTBEAT_MOST: Duration = Duration::from_secs(3_600);
