//! The way to a device: FRR on this machine or on one behind SSH, a command line over SSH, or NETCONF. Decides nothing.

use std::sync::Arc;

use equipment::{Backend, DeviceSettings};
use net_proto::dialect::Dialect;
use net_proto::fault::{Code, Fault};

use crate::backend::Frr;
use crate::hosted::HostedFrr;
use crate::netconf::Netconf;
use crate::ssh::Ssh;

/// A way to a device.
#[derive(Clone, Debug)]
pub(crate) enum DeviceWay {
    Frr(Frr),
    Hosted(HostedFrr),
    Ssh(Ssh),
    Netconf(Netconf),
}

impl DeviceWay {
    pub(crate) fn new(settings: &DeviceSettings, dialect: Arc<Dialect>, password: Option<String>) -> Self {
        match settings.backend {
            Backend::Frr if settings.address.is_some() => Self::Hosted(HostedFrr::new(settings, dialect, password)),
            Backend::Frr => Self::Frr(Frr::new(settings, dialect)),
            Backend::Ssh => Self::Ssh(Ssh::new(settings, dialect, password)),
            Backend::Netconf => Self::Netconf(Netconf::new(settings, password)),
        }
    }

    /// Answer to one command of the exec mode; over NETCONF the data below a path.
    pub(crate) async fn exec(&self, command: &str) -> Result<String, Fault> {
        match self {
            Self::Frr(frr) => frr.exec(command).await,
            Self::Hosted(frr) => frr.exec(command).await,
            Self::Ssh(ssh) => ssh.exec(command).await,
            Self::Netconf(netconf) => Ok(netconf.data(command, true).await?.0.text()),
        }
    }

    /// The running configuration.
    pub(crate) async fn running(&self) -> Result<String, Fault> {
        match self {
            Self::Frr(frr) => frr.running().await,
            Self::Hosted(frr) => frr.running().await,
            Self::Ssh(ssh) => ssh.running().await,
            Self::Netconf(netconf) => netconf.running().await,
        }
    }

    /// First line about the version of the device.
    pub(crate) async fn version(&self) -> Result<String, Fault> {
        if let Self::Netconf(netconf) = self {
            let modules = netconf.reach().await?.modules().len();
            return Ok(format!("NETCONF with {modules} YANG modules"));
        }
        let command = if let Self::Ssh(ssh) = self { ssh.version_command() } else { "show version" };
        Ok(self.exec(command).await?.lines().next().unwrap_or_default().to_owned())
    }

    /// Does the device run on this machine, so that its files and its processors are at hand?
    pub(crate) fn is_local(&self) -> bool {
        matches!(self, Self::Frr(_))
    }

    /// The device, where it is reached over NETCONF.
    ///
    /// # Errors
    /// -32084: the device has no YANG server here.
    pub(crate) fn netconf(&self) -> Result<&Netconf, Fault> {
        match self {
            Self::Netconf(netconf) => Ok(netconf),
            Self::Frr(_) | Self::Hosted(_) | Self::Ssh(_) => {
                let detail = "this device has no YANG server: use network.cli.exec and network.cli.configure";
                Err(Fault::new(Code::ConfigIncompatible, detail))
            }
        }
    }

    /// Checks that something would take a change of the device back.
    ///
    /// # Errors
    /// -32087: nothing would. A device over NETCONF and a login without a shell are asked when a change is made.
    pub(crate) fn check_undo(&self) -> Result<(), Fault> {
        match self {
            Self::Netconf(_) | Self::Frr(_) | Self::Hosted(_) => Ok(()),
            Self::Ssh(ssh) => ssh.check_undo(),
        }
    }

    /// Does the device itself take an unconfirmed change back?
    pub(crate) fn has_timer(&self) -> bool {
        match self {
            Self::Netconf(_) | Self::Hosted(_) => true,
            Self::Ssh(ssh) => ssh.has_timer(),
            Self::Frr(_) => false,
        }
    }

    /// Checks that the device takes changes as commands.
    ///
    /// # Errors
    /// -32087: nothing on the device would restore it. -32084: over NETCONF there is no command line.
    pub(crate) fn check_lines(&self) -> Result<(), Fault> {
        if let Self::Netconf(_) = self {
            let detail = "this device is reached over NETCONF and has no command line here: use network.yang.get and network.yang.edit";
            return Err(Fault::new(Code::ConfigIncompatible, detail));
        }
        self.check_undo()
    }

    /// The device, where it makes candidates of commands by itself.
    pub(crate) fn candidate_line(&self) -> Option<&Ssh> {
        if let Self::Ssh(ssh) = self { Some(ssh).filter(|ssh| ssh.has_candidate()) } else { None }
    }
}
