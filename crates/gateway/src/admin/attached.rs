//! `GET /-/stdio`: a client of `banyan stdio`, sending lines over an upgraded connection. Takes the owner's token only. Does not read the
//! lines; the door for standard input and output does.

use std::sync::Arc;

use http::header::{CONNECTION, UPGRADE};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use crate::Gateway;
use call::words::refusal::Refusal;
use door::reply;
use door::reply::Payload;
use mcp::downstream::stdio;

pub(super) const PATH: &str = "/-/stdio";
/// Name of the protocol: a message a line.
pub(super) const PROTOCOL: &str = "banyan-stdio";

/// Upgrades the connection and serves the client on the other end.
pub(super) fn answer(gateway: &Gateway, parts: &Parts) -> Result<Response<Payload>, Refusal> {
    // A console session has no use for lines.
    if !gateway.0.entrance.owner.is_owner(&parts.headers) {
        return Err(Refusal::refused("this takes the admin token, which `banyan stdio` of the user who runs the gate has"));
    }
    let asks = parts.headers.get(UPGRADE).is_some_and(|wanted| wanted.as_bytes().eq_ignore_ascii_case(PROTOCOL.as_bytes()));
    let upgrade = parts.extensions.get::<OnUpgrade>().cloned().filter(|_| asks);
    let upgrade = upgrade.ok_or_else(|| Refusal::failed(format!("`banyan stdio` connects here, with `Upgrade: {PROTOCOL}`")))?;
    let (server, stop) = (Arc::clone(&gateway.0.server), gateway.0.admin.closing.clone());
    // Held until the client counts as one: a gate that takes it does not end.
    let is_leaving = gateway.0.admin.leaving();
    if *is_leaving {
        return Ok(reply::empty(StatusCode::SERVICE_UNAVAILABLE).into_http());
    }
    gateway.0.open.spawn(async move {
        match upgrade.await {
            Ok(io) => {
                let (input, output) = tokio::io::split(TokioIo::new(io));
                stdio::serve(server, Box::new(input), Box::new(output), stop).await;
            }
            Err(error) => tracing::debug!(%error, "a client of `banyan stdio` went away before it was served"),
        }
    });
    drop(is_leaving);
    let mut response = reply::empty(StatusCode::SWITCHING_PROTOCOLS).into_http();
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
    response.headers_mut().insert(UPGRADE, HeaderValue::from_static(PROTOCOL));
    Ok(response)
}
