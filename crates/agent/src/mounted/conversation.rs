//! A conversation with an agent: sends a message, and follows the task until the turn is over. Knows no caller.
//!
//! Events come as a stream where the agent streams. Otherwise, and after a stream that broke off, the task is looked at again and again.

use std::sync::Arc;
use std::time::Duration;

use agent_proto::operation::{AgentRequest, OutgoingMessage};
use agent_proto::turn::{AgentTurn, AgentTurnError};
use call::tree::port::UpstreamError;
use futures_util::future::BoxFuture;

use crate::evidence::witness::CallWitness;
use crate::mounted::wire::{AgentAnswer, AgentWire, Endpoint, Event, Events};

/// First and longest wait before a task is looked at again.
const WAITS: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(5)];
/// Longest time for the withdrawal of a call without a caller.
const WITHDRAWING: Duration = Duration::from_secs(30);
/// Longest time for tokens behind the last event of a turn, and most events.
const LINGERING: Duration = Duration::from_secs(1);
const MOST_LATE: usize = 4;
/// Failures to reach the agent in a row, after which a task is given up.
const MOST_FAILURES: usize = 5;

/// Most withdrawals of a mount at a time. Further ones are left out, and the connection of the call is closed.
pub const MOST_WITHDRAWALS: usize = 64;
/// Bytes that an agent may say in one call, as a multiple of those that an answer may hold: words about the work are passed on and not kept.
const HEARD: usize = 4;

/// A turn under way.
pub struct Conversation {
    wire: Arc<AgentWire>,
    endpoint: Endpoint,
    trace: Option<String>,
    witness: Option<Arc<CallWitness>>,
    pub turn: AgentTurn,
    source: AnswerSource,
    wait: Duration,
    failures: usize,
    heard: usize,
}

/// Source of the next answer.
enum AnswerSource {
    /// A request before its way.
    Unsent(AgentRequest),
    /// A request is under way. The flag tells if its answer is a task alone, as that of `GetTask` is.
    Sent(BoxFuture<'static, Result<AgentAnswer, UpstreamError>>, bool),
    Events(Box<Events>),
    /// The task is looked at again after a while.
    Pause,
    /// The answer was the last one.
    Exhausted,
}

/// Reasons to end a conversation before its turn is over.
#[derive(Debug)]
pub enum CallEnd {
    Upstream(UpstreamError),
    /// The agent refused: its words, cleaned.
    Fault(String),
}

impl From<UpstreamError> for CallEnd {
    fn from(error: UpstreamError) -> Self {
        Self::Upstream(error)
    }
}

impl Conversation {
    /// Begins with a message, which is not sent before [`Self::next`] is called.
    pub fn new(wire: &Arc<AgentWire>, endpoint: &Endpoint, trace: Option<String>, message: OutgoingMessage, streams: bool) -> Self {
        let turn = AgentTurn::new(wire.limit, message.task.clone(), message.context.clone());
        Self { trace, source: AnswerSource::Unsent(AgentRequest::Send { message, streams }), ..Self::over(wire, endpoint, turn) }
    }

    /// Gives the conversation a witness of its messages and answers.
    #[must_use]
    pub fn witnessed(self, witness: Option<&Arc<CallWitness>>) -> Self {
        Self { witness: witness.cloned(), ..self }
    }

    /// A conversation whose turn is over, to be withdrawn from.
    pub fn over(wire: &Arc<AgentWire>, endpoint: &Endpoint, turn: AgentTurn) -> Self {
        let (wire, endpoint) = (Arc::clone(wire), endpoint.clone());
        Self { wire, endpoint, trace: None, witness: None, turn, source: AnswerSource::Pause, wait: WAITS[0], failures: 0, heard: 0 }
    }

