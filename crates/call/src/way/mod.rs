//! A request from any door, from beginning to end: [`call`] shows the way of a call from top to bottom.
//!
//! Knows no HTTP, no stdio, and no streams of a session.

pub mod adapt;
pub mod authorize;
pub mod error;
pub mod forward;
pub mod gate;
pub mod hop;
pub mod list;
pub mod passing;
pub mod record;
pub mod registration;
pub mod remember;
pub mod reserve;
pub mod resolve;
pub mod search;
pub mod statuses;
pub mod subscribe;
pub mod telling;
pub mod trace;
pub mod usable;

use std::sync::{Arc, OnceLock};

use banyan_model::{Era, Method};
use bytes::Bytes;
use mcp_proto::catalog::Kind;
use mcp_proto::envelope::{Answer, Request};
use mcp_proto::json::Object;
use telemetry::trace_context::TraceContext;

pub use crate::way::authorize::sees;
pub use crate::way::gate::confirm_below;
pub use crate::way::list::capabilities;
pub use crate::way::passing::notified;
pub use crate::way::record::refused;
pub use crate::way::subscribe::{decide_anew, forget, open_listener};
pub use crate::way::trace::METHOD as TRACE;

use crate::judge::gate::Gate;
use crate::tree::back::Back;
use crate::tree::caller::Caller;
use crate::tree::own;
use crate::tree::snapshot::{Sight, Tree};
use crate::way::authorize::Permit;
use crate::way::error::CallError;
use crate::way::gate::Cleared;
use crate::way::hop::Arrival;
use crate::way::resolve::Resolved;
use crate::words::entered::AdmittedCaller;

/// Answers a request by the tree as it is now.
pub async fn serve(gate: &Arc<Gate>, request: &Request, back: &Arc<Back>) -> Result<Answer, CallError> {
    let sight = Sight::of_caller(gate.mounts.tree.load_full(), &back.caller);
    serve_by(gate, &sight, request, back).await
}

/// Answers a request by its caller's view.
pub async fn serve_by(gate: &Arc<Gate>, sight: &Sight, request: &Request, back: &Arc<Back>) -> Result<Answer, CallError> {
    let (caller, tree) = (&back.caller, &sight.tree);
    let empty = || Ok(Answer::Result(Object::empty()));
    if request.method != "ping" && tree.lacks_profile(&caller.scope) {
        return Err(CallError::ProfileGone(Arc::clone(&caller.scope.profile)));
    }
    let errand = Errand { gate, sight, request, back };
    // Requests other than calls are boxed, since every call under way holds room for all that could be done here.
    match (&*request.method, caller.era) {
        ("tools/call", _) if caller.scope.speaks_mesh => tool(gate, sight, request, back).await.map_err(CallError::for_mesh),
        ("tools/call", _) => tool(gate, sight, request, back).await,
        ("prompts/get", _) => call(gate, sight, request, Method::PromptGet, back).await,
        ("resources/read", _) => call(gate, sight, request, Method::ResourceRead, back).await,
        ("completion/complete", _) => call(gate, sight, request, Method::Complete, back).await,
        ("server/discover", Era::Stateless) => Ok(Answer::Result(Box::pin(list::discovered(gate, tree, caller)).await.into())),
        ("ping", Era::Initialize) => empty(),
        ("logging/setLevel", Era::Initialize) => Box::pin(subscribe::set_level(&errand)).await,
        ("resources/subscribe", Era::Initialize) => Box::pin(subscribe::subscribe(&errand)).await,
        ("resources/unsubscribe", Era::Initialize) => Box::pin(subscribe::unsubscribe(&errand)).await,
        ("tasks/list", Era::Initialize) => Box::pin(passing::tasks_list(&errand)).await,
        ("tasks/get" | "tasks/cancel", _) | ("tasks/result", Era::Initialize) | ("tasks/update", Era::Stateless) => {
            call(gate, sight, request, Method::Task, back).await
        }
        _ => Box::pin(other(&errand)).await,
    }
}

/// Answers a list, or a method unknown to Banyan.
async fn other(errand: &Errand<'_>) -> Result<Answer, CallError> {
    let method = &*errand.request.method;
    match Kind::of_method(method) {
        Some(kind) => list::list(errand.gate, kind, errand.request, &errand.back.caller).await,
        None if method.starts_with("tasks/") => Err(CallError::MethodNotFound(method.to_owned())),
        None => passing::unknown(errand).await,
    }
}

