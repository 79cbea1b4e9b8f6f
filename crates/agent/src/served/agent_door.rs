//! Door of A2A clients: the agent card, JSON-RPC at `/a2a`, and HTTP+JSON below it. Decides on no call.

use std::sync::Arc;
use std::time::Duration;

use agent_proto::served::incoming::{SentMessage, SentPurpose};
use agent_proto::served::push::{PushName, PushWish, write_list};
use agent_proto::served::rejection::{ClientRefusal, RefusalReason};
use agent_proto::served::written::ServedCard;
use agent_proto::task::TaskState;
use banyan_model::{Era, Principal};
use bytes::Bytes;
use call::tree::caller::Caller;
use call::words::entered::{AboutClient, AdmittedCaller};
use call::words::party::Party;
use door::entrance::Entrance;
use door::entry::{self, EntryRefusal};
use door::held::{self, HeldEntry};
use door::known::stateless;
use door::port::{Door, fields};
use door::reply::{self, Payload, typed};
use futures_util::future::BoxFuture;
use http::header::{AUTHORIZATION, CACHE_CONTROL, ETAG, IF_NONE_MATCH, VARY, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use mcp_proto::envelope::{Answer, EnvelopeError, Message};
use mcp_proto::era::INITIALIZE;
use mcp_proto::http1::Fields;
use mcp_proto::json::Duplicates;
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use crate::evidence::arrived::{ArrivedEvidence, EvidenceRefusal, FIELD};
use crate::evidence::notary::Notary;
use crate::evidence::witness::{A2A, CallWitness, WitnessedEnd};
use crate::served::life::KeptLife;
use crate::served::onward::Onward;
use crate::served::operation::{AgentOperation, PushOperation, REST};
use crate::served::problem::untrue;
use crate::served::push::{NamedPush, PreparedPush, Pushes};
use crate::served::run::TaskRun;
use crate::served::skills::skills;
use crate::served::streams::{FollowedTask, StreamPlace, StreamedBody, TaskStreams};
use crate::served::tasks::Tasks;
use crate::settings::section::AgentSettings;

const CARD: &str = "/.well-known/agent-card.json";
const RPC: &str = "/a2a";
const VERSION: &str = "a2a-version";
/// Fields that decide admission; a task keeps no others.
const SHOWN: [&str; 3] = ["authorization", "host", "origin"];
/// Time for a cancelled run to end before its task is shown unchanged.
const CANCELLING: Duration = Duration::from_secs(5);

/// The gate as an agent, at the listener.
pub struct AgentDoor {
    pub entrance: Arc<Entrance>,
    pub tasks: Arc<Tasks>,
    pub streams: Arc<TaskStreams>,
    pub pushes: Pushes,
    pub life: Arc<KeptLife>,
    pub notary: Arc<Notary>,
}

impl Door for AgentDoor {
    fn is_here(&self, path: &str) -> bool {
        (path == CARD || path == RPC || path.starts_with(REST)) && self.settings().is_some()
    }

    fn answer(&self, request: Request<Incoming>, party: Option<Arc<Party>>) -> BoxFuture<'_, Response<Payload>> {
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let answered = match parts.uri.path() {
                CARD => self.card(&parts, party.as_ref()).await,
                RPC => self.rpc(&parts, body, party.as_ref()).await,
                _ => self.rest(&parts, body, party.as_ref()).await,
            };
            self.life.mark(answered)
        })
    }
}

/// A client as servers behind the gate are told of it.
pub struct ClientForm {
    /// Raw objects: name, and capabilities.
    pub info: &'static [u8],
    pub capabilities: &'static [u8],
}

const OF_A2A: ClientForm = ClientForm { info: b"{\"name\":\"a2a\"}", capabilities: b"{\"elicitation\":{\"form\":{}}}" };

/// A client, with an admission each for its task, its stream and its notifications, checked to their ends.
pub struct AdmittedClient {
    pub caller: Arc<Caller>,
    pub held: HeldEntry,
    pub streams: HeldEntry,
    pub pushes: HeldEntry,
}

/// An answer to a request.
enum ServedAnswer {
    /// Raw object, such as a page of tasks.
    Raw(String),
    /// Raw task, and its tokens.
    Task(String, Option<Arc<str>>),
    Stream(StreamedBody),
}

impl AgentDoor {
    /// Settings of the agent; `None`: the gate is none.
    pub fn settings(&self) -> Option<AgentSettings> {
        self.entrance.gate.config.load().values.get::<AgentSettings>().cloned()
    }

