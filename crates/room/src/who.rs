//! Identities of participants, as callers of the gate. Admits nobody.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use room_proto::name::{ConnectionId, ParticipantId, Topic};

use call::words::entered::AdmittedCaller;

/// Identities of present participants.
#[derive(Default)]
pub struct Identities(Mutex<BTreeMap<(Topic, ParticipantId), (ConnectionId, AdmittedCaller)>>);

impl Identities {
    /// Adds a participant with a connection.
    pub fn came(&self, topic: &Topic, id: &ParticipantId, connection: ConnectionId, entered: AdmittedCaller) {
        self.lock().insert((topic.clone(), id.clone()), (connection, entered));
    }

    /// Removes a connection's participant; one connected again stays.
    pub fn went(&self, topic: &Topic, id: &ParticipantId, connection: ConnectionId) {
        let mut all = self.lock();
        let key = (topic.clone(), id.clone());
        if all.get(&key).is_some_and(|(over, _)| *over == connection) {
            all.remove(&key);
        }
    }

    /// Gives the identity of a participant; `None`: absent.
    pub fn is(&self, topic: &Topic, id: &str) -> Option<AdmittedCaller> {
        let key = (topic.clone(), ParticipantId::new(id).ok()?);
        self.lock().get(&key).map(|(_, entered)| entered.clone())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(Topic, ParticipantId), (ConnectionId, AdmittedCaller)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
