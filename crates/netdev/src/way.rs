//! The way to a device: the FRR on this machine, or a command line over SSH. Decides nothing.

use std::sync::Arc;

use equipment::{Backend, CommandLine, DeviceSettings};
use net_proto::dialect::Dialect;
use net_proto::fault::{Code, Fault};

use crate::backend::Frr;
use crate::ssh::Ssh;

/// A way to a device.
#[derive(Clone, Debug)]
pub(crate) enum DeviceWay {
    Frr(Frr),
    Ssh(Ssh, CommandLine),
}

impl DeviceWay {
    pub(crate) fn new(settings: &DeviceSettings, dialect: Arc<Dialect>) -> Self {
        match settings.backend {
            Backend::Frr => Self::Frr(Frr::new(settings, dialect)),
            Backend::Ssh => Self::Ssh(Ssh::new(settings, dialect, std::env::var(equipment::PASSWORD).ok()), settings.dialect),
        }
    }

    /// Answer to one command of the exec mode.
    pub(crate) async fn exec(&self, command: &str) -> Result<String, Fault> {
        match self {
            Self::Frr(frr) => frr.exec(command).await,
            Self::Ssh(ssh, _) => ssh.exec(command).await,
        }
    }

    /// The running configuration.
    pub(crate) async fn running(&self) -> Result<String, Fault> {
        match self {
            Self::Frr(frr) => frr.running().await,
            Self::Ssh(ssh, CommandLine::Frr | CommandLine::Ios) => ssh.exec("show running-config").await,
            Self::Ssh(ssh, CommandLine::Junos) => ssh.exec("show configuration").await,
            Self::Ssh(ssh, CommandLine::Vrp) => ssh.exec("display current-configuration").await,
        }
    }

    /// First line about the version of the device.
    pub(crate) async fn version(&self) -> Result<String, Fault> {
        let command = if matches!(self, Self::Ssh(_, CommandLine::Vrp)) { "display version" } else { "show version" };
        Ok(self.exec(command).await?.lines().next().unwrap_or_default().to_owned())
    }

    /// Does the device run on this machine, so that its files and its processors are at hand?
    pub(crate) fn is_local(&self) -> bool {
        matches!(self, Self::Frr(_))
    }

    /// The device, where a change can be taken back.
    ///
    /// # Errors
    /// -32087: over a shell, nothing on the device would restore it.
    pub(crate) fn changeable(&self) -> Result<&Frr, Fault> {
        match self {
            Self::Frr(frr) => Ok(frr),
            Self::Ssh(..) => {
                let detail = "nothing on this device would bring the old configuration back, so nothing was sent";
                Err(Fault::new(Code::RollbackNotSupported, detail))
            }
        }
    }
}
