//! Door for revisions with a handshake: sessions, resumable streams, requests in both directions. Knows no request's meaning.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use banyan_model::{Era, Segment};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode};
use mcp_proto::envelope::{self, Answer, Message, Notification, Request};
use mcp_proto::era::{INITIALIZE, answer_version};
use mcp_proto::field;
use mcp_proto::http1::Fields;
use mcp_proto::json;
use mcp_proto::projection::Style;
use runtime::alarm::Alarm;
use runtime::clock;
use runtime::random;
use runtime::wall;
use telemetry::trace_context::TraceContext;
use tokio::time::Instant;

use crate::downstream::McpServer;
use crate::downstream::endpoint;
use crate::downstream::exchange::{Exchange, RequestOutcome, Turn};
use crate::downstream::stateless::{Place, Streams};
use call::tree::back::{Back, Sink, Takes};
use call::tree::by_session::caller_of;
use call::tree::snapshot::Sight;
use call::words::entered::AdmittedCaller;
use call::words::lane::{Lane, Weight};
use call::words::pouring::PouringBody;
use call::words::session::{Opening, STANDING, Session};
use call::words::shares::{Bound, Full, Resource};
use door::events::Events;
use door::known::KnownClient;
use door::reply;
use door::reply::Reply;

/// Wait for an answer before a stream is opened for a client that can resume.
const STREAM_AFTER: Duration = Duration::from_millis(50);
/// Pause before a client resumes a broken stream, in milliseconds.
const RETRY_MS: u64 = 500;
/// Most events of a request's stream kept for a resuming client.
const KEPT_EVENTS: usize = 1000;
/// Last comment on a stream whose token has expired; the session goes on.
const OVER: &str =
    "the token that opened this stream has expired: come back with a new one, and with the last event's id for what you missed";

/// Answers a POST.
pub async fn post(server: &Arc<McpServer>, entered: &AdmittedCaller, place: Place<'_>, message: Message, known: &mut KnownClient) -> Reply {
    if let Message::Request(request) = &message
        && request.method == "initialize"
    {
        // Boxed, so that other messages hold no room for it.
        return Box::pin(open(server, entered, place, request, known)).await;
    }
    let session = match session(server, entered, place.fields, place.mount) {
        Ok(session) => session,
        Err((status, why)) => {
            let id = if let Message::Request(r) = &message { Some(&r.id) } else { None };
            return reply::refuse(status, id, -32000, &why);
        }
    };
    match message {
        Message::Notification(notification) => {
            Box::pin(notified(server, &session, &notification)).await;
            reply::empty(StatusCode::ACCEPTED)
        }
        Message::Request(request) => {
            let lane = Lane::keeping(KEPT_EVENTS);
            let sink = Sink::Lane(Arc::clone(&lane));
            let back = Back::traced(known.of_session(&session, entered), sink, None, TraceContext::of_fields(place.fields));
            answer(server, &session, place.streams, Arc::new(request), (back, lane)).await
        }
        Message::Response(response) => {
            session.answered(&response.id, response.answer);
            reply::empty(StatusCode::ACCEPTED)
        }
    }
}

/// Opens the stream of a session, or resumes one.
pub fn get(server: &Arc<McpServer>, entered: &AdmittedCaller, place: Place<'_>) -> Reply {
    let session = match session(server, entered, place.fields, place.mount) {
        Ok(session) => session,
        Err((status, why)) => return reply::refuse(status, None, -32000, &why),
    };
    session.touch();
    let last = place.fields.str(field::LAST_EVENT_ID);
    let (stream, lane, after) = match last {
        None => (STANDING.to_owned(), session.standing(), 0),
        Some(id) => match session.resume(id) {
            Some(found) => found,
            None => return reply::refuse(StatusCode::BAD_REQUEST, None, -32000, "this Last-Event-ID belongs to no stream of the session"),
        },
    };
    let is_standing = stream == STANDING;
    let events = Events::new(lane.read(after), Some(stream), None);
    reply::events(match entered.until() {
        // A stream with the answer of an admitted call runs to its end; a stream for anything else ends with its credential.
        Some(until) if is_standing => events.until(wall::passed(until), OVER),
        Some(_) | None => events,
    })
}

