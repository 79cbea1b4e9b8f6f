//! Resolves `[policy]`, `[group]` and `[budget]`, and reads the file of rules. Decides about no call.

use std::sync::Arc;

use jiff::tz::TimeZone;
use sha2::{Digest, Sha256};

use super::file;
use super::resolved::{Budget, Group, Policy};
use crate::file::At;
use crate::problem::Flaw;
use crate::reading::FileReading;
use crate::rules::{self, BadRules};
use policy::budget::Limits;

/// Longest file of rules.
const MOST_BYTES: u64 = 4 << 20;

impl FileReading<'_> {
    pub(super) fn policy(&mut self, section: &file::Policy) -> Option<Policy> {
        let path = self.path(&section.file);
        let time_zone = section.time_zone.as_ref().map_or_else(TimeZone::system, |name| self.time_zone(name));
        let too_long = std::fs::metadata(&path).is_ok_and(|file| file.len() > MOST_BYTES);
        let read = if too_long { Err(std::io::ErrorKind::FileTooLarge.into()) } else { std::fs::read_to_string(&path) };
        let text = match read {
            Ok(text) => text,
            Err(error) => {
                let flaw = Flaw::new(section.file.span(), format!("the rules in `{}` can't be read: {error}", path.display()));
                self.flaws.push(flaw.help("`banyan policy init` writes a file to begin with; nothing is allowed without one"));
                return None;
            }
        };
        let digest = Sha256::digest(text.as_bytes()).into();
        match rules::parse(&path, &text) {
            Ok(policies) => Some(Policy { file: path, digest, policies: Arc::new(policies), time_zone }),
            Err(BadRules(error)) => {
                self.elsewhere.get_or_insert(error);
                None
            }
        }
    }

    fn time_zone(&mut self, name: &At<String>) -> TimeZone {
        TimeZone::get(name.get()).unwrap_or_else(|_| {
            let flaw = Flaw::new(name.span(), format!("there is no time zone `{}`", name.get()));
            self.flaws.push(flaw.help("write one of the IANA data base, for example \"Europe/Paris\" or \"UTC\""));
            TimeZone::UTC
        })
    }

    pub(super) fn groups(&mut self, groups: &file::Groups) -> Vec<Group> {
        let groups = groups.iter().map(|(name, group)| Group { name: name.get().as_str().into(), members: self.globs(&group.members) });
        groups.collect()
    }

    pub(super) fn budgets(&mut self, budgets: &file::Budgets) -> Vec<Budget> {
        budgets.iter().map(|(name, budget)| self.budget(name, budget)).collect()
    }

    fn budget(&mut self, name: &At<String>, budget: &file::Budget) -> Budget {
        let limits = Limits {
            calls_per_minute: budget.max_calls_per_minute,
            mutable_calls_per_session: budget.max_mutable_calls_per_session,
            cost_units_per_session: budget.max_cost_units_per_session,
        };
        if limits == Limits::default() {
            let flaw = Flaw::new(name.span(), format!("the budget `{}` limits nothing", name.get()));
            self.flaws.push(flaw.help("give it `max_calls_per_minute`, `max_mutable_calls_per_session` or `max_cost_units_per_session`"));
        }
        Budget {
            name: name.get().as_str().into(),
            principals: budget.principals.as_ref().map_or_else(|| vec!["*".into()], |names| self.globs(names)),
            per_session: budget.per == file::Per::Session,
            limits,
            idle: self.duration(budget.idle.as_ref()),
        }
    }
}
