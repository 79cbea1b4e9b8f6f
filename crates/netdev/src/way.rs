//! The way to a device: FRR on this machine or on one behind SSH, a command line over SSH, NETCONF, SNMP, BIRD or Open vSwitch. Decides nothing.

use std::sync::Arc;

use equipment::{Backend, DeviceSecrets, DeviceSettings};
use net_proto::dialect::Dialect;
use net_proto::fault::{Code, Fault};
use net_proto::snmp::named;

use crate::backend::Frr;
use crate::bird::Bird;
use crate::hosted::HostedFrr;
use crate::netconf::Netconf;
use crate::ovs::Ovs;
use crate::snmp::Snmp;
use crate::ssh::Ssh;

/// A way to a device.
#[derive(Clone, Debug)]
pub(crate) enum DeviceWay {
    Frr(Frr),
    Hosted(HostedFrr),
    Ssh(Ssh),
    Netconf(Netconf),
    Snmp(Snmp),
    Bird(Bird),
    Ovs(Ovs),
}

impl DeviceWay {
    pub(crate) fn new(settings: &DeviceSettings, dialect: Arc<Dialect>, secrets: &DeviceSecrets) -> Self {
        let password = secrets.get("password").map(str::to_owned);
        match settings.backend {
            Backend::Frr if settings.address.is_some() => Self::Hosted(HostedFrr::new(settings, dialect, password)),
            Backend::Frr => Self::Frr(Frr::new(settings, dialect)),
            Backend::Ssh => Self::Ssh(Ssh::new(settings, dialect, password)),
            Backend::Netconf => Self::Netconf(Netconf::new(settings, password)),
            Backend::Bird => Self::Bird(Bird::new(settings, dialect)),
            Backend::Ovs => Self::Ovs(Ovs::new(settings)),
            Backend::Snmp => Self::Snmp(Snmp::new(settings, secrets)),
        }
    }

    /// Answer to one command of the exec mode; over NETCONF and SNMP the data below a path.
    pub(crate) async fn exec(&self, command: &str) -> Result<String, Fault> {
        match self {
            Self::Frr(frr) => frr.exec(command).await,
            Self::Hosted(frr) => frr.exec(command).await,
            Self::Ssh(ssh) => ssh.exec(command).await,
            Self::Bird(bird) => bird.exec(command).await,
            Self::Ovs(ovs) => ovs.exec(command).await,
            Self::Netconf(netconf) => Ok(netconf.data(command, true).await?.0.text()),
            Self::Snmp(snmp) => Ok(named(&snmp.data(command).await?).to_string()),
        }
    }

    /// The running configuration.
    pub(crate) async fn running(&self) -> Result<String, Fault> {
        match self {
            Self::Frr(frr) => frr.running().await,
            Self::Hosted(frr) => frr.running().await,
            Self::Ssh(ssh) => ssh.running().await,
            Self::Bird(bird) => bird.running().await,
            Self::Ovs(ovs) => ovs.running().await,
            Self::Netconf(netconf) => netconf.running().await,
            Self::Snmp(snmp) => snmp.running().await,
        }
    }

    /// First line about the version of the device.
    pub(crate) async fn version(&self) -> Result<String, Fault> {
        if let Self::Netconf(netconf) = self {
            let modules = netconf.reach().await?.modules().len();
            return Ok(format!("NETCONF with {modules} YANG modules"));
        }
        if let Self::Snmp(snmp) = self {
            return snmp.description().await;
        }
        let command = match self {
            Self::Ssh(ssh) => ssh.version_command(),
            Self::Bird(_) => "show status",
            Self::Frr(_) | Self::Hosted(_) | Self::Ovs(_) | Self::Netconf(_) | Self::Snmp(_) => "show version",
        };
        Ok(self.exec(command).await?.lines().next().unwrap_or_default().to_owned())
    }

    /// Does the device run on this machine, so that its files and its processors are at hand?
    pub(crate) fn is_local(&self) -> bool {
        matches!(self, Self::Frr(_))
    }

    /// Answers of an FRR to reading commands of our own, in order; `None` beyond `limit` bytes.
    pub(crate) async fn exec_within(&self, commands: &[String], limit: u64) -> Result<Option<String>, Fault> {
        match self {
            Self::Frr(frr) => frr.exec_within(commands, limit).await,
            Self::Hosted(frr) => frr.exec_within(commands, limit).await,
            Self::Ssh(ssh) => ssh.exec_within(commands, limit).await,
            Self::Netconf(_) | Self::Snmp(_) | Self::Bird(_) | Self::Ovs(_) => {
                Err(Fault::new(Code::ConfigIncompatible, "this device shows no tables of FRR"))
            }
        }
    }

