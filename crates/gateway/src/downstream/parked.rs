//! Calls of stateless callers that wait for an answer: their owner asked something, the caller was told, and comes back with it.
//!
//! The handle is a random number; it says nothing, and is good only for the principal and the very request it was given for.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use banyan_model::Principal;
use bytes::Bytes;
use mcp_proto::envelope::{Answer, Request};
use mcp_proto::json;

use super::exchange::Exchange;
use crate::call::back::Question;
use crate::call::caller::Caller;
use crate::call::error::CallError;
use crate::random;

/// How long a caller may take.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
const MOST: usize = 10_000;

/// The waiting calls.
pub(crate) struct Parked {
    /// What the handles of this gate begin with: another gate's pass through it.
    mark: String,
    waiting: Mutex<HashMap<String, Waiting>>,
}

struct Waiting {
    exchange: Exchange,
    questions: BTreeMap<String, Question>,
    principal: Principal,
    /// Method and name of the request; the same must come back.
    request: (String, String),
    since: Instant,
}

/// A call that goes on.
pub(crate) struct Resumed {
    pub(crate) exchange: Exchange,
    /// What is still not answered.
    pub(crate) open: Vec<Question>,
}

impl Parked {
    /// Those of the gate `id`.
    pub(crate) fn of(id: &str) -> Self {
        Self { mark: format!("banyan-{id}-"), waiting: Mutex::default() }
    }

    /// Parks a call; the raw result that tells its caller what to answer.
    pub(crate) fn park(&self, mut exchange: Exchange, questions: Vec<Question>, request: &Request) -> Bytes {
        exchange.keep();
        let handle = format!("{}{}", self.mark, random::token());
        let result = input_required(&questions, &handle);
        let waiting = Waiting {
            principal: exchange.back.caller.principal.clone(),
            questions: questions.into_iter().map(|q| (q.key.clone(), q)).collect(),
            request: identity(request),
            since: Instant::now(),
            exchange,
        };
        let mut all = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST
            && let Some(oldest) = all.iter().min_by_key(|(_, w)| w.since).map(|(k, _)| k.clone())
            && let Some(old) = all.remove(&oldest)
        {
            old.exchange.back.cancel.cancel();
        }
        all.insert(handle, waiting);
        result
    }

    /// Whether a request comes back to a call parked here.
    pub(crate) fn is_return(&self, request: &Request) -> bool {
        self.handle(request).is_some()
    }

    /// Takes up the call that `request` comes back to, with its answers.
    pub(crate) fn resume(&self, request: &Request, caller: &Caller) -> Result<Resumed, CallError> {
        let handle = self.handle(request).ok_or(CallError::StateUnknown)?;
        let mut waiting = {
            let mut all = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let fits = all.get(&handle).is_some_and(|w| w.principal == caller.principal && w.request == identity(request));
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
        Ok(Resumed { exchange: waiting.exchange, open })
    }

    fn handle(&self, request: &Request) -> Option<String> {
        let state = request.params.members().str("requestState")?.into_owned();
        state.starts_with(&self.mark).then_some(state)
    }

    /// Cancels what has waited too long.
    pub(crate) fn sweep(&self) {
        let mut all = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, w| {
            let keep = w.since.elapsed() < PATIENCE;
            if !keep {
                w.exchange.back.cancel.cancel();
            }
            keep
        });
    }
}

/// The result that tells a stateless caller what to answer (2026-07-28, "Multi round-trip requests").
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
