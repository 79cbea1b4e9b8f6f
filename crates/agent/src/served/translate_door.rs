//! Door of translated requests: `POST /aepb/translate`. Each request is a message to a task of the gate as an agent, and so takes the one way of
//! every call. Decides on no call.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use agent_proto::served::incoming::{OnwardMessage, SentMessage, SentPurpose};
use agent_proto::served::rejection::{ClientRefusal, RefusalReason};
use agent_proto::task::TaskState;
use banyan_model::{Principal, Segment};
use bridge::{BindingId, BridgeError, EnvelopeKey, MessageKind, key_of_did, seal_of};
use bytes::Bytes;
use call::tree::snapshot::Sight;
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
use sha2::{Digest, Sha256};
use tokio::time::timeout;

use crate::evidence::arrived::ArrivedEvidence;
use crate::rate::CallerRates;
use crate::served::agent_door::{AdmittedClient, AgentDoor, ClientForm, streamed};
use crate::served::problem::problem;
use crate::served::running::RunningRequests;
use crate::served::streams::FollowedTask;
use crate::settings::section::AgentSettings;
use crate::translated::ancestry::{self, Ancestry, HopRefusal};
use crate::translated::form::{AnswerForm, DUPLICATE};
use crate::translated::heard::{HeardMessages, Hearing, MessageMark, mark};
use crate::translated::incoming::{HeardEnvelope, IncomingRequest};
use crate::translated::pair::{NoPassage, WantedPair};
use crate::translated::target;
use crate::translated::{CLIENT, TRANSLATE};

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
const ASKABLE: ClientForm = ClientForm { info: CLIENT, capabilities: b"{\"elicitation\":{\"form\":{}}}" };
const SILENT: ClientForm = ClientForm { info: CLIENT, capabilities: b"{}" };

/// Translated requests, at the listener.
pub struct TranslateDoor {
    pub agent: Arc<AgentDoor>,
    pub ancestry: Arc<dyn Ancestry>,
    pub rates: CallerRates,
    pub running: Arc<RunningRequests>,
    pub key: Option<Arc<EnvelopeKey>>,
    pub heard: HeardMessages,
}

