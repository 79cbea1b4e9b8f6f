//! BIRD on this machine through `birdc`: commands, the configuration file, and changes under the timer of `configure timeout`. Decides nothing.
//!
//! An applied configuration lies beside the configuration file, with a constant at its end as the name of the change: so BIRD itself says whether
//! the change runs. The configuration file is written once the change is confirmed.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use equipment::DeviceSettings;
use net_proto::bird;
use net_proto::dialect::Dialect;
use net_proto::fault::{Code, Fault};
use runtime::whole::{self, Readers};

use crate::command::{ProgramOutput, last, run};

/// Longest configuration file, in bytes.
const LONGEST: u64 = 16 << 20;

/// A BIRD on this machine.
#[derive(Clone, Debug)]
pub(crate) struct Bird {
    program: String,
    socket: String,
    file: PathBuf,
    timeout: Duration,
    dialect: Arc<Dialect>,
}

impl Bird {
    pub(crate) fn new(settings: &DeviceSettings, dialect: Arc<Dialect>) -> Self {
        Self {
            program: format!("{}/birdc", settings.bindir.as_deref().unwrap_or("/usr/sbin")),
            socket: settings.socket.clone().unwrap_or_else(|| "/run/bird/bird.ctl".to_owned()),
            file: settings.file.clone().unwrap_or_else(|| "/etc/bird/bird.conf".into()),
            timeout: Duration::from_secs(settings.command_timeout),
            dialect,
        }
    }

    /// Answer to one command. BIRD itself takes only reads in this mode.
    pub(crate) async fn exec(&self, command: &str) -> Result<String, Fault> {
        bird::check_command(command)?;
        let output = self.birdc(&["-r"], command).await?;
        let text = bird::answer(&output.stdout);
        match self.dialect.fault(command, text) {
            Some(fault) => Err(fault),
            None if output.is_success => Ok(text.to_owned()),
            None => Err(refused(command, &output)),
        }
    }

    /// The running configuration: the one of the change named by BIRD, else the file.
    pub(crate) async fn running(&self) -> Result<String, Fault> {
        if let Some(change) = self.running_change().await?
            && let Ok(text) = read(&self.applied())
            && let Some(whole) = bird::without_change(&text, &change)
        {
            return Ok(whole.to_owned());
        }
        read(&self.file)
    }

    /// Checks a whole configuration, on the device and without a change.
    pub(crate) async fn validate(&self, text: &str) -> Result<(), Fault> {
        let file = self.beside("check");
        self.write(&file, text)?;
        let checked = self.birdc(&[], &format!("configure check \"{}\"", file.display())).await;
        drop(std::fs::remove_file(&file));
        let checked = checked?;
        if checked.is_success { Ok(()) } else { Err(self.wrong(&file, &checked)) }
    }

    /// Applies a configuration, which BIRD takes back after `seconds`.
    pub(crate) async fn apply(&self, token: &str, seconds: u64, text: &str) -> Result<(), Fault> {
        if seconds == 0 {
            return Err(Fault::new(Code::ConfirmedCommitTimeout, "the device took longer than the window, so nothing was applied"));
        }
        let status = self.birdc(&[], "configure status").await?;
        if bird::is_unconfirmed(&status.stdout) {
            let detail = "locked: a configuration of somebody else waits in BIRD for its confirmation, so nothing was applied";
            return Err(Fault::new(Code::AccessDenied, detail).retryable());
        }
        let file = self.applied();
        self.write(&file, &bird::with_change(text, token))?;
        let done = self.birdc(&[], &format!("configure \"{}\" timeout {seconds}", file.display())).await?;
        if done.is_success { Ok(()) } else { Err(self.wrong(&file, &done)) }
    }

    /// Confirms the change to BIRD, where BIRD runs the change: the command itself would confirm the configuration of anybody.
    pub(crate) async fn confirm(&self, token: &str) -> Result<(), Fault> {
        if self.running_change().await?.as_deref() != Some(token) {
            return Err(Fault::new(Code::InvalidParams, "BIRD runs another configuration than the change, so nothing was confirmed"));
        }
        let done = self.birdc(&[], "configure confirm").await?;
        if done.is_success && bird::is_confirmed(&done.stdout) {
            return Ok(());
        }
        Err(Fault::new(Code::InvalidParams, "BIRD waits for no confirmation"))
    }

