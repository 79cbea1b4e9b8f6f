//! Client of the admin API, over one short HTTP/1.1 connection a question. Does not look for the gate: see `presence`.

use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::admin::attached;
use crate::admin::presence::Presence;
use call::words::refusal::{ErrorBody, Refusal, RefusalKind};
use trust;
use trust::AcceptedServer;

/// Time to connect to this machine.
const CONNECT: Duration = Duration::from_secs(3);
/// Longest time for the gate to give a connection for lines: a controller's server may be starting.
const ANSWER: Duration = Duration::from_secs(15);

/// A connection that carries a client's lines.
pub type LineConnection = TokioIo<Upgraded>;

/// Client of one gate.
#[derive(Debug)]
pub struct AdminClient {
    gate: Presence,
}

/// Failure of a question to a gate.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// Not the answer of a gate.
    #[error(
        "the gate at {url} answered what this version does not understand ({what})\n  it may be another version of Banyan: end it and start it anew, or ask it with its own binary"
    )]
    Malformed {
        url: String,
        /// Fault of the answer.
        what: String,
    },
    #[error("{}", .0.message)]
    Refused(Refusal),
    #[error(
        "the gate at {url} does not answer: {source}\n  look whether it still runs with `banyan doctor`, and start it anew with `banyan up` where it hangs"
    )]
    Unreachable { url: String, source: std::io::Error },
}

impl AdminClient {
    /// Makes a client of `gate`.
    pub fn new(gate: Presence) -> Self {
        Self { gate }
    }

