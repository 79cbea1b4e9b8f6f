//! The log on standard error. Does not export anything; spans go out through `otlp`.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::{Directive, LevelFilter};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The variable with the filter of the log, in the directives of `tracing_subscriber::EnvFilter`.
pub const VARIABLE: &str = "BANYAN_LOG";

/// The filter by default: our own news, and warnings of libraries.
const DEFAULT_FILTER: &str = "warn,banyan=info,config=info,gateway=info,import=info,mcp_proto=info,runtime=info,telemetry=info";

/// The form of a line of the log.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum LogFormat {
    /// A JSON object a line.
    Json,
    /// For people; in colour on a terminal unless `NO_COLOR` is set.
    #[default]
    Text,
}

/// Failures to set up a log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The process has a log already.
    #[error("a log is already set up in this process: call this once, at the start")]
    AlreadySet,
    /// The filter can't be read.
    #[error("{VARIABLE}=`{filter}` can't be read ({why}): write for instance `info`, `debug` or `warn,gateway=debug`")]
    Filter {
        /// The value of the variable.
        filter: String,
        /// The fault in the filter.
        why: String,
    },
}

/// Starts the log of this process on standard error, filtered by `filter` (the value of [`VARIABLE`]).
pub fn start(format: LogFormat, filter: Option<&str>) -> Result<(), LogError> {
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    subscriber(format, filter, colour, std::io::stderr)?.try_init().map_err(|_| LogError::AlreadySet)
}

type Subscriber = Box<dyn tracing::Subscriber + Send + Sync>;

fn subscriber<W>(format: LogFormat, filter: Option<&str>, colour: bool, writer: W) -> Result<Subscriber, LogError>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let filter = filter.filter(|filter| !filter.trim().is_empty()).unwrap_or(DEFAULT_FILTER);
    let directives =
        EnvFilter::builder().parse(filter).map_err(|error| LogError::Filter { filter: filter.into(), why: error.to_string() })?;
    let directives = directives.add_directive(quiet());
    let lines = tracing_subscriber::fmt::layer().with_writer(writer).with_ansi(colour);
    let registry = tracing_subscriber::registry().with(directives);
    Ok(match format {
        LogFormat::Json => Box::new(registry.with(lines.json().flatten_event(true))),
        LogFormat::Text => Box::new(registry.with(lines)),
    })
}

/// Silences the OAuth library below INFO, where it logs the codes of sign-ins, which are secrets for as long as they last.
fn quiet() -> Directive {
    "rmcp::transport::auth=info".parse().unwrap_or_else(|_| LevelFilter::INFO.into())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn a_json_line_holds_values_as_fields() {
        let text = logged(LogFormat::Json, None, || tracing::info!(mount = "git", "ready"));
        let line: serde_json::Value = serde_json::from_str(text.trim()).unwrap();
        assert_eq!((line["mount"].as_str(), line["message"].as_str()), (Some("git"), Some("ready")));
    }

    #[test]
    fn libraries_are_quiet_unless_asked() {
        let speak = || {
            tracing::info!(target: "hyper::proto", "chatter");
            tracing::warn!(target: "hyper::proto", "trouble");
            tracing::debug!("detail");
        };
        let text = logged(LogFormat::Text, None, speak);
        assert!(text.contains("trouble") && !text.contains("chatter") && !text.contains("detail"), "{text}");
        let text = logged(LogFormat::Text, Some("debug"), speak);
        assert!(text.contains("chatter") && text.contains("detail"), "{text}");
    }

    #[test]
    fn secrets_of_a_sign_in_stay_out_of_the_log_at_every_level() {
        let speak = || tracing::debug!(target: "rmcp::transport::auth", "the code");
        for filter in ["debug", "trace", "trace,rmcp=trace"] {
            assert_eq!(logged(LogFormat::Text, Some(filter), speak), "", "{filter}");
        }
    }

    #[test]
    fn a_filter_that_cannot_be_read_is_quoted_with_what_to_write_instead() {
        let error = subscriber(LogFormat::Text, Some("gateway=loud"), false, std::io::sink).err().unwrap().to_string();
        assert!(error.contains("gateway=loud") && error.contains("warn,gateway=debug"), "{error}");
    }

    fn logged(format: LogFormat, filter: Option<&str>, speak: impl Fn()) -> String {
        let lines = Lines::default();
        let subscriber = subscriber(format, filter, false, lines.clone()).unwrap();
        tracing::subscriber::with_default(subscriber, speak);
        let bytes = lines.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Lines {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }
}
