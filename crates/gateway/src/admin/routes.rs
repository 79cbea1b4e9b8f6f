//! Answers of the listener besides MCP: health, metrics, and the admin API below `/-/`. Knows no MCP.

use call::words::pour::BrokenOff;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, Stream};
use futures_util::{FutureExt, StreamExt};
use http::header::CACHE_CONTROL;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::StreamBody;
use hyper::body::Incoming;
use serde::Serialize;
use telemetry::metrics::CONTENT_TYPE;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::oneshot;

use crate::admin::access::Command;
use crate::admin::shapes::{
    CallRequest, CallResult, ConsoleLink, Decisions, LogLine, NotInForce, RefusedRegistrations, ReloadReply, Status, Tools, TraceRequest,
};
use crate::admin::viewer::Viewer;
use crate::admin::{approvals, attached, audit, known, live, pins, replay};
use crate::console;
use crate::{Gateway, ToolRow};
use call::words::party::Party;
use call::words::refusal::Refusal;
use door::body;
use door::entry;
use door::held;
use door::held::HeldEntry;
use door::port::{Door, fields, query};
use door::reply;
use door::reply::Payload;
use mesh::child::JoinStatus;

/// The last door: the admin API, the console, and the identity of the gate.
pub(crate) struct AdminDoor(pub(crate) Gateway);

impl Door for AdminDoor {
    fn is_here(&self, _: &str) -> bool {
        true
    }

    fn answer(&self, request: Request<Incoming>, party: Option<Arc<Party>>) -> BoxFuture<'_, Response<Payload>> {
        async move {
            let (parts, mut body) = request.into_parts();
            let answer = answer(&self.0, &parts, &mut body, party.as_ref()).await;
            body::pass_over(&mut body).await;
            answer.unwrap_or_else(|refusal| refused(&self.0, refusal))
        }
        .boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async { self.0.0.admin.closing.cancel() }.boxed()
    }
}

async fn answer(gateway: &Gateway, parts: &Parts, body: &mut Incoming, party: Option<&Arc<Party>>) -> Result<Response<Payload>, Refusal> {
    match (&parts.method, parts.uri.path()) {
        (&Method::GET, "/healthz" | "/readyz") => Ok(lives(gateway, parts)),
        (_, path) if approvals::is_here(path) => approvals::answer(gateway, parts, body, party).await,
        (_, path) if pins::is_here(path) => pins::answer(gateway, parts, body).await,
        (_, path) if known::is_here(path) => known::answer(gateway, parts, body, party).await,
        (&Method::POST, "/-/console/code") => link(gateway, parts),
        _ if console::is_here(parts) => console::answer(&gateway.0.entrance, parts, body).await,
        (&Method::GET, path) if is_viewed(path) => viewed(gateway, parts, party).await,
        _ => owner_only(gateway, parts, body).await,
    }
}

async fn owner_only(gateway: &Gateway, parts: &Parts, body: &mut Incoming) -> Result<Response<Payload>, Refusal> {
    match (&parts.method, parts.uri.path()) {
        (&Method::GET, path) if audit::is_here(path) => {
            owner(gateway, parts)?;
            audit::answer(gateway, parts).await
        }
        (&Method::GET, attached::PATH | attached::CONTROLLER_PATH) => attached::answer(gateway, parts).await,
        (&Method::GET, "/-/decisions") => decisions(gateway, parts).await,
        (&Method::POST, path) if path.starts_with(RELEASE) => {
            owner(gateway, parts)?;
            gateway.release(path.trim_start_matches(RELEASE)).await.map(|released| json(&released))
        }
        (&Method::POST, "/-/call" | "/-/policy/replay" | "/-/reload" | "/-/stop" | "/-/trace") => obey_owner(gateway, parts, body).await,
        _ => single(gateway, parts),
    }
}

/// Lists the last decisions; a single decision is looked up in the record too.
async fn decisions(gateway: &Gateway, parts: &Parts) -> Result<Response<Payload>, Refusal> {
    owner(gateway, parts)?;
    let id = query(parts, "id");
    let mut decisions = gateway.decisions(id.as_deref());
    if let Some(id) = id.filter(|_| decisions.is_empty()) {
        decisions.extend(audit::decision(gateway, id).await?);
    }
    Ok(json(&Decisions { decisions }))
}

