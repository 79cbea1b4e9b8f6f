//! Ways for others to become known here: certificates for gates that join, and the place where clients get tokens. Does not decide about
//! either.

use std::sync::Arc;

use http::request::Parts;
use http::{Method, Response};
use hyper::body::Incoming;
use serde::de::DeserializeOwned;

use crate::Gateway;
use crate::admin::routes::json;
use call::words::party::Party;
use call::words::refusal::Refusal;
use door::body;
use door::reply::Payload;
use trust;
use trust::METADATA;

const POSTED_BYTES: usize = 64 << 10;

pub(super) fn is_here(path: &str) -> bool {
    matches!(path, "/-/join" | "/-/renew") || path.strip_prefix(METADATA).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

pub(super) async fn answer(
    gateway: &Gateway,
    parts: &Parts,
    body: &mut Incoming,
    party: Option<&Arc<Party>>,
) -> Result<Response<Payload>, Refusal> {
    match (&parts.method, parts.uri.path()) {
        (&Method::POST, "/-/join") => {
            trust::may_try(&gateway.0.trust, party, parts.extensions.get())?;
            Ok(json(&trust::admit(&gateway.0.trust, posted(body).await?).await?))
        }
        (&Method::POST, "/-/renew") => {
            let certified = trust::may_renew(party)?;
            Ok(json(&trust::renew(&gateway.0.trust, certified, posted(body).await?).await?))
        }
        (&Method::GET, path) if path.starts_with(METADATA) => {
            let none = || Refusal::not_found("this gate takes no tokens of authorization servers");
            trust::metadata(&gateway.0.gate.config.load()).map(|metadata| json(&metadata)).ok_or_else(none)
        }
        (method, path) => Err(Refusal::not_found(format!("there is no {method} {path} here"))),
    }
}

/// Reads a body of at most [`POSTED_BYTES`].
async fn posted<T: DeserializeOwned>(body: &mut Incoming) -> Result<T, Refusal> {
    let body = body::posted(body, POSTED_BYTES).await.map_err(|why| Refusal::failed(why.to_string()))?;
    serde_json::from_slice(&body).map_err(|e| Refusal::failed(format!("the request is not what belongs here: {e}")))
}
