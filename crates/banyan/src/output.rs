//! What reaches the terminal: text or JSON on standard output, remarks on standard error. Decides nothing but how it looks.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use crate::failure::Failure;

/// How a piece of text stands out on a terminal.
#[derive(Clone, Copy)]
pub(crate) enum Look {
    /// Something is broken.
    Bad,
    /// Less important than what stands beside it.
    Dim,
    /// As it should be.
    Good,
    /// A heading or a name.
    Strong,
    /// Somebody should look.
    Warn,
}

/// Where a command writes.
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

    /// Whether the user asked for JSON.
    pub(crate) fn wants_json(&self) -> bool {
        self.json
    }

    /// One line on standard output.
    pub(crate) fn line(&self, text: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.write_all(b"\n")?;
        Ok(out.flush()?)
    }

    /// Bytes on standard output as they are.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        Ok(out.flush()?)
    }

    /// One value as indented JSON on standard output.
    pub(crate) fn json(&self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value).map_err(|e| Failure::Failed(format!("the answer can't be written as JSON: {e}")))?;
        self.line(&text)
    }

    /// A remark on standard error, for people. Nobody there to read it is no reason to stop.
    pub(crate) fn remark(&self, text: &str) {
        _ = writeln!(io::stderr().lock(), "{text}");
    }

    /// How the command failed, on standard error.
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
