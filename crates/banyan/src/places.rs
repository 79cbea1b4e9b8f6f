//! Where things are on this machine: configuration, state, running gates. Reads the environment; makes no directory.

use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The configuration file looked for in the working directory.
pub(crate) const CONFIG_NAME: &str = "banyan.toml";

/// What to do where a configuration is missing, for people.
pub(crate) const MAKE_ONE: &str =
    "make one with `banyan import --write`, or by hand: a section [mount.NAME] with a `command` or a `url` is enough";

/// `$XDG_CONFIG_HOME/banyan`, by default `~/.config/banyan`.
pub(crate) fn config_dir() -> Result<PathBuf, Failure> {
    Ok(base("XDG_CONFIG_HOME", ".config")?.join("banyan"))
}

/// `$XDG_STATE_HOME/banyan`, by default `~/.local/state/banyan`: what has to outlive a run.
pub(crate) fn state_dir() -> Result<PathBuf, Failure> {
    Ok(base("XDG_STATE_HOME", ".local/state")?.join("banyan"))
}

/// `$XDG_RUNTIME_DIR/banyan`, by default `run` in the state directory: where running gates say that they run.
pub(crate) fn runtime_dir() -> Result<PathBuf, Failure> {
    match absolute("XDG_RUNTIME_DIR") {
        Some(dir) => Ok(dir.join("banyan")),
        None => Ok(state_dir()?.join("run")),
    }
}

/// The configuration to use: the one given, `./banyan.toml`, or the user's own; `None` when none of them is there.
/// One that was given is answered whether it is there or not.
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

/// A directory variable counts only when it is absolute, as the XDG specification has it.
fn absolute(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|p| p.is_absolute())
}
