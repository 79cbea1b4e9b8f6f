//! Who the participants of rooms are to the gate: as whom each came in. Whoever calls something from a room does so as that. Who may come in is not
//! decided here.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use room_proto::name::{ConnectionId, ParticipantId, Topic};

use call::words::entered::Entered;

/// Those who are there.
#[derive(Default)]
pub struct Who(Mutex<BTreeMap<(Topic, ParticipantId), (ConnectionId, Entered)>>);

impl Who {
    /// Somebody is there now, over this connection.
    pub fn came(&self, topic: &Topic, id: &ParticipantId, connection: ConnectionId, entered: Entered) {
        self.lock().insert((topic.clone(), id.clone()), (connection, entered));
    }

    /// A connection is gone; whoever has connected again stays.
    pub fn went(&self, topic: &Topic, id: &ParticipantId, connection: ConnectionId) {
        let mut all = self.lock();
        let key = (topic.clone(), id.clone());
        if all.get(&key).is_some_and(|(over, _)| *over == connection) {
            all.remove(&key);
        }
    }

    /// As whom a participant came in; `None`: it is not there any more.
    pub fn is(&self, topic: &Topic, id: &str) -> Option<Entered> {
        let key = (topic.clone(), ParticipantId::new(id).ok()?);
        self.lock().get(&key).map(|(_, entered)| entered.clone())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(Topic, ParticipantId), (ConnectionId, Entered)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
