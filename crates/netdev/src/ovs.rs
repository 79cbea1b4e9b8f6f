//! Open vSwitch on this machine through the socket of its database: reads, and changes of one transaction each. Decides nothing.

use std::sync::Arc;
use std::time::Duration;

use equipment::DeviceSettings;
use net_proto::change::DeviceChange;
use net_proto::fault::{Code, Fault, Trouble};
use net_proto::ovsdb::{
    OvsdbMessage, OvsdbStream, SwitchConfig, SwitchRows, answers, lacks_column, read_rows, read_whole_rows, request, settle, vlans,
};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::Semaphore;

use crate::command::turn;
use crate::share;

/// Longest answer of the database, in bytes.
const LONGEST: usize = 16 << 20;
/// Most requests at a time: each may hold an answer of the longest.
const REQUESTS: usize = 3;
/// Tries of a restore beside somebody else who changes the same rows.
const TRIES: u32 = 5;
/// Pause between two looks at the switch.
const PAUSE: Duration = Duration::from_millis(50);
const COMMANDS: &str = "show version, show bridge, show vlan, show interface and show running-config";

/// An Open vSwitch on this machine.
#[derive(Clone, Debug)]
pub(crate) struct Ovs {
    socket: String,
    timeout: Duration,
    /// Longest answer, in bytes.
    longest: usize,
    /// Room for further requests beside those under way.
    room: Arc<Semaphore>,
    /// Room for further requests of callers.
    callers: Arc<Semaphore>,
}

impl Ovs {
    pub(crate) fn new(settings: &DeviceSettings) -> Self {
        Self {
            socket: settings.socket.clone().unwrap_or_else(|| "/run/openvswitch/db.sock".to_owned()),
            timeout: Duration::from_secs(settings.command_timeout),
            longest: LONGEST,
            room: Arc::new(Semaphore::new(REQUESTS)),
            callers: Arc::new(Semaphore::new(REQUESTS - 1)),
        }
    }

    /// All rows at this moment.
    pub(crate) async fn rows(&self) -> Result<SwitchRows, Fault> {
        match SwitchRows::from_result(self.transact(&read_rows()).await?) {
            Err(fault) if lacks_column(&fault) => SwitchRows::from_result(self.transact(&read_whole_rows()).await?),
            read => read,
        }
    }

    /// The same for a caller who only reads. Callers leave a request to whoever confirms or restores.
    pub(crate) async fn shown(&self) -> Result<SwitchRows, Fault> {
        let _one = turn(&self.callers, self.timeout).await?;
        self.rows().await
    }

    /// The running configuration.
    pub(crate) async fn running(&self) -> Result<String, Fault> {
        Ok(self.rows().await?.config().write())
    }

    /// Answer to one of the commands for reading.
    pub(crate) async fn exec(&self, command: &str) -> Result<String, Fault> {
        let rows = self.shown().await?;
        match command {
            "show version" => Ok(format!("Open vSwitch {}\n", rows.version())),
            "show bridge" => Ok(rows.bridge_table()),
            "show vlan" => Ok(vlans(&rows.config())),
            "show interface" => Ok(rows.interface_table()),
            "show running-config" => Ok(rows.config().write()),
            _ => Err(Fault::new(Code::ConfigIncompatible, format!("a switch has {COMMANDS}")).at(command)),
        }
    }

    /// Applies a change to the configuration beneath the change, and to no other.
    pub(crate) async fn apply(&self, change: &DeviceChange) -> Result<(), Fault> {
        let rows = self.rows().await?;
        let (from, to) = ends(change)?;
        if rows.config() != from {
            return Err(
                Fault::new(Code::ConfigIncompatible, "somebody has changed the switch meanwhile, so nothing was applied").at("running")
            );
        }
        // What came to a row since the candidate was made would not come back either.
        rows.check_removals(&from, &to)?;
        let Some(params) = settle(&rows, &from, &to).params else { return Ok(()) };
        answers(&self.transact(&params).await?)?;
        self.taken().await.map(drop)
    }