    /// Waits for the next sign of the agent, and gives words about the work for people. May be dropped and called again.
    pub async fn next(&mut self) -> Result<Option<String>, CallEnd> {
        match &mut self.source {
            AnswerSource::Unsent(operation) => {
                let operation = operation.clone();
                self.send(operation, false);
                Ok(None)
            }
            AnswerSource::Sent(sent, is_task) => {
                let (reply, is_task) = (sent.await, *is_task);
                // A request that was answered is not waited for again, whatever the answer is worth.
                self.source = AnswerSource::Exhausted;
                self.take_reply(reply, is_task)
            }
            AnswerSource::Events(events) => match events.next().await {
                Ok(Some(Event::Reply(event))) => {
                    if let Some(witness) = &self.witness {
                        witness.hear_event(&event);
                    }
                    self.hear(event.len())?;
                    Ok(self.taken(|turn| turn.handle_reply(&event))?)
                }
                Ok(Some(Event::Fault(fault))) => Err(CallEnd::Fault(self.wire.plain(&fault.to_string()))),
                Ok(None) => self.look_again(UpstreamError::Lost("it ended the stream of events before the end of the task".into())),
                Err(why @ UpstreamError::Lost(_)) => self.look_again(why),
                Err(why) => Err(why.into()),
            },
            AnswerSource::Pause => {
                tokio::time::sleep(self.wait).await;
                self.wait = (self.wait * 2).min(WAITS[1]);
                let task = self.turn.task.clone().unwrap_or_default();
                self.send(AgentRequest::GetTask(task), true);
                Ok(None)
            }
            AnswerSource::Exhausted => Err(UpstreamError::Lost("it has given its last answer".into()).into()),
        }
    }

    /// Reads on in a stream whose turn is over, for the tokens of the agent, to its end or for a moment.
    pub async fn linger(&mut self) {
        let (Some(witness), AnswerSource::Events(events)) = (&self.witness, &mut self.source) else { return };
        let rest = async {
            for _ in 0..MOST_LATE {
                let Ok(Some(Event::Reply(event))) = events.next().await else { return };
                witness.hear_event(&event);
            }
        };
        drop(tokio::time::timeout(LINGERING, rest).await);
    }

    /// Cancels the task at the agent, once its id is known. Runs on when the caller is gone. Nothing is to be cancelled where nothing was sent.
    pub async fn withdraw(mut self) {
        if matches!(self.source, AnswerSource::Unsent(_)) && self.turn.task.is_none() {
            return;
        }
        let withdrawn = tokio::time::timeout(WITHDRAWING, async {
            while self.turn.task.is_none() && !self.turn.is_over() {
                self.next().await?;
            }
            if let (Some(task), false) = (self.turn.task.clone(), self.turn.is_final()) {
                Arc::clone(&self.wire).send(self.endpoint.clone(), AgentRequest::CancelTask(task), self.trace.clone(), None).await?;
            }
            Ok::<(), CallEnd>(())
        });
        match withdrawn.await {
            Ok(Ok(())) => {}
            Ok(Err(CallEnd::Upstream(why))) => tracing::debug!(%why, "a task that nobody waits for could not be cancelled"),
            Ok(Err(CallEnd::Fault(why))) => tracing::debug!(why, "an agent refused to cancel a task that nobody waits for"),
            Err(_) => tracing::debug!("an agent did not say in time which task a withdrawn call had begun"),
        }
    }

    fn take_reply(&mut self, reply: Result<AgentAnswer, UpstreamError>, is_task: bool) -> Result<Option<String>, CallEnd> {
        match reply {
            Ok(AgentAnswer::Events(events)) => {
                self.source = AnswerSource::Events(events);
                Ok(None)
            }
            Ok(AgentAnswer::Fault(words)) => Err(CallEnd::Fault(words)),
            Ok(AgentAnswer::Whole(body)) => {
                self.failures = 0;
                self.source = AnswerSource::Pause;
                let words = self.taken(|turn| if is_task { turn.handle_task(&body) } else { turn.handle_reply(&body) })?;
                if self.turn.task.is_none() && !self.turn.is_over() {
                    return Err(UpstreamError::Malformed("its answer holds neither a task nor a message".into()).into());
                }
                Ok(words)
            }
            Err(why @ (UpstreamError::Lost(_) | UpstreamError::Unreachable(_) | UpstreamError::Silent(_))) if is_task => {
                self.look_again(why)
            }
            Err(why) => Err(why.into()),
        }
    }

