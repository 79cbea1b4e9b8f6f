//! MCP endpoints `/mcp` and `/mcp/NAME`: admission, the era of a message, and its session. Knows no sockets and no request's meaning.

use std::sync::{Arc, LazyLock};

use banyan_model::{Era, Principal, Segment};
use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use mcp_proto::envelope::{self, Answer, EnvelopeError, Glance, Message, Request};
use mcp_proto::era::{INITIALIZE, RequestMeta};
use mcp_proto::field;
use mcp_proto::http1::Fields;
use mcp_proto::projection::Style;

use crate::downstream::McpServer;
use crate::downstream::exchange::RequestOutcome;
use crate::downstream::initialize;
use crate::downstream::stateless;
use crate::downstream::stateless::{Place, Streams};
use call::way::error::CallError;
use call::words::entered::AdmittedCaller;
use call::words::shares::Resource;
use door::entry;
use door::known::KnownClient;
use door::reply;
use door::reply::Reply;
use trust;

/// Head of a request whose body has not come yet.
#[derive(Clone, Copy)]
pub struct RequestHead<'a> {
    pub path: &'a str,
    pub query: Option<&'a str>,
    pub fields: &'a Fields,
}

/// Proof of admission, with the mount of the endpoint.
pub struct Admission {
    entered: AdmittedCaller,
    mount: Option<Segment>,
}