/// Answers a tool call: of a tool that finds tools, or of an owner's.
async fn tool(gate: &Arc<Gate>, sight: &Sight, request: &Request, back: &Arc<Back>) -> Result<Answer, CallError> {
    let Sight { tree, view } = sight;
    if view.stands_in && view.has_own && names_own(request, &back.caller) {
        return own_call(&Errand { gate, sight, request, back });
    }
    if view.stands_in
        && view.searched
        && let Some(meant) = Box::pin(search::meant(tree, view, request, &back.caller)).await
    {
        return match meant {
            search::SearchCall::Answer(result) => Ok(Answer::Result(adapted(result.into(), back.caller.era))),
            search::SearchCall::Call(request) => call(gate, sight, &request, Method::ToolCall, back).await,
        };
    }
    call(gate, sight, request, Method::ToolCall, back).await
}

/// Answers a call of the gate's own tool, where the rules permit. A refusal is recorded like any other.
fn own_call(errand: &Errand<'_>) -> Result<Answer, CallError> {
    let Errand { gate, sight, request, back } = *errand;
    let allowed = authorize::own(gate, &sight.tree, request, &back.caller);
    let allowed = allowed.map_err(|error| reserve::refused(&gate.rules, &sight.tree.config, &back.caller, error));
    let mut outcome = allowed.map(|()| Answer::Result(adapted(own::answer(gate), back.caller.era)));
    if outcome.is_err() {
        record::Record::begin(gate, back, request).finish(request, &mut outcome);
    }
    outcome
}

/// Checks for a call of the gate's own tool: by its name, or by a route that ends here.
fn names_own(request: &Request, caller: &Caller) -> bool {
    match Arrival::of_call(caller, &request.params) {
        Ok(Some(arrival)) => arrival.path == own::NAME,
        Ok(None) => request.params.str("name").as_deref() == Some(own::NAME),
        Err(_) => false,
    }
}

/// A request, with its caller's view of the tree.
#[derive(Clone, Copy)]
pub struct Errand<'a> {
    pub gate: &'a Arc<Gate>,
    pub sight: &'a Sight,
    pub request: &'a Request,
    pub back: &'a Arc<Back>,
}

/// Carries a call from its caller to its owner and back.
pub async fn call(gate: &Arc<Gate>, sight: &Sight, request: &Request, method: Method, back: &Arc<Back>) -> Result<Answer, CallError> {
    let errand = Errand { gate, sight, request, back };
    errand.named(method, |cleared, trace| forward::forward(cleared, back, trace)).await
}

