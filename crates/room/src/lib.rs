//! Rooms for people and agents (MCPx v0.1), at the gate's own listener: `GET /ws?topic=NAME`.
//!
//! `room-proto` decides on messages and receivers: here are the sockets, the tasks and the time. Each room is a task, which no slow reader
//! can hold up.

pub mod admin;
pub mod attend;
pub mod chair;
pub mod connection;
pub mod driver;
pub mod entry;
pub mod faults;
pub mod guest;
pub mod handshake;
pub mod lobby;
pub mod mew;
pub mod mounted;
pub mod part;
pub mod pass;
pub mod rules;
pub mod secrets;
pub mod socket_door;
pub mod status;
pub mod steward;
pub mod table;
pub mod token_door;
pub mod who;
pub mod writer;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use config::resolved;
use config::secret::Sources;
use room_proto::name::{ConnectionId, Topic};
use room_proto::room::{Newcomer, RoomError, Settings};
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

pub use crate::admin::RoomAdmin;
pub use crate::attend::{AttendError, Attendance, Entrance, LONGEST, Token};
use crate::driver::{Input, Live, RoomDriver};
use crate::guest::Tickets;
use crate::lobby::Lobby;
pub use crate::mounted::{RoomFamily, RoomMount};
pub use crate::part::{InstalledRooms, RoomPart};
pub use crate::secrets::Secrets;
pub use crate::socket_door::RoomDoor;
pub use crate::status::{ParticipantStatus, RoomStatus};
use crate::steward::Steward;
pub use crate::steward::resume;
use crate::table::Tables;
pub use crate::token_door::TokenDoor;
use crate::who::Identities;
use crate::writer::{SeatedConnection, outlet};

use call::judge::gate::Gate;
use door::entrance;
use door::sign_in::SessionId;
use trust::Trust;

/// Time for everybody to hear of the gate's end.
const DRAIN: Duration = Duration::from_secs(5);

/// The rooms of a gate.
pub struct Rooms {
    pub gate: Arc<Gate>,
    trust: Arc<Trust>,
    entrance: Arc<entrance::Entrance>,
    sources: Arc<dyn Sources>,
    /// Runtime of the rooms: connections come and go, each with a worker of its own.
    runtime: Handle,
    live: Mutex<BTreeMap<Topic, Arc<Live>>>,
    /// Number of connections so far.
    connections: AtomicU64,
    /// Open connections.
    pub open: TaskTracker,
    secrets: Secrets,
    tickets: Tickets,
    /// Waiting room of MEW clients.
    lobby: Lobby,
    /// Seats in which the gate itself learns.
    stewards: Mutex<BTreeMap<Topic, Steward>>,
    /// Identities of participants.
    who: Identities,
    /// Seats by configuration.
    tables: Tables,
    /// Offers of rooms to the tree.
    mounted: Arc<RoomMount>,
}

/// Way of a participant into a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// A client of MEW, whose messages are translated.
    Mew,
    /// A person by a page of the console, with this sign-in.
    Page(SessionId),
    /// A connection of its own, or a part of the gate.
    Plain,
}

/// Reasons for a missing seat.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotSeated {
    #[error("the gate ends: connect again later")]
    Ending,
    /// A seat by configuration has the name.
    #[error("what sits in this room by configuration has this name: choose another")]
    Taken,
    #[error(transparent)]
    Room(#[from] RoomError),
}

impl Rooms {
    /// Makes a gate's rooms, none of them open. Needs a tokio runtime, which will run the rooms.
    pub fn new(entrance: &Arc<entrance::Entrance>, sources: Arc<dyn Sources>) -> Arc<Self> {
        let (live, open) = (Mutex::default(), TaskTracker::new());
        Arc::new(Self {
            gate: Arc::clone(&entrance.gate),
            trust: Arc::clone(&entrance.trust),
            entrance: Arc::clone(entrance),
            sources,
            runtime: Handle::current(),
            live,
            connections: AtomicU64::new(0),
            open,
            secrets: Secrets::default(),
            tickets: Tickets::default(),
            lobby: Lobby::default(),
            stewards: Mutex::default(),
            who: Identities::default(),
            tables: Tables::default(),
            mounted: Arc::default(),
        })
    }

    /// Seats an admitted participant. Messages of the room queue up from here on.
    async fn join(
        self: &Arc<Self>,
        topic: &Topic,
        settings: &Settings,
        joining: &Newcomer,
        way: Way,
    ) -> Result<SeatedConnection, NotSeated> {
        loop {
            if self.open.is_closed() {
                return Err(NotSeated::Ending);
            }
            let id = ConnectionId(self.connections.fetch_add(1, Ordering::Relaxed));
            let room = self.room(topic, settings);
            let (outlet, joined) = outlet(id, Arc::clone(&room), settings, way);
            // A room that has just ended gives no answer: there is a new one then.
            if let Some(seated) = room.ask(|answer| Input::Join { connection: id, joining: joining.clone(), outlet, answer }).await {
                return seated.map(|()| joined).map_err(NotSeated::Room);
            }
        }
    }

    /// Finds a room, or opens a new one.
    fn room(self: &Arc<Self>, topic: &Topic, settings: &Settings) -> Arc<Live> {
        let mut live = self.live();
        if let Some(room) = live.get(topic).filter(|room| !room.is_over()) {
            return Arc::clone(room);
        }
        let (room, driver) = RoomDriver::new(Arc::clone(self), topic.clone(), settings.clone());
        live.insert(topic.clone(), Arc::clone(&room));
        self.runtime.spawn(driver.run());
        room
    }

    fn live(&self) -> MutexGuard<'_, BTreeMap<Topic, Arc<Live>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds the learner in a room.
    fn steward(&self, topic: &Topic) -> Option<Steward> {
        let stewards = self.stewards.lock().unwrap_or_else(PoisonError::into_inner);
        stewards.get(topic).filter(|steward| !steward.is_gone()).cloned()
    }

    fn set_steward(&self, topic: &Topic, steward: Steward) {
        self.stewards.lock().unwrap_or_else(PoisonError::into_inner).insert(topic.clone(), steward);
    }

    /// Finds an open room.
    fn find(&self, topic: &Topic) -> Option<Arc<Live>> {
        self.live().get(topic).cloned()
    }

    /// Gives the offers of rooms to the tree.
    pub fn mounted(&self) -> Arc<RoomMount> {
        Arc::clone(&self.mounted)
    }

    /// Lists the open rooms, by name.
    fn all(&self) -> Vec<Arc<Live>> {
        self.live().values().cloned().collect()
    }

    /// Fills the seats by configuration.
    pub fn begin(self: &Arc<Self>) {
        self.tables.apply(self);
    }

    /// Applies a changed configuration: bounds hold from now on. Connections check their admission themselves.
    pub fn apply(self: &Arc<Self>, config: &resolved::Rooms) {
        self.tables.apply(self);
        for room in self.all() {
            room.tell(Input::Settings(config.settings_of(room.topic()).clone()));
        }
        let stewards = self.stewards.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, steward) in stewards.iter().filter(|(topic, _)| !config.rooms.contains_key(*topic)) {
            let steward = steward.clone();
            tokio::spawn(async move { steward.ask(steward::StewardQuestion::Leave).await });
        }
    }

    /// Closes every room, and waits a little for everybody to hear.
    pub async fn close_all(&self) {
        self.open.close();
        for room in self.all() {
            room.tell(Input::End);
        }
        drop(tokio::time::timeout(DRAIN, self.open.wait()).await);
    }
}
