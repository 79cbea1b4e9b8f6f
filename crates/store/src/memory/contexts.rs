//! Contexts in memory. Does not know their content.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::lock;
use crate::{ContextAddition, Contexts, KeptContext, StoreError};

pub(super) type ContextMap = Mutex<BTreeMap<(String, String), KeptContext>>;

struct MemoryContexts(Arc<ContextMap>);

pub(super) fn open(shared: &Arc<ContextMap>) -> Box<dyn Contexts> {
    Box::new(MemoryContexts(Arc::clone(shared)))
}

impl Contexts for MemoryContexts {
    fn read(&self, gate: &str, context: &str) -> Result<KeptContext, StoreError> {
        Ok(lock(&self.0).get(&(gate.to_owned(), context.to_owned())).cloned().unwrap_or_default())
    }

    fn add(&self, gate: &str, context: &str, addition: &ContextAddition) -> Result<(), StoreError> {
        let mut contexts = lock(&self.0);
        let kept = contexts.entry((gate.to_owned(), context.to_owned())).or_default();
        kept.versions.extend(addition.versions.iter().cloned());
        kept.known.extend(addition.known.iter().cloned());
        kept.epoch = addition.epoch.unwrap_or(kept.epoch);
        Ok(())
    }

    fn rebase(&self, gate: &str, context: &str, version: u64, snapshot: &[u8]) -> Result<(), StoreError> {
        let mut contexts = lock(&self.0);
        let kept = contexts.entry((gate.to_owned(), context.to_owned())).or_default();
        kept.versions.retain(|(number, _)| *number > version);
        (kept.base, kept.snapshot) = (version, snapshot.to_vec());
        Ok(())
    }
}
