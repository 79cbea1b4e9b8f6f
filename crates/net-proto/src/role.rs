//! Roles (section 9 of the draft): commands, lines of configuration and YANG paths, read-only mode, maintenance windows, freezes. Time is an
//! argument. The device's own authorisation stays in force beside this and is not known here.

mod calendar;
mod path;

pub use calendar::{Freeze, Window};

use crate::dialect::{Command, CommandClass, WordPattern};
use crate::fault::{Code, Fault};

/// Direction of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleEffect {
    Allow,
    Deny,
}

/// Rule on commands or on lines of configuration. `Allow` wants each word in full or shortened beyond doubt; `Deny` holds for any shortening.
#[derive(Clone, Debug)]
pub struct CommandRule {
    effect: RuleEffect,
    pattern: WordPattern,
}

impl CommandRule {
    /// Makes a rule for commands beginning with these words; `*` stands for any word.
    pub fn new(effect: RuleEffect, words: &str) -> Self {
        Self { effect, pattern: WordPattern::new(words) }
    }

    /// Does the rule name interfaces?
    fn is_on_interfaces(&self) -> bool {
        matches!(self.pattern.first(), "interface" | "port" | "*")
    }
}

/// Rule on a YANG path and all below, by names of nodes without modules and keys.
#[derive(Clone, Debug)]
pub struct PathRule {
    effect: RuleEffect,
    /// Does the rule speak of edits, or of reads as well?
    is_for_edits_only: bool,
    nodes: Vec<String>,
}

impl PathRule {
    /// Makes a rule for a path; `None`: the path is no plain path.
    pub fn new(effect: RuleEffect, is_for_edits_only: bool, path: &str) -> Option<Self> {
        Some(Self { effect, is_for_edits_only, nodes: path::nodes(path)? })
    }
}

/// Verbs of Junos that name a place, beside those that every line may begin with.
const VERBS: [&str; 7] = ["edit", "activate", "deactivate", "protect", "unprotect", "annotate", "insert"];
/// Verbs that change lines which they do not name.
const FAR_VERBS: [&str; 5] = ["copy", "rename", "replace", "wildcard", "load"];

/// Lines that open a context for several interfaces at once.
const FOR_SEVERAL: [&[&str]; 2] = [&["interface", "range"], &["port-group"]];

