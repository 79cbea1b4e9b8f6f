//! Command lines over SSH: a session with a terminal for each command. Does not know the meaning of a command, and changes nothing.

use std::sync::Arc;
use std::time::Duration;

use equipment::DeviceSettings;
use net_proto::dialect::{Dialect, Terminal, TerminalEvent, TerminalReply};
use net_proto::fault::{Code, Fault, Trouble};
use russh::client::{Handle, Msg};
use russh::{Channel, ChannelMsg, Disconnect};
use tokio::sync::Semaphore;

use crate::login::{HostKey, Login, within};

/// Bytes of a reply that are kept.
const REPLY: usize = 32 << 20;
/// Most sessions with a device at a time.
const SESSIONS: usize = 2;
/// Port of SSH.
const PORT: u16 = 22;

/// A device that is reached over SSH.
#[derive(Clone, Debug)]
pub(crate) struct Ssh {
    login: Login,
    timeout: Duration,
    dialect: Arc<Dialect>,
    room: Arc<Semaphore>,
}

impl Ssh {
    pub(crate) fn new(settings: &DeviceSettings, dialect: Arc<Dialect>, password: Option<String>) -> Self {
        let login = Login::new(settings, password, PORT);
        Self { login, timeout: Duration::from_secs(settings.command_timeout), dialect, room: Arc::new(Semaphore::new(SESSIONS)) }
    }

    /// Answer to one command of the exec mode.
    pub(crate) async fn exec(&self, command: &str) -> Result<String, Fault> {
        let _one = self.room.acquire().await.map_err(|_| Fault::from(Trouble::Busy))?;
        let session = self.login.session().await?;
        let replied = within(self.timeout, self.talk(&session, command)).await;
        // The answer is there already; a device that does not hear the farewell loses the connection.
        drop(session.disconnect(Disconnect::ByApplication, "", "en").await);
        let reply = replied?;
        if reply.omitted > 0 {
            return Err(Fault::from(Trouble::TooLong { limit: REPLY }));
        }
        self.dialect.fault(command, &reply.text).map_or(Ok(reply.text), Err)
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
