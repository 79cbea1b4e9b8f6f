//! The service manager of this machine: where the file of the gate's service lies, and the programs that start and end the service. Does not write the file.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use runtime::whole::Readers;

use crate::document;
use crate::failure::Failure;
use crate::unit::{KEPT, LABEL, MARK, ServedGate, escaped, holds_credentials, quoted};

/// Name of the systemd unit.
const UNIT: &str = "banyan.service";

/// A service manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Supervisor {
    /// launchd, for a user.
    Launchd,
    /// systemd, for the machine.
    System,
    /// systemd, for a user.
    User,
}

impl Supervisor {
    /// The manager of this machine. `system`: for the machine in place of a user.
    pub(crate) fn here(system: bool) -> Result<Self, Failure> {
        match (cfg!(target_os = "macos"), system) {
            (true, false) => Ok(Self::Launchd),
            (true, true) => Err(Failure::Usage("a service of the machine needs systemd\n  leave `--system` out".to_owned())),
            (false, true) => Ok(Self::System),
            (false, false) => Ok(Self::User),
        }
    }

    /// Name for people and scripts.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Launchd => "launchd agent",
            Self::System => "systemd system unit",
            Self::User => "systemd user unit",
        }
    }

    /// The path of the service's file.
    pub(crate) fn file(self) -> Result<PathBuf, Failure> {
        let home = || {
            let home = std::env::home_dir().filter(|home| home.is_absolute());
            home.ok_or_else(|| Failure::Failed("no home directory is known: set HOME".to_owned()))
        };
        Ok(match self {
            Self::Launchd => home()?.join("Library/LaunchAgents").join(format!("{LABEL}.plist")),
            Self::System => Path::new("/etc/systemd/system").join(UNIT),
            Self::User => {
                let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|dir| dir.is_absolute());
                config.map_or_else(|| home().map(|home| home.join(".config")), Ok)?.join("systemd/user").join(UNIT)
            }
        })
    }

    /// The text of the service's file.
    pub(crate) fn text(self, program: &Path, config: &Path) -> Result<String, Failure> {
        let env = self.env();
        let gate = ServedGate { program, config, env: &env };
        Ok(match self {
            Self::Launchd => {
                let home = std::env::home_dir().unwrap_or_default();
                gate.agent(&home.join("Library/Logs/banyan.log"))
            }
            Self::System => gate.system_unit(),
            Self::User => gate.user_unit(),
        })
    }

    fn env(self) -> Vec<(String, String)> {
        if self == Self::System {
            let places =
                [("HOME", "/var/lib/banyan"), ("XDG_CONFIG_HOME", "/etc"), ("XDG_RUNTIME_DIR", "/run"), ("XDG_STATE_HOME", "/var/lib")];
            return places.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        }
        of_shell().filter(|(name, value)| !holds_credentials(name, value)).collect()
    }

    /// Names the variables of this shell that a service would need and that its file leaves out: their values hold credentials.
    pub(crate) fn left_out(self) -> Vec<String> {
        let held = of_shell().filter(|(name, value)| self != Self::System && holds_credentials(name, value));
        held.map(|(name, _)| name).collect()
    }

    /// The permitted readers of the service's file. The unit of the machine holds no variable of a shell.
    pub(crate) const fn readers(self) -> Readers {
        match self {
            Self::Launchd | Self::User => Readers::Owner,
            Self::System => Readers::Others,
        }
    }

    /// Reads the service's file; `None`: the service is not installed.
    pub(crate) fn installed(self) -> Result<Option<String>, Failure> {
        let file = self.file()?;
        match std::fs::read_to_string(&file) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(document::failed(&file, "read", &error)),
        }
    }

    /// Checks if the service is for the configuration in `config`, and is enabled or runs. The file alone starts nothing.
    pub(crate) fn starts(self, config: &Path) -> bool {
        let names = |text: &str| match self {
            Self::Launchd => text.contains(&format!("<string>{}</string>", escaped(&config.display().to_string()))),
            Self::System | Self::User => {
                let end = format!(" --config {}", quoted(&config.display().to_string(), true));
                text.lines().any(|line| line.starts_with("ExecStart=") && line.ends_with(&end))
            }
        };
        let is_enabled = || match self {
            Self::Launchd => Ok(()),
            Self::System => run("systemctl", &["is-enabled", UNIT]),
            Self::User => run("systemctl", &["--user", "is-enabled", UNIT]),
        };
        let is_for = matches!(self.installed(), Ok(Some(text)) if text.contains(MARK) && names(&text));
        is_for && (self.runs() == Ok(true) || (self != Self::Launchd && is_enabled().is_ok()))
    }

    /// Checks that the service's file is one of this program, or missing.
    pub(crate) fn check_own(self) -> Result<(), Failure> {
        match self.installed()? {
            Some(text) if !text.contains(MARK) => Err(Failure::Refused(format!(
                "{} is not of `banyan service install`, and is left alone\n  remove the file by hand, or move it away",
                self.file()?.display()
            ))),
            Some(_) | None => Ok(()),
        }
    }

    /// Starts the service now and at each login, or at each start of the machine.
    pub(crate) fn start(self) -> Result<(), String> {
        let file = self.file().map_err(|failure| failure.to_string())?.display().to_string();
        match self {
            // An older one is not there, or ends.
            Self::Launchd => {
                _ = run("launchctl", &["unload", &file]);
                run("launchctl", &["load", "-w", &file])
            }
            Self::System => {
                run("systemd-sysusers", &["--inline", "u banyan - \"Banyan gate\" /var/lib/banyan"])?;
                run("systemctl", &["daemon-reload"])?;
                run("systemctl", &["enable", UNIT])?;
                run("systemctl", &["restart", UNIT])
            }
            Self::User => {
                run("systemctl", &["--user", "daemon-reload"])?;
                run("systemctl", &["--user", "enable", UNIT])?;
                run("systemctl", &["--user", "restart", UNIT])
            }
        }
    }

    /// Ends the service, now and for good.
    pub(crate) fn stop(self) -> Result<(), String> {
        let file = self.file().map_err(|failure| failure.to_string())?.display().to_string();
        match self {
            Self::Launchd => run("launchctl", &["unload", "-w", &file]),
            Self::System => run("systemctl", &["disable", "--now", UNIT]),
            Self::User => run("systemctl", &["--user", "disable", "--now", UNIT]),
        }
    }

    /// Forgets a removed file.
    pub(crate) fn forget(self) -> Result<(), String> {
        match self {
            Self::Launchd => Ok(()),
            Self::System => run("systemctl", &["daemon-reload"]),
            Self::User => run("systemctl", &["--user", "daemon-reload"]),
        }
    }

    /// Checks if the service runs; the error says why nobody knows.
    pub(crate) fn runs(self) -> Result<bool, String> {
        let arguments: &[&str] = match self {
            Self::Launchd => &["list", LABEL],
            Self::System => &["is-active", UNIT],
            Self::User => &["--user", "is-active", UNIT],
        };
        let program = if self == Self::Launchd { "launchctl" } else { "systemctl" };
        let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("`{program}` can't be run: {error}"))?;
        let said = String::from_utf8_lossy(&output.stdout);
        match (output.status.success(), said.trim()) {
            (true, _) => Ok(true),
            (false, "activating" | "deactivating" | "failed" | "inactive" | "reloading") => Ok(false),
            (false, _) if self == Self::Launchd => Ok(false),
            (false, _) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        }
    }
}

fn of_shell() -> impl Iterator<Item = (String, String)> {
    KEPT.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)))
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("`{program}` can't be run: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("`{program} {}`: {}", arguments.join(" "), said.trim()))
}
