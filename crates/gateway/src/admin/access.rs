//! Access to the admin API, and the way from there to the program that runs the gate. Does not answer requests.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::Gateway;
use crate::admin::attempts::Attempts;
use crate::admin::presence::{Presence, PresenceFile, ServedConfig};

/// A request of the admin API to the program that runs the gate.
#[derive(Debug)]
pub enum Command {
    /// Read the configuration again. The reply is a line a difference, or the reason why nothing was changed.
    Reload(oneshot::Sender<Result<Vec<String>, String>>),
    /// Let calls in flight finish and end.
    Stop,
}

/// State of the admin API at one gate.
#[derive(Debug)]
pub(crate) struct Access {
    presence: OnceLock<Presence>,
    commands: OnceLock<mpsc::Sender<Command>>,
    pub(crate) started: Instant,
    /// Failed confirmations.
    pub(super) attempts: Attempts,
    /// Fires when the listener closes, so that nobody follows a log for ever.
    pub(crate) closing: CancellationToken,
    /// Set where the gate ends because nobody uses it: it takes no client of `banyan stdio` any more.
    leaving: Mutex<bool>,
}

impl Default for Access {
    fn default() -> Self {
        Self {
            presence: OnceLock::new(),
            commands: OnceLock::new(),
            started: Instant::now(),
            attempts: Attempts::default(),
            closing: CancellationToken::new(),
            leaving: Mutex::default(),
        }
    }
}

impl Access {
    pub(crate) fn leaving(&self) -> MutexGuard<'_, bool> {
        self.leaving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the presence, once published.
    pub(crate) fn presence(&self) -> Option<&Presence> {
        self.presence.get()
    }

    /// Passes a command to the program that runs the gate; `false` when nobody listens.
    pub(crate) async fn command(&self, command: Command) -> bool {
        match self.commands.get() {
            Some(commands) => commands.send(command).await.is_ok(),
            None => false,
        }
    }
}

impl Gateway {
    /// Writes the presence of this gate, listening on `address`, into `dir`, and takes commands from the owner from now on. Dropping
    /// [`PresenceFile`] removes the file.
    ///
    /// A second call answers an error and leaves the first receiver in place.
    pub fn publish(&self, dir: &Path, address: SocketAddr, served: ServedConfig) -> io::Result<(PresenceFile, mpsc::Receiver<Command>)> {
        let mut token = [0; 32];
        getrandom::fill(&mut token).map_err(|e| io::Error::other(e.to_string()))?;
        let token = token.iter().map(|b| format!("{b:02x}")).collect();
        let tls = self.0.gate.config.load().trust.tls.clone();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", reachable(address));
        // Watched files are found wherever the asking command runs.
        let certificate = tls.and_then(|tls| std::path::absolute(tls.certificate).ok());
        let ServedConfig { what: serves, digest, while_used } = served;
        let (listen, pid) = (Some(address), std::process::id());
        let presence = Presence { url, listen, certificate, pid, token, serves, digest, while_used };
        let published = presence.publish(dir)?;
        let (sender, receiver) = mpsc::channel(4);
        let access = &self.0.admin;
        // News of waiting calls carry this address, for people to agree.
        let is_first =
            self.0.entrance.owner.set(presence.token.clone()) && self.0.gate.rules.approvals.listens.set(presence.url.clone()).is_ok();
        if !is_first || access.presence.set(presence).is_err() || access.commands.set(sender).is_err() {
            return Err(io::Error::other("this gate is published already"));
        }
        Ok((published, receiver))
    }
}

/// Replaces an unspecified address (listening everywhere) by loopback, since nobody can connect to the former.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_on_every_address_is_reached_by_loopback() {
        let reached = |a: &str| reachable(a.parse().unwrap()).to_string();
        assert_eq!(reached("0.0.0.0:80"), "127.0.0.1:80");
        assert_eq!(reached("[::]:80"), "[::1]:80");
        assert_eq!(reached("10.0.0.1:80"), "10.0.0.1:80");
    }
}
