//! `GET /-/stdio` and `GET /-/controller`: a client of `banyan stdio`, or a controller of `banyan device listen`, sending lines over an upgraded
//! connection. Takes the owner's token only. Does not read the lines; the door for streams does.

use std::sync::Arc;
use std::time::Duration;

use banyan_model::Segment;
use http::header::{CONNECTION, UPGRADE};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use crate::Gateway;
use call::words::refusal::Refusal;
use door::port::query;
use door::reply;
use door::reply::Payload;
use mcp::downstream::stdio::{self, StreamCaller};

pub(super) const PATH: &str = "/-/stdio";
/// Path of controllers. A gate that knows no controllers has nothing there, and so takes none for its owner.
pub(super) const CONTROLLER_PATH: &str = "/-/controller";
/// Parameters of the query there: the name in the certificate, and the server.
pub(super) const NAME: &str = "name";
pub(super) const SERVER: &str = "server";
/// Name of the protocol: a message a line.
pub(super) const PROTOCOL: &str = "banyan-stdio";

/// Longest wait for the first start of a controller's server, whose capabilities belong to the first answer.
const START: Duration = Duration::from_secs(10);

/// Upgrades the connection and serves the client on the other end.
pub(super) async fn answer(gateway: &Gateway, parts: &Parts) -> Result<Response<Payload>, Refusal> {
    // A console session has no use for lines.
    if !gateway.0.entrance.owner.is_owner(&parts.headers) {
        return Err(Refusal::refused("this takes the admin token, which `banyan stdio` of the user who runs the gate has"));
    }
    let asks = parts.headers.get(UPGRADE).is_some_and(|wanted| wanted.as_bytes().eq_ignore_ascii_case(PROTOCOL.as_bytes()));
    let upgrade = parts.extensions.get::<OnUpgrade>().cloned().filter(|_| asks);
    let upgrade = upgrade.ok_or_else(|| Refusal::failed(format!("`banyan stdio` connects here, with `Upgrade: {PROTOCOL}`")))?;
    let caller = if parts.uri.path() == CONTROLLER_PATH { controller(gateway, parts).await? } else { StreamCaller::local() };
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
                stdio::serve(server, caller, Box::new(input), Box::new(output), stop).await;
            }
            Err(error) => tracing::debug!(%error, "a client went away before it was served"),
        }
    });
    drop(is_leaving);
    let mut response = reply::empty(StatusCode::SWITCHING_PROTOCOLS).into_http();
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
    response.headers_mut().insert(UPGRADE, HeaderValue::from_static(PROTOCOL));
    Ok(response)
}

/// Makes the caller of a controller, whose certificate the owner's listener has verified.
async fn controller(gateway: &Gateway, parts: &Parts) -> Result<StreamCaller, Refusal> {
    let (name, server) = (query(parts, NAME).unwrap_or_default(), query(parts, SERVER).unwrap_or_default());
    if name.is_empty() {
        return Err(Refusal::failed(format!("`{NAME}` is missing: the name in the certificate of the controller")));
    }
    let mounts = &gateway.0.gate.mounts;
    let mount = Segment::new(&server).ok().filter(|segment| mounts.tree.load().branch(segment).is_some());
    let mount = mount.ok_or_else(|| {
        Refusal::not_found(format!(
            "the gate that runs has no server `{server}`\n  `banyan reload` brings a changed configuration into force"
        ))
    })?;
    mounts.settled_in(Some(&mount), START).await;
    Ok(StreamCaller::certified(&name, mount))
}
