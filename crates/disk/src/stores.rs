//! Stores of a state directory. Opens and makes nothing before the first use.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use store::{Bus, Contexts, Lessons, OpenClaims, Pending, Pins, StoreError, Stores};

use crate::bus::DiskBus;
use crate::seed;
use crate::sqlite::{self, ClaimTable, ContextTable, LessonTable, PinTable, RowTable};

/// Stores in a SQLite file, with secrets beside it.
#[derive(Debug)]
pub struct DiskStores {
    state_dir: PathBuf,
    looks: Arc<DiskBus>,
}

impl DiskStores {
    /// Stores of all gates of a state directory.
    pub fn at(state_dir: &Path) -> Arc<Self> {
        Arc::new(Self { state_dir: state_dir.to_owned(), looks: Arc::new(DiskBus::of_looks(state_dir)) })
    }

    /// News of decisions, for the watcher of its file.
    pub fn bus(&self) -> &Arc<DiskBus> {
        &self.looks
    }
}

impl Stores for DiskStores {
    fn claims(&self, gate: &str) -> BoxFuture<'static, Result<OpenClaims, StoreError>> {
        let (dir, gate) = (self.state_dir.clone(), gate.to_owned());
        Box::pin(async move {
            let (keeper, kept) = ClaimTable::open(dir, gate).await?;
            Ok::<OpenClaims, StoreError>((Arc::new(keeper), kept))
        })
    }

    fn pending(&self, gate: &str, now: u64) -> Result<Box<dyn Pending>, StoreError> {
        Ok(Box::new(RowTable::open(&self.state_dir, gate, now)?))
    }

    fn pins(&self) -> Result<Box<dyn Pins>, StoreError> {
        Ok(Box::new(PinTable::open(&self.state_dir)?))
    }

    fn lessons(&self) -> Result<Box<dyn Lessons>, StoreError> {
        Ok(Box::new(LessonTable::open(&self.state_dir)?))
    }

    fn contexts(&self) -> Result<Box<dyn Contexts>, StoreError> {
        Ok(Box::new(ContextTable::open(&self.state_dir)?))
    }

    fn has_any(&self) -> bool {
        sqlite::exists(&self.state_dir)
    }

    fn looks(&self) -> Arc<dyn Bus> {
        Arc::<DiskBus>::clone(&self.looks)
    }

    fn sealing(&self) -> Result<[u8; 32], StoreError> {
        seed::seed(&self.state_dir, seed::SEALING).map_err(|error| StoreError::Failed(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn stores_on_the_disk_keep_what_every_store_promises() {
        let (dirs, numbers) = (tempfile::tempdir().unwrap(), std::cell::Cell::new(0));
        store::contract::stores::hold(|| {
            let dir = dirs.path().join(numbers.replace(numbers.get() + 1).to_string());
            Box::new(move || DiskStores::at(&dir))
        })
        .await;
    }
}