/// Obeys a command of the owner.
async fn obey_owner(gateway: &Gateway, parts: &Parts, body: &mut Incoming) -> Result<Response<Payload>, Refusal> {
    owner(gateway, parts)?;
    match parts.uri.path() {
        "/-/call" => call(gateway, body).await,
        "/-/policy/replay" => replay::answer(gateway, body).await,
        "/-/reload" => reload(gateway).await,
        "/-/trace" => trace(gateway, body).await,
        _ => stop(gateway).await,
    }
}

fn is_viewed(path: &str) -> bool {
    VIEWED.contains(&path) || path.starts_with(TOOL)
}

/// Answers requests that callers may make as well, each as far as the caller may use the subject.
async fn viewed(gateway: &Gateway, parts: &Parts, party: Option<&Arc<Party>>) -> Result<Response<Payload>, Refusal> {
    let client = query(parts, "client");
    let path = parts.uri.path();
    match path {
        "/-/events" => return events(gateway, parts, party),
        "/metrics" => return metrics(gateway, parts, party),
        _ => {}
    }
    let mut viewer = Viewer::enter(gateway, parts, party, client.as_deref())?;
    Ok(match path {
        "/-/below" => json(&viewer.below(gateway).await),
        "/-/status" => json(&viewer.status(gateway, true).await),
        "/-/tools" => json(&Tools { tools: viewer.tools(gateway, client.as_deref()).await, client }),
        _ => json(&viewer.tool(gateway, path.trim_start_matches(TOOL)).await?),
    })
}

/// Answers metrics: numbers of everybody's calls, for people who watch the gate.
fn metrics(gateway: &Gateway, parts: &Parts, party: Option<&Arc<Party>>) -> Result<Response<Payload>, Refusal> {
    if !is_owner(gateway, parts) {
        let config = gateway.0.gate.config.load();
        let entered = entry::enter(&config, &gateway.0.trust, party, &fields(parts)).map_err(|refused| Refusal::refused(refused.why))?;
        if !entered.reads_metrics(&config) {
            return Err(Refusal::refused(
                "the metrics tell of everybody's calls: give the `[[token]]` of whoever reads them `metrics = true`",
            ));
        }
    }
    Ok(plain(StatusCode::OK, CONTENT_TYPE, gateway.metrics().into()))
}

/// Answers questions about rules and single servers.
fn single(gateway: &Gateway, parts: &Parts) -> Result<Response<Payload>, Refusal> {
    match (&parts.method, parts.uri.path()) {
        (&Method::GET, "/-/refused") => {
            owner(gateway, parts).map(|()| json(&RefusedRegistrations { refused: gateway.refused(query(parts, "of").as_deref()) }))
        }
        (&Method::GET, "/-/offers") => owner(gateway, parts).map(|()| json(&gateway.offers())),
        (&Method::GET, "/-/overview") => owner(gateway, parts).map(|()| json(&gateway.overview())),
        (&Method::GET, "/-/policy") => owner(gateway, parts).map(|()| json(&gateway.rules())),
        (&Method::GET, path) if path.starts_with("/-/logs/") => owner(gateway, parts).and_then(|()| logs(gateway, parts)),
        (&Method::POST, path) if path.starts_with(RESTART) => {
            owner(gateway, parts).and_then(|()| gateway.restart(path.trim_start_matches(RESTART))).map(|restarted| json(&restarted))
        }
        (_, path) => Err(Refusal::not_found(format!("there is no {} {path} here: MCP clients connect to /mcp", parts.method))),
    }
}

const RELEASE: &str = "/-/release/";
const RESTART: &str = "/-/restart/";
const TOOL: &str = "/-/tools/";
/// Paths open to more than the owner.
const VIEWED: [&str; 5] = ["/-/below", "/-/events", "/-/status", "/-/tools", "/metrics"];

const CALL_BYTES: usize = 16 << 20;

