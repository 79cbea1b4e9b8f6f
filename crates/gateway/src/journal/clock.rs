//! The wall clock as records have it. Nothing else is told from it.

use std::time::{Duration, SystemTime};

/// Microseconds since 1970.
pub(crate) fn now() -> u64 {
    micros(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

/// A duration in microseconds.
pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
