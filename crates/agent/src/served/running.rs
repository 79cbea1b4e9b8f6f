//! Translated requests of MCP under way, which their clients name by the ids of requests. Runs none.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use banyan_model::Principal;

use crate::served::tasks::Tasks;

/// A caller, and the raw id of a request.
type RequestKey = (Principal, Vec<u8>);

/// Tasks of requests under way. Each has an open connection, so the listener bounds their number.
#[derive(Default)]
pub struct RunningRequests(Mutex<HashMap<RequestKey, String>>);

/// A request under way, until dropped. A client that closes the connection of a request has cancelled the request.
pub struct RunningRequest {
    key: RequestKey,
    task: String,
    tasks: Arc<Tasks>,
    requests: Arc<RunningRequests>,
}

impl RunningRequests {
    /// Notes a request of `owner`.
    pub fn begin(self: &Arc<Self>, owner: &Principal, raw: &[u8], task: &str, tasks: &Arc<Tasks>) -> RunningRequest {
        let key = (owner.clone(), raw.to_vec());
        self.lock().insert(key.clone(), task.to_owned());
        RunningRequest { key, task: task.to_owned(), tasks: Arc::clone(tasks), requests: Arc::clone(self) }
    }

    /// Finds the task of a request.
    pub fn find(&self, owner: &Principal, raw: &[u8]) -> Option<String> {
        self.lock().get(&(owner.clone(), raw.to_vec())).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RequestKey, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        let mut running = self.requests.lock();
        if running.get(&self.key) == Some(&self.task) {
            running.remove(&self.key);
        }
        drop(running);
        let is_working = |state: tokio::sync::watch::Receiver<_>| !agent_proto::task::TaskState::is_waiting(*state.borrow());
        if self.tasks.watch(&self.key.0, &self.task).is_ok_and(is_working) {
            // The task may have ended meanwhile.
            drop(self.tasks.cancel(&self.key.0, &self.task));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::served::fixtures::{call, token};
    use crate::served::onward::Onward;

    #[test]
    fn ae_18_a_request_let_go_cancels_its_task() {
        let (tasks, requests) = (Arc::new(Tasks::default()), Arc::new(RunningRequests::default()));
        let begin = |message: &str| match tasks.begin(&token("alice"), message, None, call()) {
            Ok(Onward::Begun(begun)) => begun,
            _ => panic!("no task"),
        };
        let (first, second) = (begin("m"), begin("n"));
        let running = requests.begin(&token("alice"), b"1", &first.id, &tasks);
        assert_eq!((requests.find(&token("alice"), b"1"), requests.find(&token("bob"), b"1")), (Some(first.id), None));
        let again = requests.begin(&token("alice"), b"1", &second.id, &tasks);
        drop(running);
        assert!(first.cancel.is_cancelled() && !second.cancel.is_cancelled());
        assert_eq!(requests.find(&token("alice"), b"1"), Some(second.id.clone()), "an id that comes again is that of the later request");
        tasks.attend(&second.id, Some("Ask bob."));
        drop(again);
        assert!(!second.cancel.is_cancelled(), "a call that waits for a person outlives the answer that says so");
        assert!(requests.lock().is_empty());
    }
}
