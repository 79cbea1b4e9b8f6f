//! Who may do what, and how much, as the rest of the gateway reads it. Decides nothing.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use policy::budget::Limits;
use policy::decide::Policies;

/// The rules that are in force.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The file that they were read from.
    pub file: PathBuf,
    /// SHA-256 of its text: the version of the policy, wherever one is named.
    pub digest: [u8; 32],
    /// The rules.
    pub policies: Arc<Policies>,
    /// The zone of `context.time`.
    pub time_zone: TimeZone,
}

/// Rules of one text are the same.
impl PartialEq for Policy {
    fn eq(&self, other: &Self) -> bool {
        (&self.file, &self.digest, &self.time_zone) == (&other.file, &other.digest, &other.time_zone)
    }
}

/// Callers that rules speak of as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub name: Arc<str>,
    /// Globs over the names of callers.
    pub members: Vec<String>,
}

/// How much a caller may do.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    /// Its name.
    pub name: Arc<str>,
    /// Globs over the names of callers.
    pub principals: Vec<String>,
    /// Whether each session is counted by itself.
    pub per_session: bool,
    /// What may be spent.
    pub limits: Limits,
    /// How long a caller without calls keeps what it has spent; `None`: as long as an idle session is kept.
    pub idle: Option<Duration>,
}
