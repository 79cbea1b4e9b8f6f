//! Calls of stateless callers that wait for an answer: their owner asked something, the caller was told, and comes back with it.
//!
//! The handle is a random number; it says nothing, and is good only for the principal and the very request it was given for. A principal that has
//! its share of them makes room for another by the oldest of its own.

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
use call::way::error::CallError;
use call::words::back::{Question, Sink};
use call::words::caller::Caller;
use call::words::shares::{Bound, Resource, Taken};

/// How long a caller may take.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// The waiting calls.
pub struct Parked {
    /// What the handles of this gate begin with: another gate's pass through it.
    mark: String,
    waiting: Mutex<All>,
}

#[derive(Default)]
struct All {
    by_handle: HashMap<String, Waiting>,
    /// The handles by principal, those of each in the order in which they were given.
    by_principal: BTreeMap<(Arc<str>, u64), String>,
    count: u64,
}

struct Waiting {
    number: u64,
    _place: Option<Taken>,
    exchange: Exchange,
    questions: BTreeMap<String, Question>,
    principal: Principal,
    /// Method and name of the request; the same must come back.
    request: (String, String),
    since: Instant,
}

/// A call that goes on.
pub struct Resumed {
    pub exchange: Exchange,
    /// What is still not answered.
    pub open: Vec<Question>,
}

impl Parked {
    /// Those of the gate `id`.
    pub fn of(id: &str) -> Self {
        Self { mark: format!("banyan-{id}-"), waiting: Mutex::default() }
    }

    /// Parks a call; the raw result that tells its caller what to answer.
    pub fn park(&self, server: &McpServer, mut exchange: Exchange, questions: Vec<Question>, request: &Request) -> Bytes {
        exchange.keep();
        // What is said from here on is for nobody, until the caller is back.
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
            match exchange.back.caller.share(&server.entrance.gate.load).take(Resource::Parked, 1, bound) {
                Ok(place) => break Some(place),
                Err(_) if all.cancel_oldest(&principal.name) => {}
                // Everybody has some, and this one has none.
                Err(_) => break None,
            }
        };
        all.count += 1;
        let number = all.count;
        all.by_principal.insert((Arc::clone(&principal.name), number), handle.clone());
        all.by_handle.insert(handle, Waiting { number, _place: place, principal, questions, request, since, exchange });
        result
    }

    /// Whether a request comes back to a call parked here.
    pub fn is_return(&self, request: &Request) -> bool {
        self.handle(request).is_some()
    }

    /// Takes up the call that `request` comes back to, with its answers.
    pub fn resume(&self, request: &Request, caller: &Caller) -> Result<Resumed, CallError> {
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
        Ok(Resumed { exchange: waiting.exchange, open })
    }

    fn handle(&self, request: &Request) -> Option<String> {
        let state = request.params.members().str("requestState")?.into_owned();
        state.starts_with(&self.mark).then_some(state)
    }

    /// Cancels what has waited too long.
    pub fn sweep(&self) {
        let mut all = self.lock();
        let late = |(handle, waiting): (&String, &Waiting)| (waiting.since.elapsed() >= PATIENCE).then(|| handle.clone());
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
    fn remove(&mut self, handle: &str) -> Option<Waiting> {
        let waiting = self.by_handle.remove(handle)?;
        self.by_principal.remove(&(Arc::clone(&waiting.principal.name), waiting.number));
        Some(waiting)
    }

    fn cancel(&mut self, handle: &str) {
        if let Some(waiting) = self.remove(handle) {
            waiting.exchange.back.cancel.cancel();
        }
    }

    /// Cancels the call of `principal` that waits longest. `false`: none does.
    fn cancel_oldest(&mut self, principal: &Arc<str>) -> bool {
        let own = (Arc::clone(principal), 0)..=(Arc::clone(principal), u64::MAX);
        let oldest = self.by_principal.range(own).next().map(|(_, handle)| handle.clone());
        oldest.as_ref().inspect(|handle| self.cancel(handle)).is_some()
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
