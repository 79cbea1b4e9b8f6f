//! Shape of refusals in answers other than MCP: the admin API, rooms, joining. Does not decide about requests.

use serde::{Deserialize, Serialize};

/// Refusal of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub kind: RefusalKind,
    /// The fault, and the next step.
    pub message: String,
}

/// The kinds of reasons, as the binary's exit codes tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// A try has failed.
    Failed,
    /// Nothing has the name.
    NotFound,
    /// The caller is not entitled.
    Refused,
    /// The caller has tried too often.
    TooMany,
}

/// The envelope of a refusal: `{"error": {...}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    pub error: Refusal,
}

impl Refusal {
    /// Makes the refusal for a failed try.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { kind: RefusalKind::Failed, message: message.into() }
    }

    /// Makes the refusal for an unknown name.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self { kind: RefusalKind::NotFound, message: message.into() }
    }

    /// Makes the refusal for a caller that is not entitled.
    pub fn refused(message: impl Into<String>) -> Self {
        Self { kind: RefusalKind::Refused, message: message.into() }
    }

    /// The caller has tried too often.
    pub fn too_many(message: impl Into<String>) -> Self {
        Self { kind: RefusalKind::TooMany, message: message.into() }
    }
}