/// Ends a session.
pub async fn delete(server: &Arc<McpServer>, entered: &AdmittedCaller, place: Place<'_>) -> Reply {
    match session(server, entered, place.fields, place.mount) {
        Ok(session) => {
            end_session(server, &session).await;
            reply::empty(StatusCode::NO_CONTENT)
        }
        Err((status, why)) => reply::refuse(status, None, -32000, &why),
    }
}

async fn open(server: &Arc<McpServer>, entered: &AdmittedCaller, at: Place<'_>, request: &Request, known: &mut KnownClient) -> Reply {
    let config = server.entrance.gate.config.load_full();
    let most = config.limits.sessions;
    let place = server.entrance.gate.load.shares.of_principal(&entered.principal.name).take_amount(
        Resource::Sessions,
        1,
        Bound { most, percent: config.share() },
    );
    let place = match place {
        Ok(place) => place,
        Err(full) => {
            let why = match full {
                Full::All => format!("there are {most} sessions, which is the limit; end one, or raise limits.sessions"),
                Full::Share(share) => format!("this caller has {share} sessions, its share of limits.sessions; end one"),
            };
            return reply::refuse(StatusCode::SERVICE_UNAVAILABLE, Some(&request.id), -32009, &why);
        }
    };
    let session = begin(server, entered, at.mount, at.style, request, random::token().into());
    server.entrance.gate.hub.open(Arc::clone(&session), Some(place));
    // A reload between `begin` and now did not see this session.
    session.follow(&server.entrance.gate.config.load());
    if let Err(refused) = known.again(&server.entrance, at.fields, entered) {
        // Boxed, since few messages open a session.
        Box::pin(end_session(server, &session)).await;
        return endpoint::refuse(&refused);
    }
    let result = initialized(server, &session).await;
    let reply = reply::rpc(StatusCode::OK, request.id.clone(), Answer::Result(result.into()));
    match HeaderValue::from_str(&session.id) {
        Ok(id) => reply.with(HeaderName::from_static(field::SESSION), id),
        Err(_) => reply,
    }
}

async fn end_session(server: &Arc<McpServer>, session: &Session) {
    server.entrance.gate.hub.close(&session.id);
    session.end_session();
    call::way::forget(&server.entrance.gate, session).await;
}

/// Makes a session from an `initialize` request.
pub fn begin(
    server: &McpServer,
    entered: &AdmittedCaller,
    mount: &Option<Segment>,
    style: Option<Style>,
    request: &Request,
    id: Arc<str>,
) -> Arc<Session> {
    let members = request.params.members();
    let object = |key| members.get(key).filter(|r| r.starts_with(b"{")).map_or(Bytes::from_static(b"{}"), Bytes::copy_from_slice);
    let opening = Opening {
        entered: entered.clone(),
        version: answer_version(&members.str("protocolVersion").unwrap_or_default()),
        capabilities: object("capabilities"),
        info: object("clientInfo"),
        mount: mount.clone(),
        style,
    };
    Session::new(
        id,
        opening,
        server.entrance.gate.load.shares.of_principal(&entered.principal.name),
        &server.entrance.gate.mounts.tree.load().config,
    )
}

/// Makes the result of `initialize`.
pub async fn initialized(server: &Arc<McpServer>, session: &Arc<Session>) -> Bytes {
    let tree = server.entrance.gate.mounts.tree.load_full();
    let (capabilities, instructions) =
        call::way::capabilities(&server.entrance.gate, &tree, &caller_of(session, &session.opening.entered)).await;
    let instructions = instructions.map(|i| format!(",\"instructions\":{}", json::quote(&i))).unwrap_or_default();
    let info = call::words::node::SERVER_INFO;
    let version = session.opening.version;
    Bytes::from(format!("{{\"protocolVersion\":\"{version}\",\"capabilities\":{capabilities},\"serverInfo\":{info}{instructions}}}"))
}

/// Takes a notification of the client.
pub async fn notified(server: &Arc<McpServer>, session: &Arc<Session>, notification: &Notification) {
    session.touch();
    match notification.method.as_str() {
        "notifications/cancelled" => {
            if let Some(id) = notification.params.members().get("requestId") {
                session.cancel(id);
            }
        }
        "notifications/initialized" => {}
        "notifications/progress" | "notifications/roots/list_changed" => {
            server.entrance.gate.mounts.to_own_connections(session, notification).await
        }
        _ => call::way::notified(&server.entrance.gate, caller_of(session, &session.opening.entered), notification).await,
    }
}

