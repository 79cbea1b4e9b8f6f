//! A NETCONF session over SSH: the hellos, then requests and their replies, one after another. Does not know the meaning of a request.

use std::sync::Arc;
use std::time::Duration;

use net_proto::fault::Trouble;
use net_proto::netconf::{DeviceMessage, Framer, NetconfCapabilities, NetconfRequest, RpcReply, hello, read, rpc};
use russh::client::{Handle, Msg};
use russh::{Channel, ChannelMsg};

use crate::login::HostKey;
use crate::share;

/// Bytes of a message that are kept.
pub(crate) const REPLY: usize = 32 << 20;
/// Bytes of a hello: some devices name thousands of modules.
const HELLO: usize = 1 << 20;

/// Pause between the hellos and the first request. Where a client's hello and a request come in one piece, `netconfd` reads the request in the old
/// framing and never answers.
const SETTLE: Duration = Duration::from_millis(50);

/// A session with a device.
pub(crate) struct NetconfSession {
    /// Ends the connection when dropped.
    _connection: Handle<HostKey>,
    channel: Channel<Msg>,
    framer: Framer,
    requests: u64,
    pub(crate) device: Arc<NetconfCapabilities>,
    /// Does this session hold the locks of the device?
    pub(crate) holds_locks: bool,
    /// Most bytes of a message.
    limit: usize,
}

/// Reply with the whole message around.
pub(crate) struct NetconfReply {
    pub(crate) reply: RpcReply,
    pub(crate) message: String,
}

impl NetconfSession {
    /// Exchanges hellos over a connection. A later message of the device has at most `limit` bytes.
    pub(crate) async fn greet(connection: Handle<HostKey>, limit: usize) -> Result<Self, Trouble> {
        let mut channel = connection.channel_open_session().await.map_err(|error| lost(&error))?;
        channel.request_subsystem(true, "netconf").await.map_err(|error| lost(&error))?;
        let (mut framer, mut bytes, mut early) = (Framer::new(limit.max(HELLO)), share::answer(), 0);
        loop {
            match channel.wait().await {
                Some(ChannelMsg::Success) => break,
                // Some devices say hello first.
                Some(ChannelMsg::Data { data }) => {
                    early += data.len();
                    if early > HELLO {
                        return Err(Trouble::TooLong { limit: HELLO });
                    }
                    bytes.count(data.len())?;
                    framer.receive(&data);
                }
                Some(ChannelMsg::Failure | ChannelMsg::Eof | ChannelMsg::Close) | None => {
                    return Err(Trouble::NoConnection { reason: "the device has no subsystem `netconf`".to_owned() });
                }
                Some(_) => {}
            }
        }
        let mut session = Self { _connection: connection, channel, framer, requests: 0, device: Arc::default(), holds_locks: false, limit };
        session.send(&hello()).await?;
        match session.next().await? {
            (DeviceMessage::Hello(device), _) => {
                if device.has_chunks() {
                    session.framer.begin_chunks();
                }
                session.framer.limit(limit);
                session.device = Arc::new(device);
                tokio::time::sleep(SETTLE).await;
                Ok(session)
            }
            _ => Err(Trouble::Garbled { reason: "the first message is no hello".to_owned() }),
        }
    }

    /// Reply to a request. After an error the session is of no use any more.
    pub(crate) async fn ask(&mut self, request: &NetconfRequest<'_>, time: Duration) -> Result<NetconfReply, Trouble> {
        let replied = tokio::time::timeout(time, self.exchange(request)).await;
        replied.unwrap_or(Err(Trouble::NoReply { after: time }))
    }

    async fn exchange(&mut self, request: &NetconfRequest<'_>) -> Result<NetconfReply, Trouble> {
        self.requests += 1;
        self.framer.limit(share::at_most(self.limit));
        self.send(&rpc(self.requests, request)).await?;
        let wanted = self.requests.to_string();
        loop {
            match self.next().await? {
                (DeviceMessage::Notification { .. }, _) => {}
                (DeviceMessage::Reply(reply), message) if reply.id.as_deref() == Some(&wanted) => {
                    return Ok(NetconfReply { reply, message });
                }
                (DeviceMessage::Reply(_) | DeviceMessage::Hello(_), _) => {
                    return Err(Trouble::Garbled { reason: "a reply to no request".to_owned() });
                }
            }
        }
    }

    /// The next notification, with its time, once the session has asked for a stream.
    pub(crate) async fn notification(&mut self) -> Result<(Option<String>, String), Trouble> {
        loop {
            match self.next().await? {
                (DeviceMessage::Notification { time, .. }, message) => return Ok((time, message)),
                (DeviceMessage::Reply(_) | DeviceMessage::Hello(_), _) => {}
            }
        }
    }

    async fn send(&self, message: &str) -> Result<(), Trouble> {
        self.channel.data_bytes(self.framer.frame(message)).await.map_err(|error| lost(&error))
    }

    async fn next(&mut self) -> Result<(DeviceMessage, String), Trouble> {
        let mut bytes = share::answer();
        loop {
            let whole = self.framer.message().map_err(|error| match error {
                net_proto::netconf::FrameError::TooLong(limit) => Trouble::TooLong { limit },
                net_proto::netconf::FrameError::Chunk => Trouble::Garbled { reason: error.to_string() },
            })?;
            if let Some(bytes) = whole {
                let message = read(&bytes).map_err(|reason| Trouble::Garbled { reason })?;
                return Ok((message, String::from_utf8(bytes).unwrap_or_default()));
            }
            match self.channel.wait().await {
                Some(ChannelMsg::Data { data }) => {
                    bytes.count(data.len())?;
                    self.framer.receive(&data);
                }
                Some(ChannelMsg::Eof | ChannelMsg::Close) | None => {
                    return Err(Trouble::SessionLost { reason: "the device closed it".to_owned() });
                }
                Some(_) => {}
            }
        }
    }
}

fn lost(error: &russh::Error) -> Trouble {
    Trouble::SessionLost { reason: error.to_string() }
}
