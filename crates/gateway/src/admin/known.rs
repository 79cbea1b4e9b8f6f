//! How others come to be known here: the certificates of gates that join, and where clients get their tokens. Who may have one is not
//! decided here.

use std::sync::Arc;

use http::request::Parts;
use http::{Method, Response};
use hyper::body::Incoming;
use serde::de::DeserializeOwned;

use super::routes::json;
use super::shapes::Refusal;
use crate::Gateway;
use crate::downstream::body;
use crate::downstream::reply::Payload;
use crate::trust::ca::CaError;
use crate::trust::{self, METADATA, NotSigned, Party};

/// Longest body, in bytes.
const POSTED_BYTES: usize = 64 << 10;

/// Whether `path` is one of these.
pub(super) fn is_here(path: &str) -> bool {
    matches!(path, "/-/join" | "/-/renew") || path.strip_prefix(METADATA).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Answers a request for one of these.
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

/// Reads a short body.
async fn posted<T: DeserializeOwned>(body: &mut Incoming) -> Result<T, Refusal> {
    let body = body::posted(body, POSTED_BYTES).await.map_err(|why| Refusal::failed(why.to_string()))?;
    serde_json::from_slice(&body).map_err(|e| Refusal::failed(format!("the request is not what belongs here: {e}")))
}

impl From<NotSigned> for Refusal {
    fn from(why: NotSigned) -> Self {
        match &why {
            NotSigned::Authority(CaError::Missing { .. }) => {
                Self::not_found("this gate has no authority: make one with `banyan ca init` on its machine")
            }
            NotSigned::Authority(CaError::Name { .. } | CaError::Request | CaError::Stranger | CaError::Taken { .. } | CaError::Token)
            | NotSigned::NotOverTls
            | NotSigned::TooOften => Self::refused(why.to_string()),
            // What is wrong with our own files is for whoever runs the gate.
            NotSigned::Authority(error) => {
                tracing::error!(%error, "nobody can join");
                Self::failed("this gate's authority is broken: its log says how")
            }
        }
    }
}
