//! Bodies of requests: their length, their time to arrive, and the principal charged for the memory. Does not read them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use banyan_model::Principal;
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body::Body;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::{Instant, timeout, timeout_at};

use crate::reply;
use crate::reply::Reply;
use call::judge::gate::Gate;
use call::tree::gate::Load;
use call::words::shares::{Bound, Resource, TakenShare};

/// Time for a body to arrive; a second more for each `RATE` bytes that have arrived.
pub const ARRIVAL: Duration = Duration::from_secs(30);
const RATE: usize = 16 << 10;
/// Length in bytes below which the only body of a connection is not counted.
pub const COUNTED: usize = 64 << 10;
/// Most bytes read of an unwanted body, and the time for reading.
const PASSED_OVER: usize = 64 << 10;
const LINGER: Duration = Duration::from_secs(2);
/// Time for a short body from an unknown sender.
const POSTED: Duration = Duration::from_secs(10);

/// Time for a body of which `arrived` bytes have come.
pub fn patience(arrival: Duration, arrived: usize) -> Duration {
    arrival.saturating_add(Duration::from_secs((arrived / RATE) as u64))
}

/// A body charged to a principal until its last clone is dropped.
struct CountedBody {
    body: Bytes,
    _taken: TakenShare,
}

impl AsRef<[u8]> for CountedBody {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

/// Charges `body` to `taken`.
pub fn counted(body: Bytes, taken: Option<TakenShare>) -> Bytes {
    match taken {
        Some(taken) => Bytes::from_owner(CountedBody { body, _taken: taken }),
        None => body,
    }
}

/// Takes room for a body of `length` bytes.
pub fn room(gate: &Gate, principal: &Principal, length: usize) -> Result<TakenShare, Reply> {
    let config = gate.config.load();
    let bound = Bound { most: config.limits.body_bytes, percent: config.share() };
    gate.load.shares.of_principal(&principal.name).take_amount(Resource::Bodies, length, bound).map_err(|_| crowded(&gate.load))
}

fn crowded(load: &Load) -> Reply {
    load.refusals.note("requests that are too much together (limits.bodies)", None);
    let why = "this caller's requests hold all the room there is for them (limits.bodies); try again shortly";
    reply::refuse(StatusCode::SERVICE_UNAVAILABLE, None, -32009, why)
}

/// Reads the body of an admitted request.
pub async fn request(gate: &Arc<Gate>, principal: &Principal, mut body: Incoming) -> Result<Bytes, Reply> {
    let config = gate.config.load_full();
    let (limit, bound) = (config.limits.request_bytes, Bound { most: config.limits.body_bytes, percent: config.share() });
    let broken = |why: &dyn fmt::Display| reply::refuse(StatusCode::BAD_REQUEST, None, -32700, &format!("the request broke off: {why}"));
    if body.size_hint().lower() > limit as u64 {
        return Err(too_long(limit));
    }
    let (began, mut read) = (Instant::now(), BytesMut::new());
    let mut taken = room(gate, principal, 0)?;
    loop {
        let frame = timeout_at(began + patience(ARRIVAL, read.len()), body.frame()).await.map_err(|_| broken(&"it took too long"))?;
        let Some(frame) = frame else { return Ok(counted(read.freeze(), Some(taken))) };
        let Ok(data) = frame.map_err(|error| broken(&error))?.into_data() else { continue };
        if read.len() + data.len() > limit {
            return Err(too_long(limit));
        }
        taken.grow(data.len(), bound).map_err(|_| crowded(&gate.load))?;
        read.extend_from_slice(&data);
    }
}

/// Reason for which a short body was not read.
#[derive(Debug, thiserror::Error)]
pub enum UnreadBody {
    #[error("the request can't be read: {0}")]
    Broken(#[from] hyper::Error),
    #[error("the request can't be read: it took longer than 10 s")]
    Late,
    /// Longest body allowed, in bytes.
    #[error("the request can't be read: it is longer than {0} bytes")]
    TooLong(usize),
}

/// Reads a short body from a sender who may be unknown.
pub async fn posted(body: &mut Incoming, most: usize) -> Result<Bytes, UnreadBody> {
    let reading = async {
        let mut read = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            if read.len() + data.len() > most {
                return Err(UnreadBody::TooLong(most));
            }
            read.extend_from_slice(&data);
        }
        Ok(read.freeze())
    };
    timeout(POSTED, reading).await.unwrap_or(Err(UnreadBody::Late))
}

/// Reads and drops an unwanted short body. An answer before the end of a body comes with a reset of the stream (RFC 9113, section 8.1), and
/// some clients then drop the answer.
pub async fn pass_over(body: &mut Incoming) {
    let rest = async {
        let mut read = 0;
        while let Some(Ok(frame)) = body.frame().await {
            read += frame.data_ref().map_or(0, Bytes::len);
            if read > PASSED_OVER {
                return;
            }
        }
    };
    drop(timeout(LINGER, rest).await);
}

/// Answers a body of more than `limit` bytes.
pub fn too_long(limit: usize) -> Reply {
    let why = format!("the request is longer than {limit} bytes (limits.request_size)");
    reply::refuse(StatusCode::PAYLOAD_TOO_LARGE, None, -32600, &why)
}