    fn enter(&self, parts: &Parts, party: Option<&Arc<Party>>) -> Result<AdmittedCaller, EntryRefusal> {
        entry::enter(&self.entrance.gate.config.load(), &self.entrance.trust, party, &fields(parts))
    }

    fn caller(&self, entered: &AdmittedCaller, form: &ClientForm) -> Arc<Caller> {
        let about = AboutClient { info: form.info, capabilities: form.capabilities };
        let mut caller = stateless(&self.entrance.gate.config.load(), entered, (None, None), about);
        // Questions then come one by one while the call runs, whatever the era of the server.
        (caller.era, caller.version) = (Era::Initialize, INITIALIZE[0]);
        // A call that waits for approval then ends as an error of its own kind, which no server's result can imitate.
        caller.scope.speaks_mesh = true;
        Arc::new(caller)
    }

    /// Answers with the card: to a client with a token or a certificate its skills, to others no more than the configured words.
    async fn card(&self, parts: &Parts, party: Option<&Arc<Party>>) -> Response<Payload> {
        if parts.method != Method::GET {
            return reply::empty(StatusCode::METHOD_NOT_ALLOWED).into_http();
        }
        let Some(settings) = self.settings() else { return reply::empty(StatusCode::NOT_FOUND).into_http() };
        let wants_credential = self.entrance.gate.config.load().wants_credential();
        let is_certified = match entry::outer(&self.entrance.gate.config.load(), party, &fields(parts)) {
            Ok(certified) => certified.is_some(),
            Err(refused) => return shut(&refused),
        };
        let is_public = wants_credential && !is_certified && !parts.headers.contains_key(AUTHORIZATION);
        let listed = if is_public {
            vec![PUBLIC_SKILL.to_owned()]
        } else {
            match self.enter(parts, party) {
                Ok(entered) => skills(&self.entrance.gate, &self.caller(&entered, &OF_A2A)).await,
                Err(refused) => return shut(&refused),
            }
        };
        let AgentSettings { url, name, description, push, .. } = &settings;
        let (version, has_push) = (env!("CARGO_PKG_VERSION"), !push.is_empty());
        let card = ServedCard { name, description, version, url, wants_credential, has_push, skills: listed };
        cached(parts, card.write(), if is_public { "public, max-age=300" } else { "private, no-cache" })
    }

    async fn rpc(&self, parts: &Parts, body: Incoming, party: Option<&Arc<Party>>) -> Response<Payload> {
        if parts.method != Method::POST {
            return reply::empty(StatusCode::METHOD_NOT_ALLOWED).into_http();
        }
        let (client, body) = match self.admitted(parts, body, party, &OF_A2A).await {
            Ok(admitted) => admitted,
            Err(refused) => return *refused,
        };
        let request = match Message::parse(&body, Duplicates::RefuseDeep) {
            Ok(Message::Request(request)) => request,
            Ok(_) => return reply::refuse(StatusCode::OK, None, -32600, "This is no JSON-RPC request.").into_http(),
            Err(error @ EnvelopeError::Json(_)) => return reply::refuse(StatusCode::OK, None, -32700, &error.to_string()).into_http(),
            Err(error) => return reply::refuse(StatusCode::OK, None, -32600, &error.to_string()).into_http(),
        };
        let asked = AgentOperation::of_rpc(&request);
        let is_wrapped = asked.is_wrapped();
        let arrived = match self.arrived(parts, &client, &asked, &body) {
            Ok(arrived) => arrived,
            Err(refused) => return *refused,
        };
        let (mut status, mut evidence) = (StatusCode::OK, None);
        let answer = match self.serve(parts, (client, arrived), asked, Some(&request.id)).await {
            Ok(ServedAnswer::Raw(raw)) => Answer::Result(Bytes::from(raw).into()),
            Ok(ServedAnswer::Task(task, tokens)) => {
                evidence = tokens;
                Answer::Result(Bytes::from(if is_wrapped { wrapped(&task) } else { task }).into())
            }
            Ok(ServedAnswer::Stream(body)) => return streamed(body),
            Err(refusal) if is_of_tokens(&refusal) => return untrue(&refusal),
            Err(refusal) => {
                if refusal.kind == RefusalReason::Draining {
                    status = StatusCode::SERVICE_UNAVAILABLE;
                }
                Answer::Error(refusal.rpc().into())
            }
        };
        evident(reply::rpc(status, request.id, answer).into_http(), evidence)
    }

