//! `POST /v0.1/auth/token`: tokens for programs of the reference implementation on the same machine, who fetch a token before a connection.
//! Only with `dev_tokens`, only at a loopback address, and never for a page in a browser. Admits nobody.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::{BoxFuture, FutureExt};
use http::header::ORIGIN;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use room_proto::name::{ParticipantId, Topic};
use serde::Deserialize;
use serde_json::Value;

use crate::Rooms;
use crate::admin::json;
use crate::entry::refusal_response;
use call::words::party::Party;
use door::body;
use door::port::Door;
use door::reply::Payload;
use trust::RoomClaims;

/// Longest body, in bytes.
const POSTED_BYTES: usize = 64 << 10;
/// Life of a token.
const LIFE: Duration = Duration::from_secs(24 * 60 * 60);

/// The endpoint at the listener.
pub struct TokenDoor(pub Arc<Rooms>);

impl Door for TokenDoor {
    fn is_here(&self, path: &str) -> bool {
        matches!(path, "/v0.1/auth/token" | "/v0/auth/token")
    }

    fn answer(&self, request: Request<Incoming>, party: Option<Arc<Party>>) -> BoxFuture<'_, Response<Payload>> {
        async move {
            let (parts, mut body) = request.into_parts();
            let is_near = party.is_none_or(|party| party.is_here());
            let answer = answer(&self.0, &parts, &mut body, is_near).await;
            body::pass_over(&mut body).await;
            answer.unwrap_or_else(|(status, why)| refusal_response(status, &why))
        }
        .boxed()
    }
}

/// A body, as sent by the reference's programs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TokenRequest {
    participant_id: String,
    topic: String,
    capabilities: Option<Vec<Value>>,
}

/// Status and text for a program without a token.
type NoToken = (StatusCode, String);

async fn answer(rooms: &Arc<Rooms>, parts: &Parts, body: &mut Incoming, is_near: bool) -> Result<Response<Payload>, NoToken> {
    let config = rooms.gate.config.load_full();
    let is_open = config.rooms.dev_tokens && config.listen.ip().is_loopback() && !config.behind_proxy && is_near;
    if !is_open || parts.method != Method::POST {
        let why =
            "no tokens are handed out here: `banyan room token` makes one, or say `dev_tokens = true` in [rooms] of a gate on this machine";
        return Err((StatusCode::NOT_FOUND, why.into()));
    }
    if parts.headers.contains_key(ORIGIN) {
        return Err((StatusCode::FORBIDDEN, "tokens are for programs: no page gets one".into()));
    }
    let wrong = |why: String| (StatusCode::BAD_REQUEST, why);
    let posted = body::posted(body, POSTED_BYTES).await.map_err(|why| wrong(why.to_string()))?;
    let TokenRequest { participant_id, topic, capabilities } = serde_json::from_slice(&posted)
        .map_err(|e| wrong(format!("the request is not {{\"participantId\": NAME, \"topic\": ROOM}}: {e}")))?;
    let id = ParticipantId::new(&participant_id).map_err(|why| wrong(format!("{participant_id:?} names no participant: {why}")))?;
    let room = Topic::new(&topic).map_err(|why| wrong(format!("{topic:?} names no room: {why}")))?;
    if config.rooms.participants.contains_key(&id) || config.rooms.sits(&room, &id) {
        return Err((StatusCode::CONFLICT, format!("{participant_id:?} is a participant of the configuration: take another name")));
    }
    let secrets = rooms.secrets.fetched_for(rooms, &config.rooms).await;
    let no_secret =
        || (StatusCode::SERVICE_UNAVAILABLE, "`rooms.secret` can't be read, or has fewer than 32 bytes: see the log".to_owned());
    let secret = secrets.shared.as_ref().ok_or_else(no_secret)?;
    let claims =
        RoomClaims { participant: &participant_id, topics: &[topic], capabilities: capabilities.as_deref(), ..RoomClaims::default() };
    let token = claims.sign(secret.expose().as_bytes(), SystemTime::now() + LIFE);
    let token = token.ok_or((StatusCode::INTERNAL_SERVER_ERROR, "the token could not be signed".to_owned()))?;
    tracing::info!(participant = participant_id, "a token for a room was handed out");
    Ok(json(&serde_json::json!({ "token": token, "expiresIn": LIFE.as_secs() })))
}
