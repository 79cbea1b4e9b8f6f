//! Rooms in which people and agents meet (MCPx v0.1), at the gate's own listener: `GET /ws?topic=NAME`.
//!
//! Who may send what, and who gets it, is decided in `room-proto`: here are the sockets, the tasks and the time. Each room is one task; no
//! reader of its messages can make it wait.

pub mod admin;
pub mod attend;
pub mod chair;
pub mod connection;
pub mod driver;
pub mod entry;
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
pub mod who;
pub mod writer;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use config::resolved;
use config::secret::Sources;
use room_proto::name::{ConnectionId, Topic};
use room_proto::room::{Joining, RoomError, Settings};
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

pub use crate::admin::RoomAdmin;
pub use crate::attend::{AttendError, Attendance, Entrance, LONGEST, Token};
use crate::driver::{Input, Live, RoomDriver};
use crate::guest::Tickets;
use crate::lobby::Lobby;
pub use crate::mounted::{Mounted, RoomFamily};
pub use crate::part::{InstalledRooms, RoomPart};
pub use crate::secrets::Secrets;
pub use crate::socket_door::RoomDoor;
pub use crate::status::{ParticipantStatus, RoomStatus};
use crate::steward::Steward;
pub use crate::steward::resume;
use crate::table::Tables;
use crate::who::Who;
use crate::writer::{Joined, outlet};

use call::tree::gate::Gate;
use door::entrance;
use door::sign_in::SessionId;
use trust::Trust;

/// How long everybody has to hear that the gate ends.
const DRAIN: Duration = Duration::from_secs(5);

/// The rooms of one gate.
pub struct Rooms {
    pub gate: Arc<Gate>,
    trust: Arc<Trust>,
    entrance: Arc<entrance::Entrance>,
    sources: Arc<dyn Sources>,
    /// Where rooms run: connections come and go, each with a worker of its own.
    runtime: Handle,
    live: Mutex<BTreeMap<Topic, Arc<Live>>>,
    /// How many connections there were.
    connections: AtomicU64,
    /// Connections that stand open.
    pub open: TaskTracker,
    secrets: Secrets,
    tickets: Tickets,
    /// Where clients of MEW say who they are.
    lobby: Lobby,
    /// Where the gate itself sits, and learns.
    stewards: Mutex<BTreeMap<Topic, Steward>>,
    /// As whom participants came in.
    who: Who,
    /// What sits in rooms by configuration.
    tables: Tables,
    /// What rooms offer to the tree.
    mounted: Arc<Mounted>,
}

/// How somebody comes into a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// As a client of MEW, which is translated for.
    Mew,
    /// By a page of the console: a person, by this sign-in.
    Page(SessionId),
    /// By a connection of its own, or as part of the gate.
    Plain,
}

/// Why nobody was seated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotSeated {
    /// The gate ends.
    #[error("the gate ends: connect again later")]
    Ending,
    /// Something of the gate sits there under that name.
    #[error("what sits in this room by configuration has this name: choose another")]
    Taken,
    /// The room has no seat.
    #[error(transparent)]
    Room(#[from] RoomError),
}

impl Rooms {
    /// No room is open. Needs a tokio runtime, in which rooms will run.
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
            who: Who::default(),
            tables: Tables::default(),
            mounted: Arc::default(),
        })
    }

    /// Seats somebody who was let in. What the room says to it waits from here on.
    async fn join(self: &Arc<Self>, topic: &Topic, settings: &Settings, joining: &Joining, way: Way) -> Result<Joined, NotSeated> {
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

    /// The room of that name; it begins here if it is not there.
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

    /// Who learns in a room.
    fn steward(&self, topic: &Topic) -> Option<Steward> {
        let stewards = self.stewards.lock().unwrap_or_else(PoisonError::into_inner);
        stewards.get(topic).filter(|steward| !steward.is_gone()).cloned()
    }

    fn set_steward(&self, topic: &Topic, steward: Steward) {
        self.stewards.lock().unwrap_or_else(PoisonError::into_inner).insert(topic.clone(), steward);
    }

    /// A room that is open.
    fn find(&self, topic: &Topic) -> Option<Arc<Live>> {
        self.live().get(topic).cloned()
    }

    /// What rooms offer to the tree.
    pub fn mounted(&self) -> Arc<Mounted> {
        Arc::clone(&self.mounted)
    }

    /// All rooms that are open, by name.
    fn all(&self) -> Vec<Arc<Live>> {
        self.live().values().cloned().collect()
    }

    /// Seats what is to sit in rooms.
    pub fn begin(self: &Arc<Self>) {
        self.tables.apply(self);
    }

    /// Takes a changed configuration: bounds hold from now on. Whoever would not be let in any more finds out itself.
    pub fn apply(self: &Arc<Self>, config: &resolved::Rooms) {
        self.tables.apply(self);
        for room in self.all() {
            room.tell(Input::Settings(config.settings_of(room.topic()).clone()));
        }
        let stewards = self.stewards.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, steward) in stewards.iter().filter(|(topic, _)| !config.rooms.contains_key(*topic)) {
            let steward = steward.clone();
            tokio::spawn(async move { steward.ask(steward::Asked::Leave).await });
        }
    }

    /// Closes every room, and waits a little until everybody has heard of it.
    pub async fn end(&self) {
        self.open.close();
        for room in self.all() {
            room.tell(Input::End);
        }
        drop(tokio::time::timeout(DRAIN, self.open.wait()).await);
    }
}
