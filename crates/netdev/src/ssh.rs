//! Command lines over SSH: sessions with a terminal. Does not know the meaning of a command.

mod change;

use std::sync::Arc;
use std::time::Duration;

use equipment::DeviceSettings;
use net_proto::dialect::{Dialect, Terminal, TerminalEvent, TerminalReply};
use net_proto::fault::{Code, Fault, Trouble};
use russh::client::{Handle, Msg};
use russh::{Channel, ChannelMsg, Disconnect};
use tokio::sync::Semaphore;

use crate::login::{HostKey, Login, within};
use crate::room::is_settling;
use crate::share;

/// Bytes of a reply that are kept.
const REPLY: usize = 32 << 20;
/// Most sessions of callers with a device at a time.
const SESSIONS: usize = 2;
/// Time after which a prompt counts that stands behind no echo.
const SILENCE: Duration = Duration::from_millis(1500);
/// Port of SSH.
pub(crate) const PORT: u16 = 22;

/// A device that is reached over SSH.
#[derive(Clone, Debug)]
pub(crate) struct Ssh {
    login: Login,
    timeout: Duration,
    dialect: Arc<Dialect>,
    room: Arc<Semaphore>,
    accepts_no_rollback: bool,
}

/// Session with a terminal, without a pager.
struct CliSession {
    session: Handle<HostKey>,
    channel: Channel<Msg>,
    terminal: Terminal,
    dialect: Arc<Dialect>,
}

impl Ssh {
    pub(crate) fn new(settings: &DeviceSettings, dialect: Arc<Dialect>, password: Option<String>) -> Self {
        Self {
            login: Login::new(settings, password, PORT),
            timeout: Duration::from_secs(settings.command_timeout),
            dialect,
            room: Arc::new(Semaphore::new(SESSIONS)),
            accepts_no_rollback: settings.accept_no_rollback,
        }
    }

    /// Answer to one command of the exec mode.
    pub(crate) async fn exec(&self, command: &str) -> Result<String, Fault> {
        // A confirmation waits for no caller.
        let _one = if is_settling() { None } else { Some(self.room.acquire().await.map_err(|_| Fault::from(Trouble::Busy))?) };
        self.asked(command).await
    }

    /// Answers to reading commands of our own over one session; `None` beyond `limit` bytes.
    pub(crate) async fn exec_within(&self, commands: &[String], limit: u64) -> Result<Option<String>, Fault> {
        let _one = self.room.acquire().await.map_err(|_| Fault::from(Trouble::Busy))?;
        let mut session = self.open().await?;
        let mut text = String::new();
        let mut said = Ok(());
        for command in commands {
            match session.say(command, self.timeout).await {
                Ok(reply) => text.push_str(&reply.text),
                Err(fault) => said = Err(fault),
            }
            if said.is_err() || text.len() as u64 > limit {
                break;
            }
            text.push('\n');
        }
        session.close().await;
        match said {
            Err(fault) if fault.is_too_long() => Ok(None),
            Err(fault) => Err(fault),
            Ok(()) => Ok((text.len() as u64 <= limit).then_some(text)),
        }
    }

    /// The same for whoever waits for no caller.
    async fn asked(&self, command: &str) -> Result<String, Fault> {
        let mut session = self.open().await?;
        let said = session.say(command, self.timeout).await;
        session.close().await;
        said.map(|reply| reply.text)
    }

    /// Opens a terminal, and turns the pager off.
    async fn open(&self) -> Result<CliSession, Fault> {
        let session = self.login.session().await?;
        let begun = within(self.timeout, self.terminal(&session)).await;
        let (channel, terminal) = begun?;
        Ok(CliSession { session, channel, terminal, dialect: Arc::clone(&self.dialect) })
    }

    async fn terminal(&self, session: &Handle<HostKey>) -> Result<(Channel<Msg>, Terminal), Fault> {
        let mut channel = session.channel_open_session().await.map_err(lost)?;
        channel.request_pty(false, "vt100", 500, 100, 0, 0, &[]).await.map_err(lost)?;
        channel.request_shell(false).await.map_err(lost)?;
        let mut terminal = Terminal::new(Arc::clone(&self.dialect), share::at_most(REPLY));
        reply(&mut channel, &mut terminal).await?;
        for line in self.dialect.start() {
            let bytes = terminal.command(line);
            channel.data_bytes(bytes.into_bytes()).await.map_err(lost)?;
            reply(&mut channel, &mut terminal).await?;
        }
        Ok((channel, terminal))
    }
}

impl CliSession {
    /// Gives a command, and waits for the next prompt.
    async fn say(&mut self, command: &str, timeout: Duration) -> Result<TerminalReply, Fault> {
        let bytes = self.terminal.command(command);
        let said = within(timeout, async {
            self.channel.data_bytes(bytes.into_bytes()).await.map_err(lost)?;
            reply(&mut self.channel, &mut self.terminal).await
        });
        let reply = said.await?;
        if reply.omitted > 0 {
            return Err(Fault::from(Trouble::TooLong { limit: share::at_most(REPLY) }));
        }
        self.dialect.fault(command, &reply.text).map_or(Ok(reply), Err)
    }

    /// Ends the session. A device that does not hear the farewell loses the connection.
    async fn close(self) {
        let farewell = self.session.disconnect(Disconnect::ByApplication, "", "en");
        drop(tokio::time::timeout(Duration::from_secs(1), farewell).await);
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the form that `map_err` takes")]
fn lost(error: russh::Error) -> Fault {
    Trouble::SessionLost { reason: error.to_string() }.into()
}

/// Waits for the next prompt.
async fn reply(channel: &mut Channel<Msg>, terminal: &mut Terminal) -> Result<TerminalReply, Fault> {
    let mut bytes = share::answer();
    loop {
        // A device that echoes nothing, or has a new name, is known by its silence.
        let Ok(message) = tokio::time::timeout(SILENCE, channel.wait()).await else {
            if let Some(reply) = terminal.quiet() {
                return Ok(reply);
            }
            continue;
        };
        let data = match message {
            Some(ChannelMsg::Data { data } | ChannelMsg::ExtendedData { data, .. }) => data,
            Some(ChannelMsg::Eof | ChannelMsg::Close) | None => {
                return Err(Trouble::SessionLost { reason: "the device closed it".to_owned() }.into());
            }
            Some(_) => continue,
        };
        bytes.count(data.len())?;
        let events = terminal.receive(&data);
        if terminal.is_over() {
            return Err(Trouble::TooLong { limit: share::at_most(REPLY) }.into());
        }
        for event in events {
            match event {
                TerminalEvent::Reply(reply) => return Ok(reply),
                TerminalEvent::Send(text) => {
                    channel.data_bytes(text.into_bytes()).await.map_err(lost)?;
                }
                TerminalEvent::Question(question) => {
                    return Err(Fault::new(Code::ConfigIncompatible, format!("the device asks `{question}`, and nobody answers here")));
                }
            }
        }
    }
}
