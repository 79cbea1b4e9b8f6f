//! Door of translated requests: `POST /aepb/translate`. Each request is a message to a task of the gate as an agent, and so takes the one way of
//! every call. Decides on no call.

use std::sync::Arc;
use std::time::Duration;

use agent_proto::served::incoming::{OnwardMessage, SentMessage, SentPurpose};
use agent_proto::served::rejection::{ClientRefusal, RefusalReason};
use agent_proto::task::TaskState;
use banyan_model::Principal;
use bridge::{BindingId, BridgeError, EnvelopeKey, MessageKind, key_of_did, seal_of};
use bytes::Bytes;
use call::words::party::Party;
use door::port::Door;
use door::reply::{self, Payload, typed};
use futures_util::future::BoxFuture;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use json::quote;
use runtime::clock;
use tokio::time::timeout;

use crate::evidence::arrived::ArrivedEvidence;
use crate::served::agent_door::{AdmittedClient, AgentDoor, ClientForm, streamed};
use crate::served::problem::problem;
use crate::served::running::RunningRequests;
use crate::served::streams::FollowedTask;
use crate::settings::section::AgentSettings;
use crate::translated::TRANSLATE;
use crate::translated::ancestry::{self, Ancestry, HopRefusal};
use crate::translated::form::AnswerForm;
use crate::translated::incoming::IncomingRequest;
use crate::translated::pair::{NoPassage, WantedPair};
use crate::translated::rate::TranslationRates;
use crate::translated::target;

const WARNINGS: HeaderName = HeaderName::from_static("aepb-translation-warnings");
/// Most skew between the clocks of AINP, in milliseconds.
const SKEW: u64 = 60_000;
/// Longest life of an envelope: the time for which the gate knows a message again, less the skew.
const LONGEST_LIFE: u64 = 480_000;
/// Life of an envelope that names none.
const USUAL_LIFE: u64 = 60_000;
/// Time for a cancelled run to end before its task is shown unchanged.
const CANCELLING: Duration = Duration::from_secs(5);
/// Client whose binding takes questions, and another.
const ASKABLE: ClientForm = ClientForm { info: b"{\"name\":\"aepb\"}", capabilities: b"{\"elicitation\":{\"form\":{}}}" };
const SILENT: ClientForm = ClientForm { info: b"{\"name\":\"aepb\"}", capabilities: b"{}" };

/// Translated requests, at the listener.
pub struct TranslateDoor {
    pub agent: Arc<AgentDoor>,
    pub ancestry: Arc<dyn Ancestry>,
    pub rates: TranslationRates,
    pub running: Arc<RunningRequests>,
    pub key: Option<Arc<EnvelopeKey>>,
}

/// Reasons for an answer without a task.
enum UntranslatedRequest {
    NoPassage(NoPassage),
    /// In the binding of the request.
    Native(ClientRefusal),
    /// An envelope of AINP, with a code of AINP.
    Envelope(&'static str, &'static str),
}

/// Message to a task, or a look at a task.
enum AskedTask {
    Message(Box<SentMessage>),
    Look(String),
}

impl From<BridgeError> for UntranslatedRequest {
    fn from(error: BridgeError) -> Self {
        Self::NoPassage(error.into())
    }
}

impl From<NoPassage> for UntranslatedRequest {
    fn from(why: NoPassage) -> Self {
        Self::NoPassage(why)
    }
}

impl From<ClientRefusal> for UntranslatedRequest {
    fn from(refusal: ClientRefusal) -> Self {
        Self::Native(refusal)
    }
}

impl Door for TranslateDoor {
    fn is_here(&self, path: &str) -> bool {
        path == TRANSLATE && self.agent.settings().is_some()
    }

    fn answer(&self, request: Request<Incoming>, party: Option<Arc<Party>>) -> BoxFuture<'_, Response<Payload>> {
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let answered = self.translated(&parts, body, party.as_ref()).await;
            self.agent.life.mark(answered)
        })
    }
}

impl TranslateDoor {
    async fn translated(&self, parts: &Parts, body: Incoming, party: Option<&Arc<Party>>) -> Response<Payload> {
        let Some(settings) = self.agent.settings().filter(|_| parts.method == Method::POST) else {
            return reply::empty(StatusCode::METHOD_NOT_ALLOWED).into_http();
        };
        let (client, body) = match self.agent.admitted(parts, body, party, &SILENT).await {
            Ok(admitted) => admitted,
            Err(refused) => return *refused,
        };
        if let Err(wait) = self.rates.charge(&client.caller.principal, settings.translation.rate, clock::now()) {
            let text = "The caller has more messages translated than it may: wait as long as `Retry-After` says.";
            let mut refused = problem(StatusCode::TOO_MANY_REQUESTS, "policy_violation", text);
            refused.headers_mut().insert(RETRY_AFTER, wait.as_secs().saturating_add(1).into());
            return refused;
        }
        let read = WantedPair::read(&parts.headers).and_then(|pair| Ok((IncomingRequest::read(pair.from, &body, self.key.clone())?, pair)));
        let (request, pair) = match read {
            Ok(read) => read,
            Err(why) => return UntranslatedRequest::from(why).write(None),
        };
        let form = Arc::clone(&request.form);
        let answered = match self.check(parts, &body, &pair, &settings, &request) {
            Ok(()) => {
                let arrived = match request.kind() {
                    MessageKind::Probe | MessageKind::Cancel => Ok(None),
                    MessageKind::Request | MessageKind::Response | MessageKind::Event | MessageKind::Failure => {
                        self.agent.evidence(parts, &client, &body, pair.from.id())
                    }
                };
                match arrived {
                    Ok(arrived) => self.carry((client, arrived), &pair, &settings, request).await,
                    Err(refused) => return *refused,
                }
            }
            Err(refusal) => Err(refusal),
        };
        answered.unwrap_or_else(|refusal| refusal.write(Some(&form)))
    }