    /// Sends a `GET` and reads the answer as `T`. `query` is written as a query string.
    pub async fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, &str)]) -> Result<T, AdminError> {
        let body = self.whole(Method::GET, &with_query(path, query), Bytes::new()).await?;
        serde_json::from_slice(&body).map_err(|e| self.malformed(&e.to_string()))
    }

    /// Sends a `POST` of `body` as JSON and gives the answer's bytes as they came.
    pub async fn post(&self, path: &str, body: &impl Serialize) -> Result<Bytes, AdminError> {
        let body = serde_json::to_vec(body).map_err(|e| self.malformed(&e.to_string()))?;
        self.whole(Method::POST, path, body.into()).await
    }

    /// Sends a `GET` whose answer has no end, and calls `each` with every line until `each` answers `false` or the gate goes away.
    pub async fn lines(&self, path: &str, query: &[(&str, &str)], mut each: impl FnMut(&[u8]) -> bool) -> Result<(), AdminError> {
        let mut body = self.ask(Method::GET, &with_query(path, query), Bytes::new()).await?.into_body();
        let mut rest = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|e| self.unreachable(std::io::Error::other(e)))?;
            rest.extend_from_slice(&frame.into_data().unwrap_or_default());
            while let Some(end) = memchr::memchr(b'\n', &rest) {
                if !each(&rest[..end]) {
                    return Ok(());
                }
                rest.drain(..=end);
            }
        }
        Ok(())
    }

    /// Opens a connection that carries a client's lines, as standard input and output would.
    pub async fn attach(&self) -> Result<LineConnection, AdminError> {
        self.upgraded(attached::PATH).await
    }

    /// Opens a connection that carries the lines of a controller with a certificate of this name, to one server.
    pub async fn attach_controller(&self, name: &str, server: &str) -> Result<LineConnection, AdminError> {
        self.upgraded(&with_query(attached::CONTROLLER_PATH, &[(attached::NAME, name), (attached::SERVER, server)])).await
    }

    async fn upgraded(&self, path: &str) -> Result<LineConnection, AdminError> {
        let request = self.request(Method::GET, path, Bytes::new())?;
        let (mut parts, body) = request.into_parts();
        parts.headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        parts.headers.insert(header::UPGRADE, HeaderValue::from_static(attached::PROTOCOL));
        let answering = self.answer(Request::from_parts(parts, body));
        let answer = tokio::time::timeout(ANSWER, answering).await.unwrap_or_else(|_| Err(self.unreachable(ErrorKind::TimedOut.into())))?;
        if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(self.malformed("it gives no connection for lines"));
        }
        let upgraded = hyper::upgrade::on(answer).await.map_err(|e| self.unreachable(std::io::Error::other(e)))?;
        Ok(TokioIo::new(upgraded))
    }

    async fn whole(&self, method: Method, path: &str, body: Bytes) -> Result<Bytes, AdminError> {
        let answer = self.ask(method, path, body).await?;
        let body = answer.into_body().collect().await;
        Ok(body.map_err(|e| self.unreachable(std::io::Error::other(e)))?.to_bytes())
    }

    async fn ask(&self, method: Method, path: &str, body: Bytes) -> Result<Response<Incoming>, AdminError> {
        self.answer(self.request(method, path, body)?).await
    }

    fn authority(&self) -> Result<&str, AdminError> {
        self.gate.url.split_once("://").map(|(_, authority)| authority).ok_or_else(|| self.malformed("its address is no URL"))
    }

    fn request(&self, method: Method, path: &str, body: Bytes) -> Result<Request<Full<Bytes>>, AdminError> {
        Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, self.authority()?)
            .header(header::AUTHORIZATION, format!("Bearer {}", self.gate.token))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|e| self.malformed(&e.to_string()))
    }

    async fn answer(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, AdminError> {
        let stream = tokio::time::timeout(CONNECT, TcpStream::connect(self.authority()?)).await;
        let stream = stream.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into())).map_err(|e| self.unreachable(e))?;
        // Small messages must not wait for the acknowledgement of the one before.
        stream.set_nodelay(true).map_err(|e| self.unreachable(e))?;
        let failed = |e: hyper::Error| self.unreachable(std::io::Error::other(e));
        let mut sender = match &self.gate.certificate {
            None => send_over(stream).await.map_err(failed)?,
            Some(file) => send_over(self.protect(file, stream).await?).await.map_err(failed)?,
        };
        let answer = sender.send_request(request).await.map_err(failed)?;
        if answer.status() == StatusCode::SERVICE_UNAVAILABLE {
            return Err(self.unreachable(std::io::Error::other("it is ending")));
        }
        if answer.status().is_success() || answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Ok(answer);
        }
        Err(self.refused(answer).await)
    }

    /// Speaks TLS, and accepts no certificate but the gate's own, read from the file.
    async fn protect(&self, file: &Path, stream: TcpStream) -> Result<TlsStream<TcpStream>, AdminError> {
        let failed = |e: &dyn std::fmt::Display| self.unreachable(std::io::Error::other(e.to_string()));
        let own = trust::first_certificate(file).map_err(|e| failed(&e))?;
        let config = trust::anonymous(AcceptedServer::Certificate(own)).map_err(|e| failed(&e))?;
        let name = ServerName::IpAddress(Ipv4Addr::LOCALHOST.into());
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(|e| self.unreachable(e))
    }

    async fn refused(&self, answer: Response<Incoming>) -> AdminError {
        let status = answer.status();
        let body = answer.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        if let Ok(ErrorBody { error }) = serde_json::from_slice(&body) {
            return AdminError::Refused(error);
        }
        let kind = if status == StatusCode::UNAUTHORIZED { RefusalKind::Refused } else { RefusalKind::Failed };
        AdminError::Refused(Refusal { kind, message: format!("the gate at {} answered {status}", self.gate.url) })
    }

    fn malformed(&self, what: &str) -> AdminError {
        AdminError::Malformed { url: self.gate.url.clone(), what: what.to_owned() }
    }

    fn unreachable(&self, source: std::io::Error) -> AdminError {
        AdminError::Unreachable { url: self.gate.url.clone(), source }
    }
}

async fn send_over(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> hyper::Result<SendRequest<Full<Bytes>>> {
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection.with_upgrades());
    Ok(sender)
}

fn with_query(path: &str, query: &[(&str, &str)]) -> String {
    if query.is_empty() {
        return path.to_owned();
    }
    let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
    format!("{path}?{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_escaped() {
        assert_eq!(with_query("/-/tools", &[("client", "a b&c")]), "/-/tools?client=a+b%26c");
        assert_eq!(with_query("/-/tools", &[]), "/-/tools");
    }
}
