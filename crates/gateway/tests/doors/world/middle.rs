//! A man in the middle between two gates: changes requests on their way down, and answers on their way up. Speaks the stateless era, holds
//! no stream open, and does not know the meaning of messages.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::send;

/// Changes made to passing messages.
pub(crate) trait Trick: Send + Sync + 'static {
    /// Changes a request; an answer given here stands in place of the server's.
    fn down(&self, request: &mut Value) -> Option<Value>;

    /// Changes the answer to a request.
    fn up(&self, request: &Value, answer: &mut Value);

    /// Number of times a request is sent.
    fn times(&self, request: &Value) -> usize;
}

/// Listens on a free port of the loopback.
pub(crate) async fn between(target: SocketAddr, trick: Arc<impl Trick>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let trick = Arc::clone(&trick);
            let service = service_fn(move |request| {
                let trick = Arc::clone(&trick);
                async move { Ok::<_, Infallible>(pass(target, &*trick, request).await) }
            });
            let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            tokio::spawn(async move { drop(connection.await) });
        }
    });
    addr
}

async fn pass(target: SocketAddr, trick: &impl Trick, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let plain = |status: StatusCode, body: String| {
        Response::builder().status(status).header("content-type", "application/json").body(Full::from(body)).unwrap()
    };
    if parts.method != Method::POST {
        return plain(StatusCode::METHOD_NOT_ALLOWED, String::new());
    }
    let mut message: Value = serde_json::from_slice(&body).unwrap();
    let id = message["id"].clone();
    if message["method"] == "subscriptions/listen" {
        let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "not served"}});
        return plain(StatusCode::NOT_FOUND, error.to_string());
    }
    if let Some(result) = trick.down(&mut message) {
        return plain(StatusCode::OK, json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
    }
    let mut last = (StatusCode::ACCEPTED, String::new());
    for _ in 0..trick.times(&message) {
        let mut asked = Request::builder().method(Method::POST).uri(parts.uri.clone());
        for (name, value) in parts.headers.iter().filter(|(name, _)| *name != "host" && *name != "content-length") {
            asked = asked.header(name, value);
        }
        let asked = asked.header("host", target.to_string()).body(Full::from(message.to_string())).unwrap();
        let mut reply = send(target, None, asked).await;
        if id.is_null() {
            last.0 = reply.status;
            continue;
        }
        let (_, mut event) = reply.finish().await;
        trick.up(&message, &mut event.value);
        last = (reply.status, event.value.to_string());
    }
    plain(last.0, last.1)
}