/// Checks that `path` is an MCP endpoint.
pub fn is_here(path: &str) -> bool {
    path.strip_prefix("/mcp").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Admits or refuses a request.
pub fn admit(server: &Arc<McpServer>, asked: RequestHead<'_>, known: &mut KnownClient) -> Result<Admission, Reply> {
    let entered = known.enter(&server.entrance, asked.fields).map_err(|refused| refuse(&refused))?;
    admit_known(server, asked.path, entered)
}

/// Admits a request of a caller known beforehand.
pub fn admit_known(server: &McpServer, path: &str, entered: AdmittedCaller) -> Result<Admission, Reply> {
    let mount = mount(server, path).map_err(|why| reply::refuse(StatusCode::NOT_FOUND, None, -32000, &why))?;
    Ok(Admission { entered, mount })
}

/// Answers a POST.
pub async fn post(server: &Arc<McpServer>, admitted: &Admission, asked: RequestHead<'_>, body: &Bytes, known: &mut KnownClient) -> Reply {
    if let Some(refused) = turned_away(server, known, asked.fields, body) {
        return refused;
    }
    if let Err(refused) = known.again(&server.entrance, asked.fields, &admitted.entered) {
        return refuse(&refused);
    }
    let message = match Message::parse_after(body, &mut known.before) {
        Ok(message) => message,
        Err(error) => return unreadable(error),
    };
    let (entered, place) = (&admitted.entered, admitted.place(asked));
    match sorted(message, place.fields) {
        SortedMessage::Alone(request) => stateless::post(server, entered, place, request, known).await,
        SortedMessage::OfSession(message) => initialize::post(server, entered, place, message, known).await,
        SortedMessage::Taken => reply::empty(StatusCode::ACCEPTED),
    }
}

/// A message sorted by era.
enum SortedMessage {
    /// A request of the stateless era.
    Alone(Arc<Request>),
    /// A message of the initialize era.
    OfSession(Message),
    /// A notification of the stateless era, accepted and ignored.
    Taken,
}

fn sorted(message: Message, fields: &Fields) -> SortedMessage {
    match message {
        Message::Request(request) if is_stateless(&request, fields) => SortedMessage::Alone(Arc::new(request)),
        // The stateless era defines no notification from a client over HTTP.
        Message::Notification(_) if speaks_stateless(fields) => SortedMessage::Taken,
        message @ (Message::Notification(_) | Message::Request(_) | Message::Response(_)) => SortedMessage::OfSession(message),
    }
}

/// Refuses a request for which the gate has no time. Comes before the request is read, since under load a refusal must cost far less than a
/// call.
fn turned_away(server: &Arc<McpServer>, known: &mut KnownClient, fields: &Fields, body: &Bytes) -> Option<Reply> {
    static LATE: LazyLock<(StatusCode, Bytes)> = LazyLock::new(|| {
        let told = CallError::Late.tell(Era::Stateless);
        (told.status, told.object())
    });
    if server
        .entrance
        .gate
        .load
        .lateness
        .has_time(known.config(&server.entrance).limits.wait, server.entrance.gate.load.shares.taken(Resource::Calls))
    {
        return None;
    }
    let Glance { id, method } = envelope::glance(body)?;
    server.entrance.gate.load.refusals.note("the gate has more to do than it can", None);
    call::way::refused(&server.entrance.gate.record, method);
    let (status, error) = &*LATE;
    let status = if speaks_stateless(fields) { *status } else { StatusCode::OK };
    Some(reply::rpc(status, body.slice_ref(id), Answer::Error(error.clone())))
}

/// Answers a GET.
pub fn get(server: &Arc<McpServer>, admitted: &Admission, asked: RequestHead<'_>) -> Reply {
    // The stateless era has neither GET nor DELETE; a client of it says so in the header.
    if speaks_stateless(asked.fields) {
        return not_allowed();
    }
    initialize::get(server, &admitted.entered, admitted.place(asked))
}

/// Answers a DELETE.
pub async fn delete(server: &Arc<McpServer>, admitted: &Admission, asked: RequestHead<'_>) -> Reply {
    if speaks_stateless(asked.fields) {
        return not_allowed();
    }
    initialize::delete(server, &admitted.entered, admitted.place(asked)).await
}

/// Answers any other method of HTTP, known or not.
pub fn not_allowed() -> Reply {
    reply::empty(StatusCode::METHOD_NOT_ALLOWED).with(http::header::ALLOW, HeaderValue::from_static("POST"))
}

impl Admission {
    /// Principal admitted.
    pub fn principal(&self) -> &Principal {
        &self.entered.principal
    }

    fn place<'a>(&'a self, asked: RequestHead<'a>) -> Place<'a> {
        Place { fields: asked.fields, mount: &self.mount, style: style(asked.query), streams: streams(asked.fields) }
    }
}

/// Checks for the stateless era: by `_meta`, by method, or by header.
fn is_stateless(request: &Request, fields: &Fields) -> bool {
    if request.method == "initialize" && !speaks_stateless(fields) {
        return false;
    }
    RequestMeta::claimed(&request.params) || request.method == "server/discover" || speaks_stateless(fields)
}

/// Checks that the header names a revision outside the initialize era.
fn speaks_stateless(fields: &Fields) -> bool {
    fields.get(field::VERSION).is_some_and(|v| !INITIALIZE.iter().any(|known| known.as_bytes() == v) && v.is_ascii())
}

fn unreadable(error: EnvelopeError) -> Reply {
    let id = if let EnvelopeError::Invalid { id, .. } = &error { id.clone() } else { None };
    let told = CallError::BadMessage(error).tell(Era::Stateless);
    reply::refuse(told.status, id.as_ref(), told.code, &told.message)
}

/// Finds the mount of an endpoint: `/mcp` is the whole tree, `/mcp/NAME` a single mount.
fn mount(server: &McpServer, path: &str) -> Result<Option<Segment>, String> {
    let name = path.strip_prefix("/mcp").unwrap_or_default().trim_matches('/');
    if name.is_empty() {
        return Ok(None);
    }
    let tree = server.entrance.gate.mounts.tree.load();
    match Segment::new(name) {
        Ok(segment) if tree.branch(&segment).is_some() => Ok(Some(segment)),
        _ => {
            // Where some tools are hidden from somebody, nobody gets a list of mounts.
            if tree.config.policy.is_some() || !tree.config.profiles.is_empty() {
                return Err(format!("there is no server `{name}` here"));
            }
            let names: Vec<String> = tree.branches.iter().map(|b| b.mount.config.name.to_string()).collect();
            Err(format!("there is no server `{name}` here; there are: {}", names.join(", ")))
        }
    }
}

/// Reads the spelling of names from `?names=dotted` or `?names=safe`.
fn style(query: Option<&str>) -> Option<Style> {
    query?.split('&').find_map(|pair| match pair {
        "names=dotted" => Some(Style::Dotted),
        "names=safe" => Some(Style::Safe),
        _ => None,
    })
}

fn streams(fields: &Fields) -> Streams {
    if fields.get("accept") == Some(b"application/json, text/event-stream") {
        return Streams::Taken;
    }
    let accept = fields.str("accept").unwrap_or_default();
    match (accept.find("text/event-stream"), accept.find("application/json")) {
        (Some(events), Some(json)) if events < json => Streams::Preferred,
        (Some(_), None) => Streams::Preferred,
        (Some(_), Some(_)) => Streams::Taken,
        (None, _) if accept.contains("*/*") => Streams::Taken,
        (None, _) => Streams::Refused,
    }
}

/// Replies to an ended request. Outcomes other than a result go through `told`, which knows the era.
pub fn ended(server: &McpServer, id: Bytes, ended: RequestOutcome, told: impl FnOnce(&RequestOutcome) -> (StatusCode, Answer)) -> Reply {
    match ended {
        Ok(Answer::Result(result)) => reply::rpc(StatusCode::OK, id, Answer::Result(result)),
        ended => {
            let (status, answer) = told(&ended);
            stepped_up(server, &ended, reply::rpc(status, id, answer))
        }
    }
}

/// Adds the scope that the call lacked (RFC 6750, section 3.1), so that the client can sign in again for it.
fn stepped_up(server: &McpServer, ended: &RequestOutcome, reply: Reply) -> Reply {
    let Some(scope) = ended.as_ref().err().and_then(CallError::wanted_scope) else { return reply };
    let challenge = trust::challenge_for(&server.entrance.gate.config.load(), Some("insufficient_scope"), scope);
    match challenge.and_then(|challenge| HeaderValue::from_str(&challenge).ok()) {
        Some(challenge) => reply.standing(StatusCode::FORBIDDEN).with(http::header::WWW_AUTHENTICATE, challenge),
        None => reply,
    }
}

/// Answers a request refused at the door.
pub fn refuse(refused: &entry::EntryRefusal) -> Reply {
    let reply = reply::shut(refused.status, &refused.why);
    match refused.challenge.as_deref().and_then(|challenge| HeaderValue::from_str(challenge).ok()) {
        Some(challenge) => reply.with(http::header::WWW_AUTHENTICATE, challenge),
        None => reply,
    }
}