    /// The device, where it is reached over NETCONF.
    ///
    /// # Errors
    /// -32084: the device has no YANG server here.
    pub(crate) fn netconf(&self) -> Result<&Netconf, Fault> {
        match self {
            Self::Netconf(netconf) => Ok(netconf),
            Self::Frr(_) | Self::Hosted(_) | Self::Ssh(_) | Self::Snmp(_) | Self::Bird(_) | Self::Ovs(_) => {
                let detail = "this device has no YANG server: use network.cli.exec and network.cli.configure";
                Err(Fault::new(Code::ConfigIncompatible, detail))
            }
        }
    }

    /// The device, where it is reached over SNMP.
    pub(crate) fn snmp(&self) -> Option<&Snmp> {
        match self {
            Self::Snmp(snmp) => Some(snmp),
            Self::Frr(_) | Self::Hosted(_) | Self::Ssh(_) | Self::Netconf(_) | Self::Bird(_) | Self::Ovs(_) => None,
        }
    }

    /// The Open vSwitch on this machine.
    pub(crate) fn ovs(&self) -> Option<&Ovs> {
        if let Self::Ovs(ovs) = self { Some(ovs) } else { None }
    }

    /// Has the device a command line here?
    pub(crate) fn has_command_line(&self) -> bool {
        matches!(self, Self::Frr(_) | Self::Hosted(_) | Self::Ssh(_) | Self::Bird(_) | Self::Ovs(_))
    }

    /// Looks at the abilities of a device that tells them itself.
    pub(crate) async fn look(&self) {
        match self {
            Self::Netconf(netconf) => netconf.look().await,
            Self::Hosted(frr) => frr.look().await,
            Self::Frr(_) | Self::Ssh(_) | Self::Snmp(_) | Self::Bird(_) | Self::Ovs(_) => {}
        }
    }

    /// Checks that something would take a change of the device back.
    ///
    /// # Errors
    /// -32087: nothing would. A device over NETCONF, and a machine behind SSH that has not answered a look yet, are asked when a change is made.
    pub(crate) fn check_undo(&self) -> Result<(), Fault> {
        match self {
            Self::Netconf(_) | Self::Bird(_) | Self::Ovs(_) => Ok(()),
            Self::Frr(frr) => frr.check_undo(),
            Self::Hosted(frr) => frr.check_undo(),
            Self::Ssh(ssh) => ssh.check_undo(),
            Self::Snmp(snmp) if snmp.accepts_no_rollback => Ok(()),
            Self::Snmp(_) => {
                let detail = "a device over SNMP can't take a change back by itself, so nothing was sent; \
                    `accept_no_rollback = true` in its section accepts that Banyan does so";
                Err(Fault::new(Code::RollbackNotSupported, detail))
            }
        }
    }

    /// Does the device itself take an unconfirmed change back?
    pub(crate) fn has_timer(&self) -> bool {
        match self {
            Self::Netconf(_) | Self::Hosted(_) | Self::Bird(_) => true,
            Self::Ssh(ssh) => ssh.has_timer(),
            Self::Frr(_) | Self::Ovs(_) | Self::Snmp(_) => false,
        }
    }

    /// Checks that the device takes changes as commands.
    ///
    /// # Errors
    /// -32087: nothing on the device would restore it. -32084: over NETCONF and SNMP there is no command line.
    pub(crate) fn check_lines(&self) -> Result<(), Fault> {
        if !self.has_command_line() {
            let detail = "this device has no command line here: use network.yang.get and network.yang.edit";
            return Err(Fault::new(Code::ConfigIncompatible, detail));
        }
        self.check_undo()
    }

    /// Revision of the file that the device starts with, where Banyan writes the file itself, below a candidate on `running`.
    ///
    /// # Errors
    /// -32083: somebody has edited the file since.
    pub(crate) async fn start_revision(&self, running: &str, known: Option<&str>) -> Result<Option<String>, Fault> {
        if let Self::Bird(bird) = self { bird.start_revision(running, known).await.map(Some) } else { Ok(None) }
    }

    /// Does a save write what the device starts with?
    pub(crate) const fn writes_saves(&self) -> bool {
        match self {
            Self::Frr(_) | Self::Hosted(_) | Self::Ssh(_) | Self::Bird(_) => true,
            Self::Netconf(_) | Self::Snmp(_) | Self::Ovs(_) => false,
        }
    }

    /// Is the configuration one text, and no lines that commands could be merged into?
    pub(crate) fn is_text(&self) -> bool {
        matches!(self, Self::Bird(_))
    }

    /// Are the lines of a change typed, one by one? Elsewhere a whole configuration is applied.
    pub(crate) fn types_lines(&self) -> bool {
        matches!(self, Self::Ssh(ssh) if !ssh.has_candidate())
    }

    /// The device, where it makes candidates of commands by itself.
    pub(crate) fn candidate_line(&self) -> Option<&Ssh> {
        if let Self::Ssh(ssh) = self { Some(ssh).filter(|ssh| ssh.has_candidate()) } else { None }
    }
}
