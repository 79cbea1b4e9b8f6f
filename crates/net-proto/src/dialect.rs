//! Dialects of command lines as data: prompts, pagers, questions, error messages, and which command does what. Four are built in; users
//! write more in the same form. Nothing here knows a dialect by name.

mod audit;
mod change;
mod command;
mod custom;
mod steps;
mod terminal;
mod vocabulary;

use std::sync::{Arc, OnceLock};

use regex::{Regex, RegexBuilder};
use serde::Deserialize;

use crate::fault::{Code, Fault};

use audit::{AuditFile, AuditRule};
pub use audit::{Finding, Severity};
use change::ChangeFile;
pub use change::{CandidateCommands, ChangeMethod, TimeUnit, TimerCommands};
pub use command::{Command, CommandClass};
pub use steps::StepCommand;
use steps::{StepAnswers, StepsFile};
pub use terminal::{Terminal, TerminalEvent, TerminalMode, TerminalReply};
use vocabulary::Vocabulary;
pub(crate) use vocabulary::WordPattern;

const BUILT_IN: [(&str, &str); 4] = [
    ("frr", include_str!("dialect/frr.toml")),
    ("ios", include_str!("dialect/ios.toml")),
    ("junos", include_str!("dialect/junos.toml")),
    ("vrp", include_str!("dialect/vrp.toml")),
];

/// Dialects of programs on this machine, which no configuration names.
const OF_PROGRAMS: [(&str, &str); 2] = [("bird", include_str!("dialect/bird.toml")), ("ovs", include_str!("dialect/ovs.toml"))];

/// Bytes of a dialect file, and of the program that each of its expressions becomes.
const LONGEST_FILE: usize = 256 << 10;
const LARGEST_EXPRESSION: usize = 1 << 20;
/// CommandLists and expressions of a file.
const MOST_ENTRIES: usize = 5_000;
/// Lines of a reply that is searched for errors as a whole; of a longer reply only the first lines are.
const ERROR_LINES: usize = 8;
const FIRST_LINES: usize = 2;

/// Reason for which a dialect file is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DialectError {
    #[error("the dialect can't be read: {0}")]
    Syntax(String),
    #[error("the expression `{expression}` of the dialect `{dialect}` can't be used: {reason}")]
    Expression { dialect: String, expression: String, reason: String },
    #[error("the dialect `{dialect}` names the code `{code}`, which is none of the draft's ten: write for example `ConfigIncompatible`")]
    UnknownCode { dialect: String, code: String },
    #[error("the dialect extends `{base}`, and these are built in: {}", Dialect::NAMES.join(", "))]
    UnknownBase { base: String },
    #[error("the dialect is too large: at most {LONGEST_FILE} bytes and {MOST_ENTRIES} entries")]
    TooLarge,
}

