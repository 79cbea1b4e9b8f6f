//! Rules, groups and budgets, checked. Decides nothing.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use policy::budget::Limits;
use policy::decide::Policies;

/// Rules in force.
#[derive(Clone, Debug)]
pub struct Policy {
    pub file: PathBuf,
    /// SHA-256 of the text: the version of the policy.
    pub digest: [u8; 32],
    /// The rules.
    pub policies: Arc<Policies>,
    /// The zone of `context.time`.
    pub time_zone: TimeZone,
}

/// Rules of the same text are equal.
impl PartialEq for Policy {
    fn eq(&self, other: &Self) -> bool {
        (&self.file, &self.digest, &self.time_zone) == (&other.file, &other.digest, &other.time_zone)
    }
}

/// Groups of callers in rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub name: Arc<str>,
    /// Globs over the names of callers.
    pub members: Vec<String>,
}

/// A budget of callers.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    pub name: Arc<str>,
    /// Globs over the names of callers.
    pub principals: Vec<String>,
    /// Each session is counted by itself.
    pub per_session: bool,
    pub limits: Limits,
    /// Time without calls after which a caller's count ends; `None`: as an idle session.
    pub idle: Option<Duration>,
}
