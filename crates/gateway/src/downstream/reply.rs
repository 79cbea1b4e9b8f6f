//! HTTP responses as the doors give them. Which answer is due is not decided here.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use mcp_proto::envelope::{self, Answer};

use super::lane::Events;

/// A response body.
pub(crate) enum Payload {
    /// A stream of events.
    Events(Box<dyn Body<Data = Bytes, Error = Infallible> + Send + Unpin>),
    /// In one piece.
    Whole(Full<Bytes>),
}

impl Body for Payload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Events(events) => Pin::new(events).poll_frame(cx),
            Self::Whole(full) => Pin::new(full).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Events(events) => events.is_end_stream(),
            Self::Whole(full) => full.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Events(events) => events.size_hint(),
            Self::Whole(full) => full.size_hint(),
        }
    }
}

/// A response with nothing in it.
pub(crate) fn empty(status: StatusCode) -> Response<Payload> {
    let mut response = Response::new(Payload::Whole(Full::default()));
    *response.status_mut() = status;
    response
}

/// Raw JSON.
pub(crate) fn json(status: StatusCode, body: Bytes) -> Response<Payload> {
    typed(status, "application/json", body)
}

/// A body of some type.
pub(crate) fn typed(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Payload> {
    let mut response = Response::new(Payload::Whole(Full::new(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// A JSON-RPC response.
pub(crate) fn rpc(status: StatusCode, id: &[u8], answer: &Answer) -> Response<Payload> {
    json(status, envelope::response(id, answer))
}

/// A refusal in the shape of a JSON-RPC error.
pub(crate) fn refuse(status: StatusCode, id: Option<&[u8]>, code: i64, message: &str) -> Response<Payload> {
    let error = envelope::error_object(code, message, None);
    rpc(status, id.unwrap_or(b"null"), &Answer::Error(error))
}

/// A stream of events.
pub(crate) fn events(body: Events) -> Response<Payload> {
    let mut response = Response::new(Payload::Events(Box::new(body)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Proxies such as nginx would otherwise hold events back.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}
