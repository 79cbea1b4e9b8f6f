//! Stores in memory: for tests, and for state of a single run. Knows no files.

mod budget;
mod bus;
mod claims;
mod contexts;
mod journal;
mod lessons;
mod pending;
mod pins;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::{BoxFuture, ready};

pub use budget::MemoryBudget;
pub use bus::MemoryBus;
pub use journal::MemoryJournal;

use crate::stores::OpenClaims;
use crate::{Bus, Contexts, Lessons, Pending, Pins, StoreError, Stores};

/// Stores that end with their last clone: clones are the same stores, as another gate or a later run sees them.
#[derive(Clone, Default)]
pub struct MemoryStores {
    claims: Arc<claims::ClaimMap>,
    rows: Arc<pending::RowMap>,
    pins: Arc<pins::PinShelf>,
    lessons: Arc<lessons::LessonMap>,
    contexts: Arc<contexts::ContextMap>,
    looks: Arc<bus::BusLine>,
}

impl Stores for MemoryStores {
    fn claims(&self, gate: &str) -> BoxFuture<'static, Result<OpenClaims, StoreError>> {
        Box::pin(ready(Ok(claims::open(&self.claims, gate))))
    }

    fn pending(&self, gate: &str, now: u64) -> Result<Box<dyn Pending>, StoreError> {
        Ok(pending::open(&self.rows, gate, now))
    }

    fn pins(&self) -> Result<Box<dyn Pins>, StoreError> {
        Ok(pins::open(&self.pins))
    }

    fn lessons(&self) -> Result<Box<dyn Lessons>, StoreError> {
        Ok(lessons::open(&self.lessons))
    }

    fn contexts(&self) -> Result<Box<dyn Contexts>, StoreError> {
        Ok(contexts::open(&self.contexts))
    }

    fn has_any(&self) -> bool {
        true
    }

    fn looks(&self) -> Arc<dyn Bus> {
        Arc::new(MemoryBus::on(&self.looks))
    }

    fn sealing(&self) -> Result<[u8; 32], StoreError> {
        Err(StoreError::Failed("what is in memory ends with it".to_owned()))
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn stores_in_memory_keep_what_every_store_promises() {
        crate::contract::stores::hold(|| {
            let stores = MemoryStores::default();
            Box::new(move || Arc::new(stores.clone()))
        })
        .await;
    }

    #[test]
    fn a_budget_in_memory_keeps_what_every_budget_promises() {
        crate::contract::budget::holds(|| Arc::new(MemoryBudget::default()));
    }
}
