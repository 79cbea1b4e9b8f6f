//! Bounds on everything taken from a peer. Nothing is negotiable on the wire.

use std::time::Duration;

/// Most bytes of params or results of ours.
pub const MAX_BYTES: usize = 1 << 19;
/// Most ids of aggregators below one registration.
pub const MAX_SUBTREE_IDS: usize = 10_000;
/// Most ids of aggregators above one registration.
pub const MAX_ANCESTORS: usize = 128;
/// Longest `authority_proof`.
pub const MAX_PROOF_BYTES: usize = 16_384;
/// Longest `url`.
pub const MAX_URL_BYTES: usize = 2_048;
/// Shortest heartbeat interval.
pub const HEARTBEAT_LEAST: Duration = Duration::from_millis(100);
/// Longest heartbeat interval.
pub const HEARTBEAT_MOST: Duration = Duration::from_secs(3_600);
