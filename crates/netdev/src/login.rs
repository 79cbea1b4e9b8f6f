//! Logins over SSH: the host key held against the accepted one, then key, password, or the questions that stand for a password. Does not know
//! the purpose of a session.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use equipment::DeviceSettings;
use net_proto::fault::{Fault, Trouble};
use russh::client::{Config, Handle, Handler, KeyboardInteractiveAuthResponse};
use russh::keys::{HashAlg, PrivateKeyWithHashAlg, PublicKeyOrCertificate, load_secret_key};
use tokio::sync::mpsc;

use crate::room::{self, ConnectionPermit};

/// Longest time until a session stands.
const LOGIN: Duration = Duration::from_secs(15);
/// Prompts of a keyboard-interactive login that are answered.
const QUESTIONS: usize = 5;

/// Credentials for a device.
#[derive(Clone, Debug)]
pub(crate) struct Login {
    settings: Arc<DeviceSettings>,
    password: Option<String>,
    /// Port of an address without one.
    port: u16,
    /// Set by a failed login, and while a login is under way.
    is_doubtful: Arc<AtomicBool>,
    /// Has the device ever shown a host key?
    has_spoken: Arc<AtomicBool>,
}

/// Judge of the host key.
pub(crate) struct HostKey {
    accepted: Option<String>,
    shown: mpsc::UnboundedSender<String>,
    has_spoken: Arc<AtomicBool>,
    /// Place among the connections of the process, until the connection ends.
    _place: ConnectionPermit,
}

impl Handler for HostKey {
    type Error = russh::Error;

    async fn check_server_key(&mut self, key: &PublicKeyOrCertificate) -> Result<bool, Self::Error> {
        let PublicKeyOrCertificate::PublicKey { key, .. } = key else { return Ok(false) };
        let shown = key.fingerprint(HashAlg::Sha256).to_string();
        let is_accepted = self.accepted.as_ref() == Some(&shown);
        self.has_spoken.store(true, Ordering::Relaxed);
        drop(self.shown.send(shown));
        Ok(is_accepted)
    }
}

/// Fingerprint of the host key that the device at `address` shows, which has a port. Nobody logs in.
pub(crate) async fn shown_key(address: &str) -> Result<String, Fault> {
    let (_turn, place) = room::login(false).await?;
    let (shown, mut seen) = mpsc::unbounded_channel();
    let judge = HostKey { accepted: None, shown, has_spoken: Arc::default(), _place: place };
    let connected = within(LOGIN, async { Ok(russh::client::connect(Arc::default(), address, judge).await) }).await?;
    seen.try_recv().map_err(|_| match connected {
        Ok(_) => Trouble::NoConnection { reason: format!("{address}: no host key was shown") }.into(),
        Err(error) => unconnected(address, &error),
    })
}

impl Login {
    pub(crate) fn new(settings: &DeviceSettings, password: Option<String>, port: u16) -> Self {
        Self { settings: Arc::new(settings.clone()), password, port, is_doubtful: Arc::default(), has_spoken: Arc::default() }
    }

    /// Has the device ever answered a login? Such a device is slow, and not away.
    pub(crate) fn has_spoken(&self) -> bool {
        self.has_spoken.load(Ordering::Relaxed)
    }

    /// A session of its own.
    pub(crate) async fn session(&self) -> Result<Handle<HostKey>, Fault> {
        let is_doubtful = self.is_doubtful.load(Ordering::Relaxed);
        let (_turn, place) = room::login(is_doubtful).await?;
        self.is_doubtful.store(true, Ordering::Relaxed);
        let session = within(LOGIN, self.begun(place)).await;
        self.is_doubtful.store(session.is_err(), Ordering::Relaxed);
        session
    }

    fn address(&self) -> String {
        with_port(self.settings.address.as_deref().unwrap_or_default(), self.port)
    }

