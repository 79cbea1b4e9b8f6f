//! Door for revision 2026-07-28: every request stands alone. Knows no request's meaning.

use std::sync::Arc;

use banyan_model::{Era, Segment};
use bytes::Bytes;
use http::StatusCode;
use mcp_proto::envelope::{self, Answer, Request};
use mcp_proto::era::{RequestMeta, STATELESS, key};
use mcp_proto::field;
use mcp_proto::header::{self, Mismatch};
use mcp_proto::http1::Fields;
use mcp_proto::projection::Style;
use telemetry::trace_context::TraceContext;
use tokio_util::sync::CancellationToken;

use crate::downstream::McpServer;
use crate::downstream::endpoint;
use crate::downstream::exchange::{Exchange, RequestOutcome, Turn};
use call::tree::back::{Back, Question, Sink, Takes};
use call::tree::caller::Caller;
use call::tree::snapshot::Sight;
use call::way::error::{CallError, status_of_code};
use call::way::hop::Arrival;
use call::way::sees;
use call::words::entered::AdmittedCaller;
use call::words::lane::{Lane, Weight};
use call::words::pouring::PouringBody;
use call::words::shares::Bound;
use door::events::Events;
use door::known::KnownClient;
use door::reply;
use door::reply::Reply;

/// Answers a POST.
pub async fn post(
    server: &Arc<McpServer>,
    entered: &AdmittedCaller,
    place: Place<'_>,
    request: Arc<Request>,
    known: &mut KnownClient,
) -> Reply {
    let meta = known.meta(&request.params);
    if let Err(refused) = check_meta(&meta).and_then(|()| check_headers(place.fields, &request, &meta)).and_then(|()| check_version(&meta))
    {
        return refusal(&request.id, &refused);
    }
    let tree = server.entrance.gate.mounts.tree.load_full();
    let caller = known.caller(&tree.config, entered, place.mount.as_ref(), place.style, &meta);
    let sight = Sight::of_caller(tree, &caller);
    if let Err(mismatch) = check_params(&sight, &caller, place.fields, &request) {
        return refusal(&request.id, &CallError::HeaderMismatch(mismatch));
    }
    if request.method == "subscriptions/listen" {
        return listen(server, (entered, &caller), place.fields, &request, known).await;
    }
    let lane = Lane::new();
    let (mut exchange, open) = match begin(server, sight, (&caller, &meta), &request, &lane, TraceContext::of_fields(place.fields)) {
        Ok(begun) => begun,
        Err(refused) => return refusal(&request.id, &refused),
    };
    if !open.is_empty() {
        return parked(server, exchange, open, &request);
    }
    exchange.take_pours(Takes::Alone);
    if place.streams == Streams::Refused {
        // Nobody will read messages before the answer.
        lane.end_lane();
    }
    match exchange.turn((place.streams != Streams::Refused).then_some(&*lane)).await {
        Turn::Ended(ended) => endpoint::ended(server, request.id.clone(), ended, to_status_and_answer),
        Turn::Pour(pour) => {
            let gone = exchange.fill(&pour);
            reply::pour(PouringBody::new(&request.id, pour, (), gone))
        }
        Turn::Questions(questions) => parked(server, exchange, questions, &request),
        Turn::Message => {
            exchange.take_pours(Takes::Behind);
            let config = server.entrance.gate.config.load();
            lane.charge_to(caller.share(&server.entrance.gate.load), Bound { most: config.limits.stream_bytes, percent: config.share() });
            let gone = CancellationToken::new();
            let body = Events::new(lane.read(0), None, Some(gone.clone().drop_guard()));
            tokio::spawn(stream(Arc::clone(server), exchange, lane, request, gone));
            reply::events(body)
        }
    }
}

/// Endpoint and form of a request.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    pub fields: &'a Fields,
    /// Mount of `/mcp/NAME`.
    pub mount: &'a Option<Segment>,
    /// Spelling of names asked for by the URL.
    pub style: Option<Style>,
    pub streams: Streams,
}

/// Place of event streams in a client's `Accept`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// Named before JSON, or alone.
    Preferred,
    Refused,
    /// Named after JSON, or covered by `*/*`.
    Taken,
}

/// Begins a request, or takes up the parked call to which it comes back; returns the questions still open.
pub fn begin(
    server: &Arc<McpServer>,
    sight: Sight,
    (caller, meta): (&Arc<Caller>, &RequestMeta),
    request: &Arc<Request>,
    lane: &Arc<Lane>,
    trace: Option<TraceContext>,
) -> Result<(Exchange, Vec<Question>), CallError> {
    if server.parked.is_return(request) {
        let resumed = server.parked.resume(request, caller)?;
        resumed.exchange.back.redirect(Sink::Lane(Arc::clone(lane)));
        return Ok((resumed.exchange, resumed.open));
    }
    let back = Back::traced(Arc::clone(caller), Sink::Lane(Arc::clone(lane)), meta.log_level, trace);
    Ok((Exchange::begin(&server.entrance.gate, sight, Arc::clone(request), &back, true), Vec::new()))
}

/// Parks a call that asks first, and passes its questions to the caller.
fn parked(server: &McpServer, exchange: Exchange, questions: Vec<Question>, request: &Request) -> Reply {
    let result = server.parked.park(server, exchange, questions, request);
    reply::rpc(StatusCode::OK, request.id.clone(), Answer::Result(result.into()))
}