    async fn rest(&self, parts: &Parts, body: Incoming, party: Option<&Arc<Party>>) -> Response<Payload> {
        let (client, body) = match self.admitted(parts, body, party, &OF_A2A).await {
            Ok(admitted) => admitted,
            Err(refused) => return *refused,
        };
        let asked = AgentOperation::of_rest(parts, &body);
        let is_wrapped = asked.is_wrapped();
        let arrived = match self.arrived(parts, &client, &asked, &body) {
            Ok(arrived) => arrived,
            Err(refused) => return *refused,
        };
        match self.serve(parts, (client, arrived), asked, None).await {
            Ok(ServedAnswer::Raw(raw)) => typed(StatusCode::OK, A2A_JSON, raw.into()),
            Ok(ServedAnswer::Task(task, tokens)) => {
                evident(typed(StatusCode::OK, A2A_JSON, if is_wrapped { wrapped(&task) } else { task }.into()), tokens)
            }
            Ok(ServedAnswer::Stream(body)) => streamed(body),
            Err(refusal) if is_of_tokens(&refusal) => untrue(&refusal),
            Err(refusal) => {
                let status = StatusCode::from_u16(refusal.kind.codes().1).unwrap_or(StatusCode::BAD_REQUEST);
                typed(status, A2A_JSON, refusal.rest().into())
            }
        }
    }

    /// Admits the caller, and reads the body; a credential revoked meanwhile counts no more.
    pub async fn admitted(
        &self,
        parts: &Parts,
        body: Incoming,
        party: Option<&Arc<Party>>,
        form: &ClientForm,
    ) -> Result<(AdmittedClient, Bytes), Box<Response<Payload>>> {
        let entered = self.enter(parts, party).map_err(|refused| Box::new(shut(&refused)))?;
        let body =
            door::body::request(&self.entrance.gate, &entered.principal, body).await.map_err(|refused| Box::new(refused.into_http()))?;
        let sent = fields(parts);
        let shown = Fields::new(SHOWN.into_iter().filter_map(|name| Some((name, sent.get(name)?))));
        let admit =
            |shown| HeldEntry::enter(&self.entrance, party.cloned(), shown, held::enter).map_err(|refused| Box::new(shut(&refused)));
        let (held, streams, pushes) = (admit(shown.clone())?, admit(shown.clone())?, admit(shown)?);
        if [&held, &streams, &pushes].iter().any(|held| held.entered.principal != entered.principal) {
            return Err(Box::new(shut(&entry::another())));
        }
        let caller = self.caller(&held.entered, form);
        Ok((AdmittedClient { caller, held, streams, pushes }, body))
    }

    /// Verifies the tokens of a message; other operations carry none.
    fn arrived(
        &self,
        parts: &Parts,
        client: &AdmittedClient,
        asked: &AgentOperation<'_>,
        body: &Bytes,
    ) -> Result<Option<ArrivedEvidence>, Box<Response<Payload>>> {
        if !matches!(asked, AgentOperation::Send(_) | AgentOperation::Stream(_)) {
            return Ok(None);
        }
        self.evidence(parts, client, body, A2A)
    }

    /// Verifies the tokens of a message in the binding `source`.
    pub fn evidence(
        &self,
        parts: &Parts,
        client: &AdmittedClient,
        body: &Bytes,
        source: &'static str,
    ) -> Result<Option<ArrivedEvidence>, Box<Response<Payload>>> {
        let caller = &client.caller.principal;
        self.notary.arrived(&parts.headers, (body, source), caller).map_err(|refusal| {
            refusal.log(&caller.name);
            let told = refusal.client();
            let tokens = match refusal {
                // The error follows the tokens, so these stand in the record before.
                EvidenceRefusal::Astray(_, arrived) => match self.notary.admit(&arrived, caller) {
                    Ok(()) => {
                        let end = WitnessedEnd { state: TaskState::Rejected.name(), fault: Some("policy_violation"), never_left: true };
                        CallWitness::of_task(&self.notary, *arrived, caller).close(told.message.as_bytes(), end)
                    }
                    Err(replayed) => return Box::new(untrue(&replayed)),
                },
                EvidenceRefusal::Untrue(_) | EvidenceRefusal::Missing | EvidenceRefusal::Paced(_) | EvidenceRefusal::Unable(_) => None,
            };
            Box::new(evident(untrue(&told), tokens))
        })
    }

