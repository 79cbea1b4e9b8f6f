//! A connection to a broker of MQTT in the place of a port: messages of a part, each as a text of JSON under the part's topic. Knows no
//! conversation.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use config::secret::{SecretRef, Sources};
use runtime::clock;
use runtime::tls::{ConnectError, Connector, Io, RootsError, Security, Target};
use stub_proto::mqtt::{self, Greeting, KEEP_ALIVE, Packet, PacketError, PacketReader};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::text;

/// Time for a broker to take a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// Bytes that are read at once.
const READ: usize = 2048;
/// First reason that refuses.
const REFUSAL: u8 = 0x80;
/// Nonsense for a conversation: a text that is no message of a part.
const NO_MESSAGE: [u8; 1] = [0xff];

/// A broker, and the topic of a part there.
#[derive(Clone, Debug, PartialEq)]
pub struct BrokerSettings {
    pub host: String,
    pub port: u16,
    pub is_tls: bool,
    /// Topic in front of `/req`, under which the part hears, and of `/rsp`, under which it answers.
    pub topic: String,
    pub user: Option<String>,
    pub password: Option<SecretRef>,
    /// File with an authority that is trusted beside those of this machine.
    pub authority: Option<PathBuf>,
}

/// Resources of a gate with which brokers are reached.
#[derive(Clone)]
pub struct BrokerGround {
    pub connector: Arc<Connector>,
    pub sources: Arc<dyn Sources>,
}

/// Text of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrokerText {
    /// A message of profile B, or nonsense for a conversation.
    Message(Vec<u8>),
    /// An answer that is longer than a message may be.
    Overlong { seq: u8 },
}

/// A connection with the part's topic subscribed.
pub struct BrokerWire {
    io: Io,
    reader: PacketReader,
    /// Packets that came with others.
    packets: VecDeque<Packet>,
    /// Rest of a packet that goes out.
    owed: Vec<u8>,
    request: String,
    response: String,
    /// Time without a packet of the gate after which the broker is told that the gate is here: whatever the broker sends meanwhile does not count.
    rest: Duration,
    /// Moment of the last packet of the gate.
    sent: Instant,
    /// Moment of a ping since which the broker has sent nothing.
    pinged: Option<Instant>,
}

impl BrokerWire {
    /// Connects and subscribes. The error is a sentence for people.
    pub async fn open(settings: &BrokerSettings, ground: &BrokerGround) -> Result<Self, String> {
        let own = settings.authority.clone().map(|file| Arc::new(Connector::with_extra_roots(Some(file))));
        let connector = own.unwrap_or_else(|| Arc::clone(&ground.connector));
        let security = if settings.is_tls { Security::TlsUnnamed } else { Security::Plain };
        let target = Target { host: &settings.host, port: settings.port, security };
        let io = connector.connect(target, CONNECT).await.map_err(|error| unconnected(&error))?;
        let rest = Duration::from_secs(KEEP_ALIVE.into()) / 2;
        let (request, response) = (format!("{}/req", settings.topic), format!("{}/rsp", settings.topic));
        let (reader, packets, sent) = (PacketReader::default(), VecDeque::new(), clock::now());
        let mut wire = Self { io, reader, packets, owed: Vec::new(), request, response, rest, sent, pinged: None };
        let password = password(settings, ground).await?;
        let entered = tokio::time::timeout(CONNECT, wire.enter(settings, password.as_deref()));
        entered.await.map_err(|_| "the broker does not answer: does it speak MQTT 5, at this port?".to_owned())??;
        Ok(wire)
    }

