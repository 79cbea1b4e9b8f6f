//! Failures of commands: one variant for each exit code. Does not print.

use std::io;
use std::process::ExitCode;

/// A command's failure, in words that say what to do next. The exit codes are documented in `docs/cli.md`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Tried without success.
    #[error("{0}")]
    Failed(String),
    /// Nothing of that name, or no gateway to ask.
    #[error("{0}")]
    NotFound(String),
    /// Not tried: somebody has to agree, or is not entitled.
    #[error("{0}")]
    Refused(String),
    /// The tool was called and reported a failure; its result has been printed.
    #[error("{0}")]
    ToolFailed(String),
    /// The arguments contradict each other, or have the wrong form.
    #[error("{0}")]
    Usage(String),
    /// The reader of our output went away, which is no failure (`banyan tools | head`).
    #[error("nobody reads the output")]
    NobodyReads,
}

impl Failure {
    /// The process's exit code. clap ends with 2 by itself when it does not understand the arguments.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::NobodyReads => 0,
            Self::Failed(_) => 1,
            Self::Usage(_) => 2,
            Self::NotFound(_) => 3,
            Self::Refused(_) => 4,
            Self::ToolFailed(_) => 5,
        })
    }

    /// The stable name of the variant in `--json` output.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Failed(_) | Self::NobodyReads => "failed",
            Self::NotFound(_) => "not_found",
            Self::Refused(_) => "refused",
            Self::ToolFailed(_) => "tool_failed",
            Self::Usage(_) => "usage",
        }
    }
}

impl From<io::Error> for Failure {
    /// For errors of our own output only; others deserve a sentence.
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::NobodyReads
        } else {
            Self::Failed(format!("the output can't be written: {error}"))
        }
    }
}
