//! Command lines over SSH: a session with a terminal for each command, the host key held against the accepted one. Does not know the meaning
//! of a command, and changes nothing.

use std::sync::Arc;
use std::time::Duration;

use equipment::DeviceSettings;
use net_proto::dialect::{Dialect, Terminal, TerminalEvent, TerminalReply};
use net_proto::fault::{Code, Fault, Trouble};
use russh::client::{Config, Handle, Handler, KeyboardInteractiveAuthResponse, Msg};
use russh::keys::{HashAlg, PrivateKeyWithHashAlg, PublicKeyOrCertificate, load_secret_key};
use russh::{Channel, ChannelMsg, Disconnect};
use tokio::sync::{Semaphore, mpsc};

/// Bytes of a reply that are kept.
const REPLY: usize = 32 << 20;
/// Most sessions with a device at a time.
const SESSIONS: usize = 2;
/// Longest time until a session stands.
const LOGIN: Duration = Duration::from_secs(15);
/// Prompts of a keyboard-interactive login that are answered.
const QUESTIONS: usize = 5;

/// A device that is reached over SSH.
#[derive(Clone, Debug)]
pub(crate) struct Ssh {
    settings: Arc<DeviceSettings>,
    password: Option<String>,
    dialect: Arc<Dialect>,
    room: Arc<Semaphore>,
}

/// Judge of the host key.
struct HostKey {
    accepted: Option<String>,
    shown: mpsc::UnboundedSender<String>,
}

impl Handler for HostKey {
    type Error = russh::Error;

    async fn check_server_key(&mut self, key: &PublicKeyOrCertificate) -> Result<bool, Self::Error> {
        let PublicKeyOrCertificate::PublicKey { key, .. } = key else { return Ok(false) };
        let shown = key.fingerprint(HashAlg::Sha256).to_string();
        let is_accepted = self.accepted.as_ref() == Some(&shown);
        drop(self.shown.send(shown));
        Ok(is_accepted)
    }
}

impl Ssh {
    pub(crate) fn new(settings: &DeviceSettings, dialect: Arc<Dialect>, password: Option<String>) -> Self {
        Self { settings: Arc::new(settings.clone()), password, dialect, room: Arc::new(Semaphore::new(SESSIONS)) }
    }

    /// Answer to one command of the exec mode.
    pub(crate) async fn exec(&self, command: &str) -> Result<String, Fault> {
        let _one = self.room.acquire().await.map_err(|_| Fault::from(Trouble::Busy))?;
        let session = within(LOGIN, self.login()).await?;
        let time = Duration::from_secs(self.settings.command_timeout);
        let replied = within(time, self.talk(&session, command)).await;
        // The answer is there already; a device that does not hear the farewell loses the connection.
        drop(session.disconnect(Disconnect::ByApplication, "", "en").await);
        let reply = replied?;
        if reply.omitted > 0 {
            return Err(Fault::from(Trouble::TooLong { limit: REPLY }));
        }
        self.dialect.fault(command, &reply.text).map_or(Ok(reply.text), Err)
    }

    async fn login(&self) -> Result<Handle<HostKey>, Fault> {
        let address = self.settings.address.clone().unwrap_or_default();
        let address = if has_port(&address) { address } else { format!("{address}:22") };
        let (shown, mut seen) = mpsc::unbounded_channel();
        let judge = HostKey { accepted: self.settings.host_key.clone(), shown };
        let config = Config { nodelay: true, keepalive_interval: Some(Duration::from_secs(10)), ..Config::default() };
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

    /// Opens a terminal, turns the pager off and gives the command.
    async fn talk(&self, session: &Handle<HostKey>, command: &str) -> Result<TerminalReply, Fault> {
        let lost = |error: russh::Error| Fault::from(Trouble::SessionLost { reason: error.to_string() });
        let mut channel = session.channel_open_session().await.map_err(lost)?;
        channel.request_pty(false, "vt100", 500, 100, 0, 0, &[]).await.map_err(lost)?;
        channel.request_shell(false).await.map_err(lost)?;
        let mut terminal = Terminal::new(Arc::clone(&self.dialect), REPLY);
        reply(&mut channel, &mut terminal).await?;
        for line in self.dialect.start().iter().map(String::as_str).chain([command]) {
            let bytes = terminal.command(line);
            channel.data_bytes(bytes.into_bytes()).await.map_err(lost)?;
            let said = reply(&mut channel, &mut terminal).await?;
            if line == command {
                return Ok(said);
            }
        }
        Err(Fault::new(Code::InvalidParams, "the command is empty"))
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

/// Waits for the next prompt.
async fn reply(channel: &mut Channel<Msg>, terminal: &mut Terminal) -> Result<TerminalReply, Fault> {
    loop {
        let data = match channel.wait().await {
            Some(ChannelMsg::Data { data } | ChannelMsg::ExtendedData { data, .. }) => data,
            Some(ChannelMsg::Eof | ChannelMsg::Close) | None => {
                return Err(Trouble::SessionLost { reason: "the device closed it".to_owned() }.into());
            }
            Some(_) => continue,
        };
        for event in terminal.receive(&data) {
            match event {
                TerminalEvent::Reply(reply) => return Ok(reply),
                TerminalEvent::Send(text) => {
                    let lost = |error: russh::Error| Fault::from(Trouble::SessionLost { reason: error.to_string() });
                    channel.data_bytes(text.into_bytes()).await.map_err(lost)?;
                }
                TerminalEvent::Question(question) => {
                    return Err(Fault::new(Code::ConfigIncompatible, format!("the device asks `{question}`, and nobody answers here")));
                }
            }
        }
    }
}

async fn within<T>(time: Duration, work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    tokio::time::timeout(time, work).await.unwrap_or_else(|_| Err(Trouble::NoReply { after: time }.into()))
}

fn unconnected(address: &str, error: &russh::Error) -> Fault {
    Trouble::NoConnection { reason: format!("{address}: {error}") }.into()
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
    fn an_address_ends_with_a_port_or_not() {
        assert!(has_port("10.0.0.1:22") && has_port("[fe80::1]:22") && has_port("r1.example:2222"));
        assert!(!has_port("10.0.0.1") && !has_port("fe80::1") && !has_port("r1.example") && !has_port("[fe80::1]"));
    }
}
