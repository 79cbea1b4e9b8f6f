//! News among gates in one process. Keeps no content of news.

use std::sync::{Arc, Mutex, Weak};

use futures_util::future::BoxFuture;
use tokio::sync::Notify;

use super::lock;
use crate::Bus;

/// All listeners.
pub(super) type BusLine = Mutex<Vec<Weak<Notify>>>;

/// End of a line.
pub struct MemoryBus {
    line: Arc<BusLine>,
    own: Arc<Notify>,
}

impl MemoryBus {
    /// Listens on a line.
    pub(super) fn on(line: &Arc<BusLine>) -> Self {
        let own = Arc::new(Notify::new());
        let mut all = lock(line);
        all.retain(|one| one.strong_count() > 0);
        all.push(Arc::downgrade(&own));
        Self { line: Arc::clone(line), own }
    }
}

impl Bus for MemoryBus {
    fn tell(&self) {
        lock(&self.line).iter().filter_map(Weak::upgrade).for_each(|one| one.notify_one());
    }

    fn heard(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.own.notified())
    }
}