/// Reasons for an answer without a task.
enum UntranslatedRequest {
    NoPassage(NoPassage),
    /// In the binding of the request.
    Native(ClientRefusal),
    /// An envelope of AINP, or a message heard before, with a code of AINP.
    Envelope(&'static str, Cow<'static, str>),
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
                    Ok(arrived) => self.carry((client, arrived), &body, &pair, &settings, request).await,
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
        request.envelope.as_ref().map_or(Ok(()), |envelope| self.check_envelope(body, settings, envelope))
    }

    /// Holds an envelope of AINP to its signature, its time and its receiver.
    fn check_envelope(&self, body: &Bytes, settings: &AgentSettings, envelope: &HeardEnvelope) -> Result<(), UntranslatedRequest> {
        if self.key.is_none() {
            let text = "This gate has no key to sign answers of AINP: its operator has to mend the file of the key.";
            return Err(NoPassage::new(StatusCode::SERVICE_UNAVAILABLE, "policy_violation", text).into());
        }
        if key_of_did(&envelope.from).and_then(|key| seal_of(body, &key).ok().flatten()).is_none() {
            return Err(UntranslatedRequest::Envelope(
                "INVALID_SIGNATURE",
                "The envelope is not signed with the key that its `from_did` names.".into(),
            ));
        }
        let (now, time, life) = (clock::wall() / 1000, envelope.time, envelope.lifetime.unwrap_or(USUAL_LIFE).min(LONGEST_LIFE));
        if time.saturating_add(life).saturating_add(SKEW) < now || time > now.saturating_add(SKEW) {
            return Err(UntranslatedRequest::Envelope(
                "TIMEOUT",
                "The envelope is out of its time: set the clock, or send the message anew.".into(),
            ));
        }
        if time < self.heard.since {
            let text = "The envelope is older than the start of this gate, which may have run it before: ask for the task, or send the message anew.";
            return Err(UntranslatedRequest::Envelope("TIMEOUT", text.into()));
        }
        let own = [self.key.as_ref().map(|key| key.did()), settings.web_did()];
        if !own.iter().flatten().any(|own| envelope.to.as_ref() == Some(own)) {
            let text = format!(
                "The envelope is for another: write `{}` in `to_did`.",
                own.into_iter().flatten().collect::<Vec<_>>().join("` or `")
            );
            return Err(UntranslatedRequest::Envelope("UNAUTHORIZED", text.into()));
        }
        Ok(())
    }

    /// Carries a request to its task, and the state of the task back.
    async fn carry(
        &self,
        (client, arrived): (AdmittedClient, Option<ArrivedEvidence>),
        body: &[u8],
        pair: &WantedPair,
        settings: &AgentSettings,
        request: IncomingRequest<'_>,
    ) -> Result<Response<Payload>, UntranslatedRequest> {
        let (form, owner) = (Arc::clone(&request.form), client.caller.principal.clone());
        let wanted = self.wanted(&client, pair)?;
        match request.kind() {
            MessageKind::Probe => return Ok(typed(StatusCode::OK, form.kind(false), form.write_life()?.into())),
            MessageKind::Cancel => return self.cancel(&owner, &wanted, &request).await,
            MessageKind::Request | MessageKind::Response | MessageKind::Event | MessageKind::Failure => {}
        }
        let client = if request.takes_questions { self.agent.as_client(client, &ASKABLE) } else { client };
        let place = if request.wants_stream() { Some(self.agent.streams.place(&owner)?) } else { None };
        let (asked, warnings) = self.ask(&client, (body, pair, &wanted), settings, &request)?;
        let AdmittedClient { caller, held, streams, pushes } = client;
        let (id, mut state, is_call) = match asked {
            AskedTask::Message(sent) => {
                let heard = self.hear(&owner, body, pair, &request, &sent)?;
                let begun = self.agent.send(&caller, (held, pushes), *sent, arrived);
                if let (Err(_), Some((mark, until))) = (&begun, heard) {
                    self.heard.take_back(mark, until);
                }
                let (id, state, _) = begun?;
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

    /// Hears a message of µACP or AINP, which runs once within its life. Gives the mark of a first message, and the end of its life.
    fn hear(
        &self,
        owner: &Principal,
        body: &[u8],
        pair: &WantedPair,
        request: &IncomingRequest<'_>,
        sent: &SentMessage,
    ) -> Result<Option<(MessageMark, u64)>, UntranslatedRequest> {
        let now = clock::wall() / 1000;
        let (mark, until) = match (&request.envelope, pair.from) {
            (Some(envelope), _) => {
                let life = envelope.lifetime.unwrap_or(USUAL_LIFE).min(LONGEST_LIFE);
                (mark(&format!("ainp {}", sent.id)), envelope.time.saturating_add(life).saturating_add(SKEW))
            }
            (None, BindingId::Uacp) => (mark(&format!("{owner:?} {}", frame_id(body, pair))), now + LONGEST_LIFE),
            (None, BindingId::A2a | BindingId::Ainp | BindingId::Mcp | BindingId::Slim) => return Ok(None),
        };
        let again = match self.heard.hear(owner, mark, until, now) {
            Hearing::First => return Ok(Some((mark, until))),
            Hearing::Full => {
                let text = "Too many messages are within their lives: wait a few minutes. The message has not been carried.";
                return Err(ClientRefusal::new(RefusalReason::Crowded, text).into());
            }
            Hearing::Again => self.agent.tasks.known(owner, sent)?.is_some(),
            Hearing::FromAnother => false,
        };
        let text =
            "The message was heard before, and its task is not here for the caller: send a message of its own, with an id of its own.";
        if again { Ok(None) } else { Err(UntranslatedRequest::Envelope(DUPLICATE, text.into())) }
    }

    /// Finds the wanted server in the sight of the caller, to whom a hidden server and none look alike.
    fn wanted(&self, client: &AdmittedClient, pair: &WantedPair) -> Result<(Sight, Segment), NoPassage> {
        let gate = &self.agent.entrance.gate;
        let config = gate.config.load_full();
        let sight = Sight::of_caller(gate.mounts.tree.load_full(), &client.caller);
        let mount = target::mount(&config, &pair.target).filter(|mount| target::binding_of(mount) == pair.to);
        let seen = mount.map(|mount| mount.name.clone()).filter(|name| target::is_seen(&sight, name));
        let no_path = "No server of the wanted protocol that the caller may use has the name or the address in `Aepb-Target`.";
        Ok((sight, seen.ok_or_else(|| NoPassage::no_path(no_path))?))
    }

    /// Checks that a task of `owner` is one of the wanted server.
    fn check_task(&self, owner: &Principal, (sight, mount): &(Sight, Segment), task: &str) -> Result<(), ClientRefusal> {
        let skill = self.agent.tasks.skill(owner, task)?;
        let text = "No task of this caller at the server in `Aepb-Target` has the id.";
        let refused = || ClientRefusal::new(RefusalReason::TaskNotFound, text);
        if target::is_of(sight, mount, &skill) { Ok(()) } else { Err(refused()) }
    }

    /// Reads a request as a message to a task, with the warnings of the translation.
    fn ask(
        &self,
        client: &AdmittedClient,
        (body, pair, wanted): (&[u8], &WantedPair, &(Sight, Segment)),
        settings: &AgentSettings,
        request: &IncomingRequest<'_>,
    ) -> Result<(AskedTask, Vec<String>), UntranslatedRequest> {
        request.check_wishes()?;
        let context = request.context()?;
        let id = if pair.from == BindingId::Uacp { frame_id(body, pair) } else { request.id()? };
        let message = |id, purpose| {
            AskedTask::Message(Box::new(SentMessage { id, purpose, context: context.clone(), push: None, returns_at_once: false }))
        };
        if let Some((task, turn)) = request.task() {
            self.check_task(&client.caller.principal, wanted, &task)?;
            let at = self.agent.tasks.turn(&client.caller.principal, &task)?;
            if at.state != TaskState::InputRequired || !request.answers(turn, at.count) {
                return Ok((AskedTask::Look(task), Vec::new()));
            }
            let id = turn.map_or(id, |turn| format!("{task}.{turn}"));
            let onward = OnwardMessage { id: id.clone(), task, call: Ok(None), input: request.input() };
            return Ok((message(id, SentPurpose::GoesOn(onward)), Vec::new()));
        }
        let (sight, mount) = wanted;
        // A tool that the caller is not shown and a tool that is not there look alike, and the way of the call records both.
        let name = target::name_of(sight, mount, &request.op().unwrap_or_default());
        let called = request.call(pair.to, name, &settings.agent_id())?;
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
    async fn cancel(
        &self,
        owner: &Principal,
        wanted: &(Sight, Segment),
        request: &IncomingRequest<'_>,
    ) -> Result<Response<Payload>, UntranslatedRequest> {
        if let Some(raw) = &request.target {
            // A notification has no answer, and may come too late.
            drop(self.running.find(owner, raw).map(|id| self.agent.tasks.cancel(owner, &id)));
            return Ok(reply::empty(StatusCode::ACCEPTED).into_http());
        }
        let (id, _) = request.task().ok_or_else(|| ClientRefusal::new(RefusalReason::TaskNotFound, "No task is named."))?;
        self.check_task(owner, wanted, &id)?;
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
                (StatusCode::BAD_REQUEST, text.to_string(), form.and_then(|form| form.refuse_envelope(code, &text).ok()))
            }
        };
        match (written, form) {
            (Some(written), Some(form)) => typed(status, form.kind(false), written.into()),
            _ => problem(status, "policy_violation", &text),
        }
    }
}

/// Makes an id of a message of µACP, the same when the message is sent again to the same server. Its number alone comes again too soon.
fn frame_id(body: &[u8], pair: &WantedPair) -> String {
    let bytes = [pair.to.id().as_bytes(), b" ", pair.target.as_bytes(), b" ", body].concat();
    let digest = Sha256::digest(bytes);
    digest.iter().fold("uacp ".to_owned(), |id, byte| format!("{id}{byte:02x}"))
}

/// Puts the warnings of a translation on a response, as a list of texts. No warning holds content of the message.
fn noted(mut response: Response<Payload>, warnings: &[String]) -> Response<Payload> {
    let listed = warnings.iter().map(|text| quote(text)).collect::<Vec<_>>().join(", ");
    if let Some(value) = HeaderValue::from_str(&listed).ok().filter(|_| !warnings.is_empty()) {
        response.headers_mut().insert(WARNINGS, value);
    }
    response
}
