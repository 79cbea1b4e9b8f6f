//! Rooms as a part of a gate: two doors, and one kind of upstream. The sections of rooms belong to every configuration and are not here.

use std::sync::Arc;

use config::resolved::Config;

use crate::{RoomAdmin, RoomDoor, RoomFamily, Rooms, TokenDoor, resume};
use call::tree::port::Family;
use door::part::{GatePart, Ground, InstalledPart};
use door::port::Door;

/// Rooms, for the list of parts.
pub struct RoomPart;

impl GatePart for RoomPart {
    fn install(&self, ground: &Ground) -> Arc<dyn InstalledPart> {
        let rooms = Rooms::new(&ground.entrance, Arc::clone(&ground.sources));
        Arc::new(InstalledRooms { rooms, resumes: ground.is_lasting })
    }
}

/// The rooms of one gate, installed.
pub struct InstalledRooms {
    pub rooms: Arc<Rooms>,
    /// Opens the rooms of the last run again.
    resumes: bool,
}

impl InstalledPart for InstalledRooms {
    fn families(&self) -> Vec<Arc<dyn Family>> {
        vec![Arc::new(RoomFamily(self.rooms.mounted()))]
    }

    fn doors(&self) -> Vec<Arc<dyn Door>> {
        let rooms = || Arc::clone(&self.rooms);
        vec![Arc::new(RoomDoor(rooms())), Arc::new(RoomAdmin(rooms())), Arc::new(TokenDoor(rooms()))]
    }

    fn begin(&self) {
        self.rooms.begin();
        if self.resumes {
            tokio::spawn(resume(Arc::clone(&self.rooms)));
        }
    }

    fn apply(&self, config: &Config) {
        self.rooms.apply(&config.rooms);
    }

    fn is_used(&self) -> bool {
        !self.rooms.open.is_empty()
    }
}
