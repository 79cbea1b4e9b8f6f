//! Output on the terminal: text or JSON on standard output, remarks on standard error. Decides nothing but the looks.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use crate::failure::Failure;

/// Emphasis of a text on a terminal.
#[derive(Clone, Copy)]
pub(crate) enum Look {
    Bad,
    /// Less important than its surroundings.
    Dim,
    /// In order.
    Good,
    /// A heading or a name.
    Strong,
    Warn,
}

/// The output of a command.
#[derive(Clone)]
pub(crate) struct Output {
    json: bool,
    colour_out: bool,
    colour_err: bool,
}

impl Output {
    /// Colour is used only on a terminal, and never when `NO_COLOR` is set to something.
    pub(crate) fn new(json: bool) -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()) && std::env::var_os("TERM").is_none_or(|t| t != "dumb");
        Self { json, colour_out: wanted && io::stdout().is_terminal(), colour_err: wanted && io::stderr().is_terminal() }
    }

    /// Tells if the user asked for JSON.
    pub(crate) fn wants_json(&self) -> bool {
        self.json
    }

    /// Prints a line on standard output.
    pub(crate) fn line(&self, text: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.write_all(b"\n")?;
        Ok(out.flush()?)
    }

    /// Prints bytes on standard output unchanged.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        Ok(out.flush()?)
    }

    /// Prints a value as indented JSON on standard output.
    pub(crate) fn json(&self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value).map_err(|e| Failure::Failed(format!("the answer can't be written as JSON: {e}")))?;
        self.line(&text)
    }

    /// Prints a remark on standard error, for people. A missing reader is no reason to stop.
    pub(crate) fn remark(&self, text: &str) {
        _ = writeln!(io::stderr().lock(), "{text}");
    }

    /// Prints the command's failure on standard error.
    pub(crate) fn failure(&self, failure: &Failure) {
        if self.json {
            let value = serde_json::json!({ "error": { "kind": failure.kind(), "message": failure.to_string() } });
            self.remark(&value.to_string());
        } else {
            self.remark(&format!("{} {failure}", painted(self.colour_err, Look::Bad, "error:")));
        }
    }

    /// `text` made to stand out on standard output.
    pub(crate) fn paint(&self, look: Look, text: &str) -> String {
        painted(self.colour_out, look, text)
    }

    /// `text` made to stand out on standard error.
    pub(crate) fn paint_remark(&self, look: Look, text: &str) -> String {
        painted(self.colour_err, look, text)
    }
}

fn painted(colour: bool, look: Look, text: &str) -> String {
    if !colour {
        return text.to_owned();
    }
    let code = match look {
        Look::Bad => "31",
        Look::Dim => "2",
        Look::Good => "32",
        Look::Strong => "1",
        Look::Warn => "33",
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}
