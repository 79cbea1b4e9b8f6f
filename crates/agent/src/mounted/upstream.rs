//! An agent for callers: lists skills as tools, and calls them. Knows no rule.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agent_proto::card::AgentCard;
use agent_proto::operation::OutgoingMessage;
use agent_proto::part::{Content, MessagePart};
use agent_proto::task::TaskState;
use agent_proto::turn::{AgentTurn, first_text};
use arc_swap::ArcSwap;
use banyan_model::Era;
use bridge::EXTENSION_KEY;
use bytes::Bytes;
use call::tree::back::Back;
use call::tree::caller::Caller;
use call::tree::port::{OutgoingRequest, Upstream, UpstreamError, UpstreamTraits};
use futures_util::future::BoxFuture;
use json::{Members, quote};
use mcp_proto::envelope::{Answer, error_object};
use mcp_proto::json::Object;
use mcp_proto::{era, hidden};
use runtime::random;
use tokio::sync::Semaphore;

use crate::evidence::notary::Notary;
use crate::evidence::witness::{CallWitness, WitnessedEnd};
use crate::mounted::answer;
use crate::mounted::conversation::{CallEnd, Conversation, MOST_WITHDRAWALS};
use crate::mounted::owners::ConversationOwners;
use crate::mounted::skill::{self, SkillTools};
use crate::mounted::steps::Steps;
use crate::mounted::wire::{AgentWire, Endpoint};
use crate::translated::CLIENT;

/// Most questions of an agent in one call.
const MOST_QUESTIONS: usize = 32;
/// Most characters of a question.
const LONGEST_QUESTION: usize = 4_000;

/// A live agent.
#[derive(Debug)]
pub struct AgentUpstream {
    wire: Arc<AgentWire>,
    /// Name of the mount. The agent's own name is the agent's to choose, and stands in no sentence of ours.
    name: String,
    agent: ArcSwap<Agent>,
    /// The card has just been fetched, so that the first list needs no second fetch.
    is_fresh: AtomicBool,
    owners: ConversationOwners,
    withdrawals: Arc<Semaphore>,
    notary: Option<Arc<Notary>>,
}

/// An agent as its last card has it.
#[derive(Debug)]
struct Agent {
    streams: bool,
    endpoint: Endpoint,
    tools: SkillTools,
}

/// A caller's answer to an agent that waits.
enum Reaction {
    Answered(String),
    Declined,
    /// The caller can't be asked.
    Unasked,
}

impl Agent {
    fn new(endpoint: Endpoint, card: AgentCard) -> Self {
        Self { streams: card.streams, endpoint, tools: SkillTools::new(card) }
    }
}

impl AgentUpstream {
    /// Makes the upstream of an agent with this card, as the mount `name`.
    pub fn new(wire: Arc<AgentWire>, name: &str, endpoint: Endpoint, card: AgentCard, notary: Option<Arc<Notary>>) -> Self {
        Self {
            wire,
            notary,
            name: name.to_owned(),
            agent: ArcSwap::from_pointee(Agent::new(endpoint, card)),
            is_fresh: AtomicBool::new(true),
            owners: ConversationOwners::default(),
            withdrawals: Arc::new(Semaphore::new(MOST_WITHDRAWALS)),
        }
    }

    async fn request(&self, out: &OutgoingRequest<'_>, back: Option<&Arc<Back>>) -> Result<Answer, UpstreamError> {
        match out.method {
            "ping" => Ok(Answer::Result(Object::empty())),
            "tools/list" => self.list().await,
            "tools/call" => self.call_tool(out, back).await,
            method => Ok(refused(-32601, &format!("agents offer skills as tools, and not `{method}`"))),
        }
    }

    /// Lists the skills. Every list but the first fetches the card again.
    async fn list(&self) -> Result<Answer, UpstreamError> {
        if !self.is_fresh.swap(false, Ordering::Relaxed) {
            let card = self.wire.card().await?;
            self.agent.store(Arc::new(Agent::new(self.wire.endpoint(&card)?, card)));
        }
        Ok(Answer::Result(Bytes::from(self.agent.load().tools.list()).into()))
    }

