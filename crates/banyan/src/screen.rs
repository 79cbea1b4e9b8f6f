//! The whole screen of a terminal, for a live view: keys arrive at once and unseen, and no line is wrapped. Does not draw a picture.

use std::io::{self, IsTerminal, Read, Write};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;

use crate::failure::Failure;

/// Pressed keys that wait for the view.
const KEYS: usize = 64;
/// Another screen, without a cursor, that does not wrap lines.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/// An occupied screen; given back when dropped.
pub(crate) struct Screen {
    before: Termios,
}

impl Screen {
    /// Tells if keys and pictures have a terminal.
    pub(crate) fn is_there() -> bool {
        io::stdin().is_terminal() && io::stdout().is_terminal()
    }

    /// Occupies the screen.
    pub(crate) fn occupy() -> Result<Self, Failure> {
        let failed = |e: rustix::io::Errno| Failure::Failed(format!("the terminal can't be set up for a live view: {e}"));
        let before = tcgetattr(io::stdin()).map_err(failed)?;
        let mut live = before.clone();
        // Ctrl-C is a key too: the terminal is given back before the end.
        live.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        tcsetattr(io::stdin(), OptionalActions::Flush, &live).map_err(failed)?;
        let screen = Self { before };
        screen.write(ENTER)?;
        Ok(screen)
    }

    /// Shows lines from the top in place of the former picture.
    pub(crate) fn show(&self, lines: &[String]) -> Result<(), Failure> {
        self.write(&format!("\x1b[H{}\x1b[K\x1b[J", lines.join("\x1b[K\r\n")))
    }

    fn write(&self, text: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        Ok(out.flush()?)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing back.
        _ = self.write(LEAVE);
        _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.before);
    }
}

/// Gives columns and rows of the terminal on standard output; `None` without a terminal.
pub(crate) fn size() -> Option<(usize, usize)> {
    let size = tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then(|| (usize::from(size.ws_col), usize::from(size.ws_row)))
}

/// Reads keys. The thread ends with the process: nothing else can wake it.
pub(crate) fn keys() -> mpsc::Receiver<u8> {
    let (pressed, keys) = mpsc::channel(KEYS);
    std::thread::spawn(move || {
        let mut key = [0];
        while io::stdin().lock().read_exact(&mut key).is_ok() {
            if pressed.blocking_send(key[0]).is_err() {
                return;
            }
        }
    });
    keys
}
