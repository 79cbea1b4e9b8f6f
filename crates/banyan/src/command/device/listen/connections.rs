//! Places for connections of controllers: each controller has some at each device, and all together have a bound. Opens no connection.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Most connections of one controller to one device.
const OF_DEVICE: usize = 8;
/// Most connections of one controller, half of all.
const OF_ONE: usize = 128;
/// Most connections of all controllers.
const OF_ALL: usize = 256;

/// Connections by controller and device.
#[derive(Clone, Default)]
pub(super) struct ConnectionCounts(Arc<Mutex<BTreeMap<(String, String), usize>>>);

/// A connection that counts for its controller until dropped.
pub(super) struct CountedConnection {
    counts: ConnectionCounts,
    key: (String, String),
}

impl ConnectionCounts {
    /// Counts a connection; `None` where its controller, or all together, have as many as they may.
    pub(super) fn count(&self, controller: &str, device: &str) -> Option<CountedConnection> {
        let key = (controller.to_owned(), device.to_owned());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_one: usize = all.iter().filter(|((other, _), _)| other == controller).map(|(_, count)| count).sum();
        let of_device = all.get(&key).copied().unwrap_or(0);
        if of_device >= OF_DEVICE || of_one >= OF_ONE || all.values().sum::<usize>() >= OF_ALL {
            return None;
        }
        *all.entry(key.clone()).or_default() += 1;
        Some(CountedConnection { counts: self.clone(), key })
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        let mut all = self.counts.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = all.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nm_11_no_controller_takes_every_place() {
        let counts = ConnectionCounts::default();
        let fill = |controller: &str| -> Vec<CountedConnection> {
            (0..OF_ALL)
                .flat_map(|device| (0..OF_ALL).map_while(|_| counts.count(controller, &device.to_string())).collect::<Vec<_>>())
                .collect()
        };
        let at_one: Vec<_> = (0..).map_while(|_| counts.count("a", "r1")).collect();
        assert_eq!(at_one.len(), OF_DEVICE);
        let of_one = fill("a");
        assert_eq!(at_one.len() + of_one.len(), OF_ONE);
        assert_eq!(fill("b").len(), OF_ONE);
        drop((at_one, of_one));
        assert!(counts.count("a", "r1").is_some());
        assert!(counts.0.lock().unwrap().is_empty(), "who leaves makes room");
    }
}
