//! Seats by configuration: mounts, or the whole tree, as participants with tools for others, and beside them the gate itself, which fulfils
//! proposals approved at its inbox, and calls the offers of others in a mounted room. Each has tasks of its own, so that none holds up a
//! room. Requests to them go the one way of every call (`call/mod.rs`).

pub mod asking;
pub mod lists;
pub mod seat;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use banyan_model::Segment;
use config::resolved::{Seats, gate_seat};
use room_proto::name::{ParticipantId, Topic};
use room_proto::room::{Preferences, Routing};
use room_proto::standard::Bystander;
use runtime::clock::{Clock, SystemClock};
use runtime::random;
use tokio_util::sync::CancellationToken;

use crate::NotSeated;
use crate::Rooms;
use crate::chair::{Chair, Place};
use crate::mounted::Passage;

/// Pause before a lost seat is taken again.
const AGAIN: Duration = Duration::from_secs(1);
/// Capabilities of the gate in its own name.
const MAY: [&str; 4] = ["mcp/request:*", "mcp/response:*", "mcp/reject:*", "chat"];

/// Seats in the rooms of a gate.
#[derive(Default)]
pub struct Tables(Mutex<BTreeMap<Topic, Table>>);

struct Table {
    seats: Seats,
    ends: CancellationToken,
}

impl Tables {
    /// Applies a configuration: vacates seats, and takes new ones.
    pub fn apply(&self, rooms: &Arc<Rooms>) {
        let config = rooms.gate.config.load_full();
        let wanted = |topic: &Topic| config.rooms.rooms.get(topic).map(|room| &room.seats).filter(|seats| !seats.is_empty());
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tables.retain(|topic, table| {
            let stays = wanted(topic) == Some(&table.seats);
            if !stays {
                table.ends.cancel();
            }
            stays
        });
        for topic in config.rooms.rooms.keys() {
            let Some(seats) = wanted(topic).filter(|_| !tables.contains_key(topic)) else { continue };
            let ends = rooms.gate.stop.child_token();
            begin(rooms, topic, seats, &ends);
            tables.insert(topic.clone(), Table { seats: seats.clone(), ends });
        }
    }
}

/// Fills the seats of a room.
fn begin(rooms: &Arc<Rooms>, topic: &Topic, seats: &Seats, ends: &CancellationToken) {
    let gate = Place::default();
    let of = |id: &ParticipantId| {
        let is_counting = seats.servers.keys().next() == Some(id);
        Sits { rooms: Arc::clone(rooms), topic: topic.clone(), id: id.clone(), gate: gate.clone(), is_counting }
    };
    let run = |task: std::pin::Pin<Box<dyn Future<Output = ()> + Send>>| {
        let ends = ends.clone();
        rooms.runtime.spawn(async move { ends.run_until_cancelled(task).await.unwrap_or_default() });
    };
    run(Box::pin(of(&gate_seat()).be_gate(seats.clone())));
    for (id, mount) in &seats.servers {
        run(Box::pin(of(id).be_server(mount.clone())));
    }
}

/// An occupant of a seat.
pub struct Sits {
    rooms: Arc<Rooms>,
    topic: Topic,
    id: ParticipantId,
    /// The gate's own place.
    gate: Place,
    /// Counts false messages: a single seat of a room, for all seats see the same.
    is_counting: bool,
}

impl Sits {
    async fn be_gate(self, seats: Seats) {
        let preferences = Preferences { routing: Routing::Directed, echo: false, ..Preferences::default() };
        while let Some(mut chair) = self.chair(&MAY, preferences).await {
            self.gate.set(Some(chair.voice.clone()));
            if seats.is_mounted {
                Passage::new(&self.rooms, &self.topic, &mut chair, seats.servers.keys()).run().await;
            }
            // Answers to requests in the gate's name reach the requesters themselves.
            let mut gate = Bystander::new(u128::from_ne_bytes(random::bytes()));
            while let Some(message) = chair.next().await {
                for said in gate.handle_message(SystemClock.now(), &message) {
                    _ = chair.voice.say(said).await;
                }
            }
            self.gate.set(None);
            tokio::time::sleep(AGAIN).await;
        }
    }

    async fn be_server(self, mount: Option<Segment>) {
        while let Some(chair) = self.chair(&seat::MAY, seat::PREFERENCES).await {
            seat::Seat::new(&self, chair, mount.clone()).run().await;
            tracing::info!(room = self.topic.as_str(), seat = self.id.as_str(), "a server lost its seat in a room and sits down again");
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Takes a chair, as soon as possible; `None`: the gate ends.
    async fn chair(&self, may: &[&str], preferences: Preferences) -> Option<Chair> {
        loop {
            let config = self.rooms.gate.config.load_full();
            match Chair::take_seat(&self.rooms, &config.rooms, &self.topic, &self.id, may, preferences).await {
                Ok(chair) => return Some(chair),
                Err(NotSeated::Ending) => return None,
                Err(why) => {
                    tracing::warn!(room = self.topic.as_str(), seat = self.id.as_str(), %why, "a server can't sit in a room");
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }
}
