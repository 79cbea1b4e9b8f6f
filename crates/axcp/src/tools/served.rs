//! Calls of a peer, each on the one way of every call. Decides about none: the rules do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axcp_proto::capability::offers::MOST_OFFERED;
use axcp_proto::capability::{CapabilityDescriptor, MOST_TOOLS};
use axcp_proto::error::{AxcpError, ErrorCode};
use axcp_proto::invocation::{KeptEnd, KeyedCall};
use axcp_proto::message::{EnvelopePayload, ErrorMessage, ToolInvoke, ToolResult};
use banyan_model::{Era, Principal, PrincipalKind};
use bytes::Bytes;
use call::judge::gate::Gate;
use call::tree::back::{Back, Sink};
use call::tree::caller::Caller;
use call::way::error::CallError;
use call::words::cancel::Cancel;
use call::words::entered::{AboutClient, AdmittedCaller, By};
use call::words::party::Party;
use config::resolved::Transport;
use door::known::stateless;
use json::{Object, quote};
use mcp_proto::envelope::{Answer, Request};
use mcp_proto::era::INITIALIZE;
use mcp_proto::glob::Glob;
use mcp_proto::projection::Style;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use crate::answer::LinkAnswer;
use crate::room::{CallPlace, CallRoom};
use crate::section::OfferedSettings;
use crate::tools::ending::ServedEnd;
use crate::tools::ground::{CallKeys, ToolGround};

/// Interval of news to a caller whose call waits for people.
const NEWS: Duration = Duration::from_secs(15);
/// Description of a peer as a client.
const INFO: &[u8] = b"{\"name\":\"axcp\"}";

/// Tools of this gate for the peer of one link.
pub(crate) struct ServedTools {
    gate: Arc<Gate>,
    entered: AdmittedCaller,
    peer: Arc<str>,
    /// Tools for the peer, by patterns of the operator.
    globs: Vec<Glob>,
    room: Arc<CallRoom>,
    keys: Arc<CallKeys>,
    /// Ids of the tools offered last.
    listed: Mutex<BTreeSet<String>>,
    /// Calls under way, by the trace ids of the peer.
    running: Mutex<BTreeMap<String, Cancel>>,
}

/// Caller that waits for the end of a call.
pub(crate) struct CallWaiter {
    trace_id: String,
    answers: mpsc::Sender<LinkAnswer>,
}

/// A call under way.
struct ServedCall {
    tools: Arc<ServedTools>,
    invoke: ToolInvoke,
    waiter: CallWaiter,
    cancel: Cancel,
    place: CallPlace,
}

impl ServedTools {
    /// Makes the tools for the other end of a link, which calls under the name in its certificate.
    pub(crate) fn new(ground: &ToolGround, peer: &Arc<str>, party: &Arc<Party>, tools: &[String]) -> Arc<Self> {
        let principal = Principal::new(PrincipalKind::Certificate, Arc::clone(peer));
        let entered = AdmittedCaller { principal, party: Some(Arc::clone(party)), profile: None, by: By::Certificate };
        Arc::new(Self {
            gate: Arc::clone(&ground.gate),
            entered,
            peer: Arc::clone(peer),
            globs: tools.iter().map(|glob| Glob::new(glob)).collect(),
            room: Arc::clone(&ground.served),
            keys: ground.keys(peer),
            listed: Mutex::default(),
            running: Mutex::default(),
        })
    }

    pub(crate) fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// Makes the caller of one call or list, who sees what the present configuration shows: a link outlives many.
    pub(crate) fn caller(&self) -> Arc<Caller> {
        let about = AboutClient { info: INFO, capabilities: b"{}" };
        let mut caller = stateless(&self.gate.config.load(), &self.entered, (None, Some(Style::Dotted)), about);
        // Results then pass as they came, whatever the era of the server.
        (caller.era, caller.version) = (Era::Initialize, INITIALIZE[0]);
        // A call that waits for approval then ends as an error of its own kind, which no result of a server can imitate.
        caller.scope.speaks_mesh = true;
        Arc::new(caller)
    }

    /// Checks for an operator that offers anything to the peer.
    pub(crate) fn is_offering(&self) -> bool {
        !self.globs.is_empty()
    }