/// Carries an exchange to its end on an open stream.
async fn stream(server: Arc<McpServer>, mut exchange: Exchange, lane: Arc<Lane>, request: Arc<Request>, gone: CancellationToken) {
    let answer = loop {
        let turn = tokio::select! {
            turn = exchange.turn(None) => turn,
            () = gone.cancelled() => {
                // Closing the stream is how this era cancels.
                exchange.back.cancel.cancel();
                return;
            }
        };
        match turn {
            Turn::Ended(ended) => break to_status_and_answer(&ended).1,
            Turn::Questions(questions) => break Answer::Result(server.parked.park(&server, exchange, questions, &request).into()),
            Turn::Pour(pour) => {
                let back = Arc::clone(&exchange.back);
                lane.end_with(PouringBody::new(&request.id, Arc::clone(&pour), (), exchange.fill(&pour)));
                gone.cancelled().await;
                return back.cancel.cancel();
            }
            Turn::Message => {}
        }
    };
    lane.push(envelope::response(&request.id, &answer), Weight::Kept);
    lane.end_lane();
}

/// Opens a stream that lasts until the client closes it or its credential ends.
async fn listen(
    server: &Arc<McpServer>,
    (entered, caller): (&AdmittedCaller, &Arc<Caller>),
    fields: &Fields,
    request: &Request,
    known: &mut KnownClient,
) -> Reply {
    let lane = Lane::new();
    let gone = match call::way::open_listener(&server.entrance.gate, caller, request, &lane, entered.until()).await {
        Ok(gone) => gone.drop_guard(),
        Err(refused) => return refusal(&request.id, &refused),
    };
    let config = server.entrance.gate.config.load();
    lane.charge_to(caller.share(&server.entrance.gate.load), Bound { most: config.limits.stream_bytes, percent: config.share() });
    // A configuration that came into force meanwhile did not see this stream.
    match known.again(&server.entrance, fields, entered) {
        Ok(()) => reply::events(Events::new(lane.read(0), None, Some(gone))),
        Err(refused) => endpoint::refuse(&refused),
    }
}

/// Converts an outcome to a status and an answer.
pub fn to_status_and_answer(ended: &RequestOutcome) -> (StatusCode, Answer) {
    match ended {
        Ok(answer @ Answer::Result(_)) => (StatusCode::OK, answer.clone()),
        Ok(answer @ Answer::Error(error)) => (status_of_code(error), answer.clone()),
        Err(error) => {
            let told = error.tell(Era::Stateless);
            (told.status, Answer::Error(told.object()))
        }
    }
}

fn refusal(id: &Bytes, refused: &CallError) -> Reply {
    let told = refused.tell(Era::Stateless);
    reply::rpc(told.status, id.clone(), Answer::Error(told.object()))
}

/// Checks the meta required of every stateless request (2026-07-28, "Request metadata").
pub fn check_meta(meta: &RequestMeta) -> Result<(), CallError> {
    match (&meta.version, &meta.capabilities) {
        (None, _) => Err(CallError::MetaMissing(key::PROTOCOL_VERSION)),
        (_, None) => Err(CallError::MetaMissing(key::CLIENT_CAPABILITIES)),
        _ => Ok(()),
    }
}

/// Checks that the revision is supported.
pub fn check_version(meta: &RequestMeta) -> Result<(), CallError> {
    match &meta.version {
        Some(version) if version != STATELESS => Err(CallError::UnsupportedVersion(version.clone().into_owned())),
        _ => Ok(()),
    }
}

fn check_headers(fields: &Fields, request: &Request, meta: &RequestMeta) -> Result<(), CallError> {
    // A repeated header could mean one thing here and another to a router.
    if let Some(header) = fields.repeated("mcp-") {
        return Err(CallError::HeaderMismatch(Mismatch::Malformed { header }));
    }
    let version = meta.version.as_deref().unwrap_or_default();
    let sent = fields.get(field::VERSION);
    let header = || "MCP-Protocol-Version".to_owned();
    match sent {
        Some(sent) if sent == version.as_bytes() => {}
        Some(sent) => {
            let sent = String::from_utf8_lossy(sent).into_owned();
            return Err(CallError::HeaderMismatch(Mismatch::Differs { header: header(), sent, body: version.into() }));
        }
        None => return Err(CallError::HeaderMismatch(Mismatch::Missing { header: header(), body: version.into() })),
    }
    header::check_method(fields.get(field::METHOD), &request.method).map_err(CallError::HeaderMismatch)?;
    let key = match &*request.method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        // Tasks extension, "Routing Headers".
        "tasks/cancel" | "tasks/get" | "tasks/update" => "taskId",
        _ => return Ok(()),
    };
    let Some(name) = request.params.str(key) else { return Ok(()) };
    header::check_name(fields.get(field::NAME), &name).map_err(CallError::HeaderMismatch)
}

/// Checks that headers mirror the parameters of a tool that asks for it.
fn check_params(Sight { tree, view }: &Sight, caller: &Caller, fields: &Fields, request: &Request) -> Result<(), Mismatch> {
    if request.method != "tools/call" {
        return Ok(());
    }
    if !view.mirrors {
        return Ok(());
    }
    let named = || request.params.str("name").map(std::borrow::Cow::into_owned);
    // A route that can't be read is refused when its tool is looked for.
    let routed = Arrival::of_call(caller, &request.params).ok().flatten().map(|arrival| arrival.path);
    let Some(name) = routed.or_else(named) else { return Ok(()) };
    // A tool hidden from the caller must look like an unknown one, whatever its headers.
    let seen = |place: &(usize, usize)| tree.config.policy.is_none() || sees(tree, caller, &tree.standing(caller), *place);
    let offer = view.tools.find(&name).filter(seen).and_then(|(b, i)| tree.branches.get(b)?.catalog.tools.get(i));
    match offer {
        Some(offer) if !offer.headers.is_empty() => header::check_params(&request.params, &offer.headers, |name| fields.get(name)),
        _ => Ok(()),
    }
}
