//! Places of a person's files, as an argument: tests make directories of their own. Reads no file.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use config::resolved::Config;
use config::secret::{KeyringError, Sources};

/// The machine, as far as clients' files depend on it.
#[derive(Clone, Debug)]
pub struct Places {
    pub home: PathBuf,
    /// The working directory: the files of its project are read as well.
    pub cwd: PathBuf,
    /// The platform, which decides the places of clients' files.
    pub platform: Platform,
    /// The environment: some clients are moved by it, and addresses and programs may hold its variables.
    pub env: BTreeMap<String, String>,
    /// Banyan's own listener; entries that point there are left out.
    pub listen: SocketAddr,
}

/// The platform of clients' files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    /// Linux and other systems with XDG directories.
    Linux,
    Mac,
    Windows,
}

impl Places {
    /// This process's machine. `None` when no home directory or working directory is known.
    pub fn here() -> Option<Self> {
        Some(Self {
            home: std::env::home_dir().filter(|home| home.is_absolute())?,
            cwd: std::env::current_dir().ok()?,
            platform: Platform::here(),
            env: std::env::vars_os().filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?))).collect(),
            listen: Config::DEFAULT_LISTEN,
        })
    }

    /// Gives the directory of programs' settings: `~/.config`, `~/Library/Application Support` or `%APPDATA%`.
    pub(super) fn settings(&self) -> PathBuf {
        match self.platform {
            Platform::Linux => self.xdg_config(),
            Platform::Mac => self.home.join("Library").join("Application Support"),
            Platform::Windows => self.dir_from("APPDATA").unwrap_or_else(|| self.home.join("AppData").join("Roaming")),
        }
    }

    /// Gives `$XDG_CONFIG_HOME`, or `~/.config`.
    pub(super) fn xdg_config(&self) -> PathBuf {
        self.dir_from("XDG_CONFIG_HOME").unwrap_or_else(|| self.home.join(".config"))
    }

    /// Gives the directory in a variable, if an absolute path.
    pub(super) fn dir_from(&self, variable: &str) -> Option<PathBuf> {
        self.env.get(variable).map(PathBuf::from).filter(|dir| dir.is_absolute())
    }

    /// Lists the working directory and its parents up to the root of the repository; only itself outside of a repository. The
    /// home directory is nobody's project.
    pub(super) fn projects(&self) -> Vec<&Path> {
        let above: Vec<&Path> = self.cwd.ancestors().take_while(|dir| *dir != self.home).collect();
        let root = above.iter().position(|dir| dir.join(".git").exists());
        above.into_iter().take(root.map_or(1, |root| root + 1)).collect()
    }
}

impl Platform {
    /// Gives the platform of this build.
    pub fn here() -> Self {
        if cfg!(target_os = "macos") {
            Self::Mac
        } else if cfg!(windows) {
            Self::Windows
        } else {
            Self::Linux
        }
    }
}

/// The environment alone: addresses and programs are shown, so neither files nor the keyring are asked for them.
impl Sources for Places {
    fn env(&self, name: &str) -> Option<String> {
        self.env.get(name).cloned()
    }

    fn file(&self, _: &Path) -> std::io::Result<String> {
        Err(std::io::Error::other("only variables can stand here"))
    }

    fn keyring(&self, _: &str) -> Result<Option<String>, KeyringError> {
        Err(KeyringError::Unavailable("only variables can stand here".into()))
    }
}