    async fn call_tool(&self, out: &OutgoingRequest<'_>, back: Option<&Arc<Back>>) -> Result<Answer, UpstreamError> {
        if let Some(witness) = back.and_then(|back| known_witness(back)) {
            witness.entrusted();
        }
        let agent = self.agent.load_full();
        let name = out.params.str("name").unwrap_or_default();
        let Some(skill) = agent.tools.find(&name) else {
            return Ok(refused(-32602, &format!("the agent has no skill `{name}`: list the tools again")));
        };
        let arguments = out.params.get("arguments").unwrap_or_else(|| Bytes::from_static(b"{}"));
        // The extension of a client at another door is a claim without a check.
        let is_own = back.is_some_and(|back| is_translated(&back.caller));
        let extension = out
            .params
            .meta()
            .and_then(|meta| meta.get(EXTENSION_KEY).filter(|raw| raw.starts_with(b"{")).map(Bytes::copy_from_slice))
            .filter(|_| is_own);
        let message = match skill::message(skill, &arguments, extension.as_deref(), random::token()) {
            Ok(message) => message,
            Err(why) => return Ok(refused(-32602, &why)),
        };
        for id in message.task.iter().chain(&message.context) {
            if !back.is_some_and(|back| self.owners.owns(&back.caller.principal, id)) {
                return Ok(refused(-32602, FOREIGN));
            }
        }
        let (witness, is_own) = self.witness(out, back);
        let answer = match self.converse(&agent, message, (out, back), witness.as_ref()).await {
            Ok(answer) => Ok(answer),
            Err(CallEnd::Upstream(why)) => Err(why),
            Err(CallEnd::Fault(words)) => Ok(refused(-32603, &format!("the agent refused the call: {words}"))),
        };
        if let Some(witness) = witness.filter(|_| is_own) {
            close(&witness, &answer);
        }
        answer
    }

    /// Finds the witness of a call, or makes one for a caller without tokens; the flag tells of the second.
    fn witness(&self, out: &OutgoingRequest<'_>, back: Option<&Arc<Back>>) -> (Option<Arc<CallWitness>>, bool) {
        let (Some(notary), Some(back)) = (&self.notary, back) else { return (None, false) };
        if back.witness.is_some() {
            return (known_witness(back), false);
        }
        let made = CallWitness::of_call(notary, &back.caller.principal, out.params.text());
        if let (Some(made), true) = (&made, out.is_agreed) {
            made.agreed();
        }
        (made, true)
    }

    /// Follows the agent to its answer, with as many turns as it asks for.
    async fn converse(
        &self,
        agent: &Agent,
        mut message: OutgoingMessage,
        (out, back): (&OutgoingRequest<'_>, Option<&Arc<Back>>),
        witness: Option<&Arc<CallWitness>>,
    ) -> Result<Answer, CallEnd> {
        let steps = Steps::new(out, back, &self.withdrawals);
        for question in 0.. {
            let metadata = message.metadata.clone();
            let trace = out.trace.map(|trace| trace.traceparent().to_owned());
            let conversation = Conversation::new(&self.wire, &agent.endpoint, trace, message, agent.streams);
            let turn = steps.follow(conversation.witnessed(witness)).await?;
            if let Some(back) = back {
                turn.task.iter().chain(&turn.context).for_each(|id| self.owners.keep(&back.caller.principal, id));
            }
            if turn.state() != Some(TaskState::InputRequired) || question == MOST_QUESTIONS {
                return Ok(completed(&turn, &self.name));
            }
            let reaction = ask(&self.name, &turn, back).await;
            let over = || Conversation::over(&self.wire, &agent.endpoint, turn.clone());
            if back.is_some_and(|back| back.cancel.is_cancelled()) {
                steps.withdraw(over());
                return Err(UpstreamError::Cancelled.into());
            }
            match reaction {
                Reaction::Answered(text) => message = reply(&turn, text, metadata),
                Reaction::Declined => {
                    over().withdraw().await;
                    return Ok(Answer::Result(Bytes::from(answer::declined(&turn, &self.name)).into()));
                }
                Reaction::Unasked => return Ok(completed(&turn, &self.name)),
            }
        }
        Err(UpstreamError::Cancelled.into())
    }
}

/// Refusal of an id that is another caller's, or nobody's: the two look alike.
const FOREIGN: &str = "no answer to you had this `task_id` or `context_id`: take those of an earlier answer here, which count as long as the \
                       server is connected, or leave both out to begin anew";

impl Upstream for AgentUpstream {
    fn call<'a>(&'a self, out: &'a OutgoingRequest<'a>, back: Option<&'a Arc<Back>>) -> BoxFuture<'a, Result<Answer, UpstreamError>> {
        Box::pin(self.request(out, back))
    }

