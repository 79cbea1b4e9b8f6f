//! Rules learnt in rooms, with the examples behind them: a row for each room of a gate. Does not read the rows.

use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row, params};
use store::{Lesson, Lessons, StoreError};

use super::{DiskError, Tickets, open};

pub(crate) struct LessonTable(Connection, Arc<Tickets>);

impl LessonTable {
    /// Opens the table in `dir`.
    pub(crate) fn open(dir: &Path) -> Result<Self, DiskError> {
        let (connection, tickets) = open(dir)?;
        connection.execute_batch(
            "CREATE TABLE IF NOT EXISTS lessons (gate TEXT, room TEXT, name TEXT NOT NULL, is_on INTEGER NOT NULL, kept TEXT NOT NULL, \
             PRIMARY KEY (gate, room)) WITHOUT ROWID",
        )?;
        Ok(Self(connection, tickets))
    }

    fn read_all(&self, gate: &str) -> Result<Vec<Lesson>, DiskError> {
        let mut rows = self.0.prepare("SELECT room, name, is_on, kept FROM lessons WHERE gate = ?1")?;
        let rows = rows.query_map([gate], learnt)?.collect::<Result<_, _>>()?;
        Ok(rows)
    }

    fn read(&self, gate: &str, room: &str) -> Result<Option<Lesson>, DiskError> {
        let mut rows = self.0.prepare("SELECT room, name, is_on, kept FROM lessons WHERE gate = ?1 AND room = ?2")?;
        Ok(rows.query_row([gate, room], learnt).optional()?)
    }

    fn write(&self, gate: &str, learnt: &Lesson) -> Result<(), DiskError> {
        let Lesson { room, name, is_on, kept } = learnt;
        let _ticket = self.1.draw();
        self.0.execute("INSERT OR REPLACE INTO lessons VALUES (?1, ?2, ?3, ?4, ?5)", params![gate, room, name, is_on, kept])?;
        Ok(())
    }
}

impl Lessons for LessonTable {
    fn all(&self, gate: &str) -> Result<Vec<Lesson>, StoreError> {
        Ok(self.read_all(gate)?)
    }

    fn of_room(&self, gate: &str, room: &str) -> Result<Option<Lesson>, StoreError> {
        Ok(self.read(gate, room)?)
    }

    fn put(&self, gate: &str, lesson: &Lesson) -> Result<(), StoreError> {
        Ok(self.write(gate, lesson)?)
    }
}

fn learnt(row: &Row<'_>) -> rusqlite::Result<Lesson> {
    Ok(Lesson { room: row.get(0)?, name: row.get(1)?, is_on: row.get(2)?, kept: row.get(3)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lessons_of_a_room_are_kept_for_its_gate() {
        let dir = tempfile::tempdir().unwrap();
        let lessons = LessonTable::open(dir.path()).unwrap();
        let mut ops = Lesson { room: "ops".into(), name: "rules".into(), is_on: true, kept: "{}".into() };
        lessons.put("a", &ops).unwrap();
        ops.kept = "{\"x\":1}".into();
        lessons.put("a", &ops).unwrap();
        let again = LessonTable::open(dir.path()).unwrap();
        assert_eq!(again.all("a").unwrap(), [ops.clone()]);
        assert_eq!((again.of_room("a", "ops").unwrap(), again.of_room("b", "ops").unwrap()), (Some(ops), None));
    }
}
