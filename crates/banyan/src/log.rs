//! The log of serving commands, as set by the command line. The content of the log is the gateway's business, not known here.

use clap::{Args, ValueEnum};
use rustix::fs::{FileType, fstat, ftruncate};
use telemetry::log::{self, LogFormat, VARIABLE};

use crate::failure::Failure;

/// States of servers are told as news, so that the log need not repeat them.
const FILTER: &str = "warn,gateway::upstream::supervise=error";

/// How the log on standard error is written; `BANYAN_LOG` says what is in it.
#[derive(Args)]
pub(crate) struct Log {
    /// Form of the log on standard error; BANYAN_LOG sets its level, like `info` or `warn,gateway=debug`
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    log_format: Format,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum Format {
    /// One object a line
    Json,
    /// For people
    #[default]
    Text,
}

/// A log in a file may become so long, in bytes, and is begun anew then.
const LONGEST: i64 = 8 << 20;

impl Log {
    /// The name of the format.
    pub(crate) fn format(&self) -> &'static str {
        match self.log_format {
            Format::Json => "json",
            Format::Text => "text",
        }
    }

    pub(crate) fn start(&self) -> Result<(), Failure> {
        let format = match self.log_format {
            Format::Json => LogFormat::Json,
            Format::Text => LogFormat::Text,
        };
        let filter = std::env::var(VARIABLE).ok();
        log::start(format, filter.as_deref().or(Some(FILTER))).map_err(|e| Failure::Usage(e.to_string()))
    }
}

/// Empties the log file once it has become long.
pub(crate) fn bound() {
    let log = std::io::stderr();
    if let Ok(stat) = fstat(&log)
        && FileType::from_raw_mode(stat.st_mode).is_file()
        && stat.st_size > LONGEST
    {
        // Where it can't be, it goes on.
        _ = ftruncate(&log, 0);
    }
}