fn session(
    server: &McpServer,
    entered: &AdmittedCaller,
    fields: &Fields,
    mount: &Option<Segment>,
) -> Result<Arc<Session>, (StatusCode, String)> {
    let text = |name| fields.str(name);
    if let Some(version) = text(field::VERSION)
        && !INITIALIZE.contains(&version)
    {
        return Err((
            StatusCode::BAD_REQUEST,
            format!("Bad Request: unsupported MCP-Protocol-Version {version}; supported: {}", INITIALIZE.join(", ")),
        ));
    }
    let id = text(field::SESSION)
        .ok_or_else(|| (StatusCode::BAD_REQUEST, "Bad Request: Mcp-Session-Id is missing; send `initialize` first".to_owned()))?;
    let unknown = || (StatusCode::NOT_FOUND, "Session not found: it has ended or expired; send `initialize` again".to_owned());
    let session = server.entrance.gate.hub.session(id).ok_or_else(unknown)?;
    // An id is no credential: it is good for its own principal and endpoint only.
    if session.opening.entered.principal != entered.principal || session.opening.mount != *mount {
        return Err(unknown());
    }
    Ok(session)
}

async fn answer(
    server: &Arc<McpServer>,
    session: &Arc<Session>,
    streams: Streams,
    request: Arc<Request>,
    (back, lane): (Arc<Back>, Arc<Lane>),
) -> Reply {
    if !session.begin(&request.id, &back.cancel) {
        return reply::refuse(StatusCode::BAD_REQUEST, Some(&request.id), -32600, "a request with this id is in flight already");
    }
    let id = request.id.clone();
    let finish = Finish { session: Arc::clone(session), id: id.clone() };
    let sight = Sight::of_caller(server.entrance.gate.mounts.tree.load_full(), &back.caller);
    let mut exchange = Exchange::begin(&server.entrance.gate, sight, request, &back, false);
    if streams == Streams::Refused {
        // Nobody will read messages before the answer.
        lane.end_lane();
    }
    if streams != Streams::Preferred {
        exchange.take_pours(Takes::Alone);
    }
    let resumable = session.opening.version == INITIALIZE[0];
    let began = Instant::from_std(clock::now());
    let mut alarm = (streams == Streams::Taken && resumable).then(|| Alarm::new(began, STREAM_AFTER));
    let patience = poll_fn(|cx| alarm.as_mut().map_or(Poll::Pending, |alarm| alarm.poll(began + STREAM_AFTER, cx)));
    tokio::select! {
        biased;
        () = std::future::ready(()), if streams == Streams::Preferred => {}
        turn = exchange.turn((streams != Streams::Refused).then_some(&*lane)) => {
            match turn {
                Turn::Ended(ended) => return endpoint::ended(server, id, ended, |ended| (StatusCode::OK, to_answer(ended))),
                Turn::Pour(pour) => {
                    let gone = exchange.fill(&pour);
                    return reply::pour(PouringBody::new(&id, pour, finish, gone));
                }
                Turn::Message | Turn::Questions(_) => {}
            }
        }
        () = patience => {}
    }
    // A client that resumes gets the whole answer.
    exchange.take_pours(Takes::Whole);
    let number = session.open_stream(Arc::clone(&lane));
    let body = Events::new(lane.read(0), Some(number.to_string()), None);
    let session = Arc::clone(session);
    tokio::spawn(async move {
        let _finish = finish;
        loop {
            if let Turn::Ended(ended) = exchange.turn(None).await {
                lane.push(envelope::response(&id, &to_answer(&ended)), Weight::Kept);
                lane.end_lane();
                return session.keep_stream(&lane);
            }
        }
    });
    reply::events(if resumable { body.primed(RETRY_MS) } else { body })
}

/// Frees a request's id when dropped.
struct Finish {
    session: Arc<Session>,
    id: Bytes,
}

impl Drop for Finish {
    fn drop(&mut self) {
        self.session.finish(&self.id);
    }
}

/// Converts an outcome to an answer.
pub fn to_answer(ended: &RequestOutcome) -> Answer {
    match ended {
        Ok(answer) => answer.clone(),
        Err(error) => Answer::Error(error.tell(Era::Initialize).object()),
    }
}
