//! Last lines of a child process on its standard error. Bounded, whatever the child writes. No line is parsed; the telling one is chosen.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use tokio::sync::broadcast;

/// Number of lines kept.
pub const KEPT_LINES: usize = 50;
const LONGEST_LINE: usize = 2000;

/// Texts of lines that name a cause, in lower case.
const CAUSES: [&str; 16] = [
    "not found",
    "no such file",
    "cannot find",
    "could not find",
    "can't open",
    "permission denied",
    "connection refused",
    "certificate",
    "timed out",
    "panicked at",
    "fatal:",
    "usage:",
    "unrecognized",
    "eacces",
    "error: ",
    "exception: ",
];

/// Last lines of a child process.
#[derive(Debug)]
pub struct Stderr {
    kept: Mutex<LineBuffer>,
    live: broadcast::Sender<String>,
}

#[derive(Debug, Default)]
struct LineBuffer {
    lines: VecDeque<String>,
    /// Number of lines at the end that the present run wrote.
    of_run: usize,
}

impl Default for Stderr {
    fn default() -> Self {
        Self { kept: Mutex::default(), live: broadcast::channel(256).0 }
    }
}

impl Stderr {
    /// Begins a run of the process: lines from now on are those of the run.
    pub fn begin(&self) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).of_run = 0;
    }

    /// Adds a line, without control characters that could affect a terminal.
    pub fn push(&self, line: &str) {
        let clean: String = line.chars().filter(|c| !c.is_control() || *c == '\t').take(LONGEST_LINE).collect();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.lines.len() == KEPT_LINES {
            kept.lines.pop_front();
        }
        kept.lines.push_back(clean.clone());
        kept.of_run = KEPT_LINES.min(kept.of_run + 1);
        // There may be no listener.
        drop(self.live.send(clean));
    }

    /// Lines, oldest first.
    pub fn lines(&self) -> Vec<String> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).lines.iter().cloned().collect()
    }

    /// Lines of the present run, oldest first.
    pub fn lines_of_run(&self) -> Vec<String> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.lines.iter().skip(kept.lines.len().saturating_sub(kept.of_run)).cloned().collect()
    }

    /// The line of the present run that best tells why the process ended; `None`: the run wrote nothing.
    pub fn telling(&self) -> Option<String> {
        let lines = self.lines_of_run();
        let lines: Vec<&str> = lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).collect();
        telling(&lines).map(str::to_owned)
    }

    /// Lines from now on.
    pub fn follow(&self) -> broadcast::Receiver<String> {
        self.live.subscribe()
    }
}

/// Chooses the last cause behind a Python traceback, which ends with the cause; else the first cause, the first error, or the last line.
fn telling<'a>(lines: &[&'a str]) -> Option<&'a str> {
    let has = |line: &&&str, texts: &[&str]| {
        let lower = line.to_lowercase();
        texts.iter().any(|text| lower.contains(text))
    };
    let is_cause = |line: &&&str| has(line, &CAUSES);
    let raised = lines.iter().any(|line| line.starts_with("Traceback "));
    let cause = if raised { lines.iter().rev().find(is_cause) } else { lines.iter().find(is_cause) };
    let last = || lines.last();
    let weaker = || if raised { last() } else { lines.iter().find(|line| has(line, &["error"])).or_else(last) };
    cause.or_else(weaker).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_with_the_cause_is_telling() {
        let npm = [
            "npm error code E404",
            "npm error 404 Not Found - GET https://registry.example/server-does-not-exist - Not found",
            "npm error 404",
            "npm error 404 Note that you can also install from a",
            "npm error 404 tarball, folder, http url, or git url.",
            "npm error A complete log of this run can be found in: /home/a/.npm/_logs/2026-debug-0.log",
        ];
        assert_eq!(telling(&npm), Some(npm[1]));
        let python = [
            "Traceback (most recent call last):",
            "  File \"a.py\", line 1, in <module>",
            "    raise KeyError(\"error: \")",
            "ModuleNotFoundError: No module named 'mcp'",
        ];
        assert_eq!(telling(&python), Some(python[3]));
        let node = ["node:internal/modules/cjs/loader:1080", "  throw err;", "Error: Cannot find module '/x.js'", "    at Module._load"];
        assert_eq!(telling(&node), Some(node[2]));
        assert_eq!(telling(&["starting", "bye"]), Some("bye"));
        assert_eq!(telling(&[]), None);
    }

    #[test]
    fn lines_of_an_earlier_run_tell_nothing() {
        let stderr = Stderr::default();
        stderr.push("Error: an old one");
        stderr.begin();
        assert_eq!(stderr.telling(), None);
        stderr.push("  the new line  ");
        assert_eq!((stderr.telling(), stderr.lines().len()), (Some("the new line".to_owned()), 2));
    }
}