    /// Drops the notification: an agent has no place for it.
    fn notify<'a>(&'a self, _: &'a str, _: Bytes) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn lost(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn is_lost(&self) -> bool {
        false
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn traits(&self) -> UpstreamTraits {
        UpstreamTraits { has_own_connections: true, ..UpstreamTraits::default() }
    }
}

/// Finds the witness of the way, if the caller came as an agent.
fn known_witness(back: &Back) -> Option<Arc<CallWitness>> {
    let known: Arc<dyn Any + Send + Sync> = Arc::clone(back.witness.as_ref()?) as _;
    known.downcast().ok()
}

/// Closes the witnessed call of a caller without tokens, over its result as given.
fn close(witness: &CallWitness, answer: &Result<Answer, UpstreamError>) {
    let (output, state, fault) = match answer {
        Ok(Answer::Result(result)) if result.members().get("isError") == Some(b"true") => (&result.text()[..], TaskState::Failed, None),
        Ok(Answer::Result(result)) => (&result.text()[..], TaskState::Completed, None),
        Ok(Answer::Error(error)) => (&error[..], TaskState::Failed, Some("internal_error")),
        Err(UpstreamError::Cancelled) => (&b""[..], TaskState::Canceled, None),
        Err(UpstreamError::Silent(_) | UpstreamError::Endless(_)) => (&b""[..], TaskState::Failed, Some("timeout")),
        Err(_) => (&b""[..], TaskState::Failed, Some("internal_error")),
    };
    witness.close(output, WitnessedEnd { state: state.name(), fault, never_left: true });
}

/// Asks the caller what the agent wants to know.
async fn ask(agent: &str, turn: &AgentTurn, back: Option<&Arc<Back>>) -> Reaction {
    let Some(back) = back.filter(|back| era::declares(&back.caller.capabilities, "elicitation")) else { return Reaction::Unasked };
    let asked: String = first_text(turn.words()).unwrap_or("It waits for an answer.").chars().take(LONGEST_QUESTION).collect();
    let message = quote(&format!("The agent {agent} asks: {}", hidden::without(&asked)));
    let schema = r#"{"type":"object","properties":{"answer":{"type":"string","title":"Answer"}},"required":["answer"]}"#;
    let params = format!(r#"{{"message":{message},"requestedSchema":{schema}}}"#);
    let Answer::Result(result) = back.ask("elicitation/create", &Bytes::from(params)).await else { return Reaction::Unasked };
    let result = Members::again(&result);
    match result.str("action").as_deref() {
        Some("accept") => {
            let answer = result.object("content").and_then(|content| content.str("answer").map(std::borrow::Cow::into_owned));
            answer.map_or(Reaction::Unasked, Reaction::Answered)
        }
        _ => Reaction::Declined,
    }
}

fn completed(turn: &AgentTurn, agent: &str) -> Answer {
    Answer::Result(Bytes::from(answer::result(turn, agent)).into())
}

/// The caller's answer to a task that waits, as a message.
fn reply(turn: &AgentTurn, text: String, metadata: Vec<(String, String)>) -> OutgoingMessage {
    let parts = vec![MessagePart::new(Content::Text(text))];
    OutgoingMessage { id: random::token(), context: turn.context.clone(), task: turn.task.clone(), parts, metadata }
}

fn refused(code: i64, why: &str) -> Answer {
    Answer::Error(error_object(code, why, None))
}
/// Tells if a caller came through the translate endpoint. A client of MCP in the initialize era has a session, whatever its name.
fn is_translated(caller: &Caller) -> bool {
    caller.era == Era::Initialize && caller.session.is_none() && caller.info == CLIENT
}