    /// Holds a request to the rules of the pair, of the hops and of the envelope.
    fn check(
        &self,
        parts: &Parts,
        body: &Bytes,
        pair: &WantedPair,
        settings: &AgentSettings,
        request: &IncomingRequest<'_>,
    ) -> Result<(), UntranslatedRequest> {
        if !settings.translation.allows(pair.from, pair.to) {
            return Err(NoPassage::forbidden("The configuration of this gate does not let the pair be translated.").into());
        }
        let uncounted = |why| NoPassage::forbidden(format!("The evidence of earlier hops does not count: {why}."));
        let shown = self.ancestry.gateways(parts).map_err(uncounted)?;
        match ancestry::check(&request.hops, &shown, &settings.agent_id(), settings.translation.hops) {
            Ok(()) => {}
            Err(HopRefusal::Loop) => {
                let text = "This gate has translated the message before: the route is a loop.";
                return Err(NoPassage::new(StatusCode::LOOP_DETECTED, "policy_violation", text).into());
            }
            Err(HopRefusal::TooMany(most)) => {
                return Err(NoPassage::forbidden(format!("The message would be translated more than {most} times.")).into());
            }
        }
        let Some(envelope) = &request.envelope else { return Ok(()) };
        if self.key.is_none() {
            let text = "This gate has no key to sign answers of AINP: its operator has to mend the file of the key.";
            return Err(NoPassage::new(StatusCode::SERVICE_UNAVAILABLE, "policy_violation", text).into());
        }
        if key_of_did(&envelope.from).and_then(|key| seal_of(body, &key).ok().flatten()).is_none() {
            return Err(UntranslatedRequest::Envelope(
                "INVALID_SIGNATURE",
                "The envelope is not signed with the key that its `from_did` names.",
            ));
        }
        let (now, time, life) = (clock::wall() / 1000, envelope.time, envelope.lifetime.unwrap_or(USUAL_LIFE).min(LONGEST_LIFE));
        if time.saturating_add(life).saturating_add(SKEW) < now || time > now.saturating_add(SKEW) {
            return Err(UntranslatedRequest::Envelope(
                "TIMEOUT",
                "The envelope is out of its time: set the clock, or send the message anew.",
            ));
        }
        Ok(())
    }