    /// Restores the rows of the change, and leaves the work of others; answers what somebody else has removed, so that it can't come back.
    pub(crate) async fn restore(&self, change: &DeviceChange) -> Result<Vec<String>, Fault> {
        let (old, new) = ends(change)?;
        for _ in 1..TRIES {
            let settlement = settle(&self.rows().await?, &new, &old);
            let Some(params) = settlement.params else { return Ok(settlement.lost) };
            match answers(&self.transact(&params).await?) {
                Err(fault) if fault.may_retry => tokio::time::sleep(PAUSE).await,
                Err(fault) => return Err(fault),
                // The database holds the old configuration, also where the switch itself does not run.
                Ok(_) => return self.taken().await.map(drop).or(Ok(())).map(|()| settlement.lost),
            }
        }
        Err(Fault::new(Code::RollbackFailed, "others change the same rows of the switch all the time").retryable())
    }

    /// Checks that the switch could open all interfaces of the change: the database takes any name.
    pub(crate) async fn check(&self, change: &DeviceChange) -> Result<(), Fault> {
        let (from, to) = ends(change)?;
        match self.taken().await?.flaw(&from, &to) {
            None => Ok(()),
            Some(flaw) => {
                Err(Fault::new(Code::ConfigIncompatible, format!("the switch can't use it, so the change was taken back: {flaw}")))
            }
        }
    }

    /// Waits for the switch to take over the rows of the database.
    async fn taken(&self) -> Result<SwitchRows, Fault> {
        let taken = async {
            loop {
                let rows = self.rows().await?;
                if rows.is_taken() {
                    return Ok(rows);
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::time::timeout(self.timeout, taken).await.unwrap_or_else(|_| {
            Err(Fault::new(Code::Timeout, "the switch does not take over what its database holds: `ovs-vswitchd` does not run or hangs")
                .retryable())
        })
    }

    async fn transact(&self, params: &Value) -> Result<Value, Fault> {
        let _one = turn(&self.room, self.timeout).await?;
        let asked = tokio::time::timeout(self.timeout, self.ask(&request(1, "transact", params))).await;
        asked.unwrap_or_else(|_| Err(Trouble::NoReply { after: self.timeout }.into()))
    }

    async fn ask(&self, request: &str) -> Result<Value, Fault> {
        let broken = |error: std::io::Error| {
            let code = if error.kind() == std::io::ErrorKind::PermissionDenied { Code::AccessDenied } else { Code::Unreachable };
            Fault::new(code, format!("the database of the switch does not answer at {}: {error}", self.socket)).retryable()
        };
        let mut stream = UnixStream::connect(&self.socket).await.map_err(broken)?;
        stream.write_all(request.as_bytes()).await.map_err(broken)?;
        let (mut messages, mut piece, mut bytes) = (OvsdbStream::new(self.longest), vec![0; 64 << 10], share::answer());
        loop {
            let length = stream.read(&mut piece).await.map_err(broken)?;
            if length == 0 {
                return Err(broken(std::io::ErrorKind::UnexpectedEof.into()));
            }
            bytes.count(length)?;
            messages.receive(&piece[..length]);
            while let Some(message) = messages.message()? {
                match message {
                    OvsdbMessage::Answer { result, .. } => {
                        return result
                            .map_err(|error| Fault::new(Code::ConfigIncompatible, format!("the database refuses the request: {error}")));
                    }
                    OvsdbMessage::Echo(answer) => stream.write_all(answer.as_bytes()).await.map_err(broken)?,
                    OvsdbMessage::Other => {}
                }
            }
        }
    }
}

/// The old and the new configuration of a change.
fn ends(change: &DeviceChange) -> Result<(SwitchConfig, SwitchConfig), Fault> {
    let old = SwitchConfig::read(change.snapshot.as_deref().unwrap_or_default(), &SwitchConfig::default())?;
    let new = SwitchConfig::read(&change.candidate, &old)?;
    Ok((old, new))
}

#[cfg(test)]
mod tests;