/// Action at a device.
#[derive(Clone, Copy, Debug)]
pub enum DeviceAction<'a> {
    /// `network.cli.exec`
    Command(&'a Command),
    /// A line of `network.cli.configure`, already checked by its dialect.
    ConfigLine(&'a str),
    ReadPath(&'a str),
    EditPath(&'a str),
    /// Command of Banyan's own behind a resource or a file, which only shows something.
    Show(&'a Command),
    /// Commit of a candidate.
    Commit,
    /// Confirmation of what was applied: neither a window that has closed nor a freeze hinders it.
    Confirm,
}

/// Proof of a permitted action.
#[derive(Debug, PartialEq, Eq)]
pub struct ActionPermit(());

/// Rules of a principal at a device.
#[derive(Clone, Debug, Default)]
pub struct Role {
    /// Name in messages.
    pub name: String,
    /// No argument of a call and no rule below overrides read-only mode.
    pub is_read_only: bool,
    /// Rules for commands. Without an allowing rule every command of class `Read` goes through.
    pub commands: Vec<CommandRule>,
    /// Rules for lines of configuration. Without an allowing rule every line goes through.
    pub lines: Vec<CommandRule>,
    /// Rules for paths. Without an allowing rule every path goes through.
    pub paths: Vec<PathRule>,
    /// The device has no paths: whatever a rule on paths could mean is refused.
    pub lacks_paths: bool,
    /// Times for changes; none: always.
    pub windows: Vec<Window>,
    pub freezes: Vec<Freeze>,
}

impl Role {
    /// Decides about an action at `now`, in seconds since 1970.
    ///
    /// # Errors
    /// -32083 with the reason; a closed window and a freeze may be over at a retry.
    pub fn permit(&self, action: DeviceAction<'_>, now: u64) -> Result<ActionPermit, Fault> {
        self.check_paths(action)?;
        match action {
            DeviceAction::Command(command) => self.command(command, now)?,
            DeviceAction::ConfigLine(line) => {
                self.change(now).map_err(|fault| fault.at(line))?;
                self.line(line)?;
            }
            DeviceAction::ReadPath(path) => self.path(path, false)?,
            DeviceAction::EditPath(path) => {
                self.change(now).map_err(|fault| fault.at(path))?;
                self.path(path, true)?;
            }
            DeviceAction::Show(command) => drop(self.listed(command)?),
            DeviceAction::Commit => self.change(now)?,
            DeviceAction::Confirm => self.read_only()?,
        }
        Ok(ActionPermit(()))
    }

    /// Refuses what rules on paths may mean on a device without paths: nobody can judge that.
    fn check_paths(&self, action: DeviceAction<'_>) -> Result<(), Fault> {
        let is_edit = match action {
            DeviceAction::ConfigLine(_) | DeviceAction::EditPath(_) | DeviceAction::Commit => true,
            DeviceAction::Command(_) | DeviceAction::Show(_) | DeviceAction::ReadPath(_) => false,
            DeviceAction::Confirm => return Ok(()),
        };
        if self.lacks_paths && self.paths.iter().any(|rule| is_edit || !rule.is_for_edits_only) {
            let instead = if is_edit { "`allow_lines` and `deny_lines`" } else { "`allow_commands` and `deny_commands`" };
            return Err(self.denied(&format!("rules on paths hold for this device, which has no paths to judge by: use {instead}")));
        }
        Ok(())
    }

    fn command(&self, command: &Command, now: u64) -> Result<(), Fault> {
        let is_allowed = self.listed(command)?;
        match command.class {
            CommandClass::Read => Ok(()),
            // Named in full by the operator, and still a change.
            CommandClass::Unknown | CommandClass::Configure | CommandClass::Dangerous if is_allowed => {
                self.change(now).map_err(|fault| fault.at(&command.text))
            }
            CommandClass::Unknown => {
                Err(self.denied("nobody knows whether this command only reads: a rule may allow it").at(&command.text))
            }
            CommandClass::Configure | CommandClass::Dangerous => {
                Err(self.denied("this command changes the device: use the tools for changes").at(&command.text))
            }
        }
    }

    /// Holds a command against the rules as far as it reads; true: a rule allows it.
    fn listed(&self, command: &Command) -> Result<bool, Fault> {
        let denies = |rule: &&CommandRule| {
            let may_begin = rule.pattern.may_begin(&command.given) || rule.pattern.may_begin(&command.words);
            rule.effect == RuleEffect::Deny && (may_begin || rule.pattern.begins(&command.words))
        };
        if self.commands.iter().any(|rule| denies(&rule)) {
            return Err(self.denied("the role forbids this command").at(&command.text));
        }
        let allows = |rule: &CommandRule| rule.effect == RuleEffect::Allow && rule.pattern.begins(&command.words);
        let is_allowed = !command.is_ambiguous && self.commands.iter().any(allows);
        let has_list = self.commands.iter().any(|rule| rule.effect == RuleEffect::Allow);
        match command.class {
            CommandClass::Read if has_list && !is_allowed => {
                let hint = if command.is_ambiguous { "write its words in full" } else { "the role allows other commands only" };
                Err(self.denied(hint).at(&command.text))
            }
            CommandClass::Read | CommandClass::Unknown | CommandClass::Configure | CommandClass::Dangerous => Ok(is_allowed),
        }
    }

    fn line(&self, line: &str) -> Result<(), Fault> {
        let all: Vec<String> = line.split_whitespace().map(str::to_lowercase).collect();
        let is_verb = |word: &String| matches!(word.as_str(), "no" | "undo" | "set" | "delete" | "default");
        let words = if all.first().is_some_and(is_verb) { &all[1..] } else { &all[..] };
        let forbidding: Vec<&CommandRule> = self.lines.iter().filter(|rule| rule.effect == RuleEffect::Deny).collect();
        let first = all.first().map_or("", String::as_str);
        if !forbidding.is_empty() && FAR_VERBS.contains(&first) {
            let detail = format!("`{first}` changes lines that it does not name, and the role forbids some: name each line");
            return Err(self.denied(&detail).at(line));
        }
        let touched = if VERBS.contains(&first) { &all[1..] } else { words };
        let is_for_several = |several: &&&[&str]| {
            several.len() <= touched.len()
                && several.iter().zip(touched).all(|(name, word)| word.len() > 1 && word != "port" && name.starts_with(word.as_str()))
        };
        if let Some(several) = FOR_SEVERAL.iter().find(is_for_several).filter(|_| forbidding.iter().any(|rule| rule.is_on_interfaces())) {
            let detail =
                format!("`{}` stands for several interfaces, and the role forbids lines of some: name each interface", several.join(" "));
            return Err(self.denied(&detail).at(line));
        }
        // What is removed, entered or switched off with a shorter line takes along what stands below.
        let touches =
            |rule: &&&CommandRule| rule.pattern.may_touch(touched) || rule.pattern.may_touch(&all) || rule.pattern.may_be_below(touched);
        if forbidding.iter().any(|rule| touches(&rule)) {
            return Err(self.denied("the role forbids this line").at(line));
        }
        let mut allowing = self.lines.iter().filter(|rule| rule.effect == RuleEffect::Allow).peekable();
        if allowing.peek().is_none() || allowing.any(|rule| rule.pattern.begins(words)) {
            return Ok(());
        }
        Err(self.denied("the role allows other lines only, each word in full").at(line))
    }

    fn path(&self, path: &str, is_edit: bool) -> Result<(), Fault> {
        let mut rules = self.paths.iter().filter(|rule| is_edit || !rule.is_for_edits_only).peekable();
        if rules.peek().is_none() {
            return Ok(());
        }
        let plain = || self.denied("only plain paths can be held against the rules: names and keys, no functions, no `//`").at(path);
        let nodes = path::nodes(path).ok_or_else(plain)?;
        let rules: Vec<&PathRule> = rules.collect();
        let meets = |rule: &&&PathRule| nodes.starts_with(&rule.nodes) || rule.nodes.starts_with(&nodes);
        if rules.iter().filter(|rule| rule.effect == RuleEffect::Deny).any(|rule| meets(&rule)) {
            return Err(self.denied("the role forbids this path, or a part of what stands below it").at(path));
        }
        // A key is asked for, and may be written, as a node of its own.
        let keys = path::keys(path).ok_or_else(plain)?;
        let names = |rule: &PathRule| rule.effect == RuleEffect::Deny && keys.iter().any(|key| key.starts_with(&rule.nodes));
        if rules.iter().any(|rule| names(rule)) {
            return Err(self.denied("the role forbids a node that stands among the keys of this path").at(path));
        }
        // An edit has to keep to both lists: the one for all, and the one for edits.
        let keeps_to = |is_for_edits: bool| {
            let mut list =
                rules.iter().filter(|rule| rule.effect == RuleEffect::Allow && rule.is_for_edits_only == is_for_edits).peekable();
            list.peek().is_none() || list.any(|rule| nodes.starts_with(&rule.nodes))
        };
        if keeps_to(false) && keeps_to(true) {
            return Ok(());
        }
        Err(self.denied("the role allows other paths only").at(path))
    }

    /// Checks read-only mode, freezes and windows.
    fn change(&self, now: u64) -> Result<(), Fault> {
        self.read_only()?;
        if let Some(freeze) = self.freezes.iter().find(|freeze| freeze.holds(now)) {
            let until = freeze.until.map_or_else(|| "somebody ends the freeze".to_owned(), written);
            let reason = freeze.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            return Err(self.denied(&format!("{} froze all changes until {until}{reason}", freeze.by)).retryable());
        }
        if !self.windows.is_empty() && !self.windows.iter().any(|window| window.is_open(now)) {
            let next = self.windows.iter().filter_map(|window| window.next_opening(now)).min();
            let next = next.map(|next| format!("; the next begins at {}", written(next))).unwrap_or_default();
            return Err(self.denied(&format!("changes are made in maintenance windows only, and none is open{next}")).retryable());
        }
        Ok(())
    }

    fn read_only(&self) -> Result<(), Fault> {
        if self.is_read_only { Err(self.denied("this device is read-only here, and no argument changes that")) } else { Ok(()) }
    }

    fn denied(&self, detail: &str) -> Fault {
        Fault::new(Code::AccessDenied, format!("role `{}`: {detail}", self.name))
    }
}

/// A moment, in seconds since 1970, as people and programs read it.
fn written(seconds: u64) -> String {
    let moment = i64::try_from(seconds).ok().and_then(|seconds| chrono::DateTime::from_timestamp(seconds, 0));
    moment.map_or_else(|| seconds.to_string(), |moment| moment.to_rfc3339_opts(chrono::SecondsFormat::Secs, true))
}

#[cfg(test)]
mod tests;
