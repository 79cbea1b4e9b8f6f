//! The shape of a refusal in answers that are no MCP: the admin API, rooms, joining. Whoever refuses decides that elsewhere.

use serde::{Deserialize, Serialize};

/// Why the admin API did not do it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// What kind of reason it is.
    pub kind: RefusalKind,
    /// What is wrong and what to do next.
    pub message: String,
}

/// The kinds of reasons, as the binary's exit codes tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// It was tried and failed.
    Failed,
    /// There is nothing of that name.
    NotFound,
    /// The caller is not entitled.
    Refused,
    /// The caller has tried too often.
    TooMany,
}

/// The envelope of a refusal: `{"error": {...}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// The refusal.
    pub error: Refusal,
}

impl Refusal {
    /// Something was tried and failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { kind: RefusalKind::Failed, message: message.into() }
    }

    /// Nothing has that name.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self { kind: RefusalKind::NotFound, message: message.into() }
    }

    /// The caller is not entitled.
    pub fn refused(message: impl Into<String>) -> Self {
        Self { kind: RefusalKind::Refused, message: message.into() }
    }

    /// The caller has tried too often.
    pub fn too_many(message: impl Into<String>) -> Self {
        Self { kind: RefusalKind::TooMany, message: message.into() }
    }
}