/// Lets in readers of the presence file, and console sessions signed in by them.
pub(super) fn owner(gateway: &Gateway, parts: &Parts) -> Result<(), Refusal> {
    if is_owner(gateway, parts) {
        return Ok(());
    }
    Err(Refusal::refused(
        "this takes the admin token, which the `banyan` command of the user who runs the gate has; in a browser: `banyan console`",
    ))
}

pub(crate) fn is_owner(gateway: &Gateway, parts: &Parts) -> bool {
    gateway.0.entrance.is_owner(parts)
}

/// Makes a link into the console. A console session gets none: the link would outlast the sign-in.
fn link(gateway: &Gateway, parts: &Parts) -> Result<Response<Payload>, Refusal> {
    match gateway.0.admin.presence() {
        Some(presence) if gateway.0.entrance.owner.is_owner(&parts.headers) => {
            let link: ConsoleLink =
                console::link(&gateway.0.entrance.sign_ins, &presence.url.replacen("://127.0.0.1:", "://localhost:", 1));
            Ok(json(&link))
        }
        _ => Err(Refusal::refused("this takes the admin token, which the `banyan` command of the user who runs the gate has")),
    }
}

/// Answers 200 while the gate lives, or (for `/readyz`) once no server is in the first start. Only the owner hears the names of starting
/// servers.
fn lives(gateway: &Gateway, parts: &Parts) -> Response<Payload> {
    if parts.uri.path() == "/healthz" {
        return plain(StatusCode::OK, "text/plain", "ok\n".into());
    }
    if gateway.0.gate.mounts.is_settled() {
        return plain(StatusCode::OK, "text/plain", "ready\n".into());
    }
    let starting: Vec<String> = gateway.status().into_iter().filter(|m| m.state == "starting").map(|m| m.name).collect();
    let told = if is_owner(gateway, parts) { starting.join(", ") } else { starting.len().to_string() };
    plain(StatusCode::SERVICE_UNAVAILABLE, "text/plain", format!("starting: {told}\n").into())
}

/// `all` includes facts for the owner only.
pub(super) fn status(gateway: &Gateway, all: bool) -> Status {
    let presence = gateway.0.admin.presence();
    Status {
        you: None,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        url: presence.map_or_else(String::new, |p| format!("{}/mcp", p.url)),
        serves: presence.map_or_else(String::new, |p| p.serves.clone()),
        uptime_seconds: gateway.0.admin.started.elapsed().as_secs(),
        sessions: gateway.0.gate.hub.sessions(),
        joined: gateway.joined().map(|joined| JoinStatus::clone(&joined)),
        not_in_force: gateway.not_in_force().map(|why| NotInForce { since: why.since, error: why.error.clone().filter(|_| all) }),
        audit: gateway.audit(),
        budgets: gateway.budgets(),
        rooms: if all { gateway.rooms() } else { Vec::new() },
        mounts: gateway.status(),
    }
}

fn logs(gateway: &Gateway, parts: &Parts) -> Result<Response<Payload>, Refusal> {
    let name = parts.uri.path().trim_start_matches("/-/logs/");
    let missing = || Refusal::not_found(format!("there is no server `{name}`"));
    // Subscribed before the kept lines are read: a line may come twice, none is lost.
    let live = gateway.follow_stderr(name).ok_or_else(missing)?;
    let kept: Vec<Bytes> = gateway.stderr(name).ok_or_else(missing)?.into_iter().map(|line| log_line(name, line)).collect();
    if query(parts, "follow").is_none() {
        return Ok(plain(StatusCode::OK, LINES, kept.concat().into()));
    }
    Ok(streamed(gateway, parts, LINES, stream::iter(kept).chain(from_now_on(name.to_owned(), live))))
}

