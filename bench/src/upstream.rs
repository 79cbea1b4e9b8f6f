//! An MCP server over HTTP/1.1 whose answers lie ready: the cheapest upstream a gateway can have.
//!
//! Both eras, JSON answers only. Knows no sessions, streams or errors beyond an unknown method.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;

use bytes::{BufMut, Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::net::TcpListener;

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: &'a str,
    #[serde(borrow)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    name: Option<&'a str>,
    #[serde(rename = "protocolVersion")]
    version: Option<&'a str>,
}

struct Results {
    discover: String,
    tools: String,
    small: String,
    medium: String,
    large: String,
}

impl Results {
    fn new(tools: usize) -> Self {
        Self { discover: discover(), tools: list(tools), small: text(2), medium: text(4 << 10), large: text(64 << 10) }
    }

    fn of(&self, message: &Message<'_>) -> Option<String> {
        let params = message.params.as_ref();
        Some(match message.method {
            "initialize" => initialize(params.and_then(|p| p.version).unwrap_or("2025-11-25")),
            "ping" => "{}".to_owned(),
            "server/discover" => self.discover.clone(),
            "tools/call" => match params.and_then(|p| p.name) {
                Some("medium") => self.medium.clone(),
                Some("large") => self.large.clone(),
                _ => self.small.clone(),
            },
            "tools/list" => self.tools.clone(),
            _ => return None,
        })
    }
}

fn discover() -> String {
    r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":3600000,"cacheScope":"public"}"#
        .to_owned()
}

fn initialize(version: &str) -> String {
    format!(r#"{{"protocolVersion":"{version}","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"bench","version":"1"}}}}"#)
}

fn text(size: usize) -> String {
    format!(r#"{{"resultType":"complete","content":[{{"type":"text","text":"{}"}}]}}"#, "x".repeat(size))
}

fn list(count: usize) -> String {
    let named = ["small", "medium", "large"].map(str::to_owned).into_iter();
    let entries: Vec<String> = named.chain((0..).map(|i| format!("tool_{i:05}"))).take(count.max(3)).map(|name| tool(&name)).collect();
    format!(r#"{{"resultType":"complete","ttlMs":3600000,"cacheScope":"public","tools":[{}]}}"#, entries.join(","))
}

fn tool(name: &str) -> String {
    let schema = r#"{"type":"object","properties":{"path":{"type":"string","description":"Where to look"},"depth":{"type":"integer"}}}"#;
    format!(r#"{{"name":"{name}","description":"Does what {name} does, as described at some length for a model","inputSchema":{schema}}}"#)
}

/// Serves until the process is ended.
pub(crate) async fn serve(listen: SocketAddr, tools: usize) -> anyhow::Result<()> {
    let listener = TcpListener::bind(listen).await?;
    let results = Rc::new(Results::new(tools));
    tokio::task::LocalSet::new()
        .run_until(async move {
            loop {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                let results = Rc::clone(&results);
                let service = service_fn(move |request| answer(Rc::clone(&results), request));
                tokio::task::spawn_local(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        })
        .await
}

async fn answer(results: Rc<Results>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.method() != Method::POST {
        return Ok(status(StatusCode::METHOD_NOT_ALLOWED));
    }
    let Ok(body) = request.into_body().collect().await else {
        return Ok(status(StatusCode::BAD_REQUEST));
    };
    let body = body.to_bytes();
    let Ok(message) = serde_json::from_slice::<Message<'_>>(&body) else {
        return Ok(status(StatusCode::BAD_REQUEST));
    };
    let Some(id) = message.id else {
        return Ok(status(StatusCode::ACCEPTED));
    };
    Ok(match results.of(&message) {
        Some(result) => json(StatusCode::OK, id.get(), "result", &result),
        None => json(StatusCode::NOT_FOUND, id.get(), "error", r#"{"code":-32601,"message":"Method not found"}"#),
    })
}

fn status(code: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = code;
    response
}

fn json(code: StatusCode, id: &str, member: &str, value: &str) -> Response<Full<Bytes>> {
    let mut body = BytesMut::with_capacity(value.len() + id.len() + 48);
    for part in [r#"{"jsonrpc":"2.0","id":"#, id, r#",""#, member, r#"":"#, value, "}"] {
        body.put_slice(part.as_bytes());
    }
    let mut response = Response::new(Full::new(body.freeze()));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
