//! Parked calls of stateless callers: the owner asked a question, the caller got it as a result, and repeats the request with the answer.
//!
//! The handle is a random number, without meaning and good only for the principal and the request of the parked call. A principal with a
//! full share loses its oldest call to a new one.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use banyan_model::Principal;
use bytes::Bytes;
use mcp_proto::envelope::{Answer, Request};
use mcp_proto::json;
use runtime::random;

use crate::downstream::McpServer;
use crate::downstream::exchange::Exchange;
use call::tree::back::{Question, Sink};
use call::tree::caller::Caller;
use call::way::error::CallError;
use call::words::shares::{Bound, Resource, TakenShare};

/// Longest wait for a caller.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// Calls that wait for answers of their callers.
pub struct ParkedCalls {
    /// First part of this gate's handles; handles of other gates pass through.
    mark: String,
    waiting: Mutex<All>,
}

#[derive(Default)]
struct All {
    by_handle: HashMap<String, ParkedCall>,
    /// Handles by principal, and for each in order of parking.
    by_principal: BTreeMap<(Arc<str>, u64), String>,
    count: u64,
}

struct ParkedCall {
    number: u64,
    _place: Option<TakenShare>,
    exchange: Exchange,
    questions: BTreeMap<String, Question>,
    principal: Principal,
    /// Method and name of the request, which must come back the same.
    request: (String, String),
    since: Instant,
}

/// A call taken up again.
pub struct ResumedCall {
    pub exchange: Exchange,
    /// Questions still without an answer.
    pub open: Vec<Question>,
}

impl ParkedCalls {
    /// Makes the table of the gate `id`.
    pub fn of_gate(id: &str) -> Self {
        Self { mark: format!("banyan-{id}-"), waiting: Mutex::default() }
    }

    /// Parks a call; returns the raw result with the questions for the caller.
    pub fn park(&self, server: &McpServer, mut exchange: Exchange, questions: Vec<Question>, request: &Request) -> Bytes {
        exchange.keep();
        // Later messages have no reader until the caller is back.
        exchange.back.redirect(Sink::None);
        let handle = format!("{}{}", self.mark, random::token());
        let result = input_required(&questions, &handle);
        let principal = exchange.back.caller.principal.clone();
        let questions = questions.into_iter().map(|q| (q.key.clone(), q)).collect();
        let (request, since) = (identity(request), Instant::now());
        let config = server.entrance.gate.config.load();
        let bound = Bound { most: config.limits.parked, percent: config.share() };
        let mut all = self.lock();
        let place = loop {
            match exchange.back.caller.share(&server.entrance.gate.load).take_amount(Resource::Parked, 1, bound) {
                Ok(place) => break Some(place),
                Err(_) if all.cancel_oldest(&principal.name) => {}
                // The whole load is full, and this principal has no call to give up.
                Err(_) => break None,
            }
        };
        all.count += 1;
        let number = all.count;
        all.by_principal.insert((Arc::clone(&principal.name), number), handle.clone());
        all.by_handle.insert(handle, ParkedCall { number, _place: place, principal, questions, request, since, exchange });
        result
    }

    /// Checks that a request comes back to a call parked here.
    pub fn is_return(&self, request: &Request) -> bool {
        self.handle(request).is_some()
    }

    /// Takes up the call to which `request` comes back, with its answers.
    pub fn resume(&self, request: &Request, caller: &Caller) -> Result<ResumedCall, CallError> {
        let handle = self.handle(request).ok_or(CallError::StateUnknown)?;
        let mut waiting = {
            let mut all = self.lock();
            let fits = all.by_handle.get(&handle).is_some_and(|w| w.principal == caller.principal && w.request == identity(request));
            if !fits {
                return Err(CallError::StateUnknown);
            }
            all.remove(&handle).ok_or(CallError::StateUnknown)?
        };
        let members = request.params.members();
        if let Some(answers) = members.object("inputResponses") {
            for (key, raw) in answers.iter() {
                if raw.starts_with(b"{") && waiting.questions.remove(&*key).is_some() {
                    waiting.exchange.back.reply(&key, Answer::Result(request.params.slice_ref(raw).into()));
                }
            }
        }
        let still_open = waiting.exchange.back.open();
        let open = waiting.questions.into_values().filter(|q| still_open.contains(&q.key)).collect();
        Ok(ResumedCall { exchange: waiting.exchange, open })
    }

    fn handle(&self, request: &Request) -> Option<String> {
        let state = request.params.members().str("requestState")?.into_owned();
        state.starts_with(&self.mark).then_some(state)
    }

    /// Cancels calls parked for too long.
    pub fn sweep(&self) {
        let mut all = self.lock();
        let late = |(handle, waiting): (&String, &ParkedCall)| (waiting.since.elapsed() >= PATIENCE).then(|| handle.clone());
        let late: Vec<String> = all.by_handle.iter().filter_map(late).collect();
        for handle in late {
            all.cancel(&handle);
        }
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl All {
    fn remove(&mut self, handle: &str) -> Option<ParkedCall> {
        let waiting = self.by_handle.remove(handle)?;
        self.by_principal.remove(&(Arc::clone(&waiting.principal.name), waiting.number));
        Some(waiting)
    }

    fn cancel(&mut self, handle: &str) {
        if let Some(waiting) = self.remove(handle) {
            waiting.exchange.back.cancel.cancel();
        }
    }

    /// Cancels the oldest parked call of `principal`; `false` without any.
    fn cancel_oldest(&mut self, principal: &Arc<str>) -> bool {
        let own = (Arc::clone(principal), 0)..=(Arc::clone(principal), u64::MAX);
        let oldest = self.by_principal.range(own).next().map(|(_, handle)| handle.clone());
        oldest.as_ref().inspect(|handle| self.cancel(handle)).is_some()
    }
}

/// Result with questions for a stateless caller (2026-07-28, "Multi round-trip requests").
fn input_required(questions: &[Question], handle: &str) -> Bytes {
    let mut out = String::from("{\"resultType\":\"input_required\",\"inputRequests\":{");
    for (i, question) in questions.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str(&format!(
            "{}:{{\"method\":{},\"params\":{}}}",
            json::quote(&question.key),
            json::quote(&question.method),
            String::from_utf8_lossy(&question.params)
        ));
    }
    out.push_str(&format!("}},\"requestState\":\"{handle}\"}}"));
    Bytes::from(out)
}

fn identity(request: &Request) -> (String, String) {
    let members = request.params.members();
    let name = members.str("name").or_else(|| members.str("uri")).unwrap_or_default().into_owned();
    (request.method.clone().into_owned(), name)
}
