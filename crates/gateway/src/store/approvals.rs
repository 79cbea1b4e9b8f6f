//! What approvals have to keep over a restart: one row an approval, a grant or an operator's key. What a row says is not known here.

use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::ticket::{Ticket, Tickets};
use super::{StoreError, open};

/// How long what is over is kept, in seconds.
const KEPT: i64 = 30 * 86_400;

/// What a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Approval,
    Grant,
    /// It belongs to all gates of this user.
    Operator,
}

/// A row to be written; without a body it is taken away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) kind: Kind,
    pub(crate) id: String,
    /// Whether nothing can become of it any more, and since when: Unix time, in seconds.
    pub(crate) over: Option<u64>,
    /// JSON.
    pub(crate) body: Option<String>,
}

/// The rows of one gate.
pub(crate) struct Kept {
    connection: Connection,
    tickets: Arc<Tickets>,
    /// The turn in which it was opened, until the first one begins: whoever opens it waits once.
    own: Option<Ticket>,
    gate: String,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Grant => "grant",
            Self::Operator => "operator",
        }
    }
}

impl Kept {
    /// Opens the rows of `gate` in `dir`, and waits for a turn to begin.
    pub(crate) fn open(dir: &Path, gate: &str, now: u64) -> Result<Self, StoreError> {
        let (connection, tickets) = open(dir)?;
        let own = tickets.draw();
        connection.execute_batch(
            "CREATE TABLE IF NOT EXISTS approvals (gate TEXT, kind TEXT, id TEXT, over INTEGER, body TEXT NOT NULL, \
             PRIMARY KEY (gate, kind, id)) WITHOUT ROWID",
        )?;
        let before = i64::try_from(now).unwrap_or(i64::MAX).saturating_sub(KEPT);
        connection.execute("DELETE FROM approvals WHERE over < ?1", params![before])?;
        Ok(Self { connection, tickets, own: Some(own), gate: gate.to_owned() })
    }

    /// Begins a turn. It waits until no other gate has one, and for none that came later.
    pub(crate) fn begin(&mut self) -> Result<Turn<'_>, StoreError> {
        let ticket = self.own.take().unwrap_or_else(|| self.tickets.draw());
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        Ok(Turn { transaction, gate: &self.gate, _ticket: ticket })
    }
}

/// As long as it lasts nobody else writes: what is read in it still holds when what follows from it is written.
pub(crate) struct Turn<'a> {
    transaction: Transaction<'a>,
    gate: &'a str,
    /// Given back behind the transaction.
    _ticket: Ticket,
}

impl Turn<'_> {
    /// The bodies of all rows of a kind.
    pub(crate) fn all(&self, kind: Kind) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT body FROM approvals WHERE gate = ?1 AND kind = ?2 ORDER BY over, id";
        let mut rows = self.transaction.prepare_cached(sql)?;
        let bodies = rows.query_map(params![self.of(kind), kind.name()], |row| row.get(0))?;
        Ok(bodies.collect::<Result<_, _>>()?)
    }

    /// The body of one row.
    pub(crate) fn one(&self, kind: Kind, id: &str) -> Result<Option<String>, StoreError> {
        let mut rows = self.transaction.prepare_cached("SELECT body FROM approvals WHERE gate = ?1 AND kind = ?2 AND id = ?3")?;
        Ok(rows.query_row(params![self.of(kind), kind.name(), id], |row| row.get(0)).optional()?)
    }

    /// Writes rows, all or none, and ends the turn. They are on the disk when it returns.
    pub(crate) fn write(self, rows: &[Row]) -> Result<(), StoreError> {
        if rows.is_empty() {
            return Ok(());
        }
        for Row { kind, id, over, body } in rows {
            let (gate, over) = (self.of(*kind), over.map(|over| i64::try_from(over).unwrap_or(i64::MAX)));
            match body {
                Some(body) => self.transaction.execute(
                    "INSERT OR REPLACE INTO approvals (gate, kind, id, over, body) VALUES (?1, ?2, ?3, ?4, ?5)",
                    params![gate, kind.name(), id, over, body],
                )?,
                None => self
                    .transaction
                    .execute("DELETE FROM approvals WHERE gate = ?1 AND kind = ?2 AND id = ?3", params![gate, kind.name(), id])?,
            };
        }
        self.transaction.commit()?;
        Ok(())
    }

    fn of(&self, kind: Kind) -> &str {
        if kind == Kind::Operator { "" } else { self.gate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ax_46_rows_are_there_after_a_restart_and_operators_are_every_gates() {
        let dir = tempfile::tempdir().unwrap();
        let row = |kind, id: &str, over, body: Option<&str>| Row { kind, id: id.into(), over, body: body.map(str::to_owned) };
        let mut kept = Kept::open(dir.path(), "a", 100).unwrap();
        let rows = [
            row(Kind::Approval, "1", None, Some("one")),
            row(Kind::Approval, "2", Some(100), Some("two")),
            row(Kind::Operator, "k", None, Some("anna")),
            row(Kind::Grant, "g", None, Some("grant")),
        ];
        kept.begin().unwrap().write(&rows).unwrap();
        let changed = [row(Kind::Grant, "g", None, None), row(Kind::Approval, "1", None, Some("changed"))];
        kept.begin().unwrap().write(&changed).unwrap();
        let turn = kept.begin().unwrap();
        assert_eq!(turn.one(Kind::Approval, "1").unwrap().as_deref(), Some("changed"));
        assert_eq!(turn.one(Kind::Grant, "g").unwrap(), None);
        drop(turn);
        drop(kept);
        let at = |gate: &str, kind, now| Kept::open(dir.path(), gate, now).unwrap().begin().unwrap().all(kind).unwrap();
        let all = |gate: &str, kind| at(gate, kind, 200);
        assert_eq!(all("a", Kind::Approval), ["changed", "two"]);
        assert_eq!((all("b", Kind::Approval).len(), all("a", Kind::Grant).len()), (0, 0));
        assert_eq!(all("b", Kind::Operator), ["anna"]);
        let later = u64::try_from(KEPT).unwrap() + 101;
        assert_eq!(at("a", Kind::Approval, later), ["changed"]);
    }
}
