//! Scripts on a machine behind SSH: a session for each, the script on the standard input of a shell, so that no argument shows a secret. Does not
//! know the purpose of a script.

use std::time::Duration;

use net_proto::change::shell_output;
use net_proto::fault::{Fault, Trouble};
use russh::client::Handle;
use russh::{ChannelMsg, Disconnect};

use crate::command::ProgramOutput;
use crate::login::{HostKey, Login, within};
use crate::share;

/// Bytes of an output that are taken.
const OUTPUT: usize = 32 << 20;

/// Runs a script over a session of its own, for at most `timeout`.
pub(crate) async fn run(login: &Login, script: String, timeout: Duration) -> Result<ProgramOutput, Fault> {
    let session = login.session().await?;
    let done = within(timeout, talk(&session, script)).await;
    // The answer is there already; a device that does not hear the farewell loses the connection.
    drop(tokio::time::timeout(Duration::from_secs(1), session.disconnect(Disconnect::ByApplication, "", "en")).await);
    done
}

async fn talk(session: &Handle<HostKey>, script: String) -> Result<ProgramOutput, Fault> {
    let lost = |error: russh::Error| Fault::from(Trouble::SessionLost { reason: error.to_string() });
    let mut channel = session.channel_open_session().await.map_err(lost)?;
    channel.exec(true, "/bin/sh").await.map_err(lost)?;
    channel.data_bytes(script.into_bytes()).await.map_err(lost)?;
    channel.eof().await.map_err(lost)?;
    let (most, mut bytes) = (share::at_most(OUTPUT), share::answer());
    let (mut stdout, mut stderr, mut status) = (Vec::new(), Vec::new(), None);
    while let Some(message) = channel.wait().await {
        if let ChannelMsg::Data { data } = &message {
            bytes.count(data.len())?;
            stdout.extend_from_slice(data);
        } else if let ChannelMsg::ExtendedData { data, .. } = &message {
            bytes.count(data.len())?;
            stderr.extend_from_slice(data);
        } else if let ChannelMsg::ExitStatus { exit_status } = message {
            status = Some(exit_status);
        } else if matches!(message, ChannelMsg::Close) {
            break;
        }
        if stdout.len().max(stderr.len()) > most {
            return Err(Trouble::TooLong { limit: most }.into());
        }
    }
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let stdout = text(stdout);
    if status.is_none() && stdout.is_empty() {
        return Err(Trouble::SessionLost { reason: "the device closed it".to_owned() }.into());
    }
    let stdout = shell_output(&stdout)?.to_owned();
    // Without a status the session broke off amid the output.
    let status = status.ok_or_else(|| Fault::from(Trouble::SessionLost { reason: "the device closed it".to_owned() }))?;
    Ok(ProgramOutput { stdout, stderr: text(stderr), is_success: status == 0 })
}
