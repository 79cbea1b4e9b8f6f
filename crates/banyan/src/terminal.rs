//! Questions at the terminal. Does not know their purpose.

use std::io::{self, BufRead, IsTerminal, Write};

use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use crate::failure::Failure;

/// Tells if somebody can be asked: both ends are a terminal.
pub(crate) fn somebody_is_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a question with yes as the answer to an empty line.
pub(crate) fn agrees(question: &str) -> Result<bool, Failure> {
    let answer = asked(&format!("{question} [Y/n] "))?;
    Ok(answer.is_some_and(|a| matches!(a.trim().to_lowercase().as_str(), "" | "y" | "yes")))
}

/// Asks for a line.
pub(crate) fn line(prompt: &str) -> Result<String, Failure> {
    Ok(asked(prompt)?.unwrap_or_default())
}

/// Asks for a line without showing it on the screen.
pub(crate) fn hidden_line(prompt: &str) -> Result<String, Failure> {
    let failed = |e: rustix::io::Errno| Failure::Failed(format!("the terminal can't be set to hide what is typed: {e}"));
    let stdin = io::stdin();
    let before = tcgetattr(&stdin).map_err(failed)?;
    let mut hidden = before.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&stdin, OptionalActions::Flush, &hidden).map_err(failed)?;
    let line = asked(prompt);
    tcsetattr(&stdin, OptionalActions::Flush, &before).map_err(failed)?;
    _ = writeln!(io::stderr().lock());
    Ok(line?.unwrap_or_default())
}

/// Reads a line without its end; `None` at the end of input.
fn asked(prompt: &str) -> Result<Option<String>, Failure> {
    let failed = |e: io::Error| Failure::Failed(format!("the terminal can't be read: {e}"));
    let mut err = io::stderr().lock();
    _ = write!(err, "{prompt}").and_then(|()| err.flush());
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line).map_err(failed)?;
    Ok((read > 0).then(|| line.trim_end_matches(['\n', '\r']).to_owned()))
}
