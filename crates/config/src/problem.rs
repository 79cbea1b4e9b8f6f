//! Mistakes in a configuration file with their places: line, column, and the line itself with a caret. Does not look for mistakes. A line
//! is shown without texts, save the wrong text, because any other may be a secret.

use std::collections::BTreeSet;
use std::fmt;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use super::snippet::{self, Shown};

/// Mistakes shown of one file.
const MOST_SHOWN: usize = 100;

/// The reason for which a configuration can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A running gate's file became empty, as an editor leaves it for a moment.
    #[error("`{}` is empty: nothing is changed\n  to run without any server, leave a comment in the file", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file has flaws.
    #[error("{}", Report { path, problems, more: *more, following: *following })]
    Invalid {
        /// The file.
        path: PathBuf,
        /// In the order of the file; never empty, and at most a hundred.
        problems: Vec<Problem>,
        /// Mistakes behind the last of these.
        more: usize,
        /// Mistakes left out because they may only follow from these.
        following: usize,
    },
    /// The file can't be read.
    #[error("can't read `{}`: {source}\n  {}", path.display(), unread(source))]
    Read {
        /// The file.
        path: PathBuf,
        source: std::io::Error,
    },
}

fn unread(source: &std::io::Error) -> &'static str {
    const ADVICE: [(ErrorKind, &str); 3] = [
        (ErrorKind::InvalidData, "it is no text: name another file"),
        (ErrorKind::IsADirectory, "it is a directory: name the file in it"),
        (ErrorKind::PermissionDenied, "let your user read it, or run this as the user whose it is"),
    ];
    let found = ADVICE.iter().find(|(kind, _)| *kind == source.kind());
    found.map_or("make it with `banyan import --write`, or name another file with `--config FILE`", |(_, advice)| advice)
}

/// A mistake, with its place in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    pub message: String,
    pub help: Option<String>,
    /// The line with other texts hidden, and the carets below.
    pub snippet: String,
}

/// A wrong range of bytes in the file; becomes a [`Problem`] when the text is at hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    pub(super) span: Range<usize>,
    pub(super) message: String,
    pub(super) help: Option<String>,
    pub(super) shown: Shown,
    /// Known key that an unknown key is near to.
    pub(super) meant: Option<String>,
    /// Sections without which this is a mistake: a mistake in one of them is the cause.
    pub(super) lacks: &'static [&'static str],
    /// Set of a mistake that may only follow from another mistake.
    pub(super) follows: bool,
}

impl Flaw {
    /// Describes a mistake at `span`, a range of bytes.
    pub fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), help: None, shown: Shown::Flaw, meant: None, lacks: &[], follows: false }
    }

    /// Adds advice for the reader.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Names the sections whose lack is the mistake.
    #[must_use]
    pub(super) fn lacking(mut self, sections: &'static [&'static str]) -> Self {
        self.lacks = sections;
        self
    }

    /// Hides the text at `span`, which may be a secret.
    #[must_use]
    pub fn secret(mut self) -> Self {
        self.shown = Shown::NotTheFlaw;
        self
    }
}

/// Puts flaws into the order of the file and shows the lines of the first: each costs a look at the whole file. Leaves out flaws that may
/// only follow from the others.
pub(super) fn invalid(path: &Path, text: &str, schema: &Value, mut flaws: Vec<Flaw>) -> ConfigError {
    flaws.sort_by_key(|flaw| (flaw.span.start, flaw.span.end));
    flaws.dedup();
    let touched = touched(text, &flaws);
    let follows = |flaw: &Flaw| flaw.follows || flaw.lacks.iter().any(|section| touched.contains(*section));
    let following = flaws.iter().filter(|flaw| follows(flaw)).count();
    if following < flaws.len() {
        flaws.retain(|flaw| !follows(flaw));
    }
    let more = flaws.len().saturating_sub(MOST_SHOWN);
    let problems = flaws.into_iter().take(MOST_SHOWN).map(|flaw| problem(text, schema, flaw)).collect();
    ConfigError::Invalid { path: path.to_owned(), problems, more, following }
}

/// Lists the sections with a mistake, or meant by one, where a mistake asks for them.
fn touched(text: &str, flaws: &[Flaw]) -> BTreeSet<String> {
    if flaws.iter().all(|flaw| flaw.lacks.is_empty()) {
        return BTreeSet::new();
    }
    let true_ones = flaws.iter().filter(|flaw| flaw.lacks.is_empty()).take(MOST_SHOWN);
    true_ones.flat_map(|flaw| flaw.meant.clone().into_iter().chain([section(text, flaw.span.start).to_owned()])).collect()
}

/// The key at the top of the file to which the text at `at` belongs.
fn section(text: &str, at: usize) -> &str {
    let at = floor(text, at);
    let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
    let mut above = text[..end].lines().rev().peekable();
    let own = above.peek().copied().unwrap_or_default();
    let line = above.find(|line| line.trim_start().starts_with('[')).unwrap_or(own);
    let key = line.trim_start_matches(['[', ' ', '\t', '"', '\'']);
    key.split(['.', ']', '=', ' ', '"', '\'']).next().unwrap_or_default()
}

fn problem(text: &str, schema: &Value, flaw: Flaw) -> Problem {
    let start = floor(text, flaw.span.start);
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let line = text[..line_start].matches('\n').count() + 1;
    let end = floor(text, flaw.span.end).clamp(start, line_end);

    let shown = snippet::line(text, line_start..line_end, start..end, flaw.shown, schema);
    let pad: String = shown.before.chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    let carets = "^".repeat(shown.flaw.chars().count().max(1));
    let shown = [shown.before, shown.flaw, shown.after].concat();

    let number = line.to_string();
    let gutter = " ".repeat(number.len());
    let snippet = format!("{number} | {}\n{gutter} | {pad}{carets}", shown.trim_end());
    let column = text[line_start..start].chars().count() + 1;
    Problem { line, column, message: flaw.message, help: flaw.help, snippet }
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

struct Report<'a> {
    path: &'a Path,
    problems: &'a [Problem],
    more: usize,
    following: usize,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.problems.iter().enumerate() {
            let gutter = " ".repeat(problem.line.to_string().len());
            if i > 0 {
                f.write_str("\n\n")?;
            }
            writeln!(f, "{}", problem.message)?;
            writeln!(f, "{gutter}--> {}:{}:{}", self.path.display(), problem.line, problem.column)?;
            writeln!(f, "{gutter} |")?;
            f.write_str(&problem.snippet)?;
            if let Some(help) = &problem.help {
                write!(f, "\n{gutter} = {help}")?;
            }
        }
        if self.more > 0 {
            write!(f, "\n\nand {} more: mend these first", self.more)?;
        }
        match self.following {
            0 => {}
            1 => f.write_str("\n\n1 more mistake may only follow from these, and is left out")?,
            several => write!(f, "\n\n{several} more mistakes may only follow from these, and are left out")?,
        }
        Ok(())
    }
}
