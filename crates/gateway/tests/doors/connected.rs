//! Connections of strangers: their number, and the time for each to say something. Does not try requests of callers.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::world::raw::request;
use crate::world::{World, bounded, eventually};

/// Writes a request open to everybody.
fn health() -> Vec<u8> {
    request("GET", "/healthz", &[], "")
}

/// Writes a request of a client that begins a session.
fn beginning() -> Vec<u8> {
    let fields = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
    let params = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}"#;
    request("POST", "/mcp", &fields, &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}"#))
}

/// Connects from `127.0.0.LAST`.
async fn connect_from(last: u8, addr: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((Ipv4Addr::new(127, 0, 0, last), 0).into()).unwrap();
    socket.connect(addr).await.unwrap()
}

/// Asks for the health of the gate and tells that the answer came. The connection stays.
async fn is_answered(stream: &mut TcpStream) -> bool {
    answers(stream, &health()).await
}

/// Makes a request and tells that it succeeded.
async fn answers(stream: &mut TcpStream, request: &[u8]) -> bool {
    if stream.write_all(request).await.is_err() {
        return false;
    }
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.is_ok_and(|_| answer == *b"HTTP/1.1 200")
}

/// Tells that the gate has closed a connection.
fn is_closed(stream: &TcpStream) -> bool {
    let mut rest = [0; 4096];
    loop {
        match stream.try_read(&mut rest) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() != std::io::ErrorKind::WouldBlock,
        }
    }
}

#[tokio::test]
async fn m8_connections_are_bounded_for_each_address() {
    bounded(async {
        let world = World::start("[limits]\nconnections_per_address = 4\n").await;
        let mut many = Vec::new();
        for _ in 0..4 {
            let mut stream = connect_from(2, world.addr).await;
            // A request that goes no further, so that none is idle.
            stream.write_all(b"POST /mcp HTTP/1.1\r\n").await.unwrap();
            many.push(stream);
        }
        for _ in 0..8 {
            assert!(!is_answered(&mut connect_from(2, world.addr).await).await, "it has its share");
        }
        assert!(is_answered(&mut connect_from(3, world.addr).await).await);
    })
    .await;
}

#[tokio::test]
async fn m8_too_many_connections_close_the_longest_idle() {
    bounded(async {
        let world = World::start("[limits]\nconnections = 4\n").await;
        let mut idle = Vec::new();
        for _ in 0..4 {
            let mut stream = connect_from(1, world.addr).await;
            // After such a request a connection may lie idle for ten minutes.
            assert!(answers(&mut stream, &beginning()).await);
            idle.push(stream);
        }
        assert!(eventually(async || is_answered(&mut connect_from(1, world.addr).await).await.then_some(true)).await);
        eventually(async || is_closed(&idle[0]).then_some(())).await;
    })
    .await;
}

/// Begins a connection with these bytes; ready when the gate closes.
async fn ends_after(world: &World, sent: &[u8]) {
    let mut stream = TcpStream::connect(world.addr).await.unwrap();
    stream.write_all(sent).await.unwrap();
    let mut rest = Vec::new();
    drop(stream.read_to_end(&mut rest).await);
}

#[tokio::test]
async fn m8_what_begins_and_goes_no_further_is_given_up() {
    bounded(async {
        let world = World::start("").await;
        let posted = |path: &str| format!("POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 1000\r\n\r\n{{");
        let [session, confirm] = ["/-/console/session", "/-/approvals/x/confirm"].map(posted);
        // The whole of it, settings, and no sign of life from then on.
        let http2 = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &[0, 0, 0, 4, 0, 0, 0, 0, 0][..]].concat();
        let all = [b"", &b"PRI * HT"[..], &http2, session.as_bytes(), confirm.as_bytes()];
        futures_util::future::join_all(all.map(|sent| ends_after(&world, sent))).await;
    })
    .await;
}

#[tokio::test]
async fn m8_joining_without_tls_is_refused_before_reading() {
    bounded(async {
        let world = World::start("").await;
        let mut stream = TcpStream::connect(world.addr).await.unwrap();
        stream.write_all(b"POST /-/join HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n").await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 403");
    })
    .await;
}