    /// Answers an operation. `request` is the raw id of a JSON-RPC request.
    async fn serve(
        &self,
        parts: &Parts,
        (client, arrived): (AdmittedClient, Option<ArrivedEvidence>),
        asked: AgentOperation<'_>,
        request: Option<&Bytes>,
    ) -> Result<ServedAnswer, ClientRefusal> {
        let version = parts.headers.get(VERSION).map_or(b"0.3" as &[u8], HeaderValue::as_bytes);
        if version != b"1.0" {
            let text = "This gate speaks A2A 1.0: send the header A2A-Version with 1.0.";
            return Err(ClientRefusal::new(RefusalReason::VersionNotSupported, text));
        }
        let AdmittedClient { caller, held, streams, pushes } = client;
        let owner = &caller.principal;
        let follow = |place: StreamPlace, id, state| {
            let (tasks, request) = (Arc::clone(&self.tasks), request.cloned());
            let followed = FollowedTask { id, tasks, state, held: streams, request, form: None, running: None };
            Ok(ServedAnswer::Stream(place.open(followed)))
        };
        let id = match asked {
            AgentOperation::Send(params) => {
                let sent = SentMessage::read(params)?;
                let returns_at_once = sent.returns_at_once;
                let (id, mut state, has_moved) = self.send(&caller, (held, pushes), sent, arrived)?;
                if has_moved && !returns_at_once {
                    drop(state.wait_for(|state| state.is_final() || state.is_waiting()).await);
                }
                id
            }
            AgentOperation::Stream(params) => {
                let (sent, place) = (SentMessage::read(params)?, self.streams.place(owner)?);
                let (id, state, _) = self.send(&caller, (held, pushes), sent, arrived)?;
                return follow(place, id, state);
            }
            AgentOperation::Subscribe(id) => {
                let state = self.tasks.watch(owner, &id)?;
                return follow(self.streams.place(owner)?, id, state);
            }
            AgentOperation::Get(id) => id,
            AgentOperation::Cancel(id) => {
                let mut state = self.tasks.cancel(owner, &id)?;
                // A run that does not end soon shows as it is.
                drop(tokio::time::timeout(CANCELLING, state.wait_for(|state| state.is_final())).await);
                id
            }
            AgentOperation::List(filter) => return Ok(ServedAnswer::Raw(self.tasks.list(owner, &filter?))),
            AgentOperation::Push(asked) => return self.push(owner, asked, pushes),
            AgentOperation::Unknown => return Err(ClientRefusal::new(RefusalReason::MethodNotFound, "A2A 1.0 has no such method.")),
        };
        self.tasks.find(owner, &id).map(|task| ServedAnswer::Task(task.write(), self.tasks.evidence(owner, &id)))
    }

    /// Answers an operation on notifications.
    fn push(&self, owner: &Principal, asked: PushOperation<'_>, held: HeldEntry) -> Result<ServedAnswer, ClientRefusal> {
        let raw = match asked {
            PushOperation::Create(wish, path) => {
                let wish = PushWish::read(wish)?;
                let task = path.or_else(|| wish.task.clone()).unwrap_or_default();
                self.tasks.size(owner, &task)?;
                let (kept, push) = self.pushes.prepare(owner, wish)?.named(&task);
                let state = self.tasks.add_push(owner, &task, kept)?;
                push.begin(&self.tasks, owner, held, state)
            }
            PushOperation::Get(name) => {
                let PushName { task, id } = name?;
                let wish = self.tasks.pushes(owner, &task)?.into_iter().find(|(known, _)| *known == id);
                let unknown = || ClientRefusal::new(RefusalReason::TaskNotFound, "The task has no push notification config of the id.");
                wish.ok_or_else(unknown)?.1
            }
            PushOperation::List(name) => {
                let wishes: Vec<_> = self.tasks.pushes(owner, &name?.task)?.into_iter().map(|(_, wish)| wish).collect();
                write_list(&wishes)
            }
            PushOperation::Delete(name) => self.tasks.remove_push(owner, &name?).map(|()| "{}".into())?,
        };
        Ok(ServedAnswer::Raw(raw))
    }

    /// Gives an admitted client another form.
    pub fn as_client(&self, client: AdmittedClient, form: &ClientForm) -> AdmittedClient {
        AdmittedClient { caller: self.caller(&client.held.entered, form), ..client }
    }

