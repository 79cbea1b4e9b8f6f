//! A WebSocket to a room of the gate: sending and receiving as a participant, and the end of the connection.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use room_proto::websocket::{End, Opcode, Reader, WebSocketEvent, close, frame};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::World;

const MASK: [u8; 4] = [7, 77, 177, 3];
const MOST: usize = 8 << 20;

/// The connection.
pub(crate) struct Socket {
    stream: TcpStream,
    frames: Reader,
    /// Id in the room, once welcomed.
    pub(crate) id: String,
    sent: u64,
}

/// An answer by HTTP in place of an upgrade.
#[derive(Debug)]
pub(crate) struct NotUpgraded {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) message: String,
}

impl Socket {
    /// Connects with a token, and raw fields.
    pub(crate) async fn open_with(world: &World, query: &str, token: &str, fields: &str) -> Result<Self, NotUpgraded> {
        let mut stream = TcpStream::connect(world.addr).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let bearer = if token.is_empty() { String::new() } else { format!("authorization: Bearer {token}\r\n") };
        let key = STANDARD.encode([5; 16]);
        let head = format!(
            "GET /ws?{query} HTTP/1.1\r\nhost: {}\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-version: 13\r\n\
             sec-websocket-key: {key}\r\n{bearer}{fields}\r\n",
            world.addr
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut read = Vec::new();
        let end = loop {
            assert!(stream.read_buf(&mut read).await.unwrap() > 0, "the gate hung up");
            if let Some(at) = read.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
        };
        let head = String::from_utf8(read[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        if status != 101 {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse::<usize>().unwrap();
            while read.len() < end + length {
                assert!(stream.read_buf(&mut read).await.unwrap() > 0);
            }
            let body: Value = serde_json::from_slice(&read[end..]).unwrap();
            return Err(NotUpgraded { status, head, message: body["error"]["message"].as_str().unwrap().to_owned() });
        }
        let mut frames = Reader::new(End::Client, MOST);
        frames.handle_bytes(&read[end..]);
        Ok(Self { stream, frames, id: String::new(), sent: 0 })
    }

    /// Joins a room, and gives the welcome.
    pub(crate) async fn join(world: &World, query: &str, token: &str) -> (Self, Value) {
        let mut socket = Self::open_with(world, query, token, "").await.unwrap_or_else(|refused| panic!("{refused:?}"));
        let welcome = socket.next().await;
        assert_eq!(welcome["kind"], "system/welcome");
        socket.id = welcome["payload"]["you"]["id"].as_str().unwrap().to_owned();
        let presence = socket.next().await;
        assert_eq!((&presence["kind"], &presence["payload"]["participant"]["id"]), (&json!("system/presence"), &json!(socket.id)));
        (socket, welcome)
    }

    pub(crate) async fn send_text(&mut self, text: &str) {
        self.stream.write_all(&frame(Opcode::Text, text.as_bytes(), Some(MASK))).await.unwrap();
    }

    /// Sends an envelope, and gives its new id.
    pub(crate) async fn send(&mut self, kind: &str, members: Value, payload: Value) -> String {
        self.sent += 1;
        let id = format!("{}-{}", self.id, self.sent);
        let mut envelope = json!({"protocol": "mcpx/v0.1", "id": id, "from": self.id, "kind": kind, "payload": payload});
        for (name, value) in members.as_object().unwrap() {
            envelope[name] = value.clone();
        }
        self.send_text(&envelope.to_string()).await;
        id
    }

    /// Sends a chat message.
    pub(crate) async fn chat(&mut self, text: &str) -> String {
        self.send("chat", json!({}), json!({"text": text})).await
    }

    /// Sends raw bytes.
    pub(crate) async fn raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    async fn received(&mut self) -> Option<WebSocketEvent> {
        loop {
            match self.frames.poll().unwrap() {
                Some(WebSocketEvent::Ping(payload)) => {
                    self.stream.write_all(&frame(Opcode::Pong, &payload, Some(MASK))).await.unwrap();
                }
                Some(received) => return Some(received),
                None => {
                    let mut piece = vec![0; 64 << 10];
                    let count = self.stream.read(&mut piece).await.unwrap_or(0);
                    if count == 0 {
                        return None;
                    }
                    self.frames.handle_bytes(&piece[..count]);
                }
            }
        }
    }

    /// Reads the next message as text.
    pub(crate) async fn next_text(&mut self) -> String {
        match self.received().await {
            Some(WebSocketEvent::Text(text)) => String::from_utf8(text.to_vec()).unwrap(),
            other => panic!("no message: {other:?}"),
        }
    }

    /// Reads the next message.
    pub(crate) async fn next(&mut self) -> Value {
        serde_json::from_str(&self.next_text().await).unwrap()
    }

    /// Reads up to a message that is `wanted`.
    pub(crate) async fn next_where(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next().await;
            if wanted(&message) {
                return message;
            }
        }
    }

    /// Reads the answer to a ping; nothing else may come before.
    pub(crate) async fn pong(&mut self, payload: &[u8]) -> Vec<u8> {
        self.stream.write_all(&frame(Opcode::Ping, payload, Some(MASK))).await.unwrap();
        match self.received().await {
            Some(WebSocketEvent::Pong(payload)) => payload.to_vec(),
            other => panic!("no pong: {other:?}"),
        }
    }

    /// Waits for the gate to close, and gives code and reason.
    pub(crate) async fn closed(&mut self) -> (Option<u16>, String) {
        loop {
            match self.received().await {
                Some(WebSocketEvent::Close(code, why)) => {
                    drop(self.stream.write_all(&close(code.unwrap_or(1000), "", Some(MASK))).await);
                    return (code, why);
                }
                Some(_) => {}
                None => panic!("the connection was lost without a close frame"),
            }
        }
    }

    /// Closes in order, and waits for the gate to do so.
    pub(crate) async fn leave(mut self) {
        self.stream.write_all(&close(1000, "", Some(MASK))).await.unwrap();
        while !matches!(self.received().await, Some(WebSocketEvent::Close(..)) | None) {}
    }
}
