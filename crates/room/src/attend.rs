//! The other end of a room: a participant's connection to a gate, this one or another (MCPx v0.1, 6.2). Does not know the messages.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use http::header::{AUTHORIZATION, CONNECTION, HOST, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use http::{HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use room_proto::name::Topic;
use room_proto::room::Also;
use room_proto::websocket::{End, Opcode, Reader, WebSocketEvent, close, frame};
use runtime::random;
use runtime::reach::is_loopback;
use runtime::tls::{ConnectError, Connector, Security, Target};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use url::Url;

use crate::handshake::granted;
use call::words::refusal::{ErrorBody, Refusal, RefusalKind};
use trust;
use trust::AcceptedServer;

/// Patience for admission.
const ENTER: Duration = Duration::from_secs(30);
/// Longest silence of a gate, which pings twice meanwhile.
const SILENCE: Duration = Duration::from_secs(90);
/// Bytes read of a refusal.
const REFUSAL: usize = 8 << 10;
/// Longest message, in bytes.
pub const LONGEST: usize = 16 << 20;

/// Address and credentials for coming in.
#[derive(Debug)]
pub struct Entrance {
    /// The gate's address: `http` or `https`, `ws` or `wss`; the path is the parent of its endpoints.
    pub url: String,
    /// Expected certificate of the gate, a PEM file; `None`: any trusted by this machine.
    pub certificate: Option<PathBuf>,
    pub token: Option<Token>,
    /// The room.
    pub topic: Topic,
    /// Participant to be, for the gate's owner.
    pub participant: Option<String>,
    /// Permits to show a token over an unprotected connection.
    pub insecure: bool,
}