fn events(gateway: &Gateway, parts: &Parts, party: Option<&Arc<Party>>) -> Result<Response<Payload>, Refusal> {
    let held = if is_owner(gateway, parts) {
        None
    } else {
        let held = HeldEntry::enter(&gateway.0.entrance, party.cloned(), fields(parts), held::enter);
        Some(held.map_err(|refused| Refusal::refused(refused.why))?)
    };
    let viewer = held.as_ref().map_or(Viewer::Owner, |held| Viewer::guest(gateway, &held.entered, None));
    let over = async {
        match held {
            Some(held) => drop(held.over().await),
            None => std::future::pending().await,
        }
    };
    let last = stream::once(async { Bytes::from_static(b": what let you in is over: come back with a new token\n\n") });
    let events = live::events(gateway.clone(), viewer).take_until(Box::pin(over)).chain(last);
    let mut response = streamed(gateway, parts, "text/event-stream", events);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

/// Answers with a stream until the gate or the sign-in ends.
pub(super) fn streamed(
    gateway: &Gateway,
    parts: &Parts,
    kind: &'static str,
    pieces: impl Stream<Item = Bytes> + Send + 'static,
) -> Response<Payload> {
    let closing = gateway.0.admin.closing.clone().cancelled_owned();
    let over = gateway.0.entrance.sign_ins.over(&gateway.0.gate.config.load(), parts);
    let pieces = pieces.take_until(closing).take_until(Box::pin(over));
    let frames = pieces.map(|piece| Ok::<_, BrokenOff>(Frame::data(piece)));
    let mut response = plain(StatusCode::OK, kind, Bytes::new());
    *response.body_mut() = Payload::Events(Box::new(StreamBody::new(Box::pin(frames))));
    // Proxies such as nginx would otherwise hold pieces back.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

pub(super) const LINES: &str = "application/x-ndjson";

fn from_now_on(server: String, live: Receiver<String>) -> impl Stream<Item = Bytes> {
    stream::unfold((server, live), |(server, mut live)| async move {
        let line = match live.recv().await {
            Ok(line) => line,
            Err(RecvError::Lagged(count)) => format!("({count} lines left out: they came faster than they were read)"),
            Err(RecvError::Closed) => return None,
        };
        Some((log_line(&server, line), (server, live)))
    })
}

fn log_line(server: &str, line: String) -> Bytes {
    let mut text = serde_json::to_vec(&LogLine { server: server.to_owned(), line }).unwrap_or_default();
    text.push(b'\n');
    text.into()
}

async fn call(gateway: &Gateway, body: &mut Incoming) -> Result<Response<Payload>, Refusal> {
    let body = body::posted(body, CALL_BYTES).await.map_err(|why| Refusal::failed(why.to_string()))?;
    let request: CallRequest =
        serde_json::from_slice(&body).map_err(|e| Refusal::failed(format!("the request is not {{tool, arguments}}: {e}")))?;
    if request.raw {
        return Ok(plain(StatusCode::OK, "application/json", gateway.call_tool_raw(&request).await));
    }
    let called = gateway.call_tool(&request).await?;
    Ok(plain(StatusCode::OK, "application/json", called.0))
}

async fn trace(gateway: &Gateway, body: &mut Incoming) -> Result<Response<Payload>, Refusal> {
    let body = body::posted(body, CALL_BYTES).await.map_err(|why| Refusal::failed(why.to_string()))?;
    let request: TraceRequest = serde_json::from_slice(&body).map_err(|e| Refusal::failed(format!("the request is not {{tool}}: {e}")))?;
    Ok(json(&gateway.trace(&request).await?))
}

async fn reload(gateway: &Gateway) -> Result<Response<Payload>, Refusal> {
    let (sender, receiver) = oneshot::channel();
    let sent = gateway.0.admin.command(Command::Reload(sender)).await;
    let answer = if sent { receiver.await.ok() } else { None };
    let changes = answer.unwrap_or_else(|| Err("this gate reads no configuration file".to_owned())).map_err(Refusal::failed)?;
    Ok(json(&ReloadReply { changes }))
}

async fn stop(gateway: &Gateway) -> Result<Response<Payload>, Refusal> {
    if gateway.0.admin.command(Command::Stop).await {
        return Ok(json(&serde_json::json!({ "stopping": true })));
    }
    Err(Refusal::failed("this gate can't be stopped from here"))
}

impl Gateway {
    /// Calls a tool for the command line; an unknown tool becomes another error than a failed call.
    pub async fn call_tool(&self, request: &CallRequest) -> Result<CallResult, Refusal> {
        if ToolRow::find(&self.tools(None), &request.tool).is_none() {
            return Err(Refusal::not_found(format!("there is no tool `{}`", request.tool)));
        }
        let answer = self.call(request).await;
        answer.map(CallResult).map_err(|error| Refusal::failed([message_of(&error), self.rules_of(&error)].concat()))
    }

    /// Calls a tool and answers the whole JSON-RPC response, as a client receives it.
    pub async fn call_tool_raw(&self, request: &CallRequest) -> Bytes {
        let (key, value) = match self.call(request).await {
            Ok(result) => ("result", result),
            Err(error) => ("error", error),
        };
        [format!("{{\"jsonrpc\":\"2.0\",\"id\":0,\"{key}\":").as_bytes(), &value, b"}"].concat().into()
    }
}

impl Gateway {
    /// Lists the rules that refused a call, for people: a line each.
    fn rules_of(&self, error: &[u8]) -> String {
        let error: serde_json::Value = serde_json::from_slice(error).unwrap_or_default();
        let Some(id) = error["data"]["decision"].as_str() else { return String::new() };
        let rules = self.decisions(Some(id)).into_iter().flat_map(|decision| decision.rules);
        rules
            .map(|rule| {
                let remedy = rule.remedy.map(|remedy| format!(": {remedy}")).unwrap_or_default();
                format!("\n  by the rule `{}` (line {}){remedy}", rule.id, rule.line)
            })
            .collect()
    }
}

/// Formats a raw JSON-RPC error for people: text and code, remedy, last words of the server.
pub(super) fn message_of(error: &[u8]) -> String {
    let value: serde_json::Value = serde_json::from_slice(error).unwrap_or_default();
    let text = value["message"].as_str().map_or_else(|| String::from_utf8_lossy(error).into_owned(), str::to_owned);
    let decision = value["data"]["decision"].as_str().map(|id| format!("the rules decided this: `banyan explain {id}` says why"));
    // Callers get the same answer for hidden and absent names; the owner may know the difference.
    let hint = decision.or_else(|| value["data"]["hint"].as_str().map(str::to_owned));
    let hint = hint.map(|hint| format!("\n  {hint}")).unwrap_or_default();
    let is_decided = value["data"]["reason"].as_str().is_some_and(|reason| reason.starts_with("approval_"));
    let why = value["data"]["why"].as_str().filter(|why| is_decided && !why.is_empty());
    let why = why.map(|why| format!("\n  the reason given: {why}")).unwrap_or_default();
    let words = value["data"]["stderr"].as_array().into_iter().flatten().filter_map(serde_json::Value::as_str);
    let last: Vec<&str> = words.rev().take(LAST_WORDS).collect();
    let last: String = last.iter().rev().map(|line| format!("\n  | {line}")).collect();
    format!("{text} ({}){why}{hint}{last}", value["code"])
}

/// Lines of a server's standard error in the text of a failed call.
const LAST_WORDS: usize = 10;

fn refused(gateway: &Gateway, refusal: Refusal) -> Response<Payload> {
    reply::refusal(refusal, gateway.0.gate.config.load().wants_credential())
}

pub(super) fn json(value: &impl Serialize) -> Response<Payload> {
    plain(StatusCode::OK, "application/json", serde_json::to_vec(value).unwrap_or_default().into())
}

fn plain(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Payload> {
    reply::typed(status, kind, body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_call_shows_remedy_and_last_words() {
        let error = br#"{"code":-32004,"message":"it ended","data":{"reason":"upstream_lost","hint":"look first","stderr":["a","b"]}}"#;
        assert_eq!(message_of(error), "it ended (-32004)\n  look first\n  | a\n  | b");
        let decided =
            br#"{"code":-32602,"message":"unknown tool: a","data":{"reason":"unknown_tool","hint":"tools/list","decision":"d-1"}}"#;
        assert_eq!(message_of(decided), "unknown tool: a (-32602)\n  the rules decided this: `banyan explain d-1` says why");
        let denied = br#"{"code":-32018,"message":"it was denied","data":{"reason":"approval_denied","id":"a","why":"not today"}}"#;
        assert_eq!(message_of(denied), "it was denied (-32018)\n  the reason given: not today");
        assert_eq!(message_of(br#"{"code":1,"message":"no"}"#), "no (1)");
        assert_eq!(message_of(b"odd"), "odd (null)");
    }
}
