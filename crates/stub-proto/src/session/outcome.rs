//! Ends of calls. Says nothing about how they came about.

use alloc::string::String;
use alloc::vec::Vec;

use crate::cbor::Value;

/// End of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum CallEnd {
    /// Result of profile B.
    Values(Value),
    /// Result of profile A, without its status.
    Raw(Vec<u8>),
    /// The part ran the call, or refused to, and says so.
    Failed {
        code: i64,
        text: Option<String>,
    },
    /// The part ran the call, and the answer is longer than a message may be.
    TooLong,
    NeverRan(NeverRan),
    Unknown(Unknown),
}

/// Reason why a call has certainly not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeverRan {
    /// The part does not answer.
    Silent,
    /// Enough calls wait already.
    Full { waiting: usize },
    /// Enough calls of the same caller wait already.
    OwnFull { waiting: usize },
    /// The message is longer than the part takes.
    TooLong { most: u8 },
    /// The caller took it back.
    Cancelled,
    /// The part lists the tool otherwise than when the call was judged, or not any more.
    OtherTable,
}

/// Reason why nobody knows if a call has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    NoAnswer {
        tries: u8,
    },
    /// The part started anew before it answered.
    StartedAnew,
    WireLost,
}