/// A bearer token, hidden from debug output.
pub struct Token(pub String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Reasons for being outside of a room.
#[derive(Debug, thiserror::Error)]
pub enum AttendError {
    #[error("{0:?} is no address of a gate: write one like https://gate.example.com")]
    Address(String),
    /// The connection ended.
    #[error("the connection to the room broke: {0}")]
    Broken(String),
    /// The gate closed the connection.
    #[error("the room closed the connection ({code}): {}", if .reason.is_empty() { "it does not say why" } else { .reason })]
    Closed {
        /// The code of RFC 6455.
        code: u16,
        /// The gate's own words.
        reason: String,
    },
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A token would be legible on the way.
    #[error("a token would go to {0} in plain text: use https, or say that others may listen in with --insecure")]
    Exposed(String),
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// The other end is no gate with rooms.
    #[error("{url} does not answer as a room does ({what}): is it a gate with rooms?")]
    Strange {
        url: String,
        /// Observed behaviour.
        what: String,
    },
}

/// A connection to a room.
#[derive(Debug)]
pub struct Attendance {
    io: TokioIo<Upgraded>,
    frames: Reader,
    /// Bytes to be written.
    pending: BytesMut,
}

impl Attendance {
    /// Connects to a room.
    pub async fn open(entrance: &Entrance) -> Result<Self, AttendError> {
        let strange = |what: &str| AttendError::Strange { url: entrance.url.to_string(), what: what.to_owned() };
        let opening = tokio::time::timeout(ENTER, upgrade(entrance)).await;
        let upgraded = opening.unwrap_or_else(|_| Err(strange("it says nothing")))?;
        Ok(Self { io: TokioIo::new(upgraded), frames: Reader::new(End::Client, LONGEST), pending: BytesMut::new() })
    }

    /// Gives the next message, and writes sent messages meanwhile. Safe to drop and call again.
    ///
    /// # Errors
    /// When the connection is over.
    pub async fn next(&mut self) -> Result<Bytes, AttendError> {
        loop {
            match self.frames.poll().map_err(|error| AttendError::Broken(error.to_string()))? {
                Some(WebSocketEvent::Text(text)) => return Ok(text),
                Some(WebSocketEvent::Ping(payload)) => self.put(Opcode::Pong, &payload),
                Some(WebSocketEvent::Pong(_)) => {}
                Some(WebSocketEvent::Close(code, reason)) => return Err(AttendError::Closed { code: code.unwrap_or(1005), reason }),
                None => tokio::time::timeout(SILENCE, self.exchange())
                    .await
                    .unwrap_or_else(|_| Err("it says nothing any more".to_owned()))
                    .map_err(AttendError::Broken)?,
            }
        }
    }

    /// Sends a message, during the next wait.
    pub fn send(&mut self, text: &[u8]) {
        self.put(Opcode::Text, text);
    }

    /// Leaves: messages sent before still go out. Messages that arrive until the gate has closed come out of `next`.
    pub fn leave(&mut self) {
        self.pending.extend_from_slice(&close(1000, "", Some(random::bytes())));
    }

    fn put(&mut self, opcode: Opcode, payload: &[u8]) {
        self.pending.extend_from_slice(&frame(opcode, payload, Some(random::bytes())));
    }

    /// Reads or writes some bytes.
    async fn exchange(&mut self) -> Result<(), String> {
        let (mut reader, mut writer) = tokio::io::split(&mut self.io);
        let mut read = [0; 16 << 10];
        let size = tokio::select! {
            size = reader.read(&mut read) => size.map_err(|error| error.to_string())?,
            written = writer.write_buf(&mut self.pending), if !self.pending.is_empty() => {
                return written.map(|_| ()).map_err(|error| error.to_string());
            }
        };
        if size == 0 {
            return Err("the gate hung up".to_owned());
        }
        self.frames.handle_bytes(&read[..size]);
        Ok(())
    }
}

async fn upgrade(entrance: &Entrance) -> Result<Upgraded, AttendError> {
    let url: Url = entrance.url.parse().map_err(|_| AttendError::Address(entrance.url.clone()))?;
    if !matches!(url.scheme(), "http" | "https" | "ws" | "wss") || !url.has_host() {
        return Err(AttendError::Address(entrance.url.clone()));
    }
    let strange = |what: String| AttendError::Strange { url: url.to_string(), what };
    let security = if matches!(url.scheme(), "https" | "wss") { Security::Tls } else { Security::Plain };
    if security == Security::Plain && entrance.token.is_some() && !entrance.insecure && !is_loopback(&url) {
        return Err(AttendError::Exposed(url.to_string()));
    }
    let tls = match &entrance.certificate {
        None => None,
        Some(file) => {
            let own = trust::first_certificate(file).map_err(|error| strange(error.to_string()))?;
            Some(Arc::new(trust::anonymous(AcceptedServer::Certificate(own)).map_err(|error| strange(error.to_string()))?))
        }
    };
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let port = url.port().unwrap_or(if security == Security::Tls { 443 } else { 80 });
    let io = Connector::new().connect_as(Target { host, port, security }, tls, ENTER).await?;
    let (mut requests, connection) = http1::handshake(TokioIo::new(io)).await.map_err(|error| strange(error.to_string()))?;
    tokio::spawn(connection.with_upgrades());
    let key = STANDARD.encode(random::bytes::<16>());
    let response =
        requests.send_request(request(entrance, &url, &key).map_err(strange)?).await.map_err(|error| strange(error.to_string()))?;
    let status = response.status();
    if status != StatusCode::SWITCHING_PROTOCOLS {
        let body = Limited::new(response.into_body(), REFUSAL).collect().await;
        return Err(refused(status, &body.map(|body| body.to_bytes()).unwrap_or_default()).map_err(strange).unwrap_or_else(|error| error));
    }
    if response.headers().get(SEC_WEBSOCKET_ACCEPT).is_none_or(|accept| accept.as_bytes() != granted(&key).as_bytes()) {
        return Err(strange("it grants another WebSocket than was asked for".to_owned()));
    }
    hyper::upgrade::on(response).await.map_err(|error| strange(error.to_string()))
}

fn refused(status: StatusCode, body: &[u8]) -> Result<AttendError, String> {
    let told: Option<ErrorBody> = serde_json::from_slice(body).ok();
    let kind = if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) { RefusalKind::Refused } else { RefusalKind::Failed };
    match told {
        Some(ErrorBody { error }) => Ok(AttendError::Refused(error)),
        None if kind == RefusalKind::Refused => Ok(AttendError::Refused(Refusal { kind, message: format!("the gate answered {status}") })),
        None => Err(format!("it answered {status}")),
    }
}

fn request(entrance: &Entrance, url: &Url, key: &str) -> Result<Request<Empty<Bytes>>, String> {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair("topic", entrance.topic.as_str());
    query.append_pair("also", &Also::ALL.classes().collect::<Vec<_>>().join(","));
    if let Some(participant) = &entrance.participant {
        query.append_pair("participant", participant);
    }
    let base = url.path().trim_end_matches('/');
    let base = base.strip_suffix("/mcp").or_else(|| base.strip_suffix("/ws")).unwrap_or(base);
    let host = url.host_str().unwrap_or_default();
    let host = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    let mut request = Request::get(format!("{base}/ws?{}", query.finish()))
        .header(HOST, host)
        .header(CONNECTION, "upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_VERSION, "13")
        .header(SEC_WEBSOCKET_KEY, key);
    if let Some(token) = &entrance.token {
        let mut value =
            HeaderValue::try_from(format!("Bearer {}", token.0)).map_err(|_| "the token can't stand in a request".to_owned())?;
        value.set_sensitive(true);
        request = request.header(AUTHORIZATION, value);
    }
    request.body(Empty::new()).map_err(|error| error.to_string())
}
