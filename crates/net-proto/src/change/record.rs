//! The change of a device as kept on the disk: candidate, owner, deadline and the old configuration. Writes nothing.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::form::ConfigForm;
use super::text::revision;
use super::undo::KeptChange;

/// A moment, by both clocks of a machine: the wall clock, with jumps, and the time since the start of the machine, without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds since 1970.
    pub wall: u64,
    /// Name of the present run of the machine.
    pub boot: String,
    /// Milliseconds since the begin of the run, sleep included.
    pub up: u64,
}

/// The moment of the rollback of an unconfirmed change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    /// Begin and end of the window, in milliseconds since 1970.
    pub began: u64,
    pub wall: u64,
    pub boot: String,
    pub up: u64,
}

impl Deadline {
    /// The end of a window with begin `now`.
    pub fn after(now: &Now, milliseconds: u64) -> Self {
        Self {
            began: now.wall,
            wall: now.wall.saturating_add(milliseconds),
            boot: now.boot.clone(),
            up: now.up.saturating_add(milliseconds),
        }
    }

    /// Milliseconds until the deadline. Within a run of the machine the wall clock does not count; in another run, a wall clock from before the
    /// window leaves no time.
    pub fn left(&self, now: &Now) -> u64 {
        match (self.boot == now.boot, now.wall < self.began) {
            (true, _) => self.up.saturating_sub(now.up),
            (false, true) => 0,
            (false, false) => self.wall.saturating_sub(now.wall),
        }
    }

    /// Milliseconds of the whole window.
    pub fn length(&self) -> u64 {
        self.wall.saturating_sub(self.began)
    }

    /// Checks whether the time is up.
    pub fn is_over(&self, now: &Now) -> bool {
        self.left(now) == 0
    }
}

/// Progress of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// A candidate is being made; the device knows nothing of it.
    Open,
    /// The deadline is on the disk; the change may be on the device, whole or in part.
    Armed,
    /// The change is on the device, equal to the candidate, until the deadline.
    Applied,
    /// A confirmation was sent to the device, and the outcome is not known.
    Confirming,
    /// Somebody confirmed.
    Confirmed,
    /// The old configuration is on the way back.
    RollingBack,
    /// The old configuration runs again.
    RolledBack,
    /// Neither the change nor the old configuration runs as a whole: somebody else has replaced or removed what the change was made on.
    Overtaken,
    /// The owner let go of the candidate.
    Discarded,
}

impl Phase {
    /// True while the device may hold an unconfirmed change.
    pub const fn is_pending(self) -> bool {
        matches!(self, Self::Armed | Self::Applied | Self::Confirming | Self::RollingBack)
    }

    /// True once nothing more happens.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Confirmed | Self::RolledBack | Self::Overtaken | Self::Discarded)
    }

    /// Names the value as the record on the disk spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Armed => "armed",
            Self::Applied => "applied",
            Self::Confirming => "confirming",
            Self::Confirmed => "confirmed",
            Self::RollingBack => "rolling_back",
            Self::RolledBack => "rolled_back",
            Self::Overtaken => "overtaken",
            Self::Discarded => "discarded",
        }
    }
}

/// Reason of a rollback.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reason", content = "detail")]
pub enum Reason {
    /// Nobody confirmed in time.
    Timeout,
    /// Somebody asked for the rollback.
    Asked(String),
    /// The device differs from the candidate, or fails a health check.
    Differs(String),
    /// The program ended in the middle.
    Interrupted,
    /// Somebody else stands in the way of the old configuration.
    Overtaken(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout => f.write_str("nobody confirmed in time"),
            Self::Asked(who) => write!(f, "{who} asked for the rollback"),
            Self::Differs(detail) | Self::Overtaken(detail) => f.write_str(detail),
            Self::Interrupted => f.write_str("the program ended in the middle"),
        }
    }
}

/// A change of one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceChange {
    pub id: String,
    pub owner: String,
    pub phase: Phase,
    /// Milliseconds since 1970 until which nobody else may take an open candidate.
    pub lease: u64,
    /// Revision of the running configuration below the candidate.
    pub base: String,
    /// Whole new configuration.
    pub candidate: String,
    #[serde(default)]
    pub form: ConfigForm,
    /// Name of the confirmed commit on the device, whose timer brings the old configuration back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persist: Option<String>,
    /// Commands or edits behind the candidate; empty for a whole file.
    pub commands: Vec<String>,
    /// Binds a commit to the candidate and to the running configuration beneath.
    pub hash: String,
    pub deadline: Option<Deadline>,
    /// Old configuration, byte for byte.
    pub snapshot: Option<String>,
    pub reason: Option<Reason>,
    /// Revision of the file that the device starts with, as read below the candidate: a file of somebody else is not overwritten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// Restores in vain so far.
    #[serde(default)]
    pub failures: u32,
    /// The device never answered the commit, and may still carry it out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unanswered: bool,
}

/// Memory of a device between processes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeRecord {
    /// Changes so far.
    pub count: u64,
    pub change: Option<DeviceChange>,
    /// The change confirmed last before `change`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptChange>,
    /// Reason for which the device has not saved a confirmed change, secrets included: a restart of the device would lose the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsaved: Option<String>,
}

impl ChangeRecord {
    /// The open or pending change.
    pub fn live(&self) -> Option<&DeviceChange> {
        self.change.as_ref().filter(|change| !change.phase.is_over())
    }

    /// The change that nobody confirmed and the device may hold.
    pub fn pending(&self) -> Option<&DeviceChange> {
        self.change.as_ref().filter(|change| change.phase.is_pending())
    }

    /// Finds the reason to take the change back now. The caller holds the lock of the device, so an armed change has no process any more.
    pub fn due(&self, now: &Now) -> Option<Reason> {
        let change = self.pending()?;
        let is_over = change.deadline.as_ref().is_none_or(|deadline| deadline.is_over(now));
        match change.phase {
            Phase::Applied => is_over.then_some(Reason::Timeout),
            Phase::Armed | Phase::Confirming => Some(Reason::Interrupted),
            Phase::Open | Phase::Confirmed | Phase::RollingBack | Phase::RolledBack | Phase::Overtaken | Phase::Discarded => {
                Some(change.reason.clone().unwrap_or(Reason::Interrupted))
            }
        }
    }
}

/// Hash of a candidate, of the edits that made it, and of the revision beneath: other edits may lead to the same candidate by another way.
pub fn binding(base: &str, candidate: &str, edits: &[String]) -> String {
    revision(&format!("{base}\n{candidate}\n{}", edits.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(wall: u64, boot: &str, up: u64) -> Now {
        Now { wall, boot: boot.to_owned(), up }
    }

    #[test]
    fn a_jump_of_the_wall_clock_changes_no_deadline() {
        let deadline = Deadline::after(&now(1_000_000, "a", 50), 1000);
        assert_eq!(deadline.left(&now(9_000_000, "a", 50)), 1000);
        assert_eq!(deadline.left(&now(0, "a", 1050)), 0);
    }

    #[test]
    fn after_a_restart_the_wall_clock_counts() {
        let deadline = Deadline::after(&now(1_000_000, "a", 50), 1000);
        assert_eq!(deadline.left(&now(1_000_400, "b", 1)), 600);
        assert!(deadline.is_over(&now(999_999, "b", 1)));
    }
}