    /// Carries a request to its task, and the state of the task back.
    async fn carry(
        &self,
        (client, arrived): (AdmittedClient, Option<ArrivedEvidence>),
        pair: &WantedPair,
        settings: &AgentSettings,
        request: IncomingRequest<'_>,
    ) -> Result<Response<Payload>, UntranslatedRequest> {
        let (form, owner) = (Arc::clone(&request.form), client.caller.principal.clone());
        match request.kind() {
            MessageKind::Probe => return Ok(typed(StatusCode::OK, form.kind(false), form.write_life()?.into())),
            MessageKind::Cancel => return self.cancel(&owner, &request).await,
            MessageKind::Request | MessageKind::Response | MessageKind::Event | MessageKind::Failure => {}
        }
        let client = if request.takes_questions { self.agent.as_client(client, &ASKABLE) } else { client };
        let place = if request.wants_stream() { Some(self.agent.streams.place(&owner)?) } else { None };
        let (asked, warnings) = self.ask(&client, pair, settings, &request)?;
        let AdmittedClient { caller, held, streams, pushes } = client;
        let (id, mut state, is_call) = match asked {
            AskedTask::Message(sent) => {
                let (id, state, _) = self.agent.send(&caller, (held, pushes), *sent, arrived)?;
                (id, state, true)
            }
            AskedTask::Look(id) => match self.agent.tasks.watch(&owner, &id) {
                Ok(state) => (id, state, false),
                Err(_) => return self.show(&owner, &id, &form, &warnings),
            },
        };
        // Who lets go of a look has cancelled no call.
        let raw = form.id.as_ref().filter(|_| pair.from == BindingId::Mcp && is_call);
        let running = raw.map(|raw| self.running.begin(&owner, raw, &id, &self.agent.tasks));
        if let Some(place) = place {
            let tasks = Arc::clone(&self.agent.tasks);
            let followed = FollowedTask { id, tasks, state, held: streams, request: None, form: Some(Arc::clone(&form)), running };
            let mut response = streamed(place.open(followed));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(form.kind(true)));
            return Ok(noted(response, &warnings));
        }
        if !request.wants_answer_at_once() {
            let waits = form.tells_waiting();
            drop(state.wait_for(|state| state.is_final() || waits && state.is_waiting()).await);
        }
        self.show(&owner, &id, &form, &warnings)
    }

    /// Reads a request as a message to a task, with the warnings of the translation.
    fn ask(
        &self,
        client: &AdmittedClient,
        pair: &WantedPair,
        settings: &AgentSettings,
        request: &IncomingRequest<'_>,
    ) -> Result<(AskedTask, Vec<String>), UntranslatedRequest> {
        request.check_wishes()?;
        let (id, context) = (request.id()?, request.context()?);
        let message = |id, purpose| {
            AskedTask::Message(Box::new(SentMessage { id, purpose, context: context.clone(), push: None, returns_at_once: false }))
        };
        if let Some((task, turn)) = request.task() {
            let at = self.agent.tasks.turn(&client.caller.principal, &task)?;
            if at.state != TaskState::InputRequired || !request.answers(turn, at.count) {
                return Ok((AskedTask::Look(task), Vec::new()));
            }
            let id = turn.map_or(id, |turn| format!("{task}.{turn}"));
            let onward = OnwardMessage { id: id.clone(), task, call: Ok(None), input: request.input() };
            return Ok((message(id, SentPurpose::GoesOn(onward)), Vec::new()));
        }
        let config = self.agent.entrance.gate.config.load_full();
        let mount = target::mount(&config, &pair.target).filter(|mount| target::binding_of(mount) == pair.to);
        let no_path = "No server of the wanted protocol here has the name or the address in `Aepb-Target`.";
        let mount = mount.ok_or_else(|| NoPassage::no_path(no_path))?;
        let op = request.op().unwrap_or_default();
        // A tool that the caller is not shown and a tool that is not there look alike, and the way of the call records both.
        let skill = target::shown(&self.agent.entrance.gate, &client.caller, &mount.name, &op);
        let called = request.call(pair.to, skill.unwrap_or_else(|| format!("{}__{op}", mount.name)), &settings.agent_id())?;
        Ok((message(id, SentPurpose::Begins(called.call)), called.warnings))
    }

    /// Answers with a task as it is now.
    fn show(&self, owner: &Principal, id: &str, form: &AnswerForm, warnings: &[String]) -> Result<Response<Payload>, UntranslatedRequest> {
        let (task, turn) = self.agent.tasks.at_turn(owner, id)?;
        let answer = match form.tell(&task, turn.count) {
            Some(text) => typed(StatusCode::OK, form.kind(false), text.into()),
            None => {
                let text =
                    format!("The answer can't be written. Do not send the call again: ask for the task {id} with `GetTask` at `/a2a`.");
                problem(StatusCode::INTERNAL_SERVER_ERROR, "policy_violation", &text)
            }
        };
        Ok(noted(answer, warnings))
    }

    /// Cancels a task, or the task of a request under way.
    async fn cancel(&self, owner: &Principal, request: &IncomingRequest<'_>) -> Result<Response<Payload>, UntranslatedRequest> {
        if let Some(raw) = &request.target {
            // A notification has no answer, and may come too late.
            drop(self.running.find(owner, raw).map(|id| self.agent.tasks.cancel(owner, &id)));
            return Ok(reply::empty(StatusCode::ACCEPTED).into_http());
        }
        let (id, _) = request.task().ok_or_else(|| ClientRefusal::new(RefusalReason::TaskNotFound, "No task is named."))?;
        let mut state = self.agent.tasks.cancel(owner, &id)?;
        drop(timeout(CANCELLING, state.wait_for(|state| state.is_final())).await);
        self.show(owner, &id, &request.form, &[])
    }
}

impl UntranslatedRequest {
    /// Writes the refusal, in the binding of the request where the binding is known.
    fn write(self, form: Option<&Arc<AnswerForm>>) -> Response<Payload> {
        let (status, text, written) = match self {
            Self::NoPassage(NoPassage { status, code, text }) => return problem(status, code, &text),
            Self::Native(refusal) => {
                let status = StatusCode::from_u16(refusal.kind.codes().1).unwrap_or(StatusCode::BAD_REQUEST);
                (status, refusal.message.clone(), form.and_then(|form| form.refuse(&refusal).ok()))
            }
            Self::Envelope(code, text) => {
                (StatusCode::BAD_REQUEST, text.to_owned(), form.and_then(|form| form.refuse_envelope(code, text).ok()))
            }
        };
        match (written, form) {
            (Some(written), Some(form)) => typed(status, form.kind(false), written.into()),
            _ => problem(status, "policy_violation", &text),
        }
    }
}

/// Puts the warnings of a translation on a response, as a list of texts. No warning holds content of the message.
fn noted(mut response: Response<Payload>, warnings: &[String]) -> Response<Payload> {
    let listed = warnings.iter().map(|text| quote(text)).collect::<Vec<_>>().join(", ");
    if let Some(value) = HeaderValue::from_str(&listed).ok().filter(|_| !warnings.is_empty()) {
        response.headers_mut().insert(WARNINGS, value);
    }
    response
}