    /// Begins or goes on with a task: its id, its states, and a flag for a call set in motion by the message.
    pub fn send(
        &self,
        caller: &Arc<Caller>,
        (held, pushes): (HeldEntry, HeldEntry),
        sent: SentMessage,
        arrived: Option<ArrivedEvidence>,
    ) -> Result<(String, watch::Receiver<TaskState>, bool), ClientRefusal> {
        let owner = &caller.principal;
        if let Some((id, state)) = self.tasks.known(owner, &sent)? {
            return Ok((id, state, true));
        }
        let work = self.life.begin_work(matches!(sent.purpose, SentPurpose::Begins(_)))?;
        let push = sent.push.as_ref().map(|wish| self.pushes.prepare(owner, wish.clone())).transpose()?;
        let witness = match arrived {
            Some(arrived) => {
                self.notary.admit(&arrived, owner)?;
                Some(CallWitness::of_task(&self.notary, arrived, owner))
            }
            None => None,
        };
        let begun = match self.onward(owner, sent, push.map(|push| (push, pushes)))? {
            Onward::Begun(begun) => begun,
            Onward::Answered(id, state) | Onward::Known(id, state) => return Ok((id, state, true)),
            Onward::Waits(id, state) => return Ok((id, state, false)),
        };
        let (id, state) = (begun.id.clone(), begun.state.clone());
        let (gate, tasks) = (Arc::clone(&self.entrance.gate), Arc::clone(&self.tasks));
        tokio::spawn(TaskRun { gate, tasks, caller: Arc::clone(caller), held, work, witness }.run(begun));
        Ok((id, state, true))
    }

    /// Puts a message to its task, and begins wanted notifications once the task has taken the message.
    fn onward(&self, owner: &Principal, sent: SentMessage, push: Option<(PreparedPush, HeldEntry)>) -> Result<Onward, ClientRefusal> {
        let notify = |push: NamedPush, held, state| drop(push.begin(&self.tasks, owner, held, state));
        match sent.purpose {
            SentPurpose::Begins(call) => {
                let onward = self.tasks.begin(owner, &sent.id, sent.context, call)?;
                if let (Onward::Begun(begun), Some((push, held))) = (&onward, push) {
                    let (kept, push) = push.named(&begun.id);
                    let state = self.tasks.add_push(owner, &begun.id, kept).inspect_err(|_| self.tasks.drop_unbegun(&begun.id))?;
                    notify(push, held, state);
                }
                Ok(onward)
            }
            SentPurpose::GoesOn(onward) => {
                let Some((push, held)) = push else { return self.tasks.go_on(owner, onward) };
                let (kept, push) = push.named(&onward.task);
                let onward = self.tasks.go_on_told(owner, onward, kept)?;
                notify(push, held, onward.state().clone());
                Ok(onward)
            }
        }
    }
}

const A2A_JSON: &str = "application/a2a+json";
/// Placeholder in the card for skills hidden from a client without a credential.
const PUBLIC_SKILL: &str = "{\"id\":\"hidden\",\"name\":\"Tools of this gate\",\
     \"description\":\"Ask for this card with a credential: it then lists the tools that the caller may use.\",\"tags\":[\"gate\"]}";

fn wrapped(task: &str) -> String {
    format!("{{\"task\":{task}}}")
}

/// Checks for a refusal of tokens.
fn is_of_tokens(refusal: &ClientRefusal) -> bool {
    refusal.kind == RefusalReason::Evidence || refusal.wait().is_some()
}

/// Puts tokens on an answer.
fn evident(mut response: Response<Payload>, tokens: Option<Arc<str>>) -> Response<Payload> {
    let line = tokens.and_then(|tokens| HeaderValue::from_str(&tokens).ok());
    response.headers_mut().extend(line.map(|line| (HeaderName::from_static(FIELD), line)));
    response
}

pub(crate) fn streamed(body: StreamedBody) -> Response<Payload> {
    let mut response = typed(StatusCode::OK, "text/event-stream", Bytes::new());
    *response.body_mut() = Payload::Events(Box::new(body));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Proxies such as nginx would otherwise hold pieces back.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

pub(super) fn shut(refused: &EntryRefusal) -> Response<Payload> {
    let mut response = reply::shut(refused.status, &refused.why).into_http();
    let challenge = refused.challenge.as_deref().and_then(|challenge| HeaderValue::from_str(challenge).ok());
    response.headers_mut().extend(challenge.map(|challenge| (WWW_AUTHENTICATE, challenge)));
    response
}

/// Answers with a card, or with its tag alone to a client with the same card.
pub(super) fn cached(parts: &Parts, card: String, control: &'static str) -> Response<Payload> {
    let digest: String = Sha256::digest(&card).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let tag = format!("\"{digest}\"");
    let known = parts.headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let is_known = known.flat_map(|value| value.split(',')).any(|value| value.trim().trim_start_matches("W/") == tag);
    let mut response =
        if is_known { reply::empty(StatusCode::NOT_MODIFIED).into_http() } else { typed(StatusCode::OK, "application/json", card.into()) };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(control));
    headers.insert(VARY, HeaderValue::from_static("authorization"));
    headers.extend(HeaderValue::from_str(&tag).ok().map(|tag| (ETAG, tag)));
    response
}