/// Dialect of a command line, ready for use.
#[derive(Debug)]
pub struct Dialect {
    file: DialectFile,
    exec: Regex,
    configure: Regex,
    pagers: Vec<Regex>,
    questions: Vec<Regex>,
    errors: Vec<(Regex, Code, bool)>,
    vocabulary: Vocabulary,
    escapes: Vec<WordPattern>,
    answers: StepAnswers,
    noise: Vec<Regex>,
    waiting: Option<Regex>,
    audit: Vec<AuditRule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DialectFile {
    name: String,
    /// `cliDialect` of the draft.
    draft_name: String,
    title: String,
    /// Devices or transcripts that the dialect was tried against, for people.
    tried: String,
    prompt: PromptPatterns,
    session: SessionCommands,
    commands: CommandLists,
    #[serde(default)]
    steps: StepsFile,
    #[serde(default)]
    change: ChangeFile,
    #[serde(default)]
    audit: Vec<AuditFile>,
    #[serde(default)]
    error: Vec<ErrorPattern>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PromptPatterns {
    exec: String,
    configure: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionCommands {
    start: Vec<String>,
    pager: Vec<String>,
    more: String,
    #[serde(default)]
    questions: Vec<String>,
    configure: String,
    leave: String,
    save: String,
    /// Shows the version; `show version` where none is named.
    #[serde(default)]
    version: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandLists {
    read: Vec<String>,
    configure: Vec<String>,
    dangerous: Vec<String>,
    #[serde(default)]
    known: Vec<String>,
    pipes: Vec<String>,
    writing_pipes: Vec<String>,
    escapes: Vec<String>,
    comments: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ErrorPattern {
    pattern: String,
    code: String,
    #[serde(default)]
    retry: bool,
}

impl Dialect {
    /// Names of those built in.
    pub const NAMES: [&str; 4] = [BUILT_IN[0].0, BUILT_IN[1].0, BUILT_IN[2].0, BUILT_IN[3].0];

    /// The dialect built in under this name, the same for all devices: its expressions are large, and slow to compile.
    pub fn named(name: &str) -> Option<Arc<Self>> {
        static MADE: [OnceLock<Option<Arc<Dialect>>>; BUILT_IN.len() + OF_PROGRAMS.len()] =
            [const { OnceLock::new() }; BUILT_IN.len() + OF_PROGRAMS.len()];
        let mut all = BUILT_IN.iter().chain(&OF_PROGRAMS).zip(&MADE);
        let ((_, text), made) = all.find(|((known, _), _)| *known == name)?;
        made.get_or_init(|| Self::from_toml(text).ok().map(Arc::new)).clone()
    }

    /// The file of a dialect built in, for people to start from.
    pub fn source(name: &str) -> Option<&'static str> {
        BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }

    /// Reads a dialect file.
    pub fn from_toml(text: &str) -> Result<Self, DialectError> {
        if text.len() > LONGEST_FILE {
            return Err(DialectError::TooLarge);
        }
        Self::made(toml::from_str(text).map_err(|error| DialectError::Syntax(error.to_string()))?)
    }

    fn made(mut file: DialectFile) -> Result<Self, DialectError> {
        let lists = [&file.commands.read, &file.commands.configure, &file.commands.dangerous, &file.commands.known];
        if lists.iter().map(|list| list.len()).sum::<usize>() + file.error.len() + file.audit.len() > MOST_ENTRIES {
            return Err(DialectError::TooLarge);
        }
        let rules = std::mem::take(&mut file.audit);
        let expression = |text: &String| {
            RegexBuilder::new(text).size_limit(LARGEST_EXPRESSION).build().map_err(|error| DialectError::Expression {
                dialect: file.name.clone(),
                expression: text.clone(),
                reason: error.to_string(),
            })
        };
        let all = |texts: &[String]| texts.iter().map(expression).collect::<Result<Vec<_>, _>>();
        let mut errors = Vec::new();
        for error in &file.error {
            let unknown = || DialectError::UnknownCode { dialect: file.name.clone(), code: error.code.clone() };
            errors.push((expression(&error.pattern)?, Code::named(&error.code).ok_or_else(unknown)?, error.retry));
        }
        Ok(Self {
            exec: expression(&file.prompt.exec)?,
            configure: expression(&file.prompt.configure)?,
            pagers: all(&file.session.pager)?,
            questions: all(&file.session.questions)?,
            errors,
            vocabulary: Vocabulary::new(&lists),
            answers: file.steps.answers(expression)?,
            noise: file.change.noise(expression)?,
            waiting: file.change.waiting(expression)?,
            audit: rules.into_iter().map(|rule| rule.rule(expression)).collect::<Result<_, _>>()?,
            escapes: file.commands.escapes.iter().map(|text| WordPattern::new(text)).collect(),
            file,
        })
    }

    /// Name in configurations.
    pub fn name(&self) -> &str {
        &self.file.name
    }

    /// `cliDialect` of the draft.
    pub fn draft_name(&self) -> &str {
        &self.file.draft_name
    }

    /// Name for people.
    pub fn title(&self) -> &str {
        &self.file.title
    }

    /// Devices or transcripts that the dialect was tried against.
    pub fn tried(&self) -> &str {
        &self.file.tried
    }

    /// CommandLists for the beginning of a session: no pager, wide lines.
    pub fn start(&self) -> &[String] {
        &self.file.session.start
    }

    /// Commands that enter configuration, leave configuration, and save the running configuration. The last may be empty.
    pub fn configuring(&self) -> (&str, &str, &str) {
        let session = &self.file.session;
        (&session.configure, &session.leave, &session.save)
    }

    /// Finds the fault that a reply to `command` reports. In a long reply only the first lines count: a log holds errors of others.
    pub fn fault(&self, command: &str, reply: &str) -> Option<Fault> {
        let mut lines = reply.lines().filter(|line| !line.trim().is_empty());
        let first: Vec<&str> = lines.by_ref().take(ERROR_LINES).collect();
        let counted = if lines.next().is_some() { FIRST_LINES } else { ERROR_LINES };
        let lines = &first[..first.len().min(counted)];
        // The table is in the order of its meaning: the first row that matches any line.
        let (line, code, retry) = self.errors.iter().find_map(|(pattern, code, retry)| {
            let line = lines.iter().find(|line| pattern.is_match(line))?;
            Some((line, *code, *retry))
        })?;
        let detail = if line.trim() == "^" { "the command is not understood at the mark" } else { line.trim() };
        let fault = Fault::new(code, detail).at(command).from_native("cli", self.name());
        Some(if retry { fault.retryable() } else { fault })
    }

    fn is_pager(&self, line: &str) -> bool {
        self.pagers.iter().any(|pager| pager.is_match(line))
    }

    fn is_question(&self, line: &str) -> bool {
        self.questions.iter().any(|question| question.is_match(line))
    }
}

#[cfg(test)]
mod tests;