    /// Looks at the task again after a while. Without a task, or after too many failures in a row, `why` ends the call.
    fn look_again(&mut self, why: UpstreamError) -> Result<Option<String>, CallEnd> {
        self.failures += 1;
        if self.turn.task.is_none() || self.failures > MOST_FAILURES {
            return Err(why.into());
        }
        self.source = AnswerSource::Pause;
        Ok(None)
    }

    fn send(&mut self, operation: AgentRequest, is_task: bool) {
        let sent = Arc::clone(&self.wire).send(self.endpoint.clone(), operation, self.trace.clone(), self.witness.clone());
        self.source = AnswerSource::Sent(Box::pin(sent), is_task);
    }

    /// Counts the bytes of a stream.
    fn hear(&mut self, bytes: usize) -> Result<(), UpstreamError> {
        self.heard = self.heard.saturating_add(bytes);
        let most = self.wire.limit.saturating_mul(HEARD);
        if self.heard > most { Err(UpstreamError::TooLarge(most)) } else { Ok(()) }
    }

    fn taken(
        &mut self,
        take: impl FnOnce(&mut AgentTurn) -> Result<Option<String>, AgentTurnError>,
    ) -> Result<Option<String>, UpstreamError> {
        take(&mut self.turn).map_err(|error| match error {
            AgentTurnError::TooLarge(limit) => UpstreamError::TooLarge(limit),
            AgentTurnError::Reply(_) | AgentTurnError::OtherTask | AgentTurnError::OtherContext | AgentTurnError::BadId => {
                UpstreamError::Malformed(self.wire.plain(&error.to_string()))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use agent_proto::card::AgentCard;
    use call::tree::port::OutgoingRequest;
    use config::resolved::Remote;
    use config::secret::SystemSources;
    use mcp_proto::json::Object;
    use runtime::tls::Connector;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::mounted::steps::Steps;

    const CARD: &[u8] =
        br#"{"name":"a","supportedInterfaces":[{"url":"http://127.0.0.1:9/","protocolBinding":"JSONRPC","protocolVersion":"1.0"}],"skills":[]}"#;

    /// Makes the way to an agent that nobody has started.
    fn way(limit: usize) -> (Arc<AgentWire>, Endpoint) {
        let url = "http://127.0.0.1:9/".parse().unwrap();
        let remote = Remote { url, headers: BTreeMap::new(), oauth: None, tls: None, insecure: true };
        let wire = Arc::new(AgentWire::new(&remote, &SystemSources, &Connector::new(), limit).unwrap());
        let endpoint = wire.endpoint(&AgentCard::read(CARD).unwrap()).unwrap();
        (wire, endpoint)
    }

    #[test]
    fn an_agent_says_four_answers_in_a_call() {
        let (wire, endpoint) = way(1_000);
        let mut conversation = Conversation::over(&wire, &endpoint, AgentTurn::new(wire.limit, None, None));
        for _ in 0..HEARD {
            assert!(conversation.hear(1_000).is_ok());
        }
        assert!(matches!(conversation.hear(1), Err(UpstreamError::TooLarge(4_000))));
    }

    #[tokio::test]
    async fn withdrawals_of_a_mount_are_bounded() {
        let ((wire, endpoint), places) = (way(1_000), Arc::new(Semaphore::new(MOST_WITHDRAWALS)));
        let out = OutgoingRequest::plain("tools/call", Object::empty());
        let steps = Steps::new(&out, None, &places);
        for _ in 0..2 * MOST_WITHDRAWALS {
            steps.withdraw(Conversation::over(&wire, &endpoint, AgentTurn::new(wire.limit, None, None)));
        }
        assert_eq!((places.available_permits(), Arc::strong_count(&wire)), (0, 1 + MOST_WITHDRAWALS));
    }
}