    async fn begun(&self, place: ConnectionPermit) -> Result<Handle<HostKey>, Fault> {
        let address = self.address();
        let (shown, mut seen) = mpsc::unbounded_channel();
        let judge = HostKey { accepted: self.settings.host_key.clone(), shown, has_spoken: Arc::clone(&self.has_spoken), _place: place };
        let config = Config { nodelay: true, keepalive_interval: Some(room::alive_every(&self.settings.name)), ..Config::default() };
        let mut session = russh::client::connect(Arc::new(config), address.as_str(), judge).await.map_err(|error| {
            let refused = matches!(error, russh::Error::UnknownKey).then(|| seen.try_recv().ok()).flatten();
            refused.map_or_else(|| unconnected(&address, &error), |shown| self.unaccepted(shown))
        })?;
        let user = self.settings.user.clone().unwrap_or_default();
        let lost = |error: russh::Error| Fault::from(Trouble::SessionLost { reason: error.to_string() });
        if self.authenticate(&mut session, &user).await.map_err(lost)? {
            return Ok(session);
        }
        Err(Trouble::LoginRefused { user }.into())
    }

    /// Tries key, password and the questions that stand for a password, in this order.
    async fn authenticate(&self, session: &mut Handle<HostKey>, user: &str) -> Result<bool, russh::Error> {
        if let Some(path) = &self.settings.key {
            let key = load_secret_key(path, None).map_err(russh::Error::from)?;
            let hash = session.best_supported_rsa_hash().await?.flatten();
            if session.authenticate_publickey(user, PrivateKeyWithHashAlg::new(Arc::new(key), hash)).await?.success() {
                return Ok(true);
            }
        }
        let Some(password) = &self.password else { return Ok(false) };
        if session.authenticate_password(user, password).await?.success() {
            return Ok(true);
        }
        let mut answer = session.authenticate_keyboard_interactive_start(user, None).await?;
        for _ in 0..QUESTIONS {
            let KeyboardInteractiveAuthResponse::InfoRequest { prompts, .. } = answer else { break };
            let answers = prompts.iter().map(|_| password.clone()).collect();
            answer = session.authenticate_keyboard_interactive_respond(answers).await?;
        }
        Ok(matches!(answer, KeyboardInteractiveAuthResponse::Success))
    }

    fn unaccepted(&self, shown: String) -> Fault {
        let name = &self.settings.name;
        let how = format!("; to accept it, write host_key = \"{shown}\" below [device.{name}]");
        let mut fault = Fault::from(match self.settings.host_key.clone() {
            Some(expected) => Trouble::HostKeyChanged { expected, shown },
            None => Trouble::HostKeyUnknown { shown },
        });
        fault.detail.push_str(&how);
        fault
    }
}

pub(crate) async fn within<T>(time: Duration, work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    tokio::time::timeout(time, work).await.unwrap_or_else(|_| Err(Trouble::NoReply { after: time }.into()))
}

fn unconnected(address: &str, error: &russh::Error) -> Fault {
    Trouble::NoConnection { reason: format!("{address}: {error}") }.into()
}

/// An address with the port, unless there is one.
pub(crate) fn with_port(address: &str, port: u16) -> String {
    if has_port(address) { address.to_owned() } else { format!("{}:{port}", bracketed(address)) }
}

/// An IPv6 address as it stands before a port.
fn bracketed(host: &str) -> String {
    if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.to_owned() }
}

/// Does an address end with a port? An IPv6 address without brackets has none.
fn has_port(address: &str) -> bool {
    let after = address.rsplit_once(':');
    after.is_some_and(|(host, port)| (!host.contains(':') || host.ends_with(']')) && port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_gets_the_port_that_it_lacks() {
        for (address, whole) in [("fe80::1", "[fe80::1]:22"), ("[fe80::1]", "[fe80::1]:22"), ("r1", "r1:22"), ("r1:2222", "r1:2222")] {
            assert_eq!(with_port(address, 22), whole);
        }
    }

    #[test]
    fn an_address_ends_with_a_port_or_not() {
        assert!(has_port("10.0.0.1:22") && has_port("[fe80::1]:22") && has_port("r1.example:2222"));
        assert!(!has_port("10.0.0.1") && !has_port("fe80::1") && !has_port("r1.example") && !has_port("[fe80::1]"));
    }
}
