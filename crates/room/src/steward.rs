//! The gate's own seat in a room for learning rules (MX-23): watches people's decisions, offers rules, and fulfils by accepted ones, as
//! long as the gate runs. People are participants by a page of the console. Does not know the coverage of rules, nor who may accept.
//! Fulfils nothing while paused.

use std::collections::BTreeSet;
use std::sync::Arc;

use banyan_model::{Machine, Now};
use bytes::Bytes;
use room_proto::automation::{Automation, AutomationState, Event as Happened, Limits, OfferId, Person, RuleError, RuleId};
use room_proto::capability::Capabilities;
use room_proto::chain::Bounds;
use room_proto::name::{ParticipantId, Topic};
use room_proto::orchestrator::{Orchestrator, OrchestratorOutput};
use room_proto::participant::{Event, Participant};
use room_proto::room::{Also, Newcomer, Preferences};
use room_proto::standard;
use room_proto::voice::Utterance;
use runtime::clock::SystemClock;
use runtime::drive::{self, drive};
use serde_json::Value;
use store::{Lesson, Lessons, StoreError};
use tokio::sync::{mpsc, oneshot};

use crate::Rooms;
use crate::driver::Input;
use crate::rules::shown;
use crate::writer::SeatedConnection;
use crate::{LONGEST, NotSeated, Way};
use call::words::entered::AdmittedCaller;

/// Capabilities: calls of rules, and words about rules.
const CAPABILITIES: [&str; 3] = ["mcp/request:*", "mcp/response:*", "chat"];
/// Questions in the queue.
const ASKS: usize = 16;

/// Handle of a learner.
#[derive(Clone)]
pub struct Steward {
    pub id: ParticipantId,
    asks: mpsc::Sender<StewardQuestion>,
}

/// A question to a learner.
pub enum StewardQuestion {
    Accept { offer: OfferId, by: Person, limits: Limits, answer: oneshot::Sender<Result<RuleId, RuleError>> },
    Leave(oneshot::Sender<()>),
    Revoke { rule: RuleId, by: Person, answer: oneshot::Sender<Result<(), RuleError>> },
    Show(oneshot::Sender<Value>),
}

impl Steward {
    /// Asks the learner; `None`: it has left.
    pub async fn ask<T>(&self, asked: impl FnOnce(oneshot::Sender<T>) -> StewardQuestion) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        if self.asks.send(asked(answer)).await.is_ok() { answered.await.ok() } else { None }
    }

    /// Tells if the learner is gone.
    pub fn is_gone(&self) -> bool {
        self.asks.is_closed()
    }
}

/// Reads the lesson of a room.
pub async fn kept(rooms: &Arc<Rooms>, topic: &Topic) -> Result<Option<Lesson>, StoreError> {
    let (gate, room) = (rooms.gate.node.id.to_string(), topic.as_str().to_owned());
    stored(rooms, move |lessons| lessons.of_room(&gate, &room)).await
}

/// Resumes the learning of the last run.
pub async fn resume(rooms: Arc<Rooms>) {
    let gate = rooms.gate.node.id.to_string();
    let all = stored(&rooms, move |lessons| lessons.all(&gate)).await.unwrap_or_default();
    for learnt in all.into_iter().filter(|learnt| learnt.is_on) {
        let names = Topic::new(&learnt.room).ok().zip(ParticipantId::new(&learnt.name).ok());
        let Some((topic, id)) = names.filter(|(topic, _)| rooms.gate.config.load().rooms.rooms.contains_key(topic)) else { continue };
        if let Err(error) = begin(&rooms, &topic, id).await {
            tracing::warn!(room = topic.as_str(), %error, "no rules are learnt in this room");
        }
    }
}

/// Takes a seat, unless there is one.
pub async fn begin(rooms: &Arc<Rooms>, topic: &Topic, id: ParticipantId) -> Result<(), NotSeated> {
    if rooms.steward(topic).is_some() {
        return Ok(());
    }
    if rooms.gate.config.load().rooms.sits(topic, &id) {
        return Err(NotSeated::Taken);
    }
    let learnt = kept(rooms, topic).await.ok().flatten();
    let kept: AutomationState = learnt.and_then(|learnt| serde_json::from_str(&learnt.kept).ok()).unwrap_or_default();
    let capabilities = Capabilities::read(CAPABILITIES).unwrap_or_default();
    let joining = Newcomer {
        id: id.clone(),
        capabilities,
        preferences: Preferences { also: Also::ALL, ..Preferences::default() },
        expires: None,
        is_own: true,
        is_steward: true,
    };
    let settings = rooms.gate.config.load().rooms.settings_of(topic).clone();
    let joined = rooms.join(topic, &settings, &joining, Way::Plain).await?;
    rooms.who.came(topic, &id, joined.id, AdmittedCaller::participant(id.as_str()));
    let (asks, asked) = mpsc::channel(ASKS);
    rooms.set_steward(topic, Steward { id: id.clone(), asks });
    let participant = Participant::new(Bounds::default(), LONGEST, u128::from_ne_bytes(runtime::random::bytes()));
    let orchestrator = Orchestrator::new(participant, Automation::new(room_proto::automation::Bounds::default(), kept), BTreeSet::new());
    let seat = Seat { rooms: Arc::clone(rooms), topic: topic.clone(), id, joined, orchestrator, asked, written: None };
    rooms.runtime.spawn(seat.sit());
    Ok(())
}

async fn stored<T: Send + 'static>(
    rooms: &Arc<Rooms>,
    work: impl FnOnce(Box<dyn Lessons>) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let stores = Arc::clone(&rooms.gate.stores);
    let done = tokio::task::spawn_blocking(move || work(stores.lessons()?)).await;
    done.unwrap_or_else(|_| Err(StoreError::Failed("the store was not written to its end".to_owned())))
}

