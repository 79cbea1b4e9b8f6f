//! Approvals over a restart: a row for each approval, grant and operator's key. Does not read the rows.

use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use store::pending::KEPT;
use store::{Pending, PendingTurn, Row, RowKind, StoreError};

use super::ticket::{Ticket, Tickets};
use super::{DiskError, open};

/// Rows of a gate.
pub(crate) struct RowTable {
    connection: Connection,
    tickets: Arc<Tickets>,
    /// Turn drawn on opening, used by the first `begin`, so that opening and beginning wait once together.
    own: Option<Ticket>,
    gate: String,
}

fn name_of(kind: RowKind) -> &'static str {
    match kind {
        RowKind::Approval => "approval",
        RowKind::Grant => "grant",
        RowKind::Operator => "operator",
    }
}

impl RowTable {
    /// Opens the rows of `gate` in `dir`, and waits for a turn to begin.
    pub(crate) fn open(dir: &Path, gate: &str, now: u64) -> Result<Self, DiskError> {
        let (connection, tickets) = open(dir)?;
        let own = tickets.draw();
        connection.execute_batch(
            "CREATE TABLE IF NOT EXISTS approvals (gate TEXT, kind TEXT, id TEXT, over INTEGER, body TEXT NOT NULL, \
             PRIMARY KEY (gate, kind, id)) WITHOUT ROWID",
        )?;
        let before = i64::try_from(now.saturating_sub(KEPT)).unwrap_or(i64::MAX);
        connection.execute("DELETE FROM approvals WHERE over < ?1", params![before])?;
        Ok(Self { connection, tickets, own: Some(own), gate: gate.to_owned() })
    }
}

/// Removes the approvals that are not over and the grants for a number of calls from the store in `file`, and counts them. A gate that
/// went on after a copy was made may have used each of them.
///
/// # Errors
/// When the file is no store.
pub fn void_open(file: &Path) -> Result<usize, StoreError> {
    let voided = || -> Result<usize, DiskError> {
        let store = Connection::open(file)?;
        let is_there = store
            .query_row("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'approvals'", [], |row| row.get::<_, i64>(0))?;
        if is_there == 0 {
            return Ok(0);
        }
        Ok(store.execute(
            "DELETE FROM approvals WHERE (kind = 'approval' AND over IS NULL) OR (kind = 'grant' AND (NOT json_valid(body) OR \
             json_extract(body, '$.terms.uses') IS NOT NULL))",
            [],
        )?)
    };
    Ok(voided()?)
}

impl Pending for RowTable {
    /// Waits until no other gate has a turn, ahead of gates that came later.
    fn begin(&mut self) -> Result<Box<dyn PendingTurn + '_>, StoreError> {
        let ticket = self.own.take().unwrap_or_else(|| self.tickets.draw());
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(DiskError::from)?;
        Ok(Box::new(Turn { transaction, gate: &self.gate, _ticket: ticket }))
    }
}

/// A turn, during which nobody else writes: rows read in it still hold when their consequences are written.
struct Turn<'a> {
    transaction: Transaction<'a>,
    gate: &'a str,
    // Dropped behind the transaction.
    _ticket: Ticket,
}

impl PendingTurn for Turn<'_> {
    fn all(&self, kind: RowKind) -> Result<Vec<String>, StoreError> {
        Ok(self.bodies(kind)?)
    }

    fn one(&self, kind: RowKind, id: &str) -> Result<Option<String>, StoreError> {
        Ok(self.body(kind, id)?)
    }

    fn write(self: Box<Self>, rows: &[Row]) -> Result<(), StoreError> {
        Ok(self.put(rows)?)
    }
}

