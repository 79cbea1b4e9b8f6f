//! Commands of a dialect for a change with a way back: a candidate of the device's own that is committed for a time, or a timer that the
//! configuration mode is entered with. Sends nothing.

use regex::Regex;
use serde::Deserialize;

use super::Dialect;
use crate::change::text::{FRR, Grammar};

/// The `[change]` of a dialect file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ChangeFile {
    /// Shows the whole running configuration, as lines.
    pub running: Option<String>,
    /// Match lines that are no part of the configuration, such as the time of the last change.
    pub noise: Vec<String>,
    /// Unit of the `{time}` in commands.
    pub unit: TimeUnit,
    pub candidate: Option<CandidateCommands>,
    pub timer: Option<TimerCommands>,
    /// Lines with a meaning for merges; those of FRR where none are given.
    pub grammar: Option<Grammar>,
}

/// Unit of a time in a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeUnit {
    #[default]
    Minutes,
    Seconds,
}

/// Commands of a device with a candidate, within the configuration mode.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CandidateCommands {
    /// Shows the whole candidate, as lines.
    pub show: String,
    /// Checks the candidate, where the device has a command for that.
    #[serde(default)]
    pub check: Option<String>,
    /// Commits for `{time}`.
    pub commit: String,
    /// Keeps what was committed for a time.
    pub confirm: String,
    /// Empties the candidate.
    pub discard: String,
    /// Matches the answer to the command for the configuration mode while a commit for a time waits: a check or another commit would confirm.
    #[serde(default)]
    pub waiting: Option<String>,
    /// Takes back at once what was committed for a time.
    #[serde(default)]
    pub cancel: Option<String>,
    /// Makes the earlier configuration `{number}` the candidate, 1 being the one before the last commit, where the device has no command to
    /// cancel. What `confirm` does keeps it.
    #[serde(default)]
    pub earlier: Option<String>,
}

/// Commands of a device with a timer for changes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimerCommands {
    /// Enters the configuration mode; after `{time}` the device takes back what was changed.
    pub enter: String,
    /// Stops the timer.
    pub confirm: String,
    /// Takes back what was changed at once.
    pub revert: String,
}

/// Way back that a dialect offers.
#[derive(Clone, Copy, Debug)]
pub enum ChangeMethod<'a> {
    Candidate(&'a CandidateCommands),
    Timer(&'a TimerCommands),
    /// No way back.
    None,
}

impl ChangeFile {
    /// The expression of `waiting`, made by `compile`.
    pub(super) fn waiting<E>(&self, compile: impl Fn(&String) -> Result<Regex, E>) -> Result<Option<Regex>, E> {
        self.candidate.as_ref().and_then(|candidate| candidate.waiting.as_ref()).map(compile).transpose()
    }

    /// The expressions of `noise`, made by `compile`.
    pub(super) fn noise<E>(&self, compile: impl Fn(&String) -> Result<Regex, E>) -> Result<Vec<Regex>, E> {
        self.noise.iter().map(compile).collect()
    }
}

impl Dialect {
    /// Command that shows the whole running configuration.
    pub fn running_command(&self) -> &str {
        self.file.change.running.as_deref().unwrap_or("show running-config")
    }

    /// Command that shows the version of the device.
    pub fn version_command(&self) -> &str {
        self.file.session.version.as_deref().unwrap_or("show version")
    }

    /// Does the device speak as FRR does, which shows interfaces and routes as JSON?
    pub fn is_frr(&self) -> bool {
        self.draft_name() == "frr-vtysh"
    }

    /// Way back of this dialect.
    pub fn change_method(&self) -> ChangeMethod<'_> {
        match (&self.file.change.candidate, &self.file.change.timer) {
            (Some(candidate), _) => ChangeMethod::Candidate(candidate),
            (None, Some(timer)) => ChangeMethod::Timer(timer),
            (None, None) => ChangeMethod::None,
        }
    }

    /// Recognizes a waiting commit by the answer to the command for the configuration mode.
    pub fn waits(&self, entered: &str) -> bool {
        self.waiting.as_ref().is_some_and(|waiting| waiting.is_match(entered))
    }

    /// Lines with a meaning for merges.
    pub fn grammar(&self) -> &Grammar {
        self.file.change.grammar.as_ref().unwrap_or(&FRR)
    }

    /// A configuration as the device shows one, without the lines that are no part of it.
    pub fn configuration(&self, shown: &str) -> String {
        let kept = shown.lines().filter(|line| !self.noise.iter().any(|noise| noise.is_match(line)));
        kept.map(|line| format!("{line}\n")).collect()
    }

    /// A command with the time that is nearest to `seconds` and not shorter.
    pub fn timed(&self, command: &str, seconds: u64) -> String {
        let time = match self.file.change.unit {
            TimeUnit::Minutes => seconds.div_ceil(60).max(1),
            TimeUnit::Seconds => seconds.max(1),
        };
        command.replace("{time}", &time.to_string())
    }
}
