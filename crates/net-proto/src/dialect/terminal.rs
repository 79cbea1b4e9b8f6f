//! Output of a device on a terminal, taken apart: echo, output, pager, question, prompt. Bounded and linear: a byte is looked at once, and
//! only a short last line can be a prompt. Sends nothing; the driver does.

mod screen;

use std::sync::Arc;

use super::Dialect;
use screen::Screen;

/// Bytes of the longest line taken for a prompt, a pager or a question.
const LONGEST_PROMPT: usize = 256;

/// Place of the session, as the prompt says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminalMode {
    Exec,
    Configure,
}

/// Answer of a device to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminalReply {
    /// Lines without echo, pager and prompt, each with `\n`.
    pub text: String,
    /// Bytes beyond the bound, left out at the end.
    pub omitted: u64,
    pub mode: TerminalMode,
    pub prompt: String,
}

/// News for the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TerminalEvent {
    /// To be sent, for the next page.
    Send(String),
    /// The device asks, and waits: answer, or break off.
    Question(String),
    Reply(TerminalReply),
}

/// A session's terminal.
#[derive(Debug)]
pub struct Terminal {
    dialect: Arc<Dialect>,
    limit: usize,
    screen: Screen,
    text: String,
    omitted: u64,
    /// Command whose echo is awaited.
    echo: Option<String>,
    /// Host of the first prompt: the prompt of another host is output.
    host: Option<String>,
}

impl Terminal {
    /// Keeps at most `limit` bytes of a reply.
    pub fn new(dialect: Arc<Dialect>, limit: usize) -> Self {
        Self { dialect, limit, screen: Screen::default(), text: String::new(), omitted: 0, echo: None, host: None }
    }

    /// Bytes for sending a command. The command has to be one line already.
    pub fn command(&mut self, command: &str) -> String {
        self.text.clear();
        self.omitted = 0;
        self.screen.clear();
        self.echo = Some(command.to_owned());
        format!("{command}\n")
    }

    /// Takes arrived bytes. A reply ends with a prompt at their end.
    pub fn receive(&mut self, bytes: &[u8]) -> Vec<TerminalEvent> {
        for byte in bytes {
            if let Some(line) = self.screen.put(*byte) {
                self.keep(&line);
            }
        }
        // A long line is not copied for each piece that comes.
        if !(1..=LONGEST_PROMPT).contains(&self.screen.length()) {
            return Vec::new();
        }
        let tail = self.screen.line();
        if self.dialect.is_pager(&tail) {
            self.screen.clear();
            return vec![TerminalEvent::Send(self.dialect.file.session.more.clone())];
        }
        if let Some(reply) = self.prompt(&tail, false) {
            return vec![TerminalEvent::Reply(reply)];
        }
        if self.dialect.is_question(&tail) {
            self.screen.clear();
            return vec![TerminalEvent::Question(tail)];
        }
        Vec::new()
    }

    /// Has the reply more bytes than are kept?
    pub fn is_over(&self) -> bool {
        self.omitted > 0
    }

    /// Takes the silence of a device: the last line is a prompt now even if it names another host than before, or the device echoes nothing.
    pub fn quiet(&mut self) -> Option<TerminalReply> {
        let tail = self.screen.line();
        self.prompt(&tail, true)
    }

    fn prompt(&mut self, line: &str, takes_any_host: bool) -> Option<TerminalReply> {
        let line = line.trim_start();
        let (found, mode) = match self.dialect.exec.captures(line) {
            Some(found) => (found, TerminalMode::Exec),
            None => (self.dialect.configure.captures(line)?, TerminalMode::Configure),
        };
        let host = found.name("host").map_or("", |host| host.as_str());
        // Devices cut long names short within the configuration.
        let is_same = |known: &String| known.starts_with(host) || host.starts_with(known.as_str());
        if !takes_any_host && !self.host.as_ref().is_none_or(is_same) {
            return None;
        }
        // A prompt before the echo stood there before the command, or is drawn again: the answer comes behind a later one.
        if self.echo.is_some() && !takes_any_host {
            return None;
        }
        if self.host.is_none() || takes_any_host {
            self.host = Some(host.to_owned());
        }
        self.screen.clear();
        self.echo = None;
        let text = std::mem::take(&mut self.text);
        Some(TerminalReply { text, omitted: std::mem::take(&mut self.omitted), mode, prompt: line.trim_end().to_owned() })
    }

    fn keep(&mut self, line: &str) {
        let line = line.trim_end();
        if let Some(echo) = &self.echo {
            let (shown, given) = (line.trim_start(), echo.trim());
            // A long command may be echoed in two lines.
            if shown.is_empty() || given == shown || given.starts_with(shown) || shown.ends_with(given) {
                if given == shown || shown.ends_with(given) {
                    self.echo = None;
                }
                return;
            }
            let was_wrapped = given.ends_with(shown);
            self.echo = None;
            if was_wrapped {
                return;
            }
        }
        if self.omitted > 0 || self.text.len() + line.len() + 1 > self.limit {
            self.omitted = self.omitted.saturating_add(line.len() as u64 + 1);
            return;
        }
        self.text.push_str(line);
        self.text.push('\n');
    }
}
