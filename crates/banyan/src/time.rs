//! The wall clock, as in the admin API. Does not format it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Gives the seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}