    /// Describes the tools for the peer that its rules show, as many as a peer takes. `None`: the list cannot be made at present.
    pub(crate) async fn describe(&self) -> Option<Vec<CapabilityDescriptor>> {
        let back = Back::new(self.caller(), Sink::None, None, Cancel::default());
        let (mut found, mut bytes, mut params) = (Vec::new(), 0, Object::empty());
        'pages: loop {
            let request = Request { id: Bytes::from_static(b"1"), method: "tools/list".into(), params };
            let Ok(Answer::Result(page)) = Box::pin(call::way::serve(&self.gate, &request, &back)).await else {
                tracing::warn!(peer = %self.peer, "the tools for the peer cannot be listed: it keeps the list from before");
                return None;
            };
            for tool in page.get("tools").as_deref().and_then(json::elements).unwrap_or_default() {
                let Some(made) = CapabilityDescriptor::of_tool(tool).filter(|made| self.is_for_peer(&made.tool_id)) else { continue };
                bytes += made.held();
                if found.len() == MOST_TOOLS || bytes > MOST_OFFERED {
                    tracing::warn!(peer = %self.peer, "more tools are open to the peer than a node takes: narrow `tools`");
                    break 'pages;
                }
                found.push(CapabilityDescriptor { timeout_ms: self.longest(&made.tool_id), ..made });
            }
            let Some(cursor) = page.get("nextCursor") else { break };
            params = Object::from([b"{\"cursor\":", &cursor[..], b"}"].concat());
        }
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = found.iter().map(|tool| tool.tool_id.clone()).collect();
        Some(found)
    }

    /// Begins a call, or joins the one call of its key. The answer goes to `answers`.
    pub(crate) fn invoke(
        self: &Arc<Self>,
        trace_id: &str,
        mut invoke: ToolInvoke,
        answers: &mpsc::Sender<LinkAnswer>,
    ) -> Result<(), AxcpError> {
        invoke.check(trace_id)?;
        if !self.is_offering() {
            return Err(AxcpError::Unauthorized("this node offers you no tools: ask its operator for `tools`"));
        }
        if !self.is_for_peer(&invoke.tool_id) {
            return Err(AxcpError::Tool);
        }
        if self.lock().contains_key(trace_id) {
            return Err(AxcpError::Malformed("the trace id is that of a call under way: give each call one of its own"));
        }
        let place = self.take_place(invoke.arguments.len() + invoke.idempotency_key.len() + trace_id.len())?;
        // A part of the frame would hold the whole of it.
        invoke.arguments = Bytes::copy_from_slice(&invoke.arguments);
        let mut waiter = CallWaiter { trace_id: trace_id.to_owned(), answers: answers.clone() };
        if !invoke.idempotency_key.is_empty() {
            waiter = match self.keys.with(|keys, now| keys.begin(&invoke, waiter, now))? {
                KeyedCall::Begins(waiter) => waiter,
                KeyedCall::Joins => return Ok(()),
                KeyedCall::Ended(waiter, end) => {
                    tokio::spawn(waiter.tell_within(end, place));
                    return Ok(());
                }
            };
        }
        let cancel = Cancel::default();
        self.lock().insert(trace_id.to_owned(), cancel.clone());
        tokio::spawn(ServedCall { tools: Arc::clone(self), invoke, waiter, cancel, place }.run());
        Ok(())
    }

    /// Takes room for a call or a list of the peer.
    pub(crate) fn take_place(&self, bytes: usize) -> Result<CallPlace, AxcpError> {
        let crowded = AxcpError::TooMany("too many calls are under way: wait for an answer before the next");
        self.room.take_place(&self.peer, bytes).ok_or(crowded)
    }

    /// Withdraws a call of the peer, if under way.
    pub(crate) fn cancel(&self, trace_id: &str) {
        if let Some(cancel) = self.lock().get(trace_id) {
            cancel.cancel();
        }
    }

    /// Withdraws all calls, with the link.
    pub(crate) fn withdraw_all(&self) {
        self.lock().values().for_each(Cancel::cancel);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Cancel>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks a name against the patterns. Tools that came over AXCP go to no other peer: offers could else go round for ever. So do names
    /// without a server, which stand for other tools.
    fn is_for_peer(&self, tool: &str) -> bool {
        let Some((server, _)) = tool.split_once('.') else { return false };
        let Some(mount) = self.gate.mounts.find(server) else { return false };
        let is_from_peer = matches!(&mount.config.transport, Transport::Family(family) if family.settings::<OfferedSettings>().is_some());
        !is_from_peer && self.globs.iter().any(|glob| glob.matches(tool))
    }

    /// Gives the longest time of a call, in milliseconds, as the mount of the tool has it.
    fn longest(&self, tool: &str) -> u32 {
        let mount = tool.split_once('.').and_then(|(server, _)| self.gate.mounts.find(server));
        mount.map_or(0, |mount| u32::try_from(mount.config.longest.as_millis()).unwrap_or(u32::MAX))
    }
}