impl Errand<'_> {
    /// Carries the request to the owner of the name in it. Only `send` differs between kinds of requests.
    async fn named<F: Future<Output = Result<Answer, CallError>>>(
        &self,
        method: Method,
        send: impl FnOnce(Cleared, Option<TraceContext>) -> F,
    ) -> Result<Answer, CallError> {
        let mut record = record::Record::begin(self.gate, self.back, self.request);
        let mut outcome = self.stages(method, &mut record, send).await;
        record.finish(self.request, &mut outcome);
        outcome
    }

    /// Stages of a call. Each takes the proof of the stage before, so that none can be left out.
    async fn stages<F: Future<Output = Result<Answer, CallError>>>(
        &self,
        method: Method,
        record: &mut record::Record<'_>,
        send: impl FnOnce(Cleared, Option<TraceContext>) -> F,
    ) -> Result<Answer, CallError> {
        let Self { gate, sight, request, back } = *self;
        let (tree, view) = (&*sight.tree, &*sight.view);
        let permit = match resolve::resolve(&gate.load, (tree, view), &back.caller, request, method) {
            Ok(resolved) => authorize::authorize(gate, tree, request, resolved),
            Err(error) => Box::pin(found_later(gate, tree, request, method, back, error)).await,
        };
        let permit = permit.map_err(|error| reserve::refused(&gate.rules, &tree.config, &back.caller, error))?;
        self.carry(permit, record, send).await
    }

    /// Carries the request to a known server.
    async fn to<F: Future<Output = Result<Answer, CallError>>>(
        &self,
        resolved: Box<Resolved>,
        send: impl FnOnce(Cleared, Option<TraceContext>) -> F,
    ) -> Result<Answer, CallError> {
        let mut record = record::Record::begin(self.gate, self.back, self.request);
        let mut outcome = match authorize::authorize(self.gate, &self.sight.tree, self.request, resolved) {
            Ok(permit) => self.carry(permit, &mut record, send).await,
            Err(error) => Err(reserve::refused(&self.gate.rules, &self.sight.tree.config, &self.back.caller, error)),
        };
        record.finish(self.request, &mut outcome);
        outcome
    }

    /// Carries a request already permitted.
    async fn with<F: Future<Output = Result<Answer, CallError>>>(
        &self,
        permit: Permit,
        send: impl FnOnce(Cleared, Option<TraceContext>) -> F,
    ) -> Result<Answer, CallError> {
        let mut record = record::Record::begin(self.gate, self.back, self.request);
        let mut outcome = self.carry(permit, &mut record, send).await;
        record.finish(self.request, &mut outcome);
        outcome
    }

    /// Stages after the permit.
    async fn carry<F: Future<Output = Result<Answer, CallError>>>(
        &self,
        permit: Permit,
        record: &mut record::Record<'_>,
        send: impl FnOnce(Cleared, Option<TraceContext>) -> F,
    ) -> Result<Answer, CallError> {
        let Self { gate, sight, request, back } = *self;
        let config = &sight.tree.config;
        record.aim(&permit.resolved);
        let reservation = reserve::reserve(gate, config, permit)?;
        let mut cleared = match gate::gate(gate, config, reservation, back).await? {
            gate::GateOutcome::Cleared(cleared) => cleared,
            gate::GateOutcome::Answered(answer) => return Ok(answer),
        };
        let (owner, release) = (cleared.resolved.branch.clone(), cleared.release.take());
        let about = remember::About {
            method: cleared.resolved.aim.method(),
            tool: cleared.resolved.place.map(|(_, tool)| tool),
            verdict: cleared.decision.as_ref().map(|decision| Arc::clone(&decision.verdict)),
        };
        let outcome = match record.intend(request, &cleared).await {
            Ok(()) => send(cleared, record.trace()).await,
            Err(unrecorded) => Err(unrecorded),
        };
        let answer = gate::settle(gate, release, &owner, back, outcome).await?;
        remember::remember(&gate.load, (config, &owner), &back.caller, about, &answer);
        Ok(answer)
    }
}

/// Resolves an unknown name again once servers being started are there.
async fn found_later(
    gate: &Arc<Gate>,
    tree: &Tree,
    request: &Request,
    method: Method,
    back: &Arc<Back>,
    error: CallError,
) -> Result<Permit, CallError> {
    let caller = &back.caller;
    let later = if let CallError::Unavailable { mount, .. } = &error {
        // The server is being started for the first time, and its names are unknown.
        gate.mounts.started(mount).await.then(|| gate.mounts.tree.load_full())
    } else if error.is_unknown() {
        grown(gate, caller).await
    } else {
        None
    };
    let (tree, found) = match &later {
        Some(later) => (&**later, resolve::resolve(&gate.load, (later, &later.shown(caller)), caller, request, method)),
        None => (tree, Err(error)),
    };
    let resolved = found.map_err(|error| authorize::unfound(gate, tree, request, caller, error))?;
    authorize::authorize(gate, tree, request, resolved)
}

/// Tree after servers being started are there; `None` if none is being started.
async fn grown(gate: &Arc<Gate>, caller: &Caller) -> Option<Arc<Tree>> {
    let scope = caller.scope.mount.as_ref();
    if gate.mounts.is_settled_in(scope) {
        return None;
    }
    gate.mounts.settled_in(scope, gate.mounts.startup_wait()).await;
    Some(gate.mounts.tree.load_full())
}

/// Adapts a result of our own to the caller's era.
fn adapted(result: Object, era: Era) -> Object {
    if era == Era::Stateless { adapt::completed(&result, false) } else { result }
}

/// Makes a caller of `scope` for Banyan's own use.
pub fn own_caller(scope: crate::words::view_key::ViewKey) -> Arc<Caller> {
    Arc::new(Caller {
        party: None,
        principal: banyan_model::Principal::local(),
        is_owner: true,
        subject: Arc::new(AdmittedCaller::local().subject(b"{\"name\":\"banyan\"}")),
        era: Era::Stateless,
        version: mcp_proto::era::STATELESS,
        capabilities: Bytes::from_static(b"{}"),
        info: Bytes::from_static(b"{\"name\":\"banyan\"}"),
        scope,
        session: None,
        shown: crate::tree::caller::Last::default(),
        standing: crate::tree::caller::Last::default(),
        share: OnceLock::new(),
    })
}