/// The seat itself.
struct Seat {
    rooms: Arc<Rooms>,
    topic: Topic,
    id: ParticipantId,
    joined: SeatedConnection,
    orchestrator: Orchestrator,
    asked: mpsc::Receiver<StewardQuestion>,
    /// The state stored last.
    written: Option<AutomationState>,
}

/// Input of the seat.
enum StewardInput {
    Asked(StewardQuestion),
    Message(Bytes),
}

/// Reason for the end of a seat.
enum SeatEnd {
    Asked,
    Lost,
}

impl drive::Driver for Seat {
    type Machine = Orchestrator;
    type Input = StewardInput;
    type End = SeatEnd;

    fn machine(&mut self) -> &mut Orchestrator {
        &mut self.orchestrator
    }

    async fn next(&mut self) -> Result<StewardInput, SeatEnd> {
        tokio::select! {
            message = self.joined.source.next() => message.map(StewardInput::Message).ok_or(SeatEnd::Lost),
            asked = self.asked.recv() => asked.map(StewardInput::Asked).ok_or(SeatEnd::Lost),
        }
    }

    async fn handle(&mut self, now: Now, heard: StewardInput) -> Result<(), SeatEnd> {
        match heard {
            StewardInput::Asked(StewardQuestion::Leave(answer)) => {
                self.keep(false).await;
                self.joined.room.send(Input::Leave(self.joined.id)).await;
                let (Ok(()) | Err(())) = answer.send(());
                return Err(SeatEnd::Asked);
            }
            StewardInput::Asked(asked) => self.answer(now, asked),
            StewardInput::Message(bytes) => {
                self.orchestrator.people = self.joined.room.people();
                self.orchestrator.handle_message(now, &bytes);
            }
        }
        Ok(())
    }

    async fn carry(&mut self, now: Now, output: OrchestratorOutput) -> Result<(), SeatEnd> {
        let participant = &mut self.orchestrator.participant;
        let spoken = match output {
            OrchestratorOutput::Room(Event::Asked(request)) => standard::respond(participant, now, &request),
            OrchestratorOutput::Room(_) => None,
            // Whoever is paused says nothing by itself; the list of rules says the same.
            OrchestratorOutput::Rule(_) if participant.paused().is_some() => None,
            OrchestratorOutput::Rule(happened) => {
                announcement(&happened, &self.orchestrator.automation).and_then(|text| participant.chat(now, &[], &text).ok())
            }
            OrchestratorOutput::Send(spoken) => Some(spoken),
        };
        if let Some(Utterance { bytes, .. }) = spoken {
            self.joined.room.send(Input::Message(self.joined.id, bytes)).await;
        }
        Ok(())
    }

    async fn rest(&mut self, _: Now) -> Result<(), SeatEnd> {
        if self.written.as_ref() != Some(self.orchestrator.automation.kept()) {
            self.keep(true).await;
        }
        Ok(())
    }
}

impl Seat {
    async fn sit(mut self) {
        match drive(&mut self, &SystemClock).await {
            SeatEnd::Asked => {}
            SeatEnd::Lost => {
                tracing::info!(room = self.topic.as_str(), "no rules are learnt in this room any more: the seat is lost");
            }
        }
    }

    fn answer(&mut self, now: Now, asked: StewardQuestion) {
        let automation = &mut self.orchestrator.automation;
        // Whoever asked may have lost patience.
        match asked {
            StewardQuestion::Accept { offer, by, limits, answer } => drop(answer.send(automation.accept(now, offer, &by, limits))),
            StewardQuestion::Leave(answer) => {
                let (Ok(()) | Err(())) = answer.send(());
            }
            StewardQuestion::Revoke { rule, by, answer } => drop(answer.send(automation.revoke(now, rule, &by))),
            StewardQuestion::Show(answer) => {
                automation.handle_timeout(now);
                let mut told = shown(automation);
                if let (Some(pause), Some(members)) = (self.orchestrator.participant.paused(), told.as_object_mut()) {
                    members.insert("paused".to_owned(), pause.to_string().into());
                }
                drop(answer.send(told));
            }
        }
    }

    async fn keep(&mut self, is_on: bool) {
        let kept = self.orchestrator.automation.kept().clone();
        let Ok(text) = serde_json::to_string(&kept) else { return };
        let (gate, room, name) = (self.rooms.gate.node.id.to_string(), self.topic.as_str().to_owned(), self.id.as_str().to_owned());
        let learnt = Lesson { room, name, is_on, kept: text };
        if let Err(error) = stored(&self.rooms, move |lessons| lessons.put(&gate, &learnt)).await {
            tracing::warn!(room = self.topic.as_str(), %error, "what was learnt in this room is not kept: it is lost when the gate ends");
        }
        self.written = Some(kept);
    }
}

/// Words for the room about an event.
fn announcement(happened: &Happened, automation: &Automation) -> Option<String> {
    match happened {
        Happened::Offered(id) => {
            let offer = automation.offers().find(|offer| offer.id == *id)?;
            Some(format!(
                "{} decisions agree, so that a rule could do this: {}. A person can accept it in the console.",
                offer.evidence.len(),
                offer.pattern
            ))
        }
        Happened::Ended(id) => {
            let rule = automation.rules().find(|rule| rule.id == *id)?;
            Some(format!("{id} has ended: {}", rule.standing))
        }
        Happened::Withheld { rule, proposal } => {
            Some(format!("{rule} has made its calls for this hour: {proposal} is for people to decide"))
        }
    }
}
