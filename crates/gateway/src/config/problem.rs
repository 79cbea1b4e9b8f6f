//! What is wrong with a configuration file, and where: line, column and the line itself with a caret. Does not decide
//! what is wrong. A line is shown without the texts in it, save the one that is wrong, because any may be a secret.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// Why a configuration can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A running gate's file became empty, as an editor leaves it for a moment.
    #[error("`{}` is empty: nothing is changed\n  to run without any server, leave a comment in the file", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file says things that can't be.
    #[error("{}", Report { path, problems })]
    Invalid {
        /// The file.
        path: PathBuf,
        /// All that was found, in the order of the file; never empty.
        problems: Vec<Problem>,
    },
    /// The file can't be read.
    #[error("can't read `{}`: {source}\n  make it with `banyan import`, or name another file with `--config FILE`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The line, other texts hidden, and below it the carets.
    pub snippet: String,
}

/// What is wrong with a range of bytes of the file; becomes a [`Problem`] when the text is at hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flaw {
    pub(super) span: Range<usize>,
    pub(super) message: String,
    pub(super) help: Option<String>,
    /// Whether the text at `span` may be a secret and is hidden as well.
    pub(super) secret: bool,
}

impl Flaw {
    pub(super) fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), help: None, secret: false }
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(super) fn secret(mut self, secret: bool) -> Self {
        self.secret = secret;
        self
    }
}

/// Puts flaws into the order of the file and shows their lines.
pub(super) fn invalid(path: &Path, text: &str, mut flaws: Vec<Flaw>) -> ConfigError {
    flaws.sort_by_key(|flaw| (flaw.span.start, flaw.span.end));
    flaws.dedup();
    let hidden = hidden_ranges(text);
    let problems = flaws.into_iter().map(|flaw| problem(text, &hidden, flaw)).collect();
    ConfigError::Invalid { path: path.to_owned(), problems }
}

fn problem(text: &str, hidden: &[Range<usize>], flaw: Flaw) -> Problem {
    let start = floor(text, flaw.span.start);
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let line = text[..line_start].matches('\n').count() + 1;
    let end = floor(text, flaw.span.end).clamp(start, line_end);
    let width = text[start..end].chars().count().max(1);

    let open = if flaw.secret { 0..0 } else { start..end };
    let is_hidden = |at: usize| !open.contains(&at) && hidden.iter().any(|range| range.contains(&at));
    let shown: String = text[line_start..line_end]
        .char_indices()
        .map(|(i, c)| if is_hidden(line_start + i) && !c.is_whitespace() { '*' } else { c })
        .collect();
    let pad: String = text[line_start..start].chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();

    let number = line.to_string();
    let gutter = " ".repeat(number.len());
    let snippet = format!("{number} | {}\n{gutter} | {pad}{}", shown.trim_end(), "^".repeat(width));
    let column = text[line_start..start].chars().count() + 1;
    Problem { line, column, message: flaw.message, help: flaw.help, snippet }
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// The insides of strings, the comments, and bare words in the place of a value whose key says that it is secret.
/// Works on text that is not TOML, too.
fn hidden_ranges(text: &str) -> Vec<Range<usize>> {
    let mut hidden = Vec::new();
    let mut at = 0;
    let mut line_start = 0;
    while let Some(c) = text[at..].chars().next() {
        match c {
            '"' | '\'' => {
                let (inside, next) = string(text, at, c);
                hidden.push(inside);
                at = next;
            }
            '#' => {
                let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
                hidden.push(at..end);
                at = end;
            }
            '=' => {
                let bare = bare_value(text, at + 1);
                if super::looks_secret(&text[line_start..at]) || in_secret_table(&text[..line_start]) {
                    hidden.push(bare);
                }
                at += 1;
            }
            '\n' => {
                at += 1;
                line_start = at;
            }
            _ => at += c.len_utf8(),
        }
    }
    hidden
}

/// The inside of the TOML string that begins at `at` with `quote`, and where to go on behind it.
pub(crate) fn string(text: &str, at: usize, quote: char) -> (Range<usize>, usize) {
    let long: String = [quote; 3].iter().collect();
    let (open, close) = if text[at..].starts_with(&long) { (3, long.as_str()) } else { (1, &long[..1]) };
    let begin = at + open;
    let mut end = begin;
    while let Some(c) = text[end..].chars().next() {
        if text[end..].starts_with(close) {
            return (begin..end, end + close.len());
        }
        if c == '\n' && open == 1 {
            return (begin..end, end);
        }
        let escape = c == '\\' && quote == '"';
        end += c.len_utf8();
        if escape {
            end += text[end..].chars().next().filter(|&c| c != '\n').map_or(0, char::len_utf8);
        }
    }
    (begin..end, end)
}

fn bare_value(text: &str, from: usize) -> Range<usize> {
    let end = text[from..].find(['\n', '"', '\'', '#', ',', '[', '{']).map_or(text.len(), |end| from + end);
    from..end
}

fn in_secret_table(before: &str) -> bool {
    let header = before.lines().rev().find(|line| line.trim_start().starts_with('['));
    let last = header.and_then(|line| line.trim().trim_matches(['[', ']']).rsplit('.').next());
    matches!(last, Some("env" | "headers" | "token"))
}

struct Report<'a> {
    path: &'a Path,
    problems: &'a [Problem],
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
        Ok(())
    }
}