impl Turn<'_> {
    fn bodies(&self, kind: RowKind) -> Result<Vec<String>, DiskError> {
        let sql = "SELECT body FROM approvals WHERE gate = ?1 AND kind = ?2 ORDER BY over, id";
        let mut rows = self.transaction.prepare_cached(sql)?;
        let bodies = rows.query_map(params![self.gate_of(kind), name_of(kind)], |row| row.get(0))?;
        Ok(bodies.collect::<Result<_, _>>()?)
    }

    fn body(&self, kind: RowKind, id: &str) -> Result<Option<String>, DiskError> {
        let mut rows = self.transaction.prepare_cached("SELECT body FROM approvals WHERE gate = ?1 AND kind = ?2 AND id = ?3")?;
        Ok(rows.query_row(params![self.gate_of(kind), name_of(kind), id], |row| row.get(0)).optional()?)
    }

    fn put(self, rows: &[Row]) -> Result<(), DiskError> {
        if rows.is_empty() {
            return Ok(());
        }
        for Row { kind, id, over, body } in rows {
            let (gate, over) = (self.gate_of(*kind), over.map(|over| i64::try_from(over).unwrap_or(i64::MAX)));
            match body {
                Some(body) => self.transaction.execute(
                    "INSERT OR REPLACE INTO approvals (gate, kind, id, over, body) VALUES (?1, ?2, ?3, ?4, ?5)",
                    params![gate, name_of(*kind), id, over, body],
                )?,
                None => self
                    .transaction
                    .execute("DELETE FROM approvals WHERE gate = ?1 AND kind = ?2 AND id = ?3", params![gate, name_of(*kind), id])?,
            };
        }
        self.transaction.commit()?;
        Ok(())
    }

    fn gate_of(&self, kind: RowKind) -> &str {
        if kind == RowKind::Operator { "" } else { self.gate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ax_46_rows_outlive_a_restart_and_operators_are_shared() {
        let dir = tempfile::tempdir().unwrap();
        let row = |kind, id: &str, over, body: Option<&str>| Row { kind, id: id.into(), over, body: body.map(str::to_owned) };
        let mut kept = RowTable::open(dir.path(), "a", 100).unwrap();
        let rows = [
            row(RowKind::Approval, "1", None, Some("one")),
            row(RowKind::Approval, "2", Some(100), Some("two")),
            row(RowKind::Operator, "k", None, Some("anna")),
            row(RowKind::Grant, "g", None, Some("grant")),
        ];
        kept.begin().unwrap().write(&rows).unwrap();
        let changed = [row(RowKind::Grant, "g", None, None), row(RowKind::Approval, "1", None, Some("changed"))];
        kept.begin().unwrap().write(&changed).unwrap();
        let turn = kept.begin().unwrap();
        assert_eq!(turn.one(RowKind::Approval, "1").unwrap().as_deref(), Some("changed"));
        assert_eq!(turn.one(RowKind::Grant, "g").unwrap(), None);
        drop(turn);
        drop(kept);
        let at = |gate: &str, kind, now| RowTable::open(dir.path(), gate, now).unwrap().begin().unwrap().all(kind).unwrap();
        let all = |gate: &str, kind| at(gate, kind, 200);
        assert_eq!(all("a", RowKind::Approval), ["changed", "two"]);
        assert_eq!((all("b", RowKind::Approval).len(), all("a", RowKind::Grant).len()), (0, 0));
        assert_eq!(all("b", RowKind::Operator), ["anna"]);
        let later = KEPT + 101;
        assert_eq!(at("a", RowKind::Approval, later), ["changed"]);
    }

    #[test]
    fn ax_46_open_approvals_and_counted_grants_are_voided() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(void_open(&dir.path().join("empty.db")).unwrap(), 0, "a store without approvals");
        let row = |kind, id: &str, over, body: &str| Row { kind, id: id.into(), over, body: Some(body.to_owned()) };
        let mut kept = RowTable::open(dir.path(), "a", 100).unwrap();
        let rows = [
            row(RowKind::Approval, "open", None, "open"),
            row(RowKind::Approval, "over", Some(100), "over"),
            row(RowKind::Operator, "k", None, "anna"),
            row(RowKind::Grant, "counted", Some(900), r#"{"terms":{"uses":1}}"#),
            row(RowKind::Grant, "free", Some(900), r#"{"terms":{"uses":null}}"#),
        ];
        kept.begin().unwrap().write(&rows).unwrap();
        drop(kept);
        assert_eq!(void_open(&dir.path().join("banyan.db")).unwrap(), 2);
        let all = |kind| RowTable::open(dir.path(), "a", 100).unwrap().begin().unwrap().all(kind).unwrap();
        assert_eq!((all(RowKind::Approval), all(RowKind::Operator)), (vec!["over".to_owned()], vec!["anna".to_owned()]));
        assert_eq!(all(RowKind::Grant), [r#"{"terms":{"uses":null}}"#]);
    }
}
