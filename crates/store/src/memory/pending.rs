//! Rows of approvals in memory. Turns keep nobody from writing: the revision at the end of a turn is compared with the beginning. Does not
//! know the content of a row.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::lock;
use crate::pending::KEPT;
use crate::{Pending, PendingTurn, Row, RowKind, StoreError};

/// Gate, kind and id of a row; the gate of operators is empty.
type RowKey = (String, RowKind, String);

#[derive(Default)]
pub(super) struct State {
    rows: BTreeMap<RowKey, (Option<u64>, String)>,
    revision: u64,
}

pub(super) type RowMap = Mutex<State>;

struct MemoryPending {
    shared: Arc<RowMap>,
    gate: String,
}

struct MemoryTurn<'a> {
    own: &'a MemoryPending,
    rows: BTreeMap<RowKey, (Option<u64>, String)>,
    revision: u64,
}

pub(super) fn open(shared: &Arc<RowMap>, gate: &str, now: u64) -> Box<dyn Pending> {
    lock(shared).rows.retain(|_, (over, _)| over.is_none_or(|over| over >= now.saturating_sub(KEPT)));
    Box::new(MemoryPending { shared: Arc::clone(shared), gate: gate.to_owned() })
}

impl MemoryPending {
    fn gate_of(&self, kind: RowKind) -> &str {
        if kind == RowKind::Operator { "" } else { &self.gate }
    }
}

impl Pending for MemoryPending {
    fn begin(&mut self) -> Result<Box<dyn PendingTurn + '_>, StoreError> {
        let state = lock(&self.shared);
        Ok(Box::new(MemoryTurn { rows: state.rows.clone(), revision: state.revision, own: self }))
    }
}

impl PendingTurn for MemoryTurn<'_> {
    fn all(&self, kind: RowKind) -> Result<Vec<String>, StoreError> {
        let gate = self.own.gate_of(kind);
        let mut rows: Vec<_> = self.rows.iter().filter(|((own, of, _), _)| own == gate && *of == kind).collect();
        rows.sort_by_key(|((_, _, id), (over, _))| (*over, id.clone()));
        Ok(rows.into_iter().map(|(_, (_, body))| body.clone()).collect())
    }

    fn one(&self, kind: RowKind, id: &str) -> Result<Option<String>, StoreError> {
        let key = (self.own.gate_of(kind).to_owned(), kind, id.to_owned());
        Ok(self.rows.get(&key).map(|(_, body)| body.clone()))
    }

    fn write(self: Box<Self>, rows: &[Row]) -> Result<(), StoreError> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut state = lock(&self.own.shared);
        if state.revision != self.revision {
            return Err(StoreError::Changed);
        }
        state.revision += 1;
        for Row { kind, id, over, body } in rows {
            let key = (self.own.gate_of(*kind).to_owned(), *kind, id.clone());
            match body {
                Some(body) => drop(state.rows.insert(key, (*over, body.clone()))),
                None => drop(state.rows.remove(&key)),
            }
        }
        Ok(())
    }
}
