//! Answers of the doors, and their form on the wire. Does not choose answers.

use std::cell::RefCell;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use mcp_proto::envelope::{self, Answer};
use mcp_proto::mcpax;
use runtime::clock;

use crate::events::Events;
use call::words::pour::BrokenOff;
use call::words::pouring::PouringBody;
use call::words::refusal::{ErrorBody, Refusal, RefusalKind};

/// Longest body in bytes that is copied behind its head; longer ones are sent from their own buffer.
const COPIED: usize = 1 << 10;

/// Answer to one request.
pub struct Reply {
    status: StatusCode,
    content: Content,
    /// Fields besides those of the content.
    more: Vec<(HeaderName, HeaderValue)>,
}

enum Content {
    Empty,
    Events(Box<Events>),
    Pour(Box<PouringBody>),
    /// A JSON-RPC response: its id, the key in front of its value, and the value.
    Rpc(Bytes, &'static [u8], Bytes),
}

/// A reply ready to be sent.
pub enum Wire {
    /// Head, and events in chunks.
    Events(Vec<u8>, Box<Events>),
    /// Head, and a response in chunks.
    Pour(Vec<u8>, Box<PouringBody>),
    /// Head, value and tail.
    Whole(Vec<u8>, Bytes, &'static [u8]),
}

/// Makes a reply without a body.
pub fn empty(status: StatusCode) -> Reply {
    Reply { status, content: Content::Empty, more: Vec::new() }
}

/// Makes a JSON-RPC response.
pub fn rpc(status: StatusCode, id: Bytes, answer: Answer) -> Reply {
    let (key, body) = envelope::response_parts(answer);
    Reply { status, content: Content::Rpc(id, key, body), more: Vec::new() }
}

/// Refuses in the form of a JSON-RPC error.
pub fn refuse(status: StatusCode, id: Option<&Bytes>, code: i64, message: &str) -> Reply {
    let error = envelope::error_object(code, message, None);
    rpc(status, id.cloned().unwrap_or(Bytes::from_static(b"null")), Answer::Error(error))
}

/// Refuses admission; marked, so that other gates recognise a gate's refusal.
pub fn shut(status: StatusCode, why: &str) -> Reply {
    let error = envelope::error_object(-32000, why, Some(mcpax::REFUSED.as_bytes()));
    rpc(status, Bytes::from_static(b"null"), Answer::Error(error))
}

/// Makes a stream of events.
pub fn events(body: Events) -> Reply {
    Reply { status: StatusCode::OK, content: Content::Events(Box::new(body)), more: Vec::new() }
}

/// Makes a JSON-RPC response whose result is still coming.
pub fn pour(body: PouringBody) -> Reply {
    Reply { status: StatusCode::OK, content: Content::Pour(Box::new(body)), more: Vec::new() }
}

impl Reply {
    /// The same with another status.
    pub fn standing(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// Adds a field.
    pub fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.more.push((name, value));
        self
    }

    /// Writes the reply as HTTP/1.1; `keep` leaves the connection open.
    pub fn wire(self, keep: bool) -> Wire {
        let mut out = Vec::with_capacity(256);
        for part in ["HTTP/1.1 ", self.status.as_str(), " ", self.status.canonical_reason().unwrap_or("-"), "\r\ndate: "] {
            out.extend_from_slice(part.as_bytes());
        }
        push_date(&mut out);
        for (name, value) in &self.more {
            for part in [b"\r\n", name.as_str().as_bytes(), b": ", value.as_bytes()] {
                out.extend_from_slice(part);
            }
        }
        if !keep {
            out.extend_from_slice(b"\r\nconnection: close");
        }
        match self.content {
            Content::Empty => {
                let length: &[u8] = if self.status == StatusCode::NO_CONTENT { b"" } else { b"\r\ncontent-length: 0" };
                out.extend_from_slice(length);
                out.extend_from_slice(b"\r\n\r\n");
                Wire::Whole(out, Bytes::new(), b"")
            }
            Content::Rpc(id, key, body) => {
                push_length(&mut out, envelope::RESPONSE_HEAD.len() + id.len() + key.len() + body.len() + 1);
                for part in [envelope::RESPONSE_HEAD, &id, key] {
                    out.extend_from_slice(part);
                }
                whole(out, body, b"}")
            }
            Content::Events(events) => {
                out.extend_from_slice(b"\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\nx-accel-buffering: no");
                out.extend_from_slice(b"\r\ntransfer-encoding: chunked\r\n\r\n");
                Wire::Events(out, events)
            }
            Content::Pour(body) => {
                out.extend_from_slice(b"\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n");
                Wire::Pour(out, body)
            }
        }
    }

