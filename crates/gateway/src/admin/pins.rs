//! `/-/pins…`: definitions waiting for somebody to look, behind the admin token. Does not decide which definitions wait.

use http::request::Parts;
use http::{Method, Response};
use hyper::body::Incoming;
use policy::pin::Standing;

use crate::Gateway;
use crate::admin::approvals::posted;
use crate::admin::routes::{json, owner};
use call::judge::pins::Look;
use call::words::refusal::Refusal;
use door::port::query;
use door::reply::Payload;

pub(super) fn is_here(path: &str) -> bool {
    matches!(path, "/-/pins" | "/-/pins/accept" | "/-/pins/refuse")
}

pub(super) async fn answer(gateway: &Gateway, parts: &Parts, body: &mut Incoming) -> Result<Response<Payload>, Refusal> {
    owner(gateway, parts)?;
    let standing = match (&parts.method, parts.uri.path()) {
        (&Method::GET, "/-/pins") => return Ok(json(&gateway.0.gate.pins(query(parts, "all").is_some()).await?)),
        (&Method::POST, "/-/pins/accept") => Standing::Accepted,
        (&Method::POST, "/-/pins/refuse") => Standing::Refused,
        _ => return Err(Refusal::not_found(format!("there is no {} {} here", parts.method, parts.uri.path()))),
    };
    let look: Look = posted(body).await?;
    Ok(json(&gateway.0.gate.look(look, standing).await?))
}