    /// Brings the old configuration back, where BIRD runs the change.
    pub(crate) async fn undo(&self, token: &str) -> Result<(), Fault> {
        if self.running_change().await?.as_deref() != Some(token) {
            return Ok(());
        }
        let status = self.birdc(&[], "configure status").await?;
        // Somebody else may have confirmed; the file holds the old configuration all the same.
        let command = if bird::is_unconfirmed(&status.stdout) {
            "configure undo".to_owned()
        } else {
            format!("configure \"{}\"", self.file.display())
        };
        let done = self.birdc(&[], &command).await?;
        if done.is_success { Ok(()) } else { Err(refused(&command, &done)) }
    }

    /// Writes the running configuration for the next start of BIRD.
    pub(crate) async fn save(&self) -> Result<(), Fault> {
        let text = self.running().await?;
        self.write(&self.file, &text)
    }

    /// The change named by BIRD.
    async fn running_change(&self) -> Result<Option<String>, Fault> {
        let named = self.birdc(&[], &bird::asking_for_change()).await?;
        let change = bird::running_change(&named.stdout, named.is_success);
        change.map(|change| change.map(str::to_owned)).map_err(|_| refused("eval", &named))
    }

    fn applied(&self) -> PathBuf {
        self.beside("banyan")
    }

    /// A file beside the configuration file, where relative includes are found.
    fn beside(&self, ending: &str) -> PathBuf {
        let mut name = self.file.as_os_str().to_owned();
        name.push(".");
        name.push(ending);
        name.into()
    }

    /// Writes a file for the readers of the configuration file.
    fn write(&self, file: &Path, text: &str) -> Result<(), Fault> {
        let written = (|| {
            let like = std::fs::metadata(&self.file)?;
            if file != self.file {
                whole::replace_for_now(file, b"", Readers::Owner)?;
                std::fs::set_permissions(file, like.permissions())?;
            }
            whole::replace(file, text.as_bytes(), Readers::Same)?;
            std::os::unix::fs::chown(file, Some(like.uid()), Some(like.gid()))
        })();
        written.map_err(|error| Fault::new(Code::AccessDenied, format!("{} can't be written: {error}", file.display())))
    }

    async fn birdc(&self, options: &[&str], command: &str) -> Result<ProgramOutput, Fault> {
        let output = run(&self.arguments(options, command), self.timeout, None).await?;
        if output.stderr.contains("Unable to connect") || output.stdout.is_empty() {
            let said = last(&output.stderr).to_owned();
            return Err(Fault::new(Code::Unreachable, format!("BIRD does not answer at {}: {said}", self.socket)).retryable());
        }
        Ok(output)
    }

    /// The program with its arguments. No word of the command is an option, wherever it stands.
    fn arguments<'all>(&'all self, options: &[&'all str], command: &'all str) -> Vec<&'all str> {
        let mut all = vec![self.program.as_str(), "-s", &self.socket];
        all.extend(options);
        all.push("--");
        all.extend(command.split(' ').filter(|word| !word.is_empty()));
        all
    }

    /// The fault of a refused configuration.
    fn wrong(&self, file: &Path, output: &ProgramOutput) -> Fault {
        let line = bird::refusal(&output.stdout, &file.display().to_string());
        Fault::new(Code::ConfigIncompatible, format!("BIRD refuses line {line}")).at("candidate-config")
    }
}

fn refused(what: &str, output: &ProgramOutput) -> Fault {
    let said = [&output.stdout, &output.stderr].map(|text| text.trim()).join("\n");
    Fault::new(Code::ConfigIncompatible, format!("BIRD refused it: {}", last(&said))).at(what)
}

fn read(file: &Path) -> Result<String, Fault> {
    let unread = |why: String| Fault::new(Code::Unreachable, format!("{} can't be read: {why}", file.display()));
    if std::fs::metadata(file).is_ok_and(|facts| facts.len() > LONGEST) {
        return Err(unread(format!("it is longer than {LONGEST} bytes")));
    }
    std::fs::read_to_string(file).map_err(|error| unread(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bird() -> Bird {
        Bird::new(&DeviceSettings::new("b"), Dialect::named("bird").unwrap())
    }

    #[test]
    fn nm_12_options_of_birdc_end_before_the_command() {
        let bird = bird();
        let all = bird.arguments(&["-r"], "show protocols  all -s /other.ctl");
        let expected = ["/usr/sbin/birdc", "-s", "/run/bird/bird.ctl", "-r", "--", "show", "protocols", "all", "-s", "/other.ctl"];
        assert_eq!(all, expected);
    }

    #[tokio::test]
    async fn nm_12_a_command_with_an_option_is_never_run() {
        let fault = bird().exec("show protocols all -s /other.ctl").await.unwrap_err();
        assert_eq!(fault.code, Code::AccessDenied);
    }
}
