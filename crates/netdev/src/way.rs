//! The way to a device: the FRR on this machine, a command line over SSH, or NETCONF. Decides nothing.

use std::sync::Arc;

use equipment::{Backend, CommandLine, DeviceSettings};
use net_proto::dialect::Dialect;
use net_proto::fault::{Code, Fault};

use crate::backend::Frr;
use crate::netconf::Netconf;
use crate::ssh::Ssh;

/// A way to a device.
#[derive(Clone, Debug)]
pub(crate) enum DeviceWay {
    Frr(Frr),
    Ssh(Ssh, CommandLine),
    Netconf(Netconf),
}

impl DeviceWay {
    pub(crate) fn new(settings: &DeviceSettings, dialect: Arc<Dialect>, password: Option<String>) -> Self {
        match settings.backend {
            Backend::Frr => Self::Frr(Frr::new(settings, dialect)),
            Backend::Ssh => Self::Ssh(Ssh::new(settings, dialect, password), settings.dialect),
            Backend::Netconf => Self::Netconf(Netconf::new(settings, password)),
        }
    }

    /// Answer to one command of the exec mode; over NETCONF the data below a path.
    pub(crate) async fn exec(&self, command: &str) -> Result<String, Fault> {
        match self {
            Self::Frr(frr) => frr.exec(command).await,
            Self::Ssh(ssh, _) => ssh.exec(command).await,
            Self::Netconf(netconf) => Ok(netconf.data(command, true).await?.0.text()),
        }
    }

    /// The running configuration.
    pub(crate) async fn running(&self) -> Result<String, Fault> {
        match self {
            Self::Frr(frr) => frr.running().await,
            Self::Ssh(ssh, CommandLine::Frr | CommandLine::Ios) => ssh.exec("show running-config").await,
            Self::Ssh(ssh, CommandLine::Junos) => ssh.exec("show configuration").await,
            Self::Ssh(ssh, CommandLine::Vrp) => ssh.exec("display current-configuration").await,
            Self::Netconf(netconf) => netconf.running().await,
        }
    }

    /// First line about the version of the device.
    pub(crate) async fn version(&self) -> Result<String, Fault> {
        if let Self::Netconf(netconf) = self {
            let modules = netconf.reach().await?.modules().len();
            return Ok(format!("NETCONF with {modules} YANG modules"));
        }
        let command = if matches!(self, Self::Ssh(_, CommandLine::Vrp)) { "display version" } else { "show version" };
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
            Self::Frr(_) | Self::Ssh(..) => {
                let detail = "this device has no YANG server: use network.cli.exec and network.cli.configure";
                Err(Fault::new(Code::ConfigIncompatible, detail))
            }
        }
    }

    /// Checks that something would take a change of the device back.
    ///
    /// # Errors
    /// -32087: over a shell nothing would. A device over NETCONF is asked when a change is made.
    pub(crate) fn check_undo(&self) -> Result<(), Fault> {
        match self {
            Self::Netconf(_) => Ok(()),
            Self::Frr(_) | Self::Ssh(..) => self.changeable().map(drop),
        }
    }

    /// The device, where its command line can take a change back.
    ///
    /// # Errors
    /// -32087: over a shell, nothing on the device would restore it. -32084: over NETCONF there is no command line.
    pub(crate) fn changeable(&self) -> Result<&Frr, Fault> {
        match self {
            Self::Frr(frr) => Ok(frr),
            Self::Ssh(..) => {
                let detail = "nothing on this device would bring the old configuration back, so nothing was sent";
                Err(Fault::new(Code::RollbackNotSupported, detail))
            }
            Self::Netconf(_) => Err(Fault::new(
                Code::ConfigIncompatible,
                "this device is reached over NETCONF and has no command line here: use network.yang.get and network.yang.edit",
            )),
        }
    }
}
