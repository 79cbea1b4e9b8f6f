//! Rules that are learnt in rooms, with what they are learnt from: one row a gate and a room. What stands in one is not known here.

use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{StoreError, Tickets, open};

/// One room's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Learnt {
    pub(crate) room: String,
    /// As whom the gate learns there.
    pub(crate) name: String,
    /// Whether it goes on.
    pub(crate) is_on: bool,
    /// JSON.
    pub(crate) kept: String,
}

/// The table.
pub(crate) struct Lessons(Connection, Arc<Tickets>);

impl Lessons {
    /// Opens the table in `dir`.
    pub(crate) fn open(dir: &Path) -> Result<Self, StoreError> {
        let (connection, tickets) = open(dir)?;
        connection.execute_batch(
            "CREATE TABLE IF NOT EXISTS lessons (gate TEXT, room TEXT, name TEXT NOT NULL, is_on INTEGER NOT NULL, kept TEXT NOT NULL, \
             PRIMARY KEY (gate, room)) WITHOUT ROWID",
        )?;
        Ok(Self(connection, tickets))
    }

    /// Those of a gate.
    pub(crate) fn all(&self, gate: &str) -> Result<Vec<Learnt>, StoreError> {
        let mut rows = self.0.prepare("SELECT room, name, is_on, kept FROM lessons WHERE gate = ?1")?;
        let rows = rows.query_map([gate], learnt)?.collect::<Result<_, _>>()?;
        Ok(rows)
    }

    /// One of them.
    pub(crate) fn of(&self, gate: &str, room: &str) -> Result<Option<Learnt>, StoreError> {
        let mut rows = self.0.prepare("SELECT room, name, is_on, kept FROM lessons WHERE gate = ?1 AND room = ?2")?;
        Ok(rows.query_row([gate, room], learnt).optional()?)
    }

    /// Keeps one, in place of what was kept before.
    pub(crate) fn put(&self, gate: &str, learnt: &Learnt) -> Result<(), StoreError> {
        let Learnt { room, name, is_on, kept } = learnt;
        let _ticket = self.1.draw();
        self.0.execute("INSERT OR REPLACE INTO lessons VALUES (?1, ?2, ?3, ?4, ?5)", params![gate, room, name, is_on, kept])?;
        Ok(())
    }
}

fn learnt(row: &Row<'_>) -> rusqlite::Result<Learnt> {
    Ok(Learnt { room: row.get(0)?, name: row.get(1)?, is_on: row.get(2)?, kept: row.get(3)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_learnt_in_a_room_is_kept_for_its_gate() {
        let dir = tempfile::tempdir().unwrap();
        let lessons = Lessons::open(dir.path()).unwrap();
        let mut ops = Learnt { room: "ops".into(), name: "rules".into(), is_on: true, kept: "{}".into() };
        lessons.put("a", &ops).unwrap();
        ops.kept = "{\"x\":1}".into();
        lessons.put("a", &ops).unwrap();
        let again = Lessons::open(dir.path()).unwrap();
        assert_eq!(again.all("a").unwrap(), [ops.clone()]);
        assert_eq!((again.of("a", "ops").unwrap(), again.of("b", "ops").unwrap()), (Some(ops), None));
    }
}