impl ServedCall {
    /// Makes the call, and tells everybody who waits for its end. The call is never dropped: at the end of the link it is withdrawn.
    async fn run(self) {
        let Self { tools, invoke, waiter, cancel, place } = self;
        let CalledOutcome { outcome, is_late, is_held } = Box::pin(called(&tools, &invoke, &waiter, &cancel)).await;
        let is_listed = tools.listed.lock().unwrap_or_else(PoisonError::into_inner).contains(&invoke.tool_id);
        let ServedEnd { end, never_left } = ServedEnd::new(outcome, is_late, is_listed);
        tools.lock().remove(&waiter.trace_id);
        let mut waiting = Vec::new();
        if !invoke.idempotency_key.is_empty() {
            let key = &invoke.idempotency_key;
            waiting = tools.keys.with(|keys, now| if never_left || is_held { keys.forget(key) } else { keys.end_call(key, &end, now) });
        }
        for other in waiting {
            other.tell(&end, None).await;
        }
        waiter.tell_within(end, place).await;
    }
}

/// Outcome of a call on the one way.
struct CalledOutcome {
    outcome: Result<Answer, CallError>,
    /// The call took longer than its caller allows.
    is_late: bool,
    /// The call ended while people were asked, so that it has not left.
    is_held: bool,
}

/// Takes the one way of a call.
async fn called(tools: &ServedTools, invoke: &ToolInvoke, waiter: &CallWaiter, cancel: &Cancel) -> CalledOutcome {
    let (attends, mut waits) = watch::channel::<Option<Arc<str>>>(None);
    let back = Back::attending(tools.caller(), Sink::None, cancel.clone(), attends);
    let params = [b"{\"name\":", quote(&invoke.tool_id).as_bytes(), b",\"arguments\":", invoke.object(), b"}"].concat();
    let request = Request { id: Bytes::from(quote(&waiter.trace_id)), method: "tools/call".into(), params: Object::from(params) };
    let mut outcome = std::pin::pin!(call::way::serve(&tools.gate, &request, &back));
    let began = Instant::now();
    let limit = began.checked_add(Duration::from_millis(invoke.timeout_ms.into())).filter(|_| invoke.timeout_ms > 0);
    let (mut is_late, mut news): (bool, Option<Instant>) = (false, None);
    loop {
        tokio::select! {
            biased;
            outcome = &mut outcome => {
                let is_held = outcome.is_err() && waits.borrow().is_some();
                return CalledOutcome { outcome, is_late, is_held };
            }
            () = sleep_until(limit.unwrap_or(began)), if limit.is_some() && !is_late => {
                is_late = true;
                cancel.cancel();
            }
            Ok(()) = waits.changed() => news = waits.borrow_and_update().is_some().then(Instant::now),
            () = sleep_until(news.unwrap_or(began)), if news.is_some() => {
                let words = waits.borrow().clone().unwrap_or_default();
                let word = LinkAnswer::new(waiter.trace_id.clone(), EnvelopePayload::ToolResult(ToolResult::waiting(&words)));
                // A peer that reads nothing hears nothing.
                drop(waiter.answers.try_send(word));
                news = Instant::now().checked_add(NEWS);
            }
        }
    }
}

impl CallWaiter {
    /// Tells the end of a call, as far as there is room for a result.
    async fn tell_within(self, end: KeptEnd, mut place: CallPlace) {
        let fits = place.grow(if let KeptEnd::Result(result) = &end { result.len() } else { 0 });
        self.tell(if fits { &end } else { &KeptEnd::Dropped }, Some(place)).await;
    }

    /// Tells the end of a call, with the room that the end takes until it is sent.
    async fn tell(self, end: &KeptEnd, place: Option<CallPlace>) {
        let payload = match end {
            KeptEnd::Result(result) => EnvelopePayload::ToolResult(ToolResult::done(result.clone())),
            KeptEnd::Refused(refused) => EnvelopePayload::Error(refused.clone()),
            KeptEnd::Dropped => EnvelopePayload::Error(ErrorMessage {
                // No code that asks for another try: the tool ran.
                code: ErrorCode::PayloadTooLarge.number(),
                reason: "the tool ran, and there is no room for its result: look before the call is made anew".into(),
                diagnostics: Bytes::new(),
            }),
        };
        // With the link, the receiver is gone.
        drop(self.answers.send(LinkAnswer { place, ..LinkAnswer::new(self.trace_id, payload) }).await);
    }
}