    async fn enter(&mut self, settings: &BrokerSettings, password: Option<&str>) -> Result<(), String> {
        let gone = |error: io::Error| format!("the broker does not take the connection: {error}");
        let client = format!("banyan {}", settings.topic);
        self.owed = mqtt::greet(Greeting { client: &client, user: settings.user.as_deref(), password });
        match self.packet().await.map_err(gone)? {
            Packet::Accepted { reason, keep_alive } if reason < REFUSAL => {
                let seconds = keep_alive.filter(|seconds| *seconds > 0).unwrap_or(KEEP_ALIVE);
                self.rest = Duration::from_secs(seconds.into()) / 2;
            }
            other @ (Packet::Accepted { .. }
            | Packet::Subscribed { .. }
            | Packet::Message { .. }
            | Packet::Pong
            | Packet::Goodbye { .. }) => {
                return Err(refused(&other));
            }
        }
        self.owed = mqtt::subscribe(&self.response);
        loop {
            match self.packet().await.map_err(gone)? {
                Packet::Subscribed { reason } if reason < REFUSAL => return Ok(()),
                Packet::Subscribed { .. } => {
                    return Err(format!("the broker does not let the gate hear `{}`: look at its ACL", self.response));
                }
                Packet::Message { .. } | Packet::Pong => {}
                other @ (Packet::Accepted { .. } | Packet::Goodbye { .. }) => return Err(refused(&other)),
            }
        }
    }

    /// Waits for a message of the part. Loses nothing where the caller stops waiting.
    pub async fn read(&mut self) -> io::Result<BrokerText> {
        loop {
            match self.packet().await? {
                // What the broker had retained is from some time before, and no answer to anything.
                Packet::Message { is_retained: true, .. } | Packet::Pong => {}
                Packet::Message { topic, payload, .. } if topic == self.response => {
                    return Ok(match (text::from_part(&payload), text::overlong(&payload)) {
                        (Some(message), _) => BrokerText::Message(message),
                        (None, Some(seq)) => BrokerText::Overlong { seq },
                        (None, None) => BrokerText::Message(NO_MESSAGE.to_vec()),
                    });
                }
                Packet::Message { .. } => {}
                other @ (Packet::Accepted { .. } | Packet::Subscribed { .. } | Packet::Goodbye { .. }) => {
                    return Err(io::Error::other(refused(&other)));
                }
            }
        }
    }

    /// Sends a message of the gate.
    pub async fn write(&mut self, message: &[u8]) -> io::Result<()> {
        let text = text::to_part(message).ok_or_else(|| io::Error::other("a message holds what JSON does not"))?;
        self.owed.extend(mqtt::publish(&self.request, text.as_bytes()));
        self.settle().await
    }

    /// Tells the broker that nobody comes back.
    pub async fn close(&mut self) {
        self.owed.extend(mqtt::goodbye());
        // An error says that the broker is gone already.
        drop(tokio::time::timeout(Duration::from_secs(1), self.settle()).await);
    }

    async fn packet(&mut self) -> io::Result<Packet> {
        loop {
            if let Some(packet) = self.packets.pop_front() {
                return Ok(packet);
            }
            self.settle().await?;
            let mut buffer = [0; READ];
            let since = self.pinged.map_or(self.sent, |pinged| pinged.min(self.sent));
            let left = self.rest.saturating_sub(clock::now().saturating_duration_since(since));
            match tokio::time::timeout(left, self.io.read(&mut buffer)).await {
                Ok(Ok(0)) => return Err(io::Error::other("the broker has ended the connection")),
                Ok(Ok(length)) => {
                    self.pinged = None;
                    let bytes = buffer.get(..length).unwrap_or_default();
                    self.packets.extend(self.reader.push(bytes).map_err(|error| io::Error::other(explained(error)))?);
                }
                Ok(Err(error)) => return Err(error),
                Err(_) if self.pinged.is_some() => return Err(io::Error::other("the broker does not answer")),
                Err(_) => {
                    self.owed.extend(mqtt::ping());
                    self.pinged = Some(clock::now());
                }
            }
        }
    }

    /// Sends what is owed, so that a caller who stops waiting cuts no packet.
    async fn settle(&mut self) -> io::Result<()> {
        while !self.owed.is_empty() {
            let length = self.io.write(&self.owed).await?;
            if length == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.owed.drain(..length.min(self.owed.len()));
            self.sent = clock::now();
        }
        self.io.flush().await
    }
}

async fn password(settings: &BrokerSettings, ground: &BrokerGround) -> Result<Option<String>, String> {
    let Some(reference) = settings.password.clone() else { return Ok(None) };
    let sources = Arc::clone(&ground.sources);
    // Reads files, and may wait for the keyring.
    let resolved = tokio::task::spawn_blocking(move || reference.resolve(&*sources)).await.map_err(|error| error.to_string())?;
    resolved.map(|secret| Some(secret.expose().to_owned())).map_err(|error| error.to_string())
}

