//! Rules of a dialect for the security of a running configuration. Shows no line of it: secrets may stand there.

use regex::Regex;
use serde::{Deserialize, Serialize};

use super::Dialect;

/// Weight of a finding, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    High,
    Medium,
    Low,
}

/// An `[[audit]]` of a dialect file: a finding where `present` matches, or `absent` does not.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AuditFile {
    id: String,
    severity: Severity,
    /// Asked only by the detailed profile.
    #[serde(default)]
    detailed: bool,
    /// The rule counts only where this matches.
    #[serde(default)]
    when: Option<String>,
    #[serde(default)]
    present: Option<String>,
    #[serde(default)]
    absent: Option<String>,
    says: String,
    fix: String,
}

/// A rule, ready for use.
#[derive(Debug)]
pub(super) struct AuditRule {
    file: AuditFile,
    when: Option<Regex>,
    present: Option<Regex>,
    absent: Option<Regex>,
}

/// A weakness of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub id: String,
    pub severity: Severity,
    /// Line of the running configuration, from 1; `None` for something that is missing.
    pub line: Option<usize>,
    pub says: String,
    pub fix: String,
}

impl AuditFile {
    /// The rule, its expressions made by `compile`.
    pub(super) fn rule<E>(self, compile: impl Fn(&String) -> Result<Regex, E>) -> Result<AuditRule, E> {
        let compiled = |text: &Option<String>| text.as_ref().map(&compile).transpose();
        Ok(AuditRule { when: compiled(&self.when)?, present: compiled(&self.present)?, absent: compiled(&self.absent)?, file: self })
    }
}

impl Dialect {
    /// Holds the rules of the dialect against a running configuration: findings, the worst first.
    pub fn findings(&self, running: &str, is_detailed: bool) -> Vec<Finding> {
        let rules = self.audit.iter().filter(|rule| is_detailed || !rule.file.detailed);
        let mut findings: Vec<Finding> = rules.filter_map(|rule| rule.finding(running)).collect();
        findings.sort_by_key(|finding| finding.severity);
        findings
    }

    /// Number of rules that a profile asks.
    pub fn audit_rules(&self, is_detailed: bool) -> usize {
        self.audit.iter().filter(|rule| is_detailed || !rule.file.detailed).count()
    }
}

impl AuditRule {
    fn finding(&self, running: &str) -> Option<Finding> {
        if self.when.as_ref().is_some_and(|when| !when.is_match(running)) {
            return None;
        }
        let place = self.present.as_ref().and_then(|pattern| pattern.find(running)).map(|found| found.start());
        let is_missing = self.absent.as_ref().is_some_and(|pattern| !pattern.is_match(running));
        if place.is_none() && !is_missing {
            return None;
        }
        let line = place.map(|at| running[..at].matches('\n').count() + 1);
        let AuditFile { id, severity, says, fix, .. } = &self.file;
        Some(Finding { id: id.clone(), severity: *severity, line, says: says.clone(), fix: fix.clone() })
    }
}