    /// Converts the reply for hyper.
    pub fn into_http(self) -> Response<Payload> {
        let (payload, kind) = match self.content {
            Content::Empty => (Payload::Whole(Full::default()), None),
            Content::Events(events) => (Payload::Events(events), Some("text/event-stream")),
            Content::Pour(body) => (Payload::Pour(body), Some("application/json")),
            Content::Rpc(id, key, body) => {
                let whole = [envelope::RESPONSE_HEAD, &id, key, &body, b"}"].concat();
                (Payload::Whole(Full::new(whole.into())), Some("application/json"))
            }
        };
        let streams = matches!(payload, Payload::Events(_));
        let mut response = Response::new(payload);
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.extend(self.more);
        headers.extend(kind.map(|kind| (CONTENT_TYPE, HeaderValue::from_static(kind))));
        if streams {
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
            // Proxies such as nginx would otherwise hold events back.
            headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
        }
        response
    }
}

fn whole(mut out: Vec<u8>, body: Bytes, tail: &'static [u8]) -> Wire {
    if body.len() > COPIED {
        return Wire::Whole(out, body, tail);
    }
    out.extend_from_slice(&body);
    out.extend_from_slice(tail);
    Wire::Whole(out, Bytes::new(), b"")
}

fn push_length(out: &mut Vec<u8>, length: usize) {
    out.extend_from_slice(b"\r\ncontent-type: application/json\r\ncontent-length: ");
    out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
    out.extend_from_slice(b"\r\n\r\n");
}

thread_local! {
    /// Date of the current second in the form of HTTP.
    static DATE: RefCell<(u64, String)> = const { RefCell::new((0, String::new())) };
}

fn push_date(out: &mut Vec<u8>) {
    let now = Duration::from_micros(clock::wall());
    let second = now.as_secs();
    DATE.with_borrow_mut(|(of, text)| {
        if *of != second {
            *of = second;
            *text = httpdate::fmt_http_date(UNIX_EPOCH.checked_add(now).unwrap_or(UNIX_EPOCH));
        }
        out.extend_from_slice(text.as_bytes());
    });
}

/// Response body for hyper.
pub enum Payload {
    Events(Box<dyn Body<Data = Bytes, Error = BrokenOff> + Send + Unpin>),
    Pour(Box<PouringBody>),
    Whole(Full<Bytes>),
}

impl Body for Payload {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match self.get_mut() {
            Self::Events(events) => Pin::new(events).poll_frame(cx),
            Self::Pour(body) => Pin::new(body).poll_frame(cx),
            Self::Whole(full) => Pin::new(full).poll_frame(cx).map_err(|never| match never {}),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Events(events) => events.is_end_stream(),
            Self::Pour(body) => body.is_end_stream(),
            Self::Whole(full) => full.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Events(events) => events.size_hint(),
            Self::Pour(body) => body.size_hint(),
            Self::Whole(full) => full.size_hint(),
        }
    }
}

/// Makes a response for hyper from a whole body.
pub fn typed(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Payload> {
    let mut response = Response::new(Payload::Whole(Full::new(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Makes the response for a refusal; whoever lacks a credential is told so only where one would help.
pub fn refusal(refusal: Refusal, wants_credential: bool) -> Response<Payload> {
    let status = match refusal.kind {
        RefusalKind::Failed => StatusCode::BAD_GATEWAY,
        RefusalKind::NotFound => StatusCode::NOT_FOUND,
        RefusalKind::Refused if !wants_credential => StatusCode::FORBIDDEN,
        RefusalKind::Refused => StatusCode::UNAUTHORIZED,
        RefusalKind::TooMany => StatusCode::TOO_MANY_REQUESTS,
    };
    typed(status, "application/json", serde_json::to_vec(&ErrorBody { error: refusal }).unwrap_or_default().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(reply: Reply, keep: bool) -> String {
        let Wire::Whole(head, body, tail) = reply.wire(keep) else { panic!("a stream") };
        let all = String::from_utf8([&head, &body[..], tail].concat()).unwrap();
        let (first, rest) = all.split_once("\r\ndate: ").unwrap();
        format!("{first}{}", &rest[rest.find("\r\n").unwrap()..])
    }

    #[test]
    fn a_response_says_its_length_and_keeps_the_result() {
        let answer = || Answer::Result(Bytes::from_static(b"{ \"a\":1.0 }").into());
        let body = "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{ \"a\":1.0 }}";
        let wanted = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let reply = rpc(StatusCode::OK, Bytes::from_static(b"\"x\""), answer());
        assert_eq!(text(reply, true), wanted);
        let reply = rpc(StatusCode::OK, Bytes::from_static(b"\"x\""), answer());
        assert!(text(reply, false).contains("\r\nconnection: close\r\n"));
    }

    #[test]
    fn a_long_result_is_not_copied() {
        let long = Bytes::from(vec![b' '; COPIED + 1]);
        let Wire::Whole(head, body, tail) = rpc(StatusCode::OK, Bytes::from_static(b"1"), Answer::Result(long.clone().into())).wire(true)
        else {
            panic!("a stream")
        };
        assert_eq!((body.as_ptr(), tail), (long.as_ptr(), &b"}"[..]));
        let said = format!("content-length: {}\r\n", long.len() + "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":}".len());
        assert!(String::from_utf8_lossy(&head).contains(&said));
    }

    #[test]
    fn a_204_has_no_body_and_no_length() {
        assert_eq!(text(empty(StatusCode::NO_CONTENT), true), "HTTP/1.1 204 No Content\r\n\r\n");
        assert_eq!(text(empty(StatusCode::ACCEPTED), true), "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n");
    }
}