/// Sentence for a connection that does not come about. A file that can't be used is that of the key.
fn unconnected(error: &ConnectError) -> String {
    if let ConnectError::Roots(error @ RootsError::File { .. }) = error {
        return format!("{}: correct `mqtt.authority`", unusable(error));
    }
    error.to_string()
}

/// Sentence for an authority of a broker that can't be used.
pub fn unusable(error: &RootsError) -> String {
    match error {
        RootsError::File { file, why } => format!("its `authority` {} can't be used ({why})", file.display()),
        other @ RootsError::Platform { .. } => other.to_string(),
    }
}

/// Sentence for a packet that ends a connection.
fn refused(packet: &Packet) -> String {
    match packet {
        Packet::Accepted { reason: 0x86 | 0x87, .. } => "the broker refuses the user or the password".into(),
        Packet::Accepted { reason: 0x84, .. } => "the broker does not speak MQTT 5".into(),
        Packet::Accepted { reason: 0x85, .. } => {
            "the broker refuses the gate's name there, which is made of the topic: write a topic with fewer or other characters".into()
        }
        Packet::Accepted { reason, .. } => format!("the broker refuses the connection (reason {reason:#04x})"),
        Packet::Goodbye { reason: 0x8e } => "another client has come under the same name: does another gate have this part as well?".into(),
        Packet::Goodbye { reason } => format!("the broker has ended the connection (reason {reason:#04x})"),
        Packet::Subscribed { .. } | Packet::Message { .. } | Packet::Pong => "the broker says something without a question".into(),
    }
}

fn explained(error: PacketError) -> &'static str {
    match error {
        PacketError::TooLong => "the broker sends more than it was told to",
        PacketError::Malformed => "the broker does not speak MQTT 5",
    }
}

#[cfg(test)]
mod tests {
    use config::secret::SystemSources;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    /// Broker that grants a second of silence.
    const ACCEPTED: [u8; 8] = [0x20, 6, 0, 0, 3, 0x13, 0, 1];
    const SUBSCRIBED: [u8; 6] = [0x90, 4, 0, 1, 0, 0];
    const PING: [u8; 2] = [0xc0, 0];
    /// Messages that a broker sends, two in a hundredth of a second, before a ping is taken for absent.
    const MOST_MESSAGES: usize = 1000;

    async fn heard(from: &mut TcpStream) -> Vec<u8> {
        let mut buffer = [0; 512];
        let length = from.read(&mut buffer).await.expect("a connection");
        buffer[..length].to_vec()
    }

    /// Talks to the gate without a pause, and gives what the gate says by itself.
    async fn talked_at(mut gate: TcpStream) -> Vec<u8> {
        assert_eq!(heard(&mut gate).await.first(), Some(&0x10));
        gate.write_all(&ACCEPTED).await.expect("a connection");
        assert_eq!(heard(&mut gate).await.first(), Some(&0x82));
        gate.write_all(&SUBSCRIBED).await.expect("a connection");
        let message = mqtt::publish("a/rsp", b"{\"seq\":9,\"result\":1}");
        for _ in 0..MOST_MESSAGES {
            gate.write_all(&message).await.expect("a connection");
            if let Ok(heard) = tokio::time::timeout(Duration::from_millis(5), heard(&mut gate)).await {
                return heard;
            }
        }
        Vec::new()
    }

    #[tokio::test]
    async fn ax_70_a_gate_that_only_hears_pings() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let broker = tokio::spawn(async move { talked_at(listener.accept().await.expect("a gate").0).await });
        let (host, topic) = ("127.0.0.1".into(), "a".into());
        let settings = BrokerSettings { host, port, is_tls: false, topic, user: None, password: None, authority: None };
        let ground = BrokerGround { connector: Arc::new(Connector::new()), sources: Arc::new(SystemSources) };
        let mut wire = BrokerWire::open(&settings, &ground).await.expect("a broker");
        let hearing = tokio::spawn(async move { while wire.read().await.is_ok() {} });
        assert_eq!(broker.await.expect("a broker"), PING);
        hearing.await.expect("a gate");
    }
}
