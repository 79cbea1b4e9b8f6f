//! Commands as callers give them: a single line, words in full, filters, and the class of the effect. Does not decide who may give a
//! command; [`crate::role`] does.

use super::Dialect;
use crate::fault::{Code, Fault};

/// Bytes of a command.
const LONGEST: usize = 4_096;
/// Words of a command.
const MOST_WORDS: usize = 256;

/// Effect of a command, worse ones later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CommandClass {
    /// Shows something, and changes nothing but the session.
    Read,
    /// Not in the vocabulary.
    Unknown,
    /// Changes the configuration, or leads there.
    Configure,
    /// Restarts, erases, writes files, leaves for another device.
    Dangerous,
}

/// Single command, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// To be sent, without a line end.
    pub text: String,
    pub class: CommandClass,
    /// Words before the first filter as given, in lower case.
    pub(crate) given: Vec<String>,
    /// The same words in full, as far as they are known.
    pub(crate) words: Vec<String>,
    /// A word may be short for several.
    pub(crate) is_ambiguous: bool,
}

impl Dialect {
    /// Reads a command for `network.cli.exec`. Refuses line ends, NUL, `;`, other control characters, `?`, `>` and writing filters.
    pub fn command(&self, text: &str) -> Result<Command, Fault> {
        let text = self.one_line(text)?;
        if let Some(odd) = text.chars().find(|c| matches!(c, '?' | '>')) {
            return Err(denied(text, format!("`{odd}` is not taken in a command: help and files are not at hand here")));
        }
        let mut parts = text.split('|');
        let given: Vec<String> = words(parts.next().unwrap_or_default());
        if given.is_empty() {
            return Err(Fault::new(Code::InvalidParams, "the command is empty"));
        }
        if given.len() > MOST_WORDS {
            return Err(denied(text, format!("more than {MOST_WORDS} words")));
        }
        for (number, part) in parts.enumerate() {
            self.filter(text, part, number == 0)?;
        }
        let meaning = self.vocabulary.meaning(&given);
        Ok(Command { text: text.to_owned(), class: meaning.class, given, words: meaning.words, is_ambiguous: meaning.is_ambiguous })
    }

    /// Checks a line for `network.cli.configure`, which may be anything but a way out of the configuration. Whether `exit` leaves a block
    /// or the configuration is told by the prompt behind it.
    pub fn config_line<'t>(&self, text: &'t str) -> Result<&'t str, Fault> {
        let line = self.one_line(text)?;
        if self.file.commands.comments.iter().any(|mark| line.starts_with(mark.as_str())) {
            return Ok(line);
        }
        let words = words(line);
        match self.escapes.iter().find(|escape| escape.may_begin(&words)) {
            Some(escape) => Err(denied(
                line,
                format!("`{}` leaves the change that is being made: use the tools for that, or write the word in full", escape.first()),
            )),
            None => Ok(line),
        }
    }

    fn one_line<'t>(&self, text: &'t str) -> Result<&'t str, Fault> {
        let line = text.trim_matches(' ');
        if line.len() > LONGEST {
            return Err(denied(&line.chars().take(60).collect::<String>(), format!("the command is longer than {LONGEST} bytes")));
        }
        match line.chars().find(|c| c.is_control() || matches!(c, ';' | '\u{2028}' | '\u{2029}')) {
            None => Ok(line),
            Some(odd) => Err(denied(
                &line.escape_debug().to_string(),
                format!("{} would make several commands of one: send them one by one", odd.escape_debug()),
            )),
        }
    }

    /// Refuses writing filters. Behind a later `|` an expression may go on, but no writing filter may begin.
    fn filter(&self, command: &str, part: &str, is_first: bool) -> Result<(), Fault> {
        let words = words(part);
        let word = words.first().map_or("", String::as_str);
        let begins = |names: &[String]| !word.is_empty() && names.iter().any(|name| name.starts_with(word));
        let commands = &self.file.commands;
        if begins(&commands.writing_pipes) && !commands.pipes.iter().any(|name| name == word) {
            return Err(denied(command, format!("`| {word}` may write a file: only filters that read are taken")));
        }
        if is_first && !begins(&commands.pipes) {
            let known = commands.pipes.join(", ");
            return Err(Fault::new(Code::ConfigIncompatible, format!("`| {word}` is no filter of this dialect: {known}")).at(command));
        }
        Ok(())
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_lowercase).collect()
}

fn denied(command: &str, detail: String) -> Fault {
    Fault::new(Code::AccessDenied, detail).at(command)
}
