//! Everything on the gate's listener that is not MCP: health, metrics, and `/-/` for the binary's own commands.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;

use crate::Inner;
use crate::downstream::reply::{self, Payload};
use crate::telemetry::metrics;

/// Answers one request.
pub(crate) async fn handle(gateway: &Arc<Inner>, request: Request<Incoming>) -> Response<Payload> {
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/healthz") => reply::typed(StatusCode::OK, "text/plain", Bytes::from_static(b"ok\n")),
        (&Method::GET, "/readyz") if gateway.is_settled() => reply::typed(StatusCode::OK, "text/plain", Bytes::from_static(b"ready\n")),
        (&Method::GET, "/readyz") => reply::typed(StatusCode::SERVICE_UNAVAILABLE, "text/plain", Bytes::from_static(b"starting\n")),
        (&Method::GET, "/metrics") => reply::typed(StatusCode::OK, metrics::CONTENT_TYPE, Bytes::from(gateway.metrics.encode())),
        _ => reply::typed(StatusCode::NOT_FOUND, "text/plain", Bytes::from_static(b"there is nothing here; MCP is at /mcp\n")),
    }
}
