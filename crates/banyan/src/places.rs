//! Places on this machine: configuration, state, running gates. Reads the environment; makes no directory.

use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The configuration file looked for in the working directory.
pub(crate) const CONFIG_NAME: &str = "banyan.toml";

/// Advice for a missing configuration, for people.
pub(crate) const MAKE_ONE: &str = "make one with `banyan add NAME -- COMMAND`, with `banyan import --write`, or by hand: a section [mount.NAME] with a `command` or a `url` is enough";

/// `$XDG_CONFIG_HOME/banyan`, by default `~/.config/banyan`.
pub(crate) fn config_dir() -> Result<PathBuf, Failure> {
    Ok(base("XDG_CONFIG_HOME", ".config")?.join("banyan"))
}

/// Gives `$XDG_STATE_HOME/banyan`, by default `~/.local/state/banyan`, for files that outlive a run.
pub(crate) fn state_dir() -> Result<PathBuf, Failure> {
    Ok(base("XDG_STATE_HOME", ".local/state")?.join("banyan"))
}

/// Gives `$XDG_RUNTIME_DIR/banyan`, by default `run` in the state directory, for the files of running gates.
pub(crate) fn runtime_dir() -> Result<PathBuf, Failure> {
    match absolute("XDG_RUNTIME_DIR") {
        Some(dir) => Ok(dir.join("banyan")),
        None => Ok(state_dir()?.join("run")),
    }
}

/// Name of the user of this process, for records that people read.
pub(crate) fn person() -> String {
    std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_else(|_| "somebody at the command line".to_owned())
}

/// Finds the configuration to use: the given file, `./banyan.toml`, or the user's own; `None` if all are missing.
/// A given file is returned even if missing.
pub(crate) fn config_file(given: Option<&Path>) -> Result<Option<PathBuf>, Failure> {
    if let Some(given) = given {
        return Ok(Some(given.to_owned()));
    }
    let candidates = [PathBuf::from(CONFIG_NAME), config_dir()?.join(CONFIG_NAME)];
    Ok(candidates.into_iter().find(|p| p.is_file()))
}

fn base(variable: &str, below_home: &str) -> Result<PathBuf, Failure> {
    if let Some(dir) = absolute(variable) {
        return Ok(dir);
    }
    let home = std::env::home_dir().filter(|h| !h.as_os_str().is_empty());
    let home = home.ok_or_else(|| Failure::Failed(format!("no home directory is known: set HOME or {variable}")))?;
    Ok(home.join(below_home))
}

/// Reads a directory variable, which counts only if absolute, as in the XDG specification.
fn absolute(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|p| p.is_absolute())
}
