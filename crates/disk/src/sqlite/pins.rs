//! Definitions seen: a row for each, for all gates of this user. Does not decide how a definition stands.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use policy::pin::{Definition, Kind, Known, Standing, Why};
use rusqlite::{Connection, Row, params};
use store::pins::{Apart, MOST, MOST_HELD, MOST_PASSING, MOST_PASSING_HELD, Pin, Source, Together};
use store::{Pins, StoreError};

use super::{DiskError, Tickets, breathe, open};

/// Decisions remembered for gates that have not heard of them.
const MOST_LOOKS: i64 = 10_000;
/// Most servers remembered as gates; those beyond are taken for none.
const MOST_GATES: usize = 10_000;

/// Table of definitions.
pub(crate) struct PinTable {
    connection: Connection,
    tickets: Arc<Tickets>,
    /// Set once a batch was written.
    has_written: bool,
}

const COLUMNS: &str = "mount, server, kind, name, standing, why, since, definition";

impl PinTable {
    /// Opens the table in `dir`, and takes over the tools of earlier versions.
    pub(crate) fn open(dir: &Path) -> Result<Self, DiskError> {
        let (connection, tickets) = open(dir)?;
        connection.execute_batch(
            "CREATE TABLE IF NOT EXISTS definitions (mount TEXT, server TEXT, kind TEXT, name TEXT, hash TEXT, standing TEXT NOT NULL, why TEXT \
             NOT NULL, since INTEGER NOT NULL, definition TEXT NOT NULL, PRIMARY KEY (mount, server, kind, name, hash)) WITHOUT ROWID; \
             CREATE TABLE IF NOT EXISTS gates (mount TEXT, server TEXT, since INTEGER NOT NULL, PRIMARY KEY (mount, server)) WITHOUT ROWID; \
             CREATE TABLE IF NOT EXISTS looks (at INTEGER PRIMARY KEY AUTOINCREMENT, since INTEGER NOT NULL, mount TEXT, kind TEXT)",
        )?;
        if connection.table_exists(None, "pins")? {
            connection.execute_batch(
                "BEGIN IMMEDIATE; CREATE TABLE IF NOT EXISTS pins (mount, server, tool, hash, standing, why, since, definition); \
                 INSERT OR IGNORE INTO definitions SELECT mount, server, 'tool', tool, hash, standing, why, since, definition FROM pins; \
                 DROP TABLE pins; COMMIT",
            )?;
        }
        Ok(Self { connection, tickets, has_written: false })
    }

    /// Does `work` in one transaction, on the disk at the end.
    ///
    /// # Errors
    /// Then nothing of the work is on the disk.
    fn together(&mut self, work: impl FnOnce(&mut Self)) -> Result<(), DiskError> {
        if std::mem::replace(&mut self.has_written, true) {
            breathe();
        }
        let _ticket = self.tickets.draw();
        // A transaction that begins by reading would be refused after a write of another gate.
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        work(self);
        self.connection.execute_batch("COMMIT").inspect_err(|_| drop(self.connection.execute_batch("ROLLBACK")))?;
        Ok(())
    }

    /// Does `work` as one part of a transaction. A failed part leaves nothing behind.
    fn apart<E: From<DiskError>>(&mut self, work: impl FnOnce(&mut Self) -> Result<(), E>) -> Result<(), E> {
        self.connection.execute_batch("SAVEPOINT one").map_err(DiskError::from)?;
        let done = work(self);
        let end = if done.is_ok() { "RELEASE one" } else { "ROLLBACK TO one; RELEASE one" };
        self.connection.execute_batch(end).map_err(DiskError::from)?;
        done
    }

    /// Reads what is known of a server's definitions of a kind.
    fn known(&self, source: &Source, kind: Kind) -> Result<BTreeMap<String, Vec<Known>>, DiskError> {
        let mut rows =
            self.connection.prepare("SELECT name, hash, standing, why FROM definitions WHERE mount = ?1 AND server = ?2 AND kind = ?3")?;
        let rows = rows.query_map(params![source.mount, source.server, kind.as_str()], |row| {
            let word = |at| row.get::<_, String>(at);
            Ok((word(0)?, word(1)?, word(2)?, word(3)?))
        })?;
        let mut known: BTreeMap<String, Vec<Known>> = BTreeMap::new();
        for row in rows {
            let (name, hash, standing, why) = row?;
            let (Some(hash), Some(standing), Some(why)) = (config::hex_digest(&hash), Standing::parse(&standing), Why::parse(&why)) else {
                continue;
            };
            known.entry(name).or_default().push(Known { hash, standing, why });
        }
        Ok(known)
    }

    /// Adds definitions of a server, of one kind, all or none. Where others may write, within [`PinTable::together`].
    fn add(&mut self, source: &Source, kind: Kind, pins: &[Pin]) -> Result<(), DiskError> {
        let Source { mount, server } = source;
        let transaction = self.connection.savepoint()?;
        let of = "FROM definitions WHERE mount = ?1 AND server = ?2 AND kind = ?3";
        let count = format!("SELECT count(*), count(*) FILTER (WHERE standing = 'held') {of}");
        let (count, held): (usize, usize) =
            transaction.query_row(&count, params![mount, server, kind.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let (most, most_held) = if kind.comes_and_goes() { (MOST_PASSING, MOST_PASSING_HELD) } else { (MOST, MOST) };
        let (waiting, good): (Vec<&Pin>, Vec<&Pin>) = pins.iter().partition(|pin| pin.standing == Standing::Held);
        let added = waiting.into_iter().take(most_held.saturating_sub(held)).chain(good.into_iter().take(most.saturating_sub(count)));
        let mut insert = transaction
            .prepare(&format!("INSERT OR IGNORE INTO definitions ({COLUMNS}, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"))?;
        for Pin { kind, name, standing, why, since, definition, .. } in added {
            let (kind, hash) = (kind.as_str(), policy::approval::hex(&definition.hash()));
            insert.execute(params![mount, server, kind, name, standing.as_str(), why.as_str(), since, definition.text(), hash])?;
            if *standing != Standing::Held {
                continue;
            }
            let held = format!("{of} AND name = ?4 AND standing = 'held'");
            transaction.execute(
                &format!("DELETE {held} AND hash NOT IN (SELECT hash {held} ORDER BY since DESC, hash = ?6 DESC LIMIT ?5)"),
                params![mount, server, kind, name, MOST_HELD, hash],
            )?;
        }
        drop(insert);
        transaction.commit()?;
        Ok(())
    }

    /// Latest accepted definition of a name.
    fn last_good(&self, source: &Source, kind: Kind, name: &str) -> Result<Option<Definition>, DiskError> {
        let mut found = self.connection.prepare(
            "SELECT definition FROM definitions WHERE mount = ?1 AND server = ?2 AND kind = ?3 AND name = ?4 AND standing = 'accepted' \
             ORDER BY since DESC LIMIT 1",
        )?;
        let mut rows = found.query_map(params![source.mount, source.server, kind.as_str(), name], |row| row.get(0))?;
        Ok(rows.next().transpose()?.map(Definition::of_text))
    }

    /// Definitions of a mount, or of all: tools first, by name, the oldest first.
    fn all(&self, mount: Option<&str>) -> Result<Vec<Pin>, DiskError> {
        let sql =
            format!("SELECT {COLUMNS} FROM definitions WHERE ?1 IS NULL OR mount = ?1 ORDER BY mount, server, kind DESC, name, since");
        let mut rows = self.connection.prepare(&sql)?;
        let pins = rows.query_map(params![mount], pin)?;
        Ok(pins.filter_map(Result::transpose).collect::<Result<_, _>>()?)
    }

    /// Checks whether a server that says that it is a gate said so when it was first seen; remembered from now on, if it was never seen. One of which
    /// definitions are remembered was seen, and was none, unless `is_pinned_as_gate`.
    fn was_gate(&mut self, source: &Source, is_pinned_as_gate: bool, now: u64) -> Result<bool, DiskError> {
        let Source { mount, server } = source;
        let exists = |sql: &str| self.connection.query_row(sql, params![mount, server], |row| row.get::<_, bool>(0));
        if exists("SELECT EXISTS (SELECT 1 FROM gates WHERE mount = ?1 AND server = ?2)")? {
            return Ok(true);
        }
        if !is_pinned_as_gate && exists("SELECT EXISTS (SELECT 1 FROM definitions WHERE mount = ?1 AND server = ?2)")? {
            return Ok(false);
        }
        if self.connection.query_row("SELECT count(*) FROM gates", [], |row| row.get::<_, usize>(0))? >= MOST_GATES {
            return Ok(false);
        }
        self.connection.execute("INSERT OR IGNORE INTO gates (mount, server, since) VALUES (?1, ?2, ?3)", params![mount, server, now])?;
        Ok(true)
    }

    /// Sets the standing of a definition, by a person's decision.
    fn set(&mut self, pin: &Pin, standing: Standing, now: u64) -> Result<(), DiskError> {
        let Source { mount, server } = &pin.source;
        let (kind, hash) = (pin.kind.as_str(), policy::approval::hex(&pin.definition.hash()));
        let transaction = self.connection.savepoint()?;
        transaction.execute(
            "UPDATE definitions SET standing = ?1, since = ?2 WHERE mount = ?3 AND server = ?4 AND kind = ?5 AND name = ?6 AND hash = ?7",
            params![standing.as_str(), now, mount, server, kind, pin.name, hash],
        )?;
        transaction.execute("INSERT INTO looks (since, mount, kind) VALUES (?1, ?2, ?3)", params![now, mount, kind])?;
        transaction.execute("DELETE FROM looks WHERE at <= (SELECT max(at) FROM looks) - ?1", params![MOST_LOOKS])?;
        transaction.commit()?;
        Ok(())
    }

    /// Number of the last decision before `since`.
    fn looked(&self, since: u64) -> Result<i64, DiskError> {
        Ok(self.connection.query_row("SELECT coalesce(max(at), 0) FROM looks WHERE since < ?1", params![since], |row| row.get(0))?)
    }

    /// Decisions after the one numbered `at`, of any gate: mounts and kinds, with the last number.
    fn looks_after(&self, at: i64) -> Result<(i64, Vec<(String, Kind)>), DiskError> {
        let mut rows = self.connection.prepare_cached("SELECT at, mount, kind FROM looks WHERE at > ?1 ORDER BY at")?;
        let rows = rows.query_map(params![at], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?)))?;
        let (mut last, mut looks) = (at, Vec::new());
        for row in rows {
            let (at, mount, kind) = row?;
            last = at;
            looks.extend(Kind::parse(&kind).map(|kind| (mount, kind)));
        }
        Ok((last, looks))
    }
}

impl Pins for PinTable {
    fn together(&mut self, work: Together<'_>) -> Result<(), StoreError> {
        Ok(Self::together(self, |own| work(own))?)
    }

    fn apart(&mut self, work: Apart<'_>) -> Result<(), StoreError> {
        Self::apart(self, |own| work(own))
    }

    fn known(&self, source: &Source, kind: Kind) -> Result<BTreeMap<String, Vec<Known>>, StoreError> {
        Ok(Self::known(self, source, kind)?)
    }

    fn add(&mut self, source: &Source, kind: Kind, pins: &[Pin]) -> Result<(), StoreError> {
        Ok(Self::add(self, source, kind, pins)?)
    }

    fn last_good(&self, source: &Source, kind: Kind, name: &str) -> Result<Option<Definition>, StoreError> {
        Ok(Self::last_good(self, source, kind, name)?)
    }

    fn all(&self, mount: Option<&str>) -> Result<Vec<Pin>, StoreError> {
        Ok(Self::all(self, mount)?)
    }

    fn was_gate(&mut self, source: &Source, is_pinned_as_gate: bool, now: u64) -> Result<bool, StoreError> {
        Ok(Self::was_gate(self, source, is_pinned_as_gate, now)?)
    }

    fn set(&mut self, pin: &Pin, standing: Standing, now: u64) -> Result<(), StoreError> {
        Ok(Self::set(self, pin, standing, now)?)
    }

    fn looked(&self, since: u64) -> Result<i64, StoreError> {
        Ok(Self::looked(self, since)?)
    }

    fn looks_after(&self, at: i64) -> Result<(i64, Vec<(String, Kind)>), StoreError> {
        Ok(Self::looks_after(self, at)?)
    }
}

/// Reads a row; `None` for rows of a later version.
fn pin(row: &Row<'_>) -> rusqlite::Result<Option<Pin>> {
    let (kind, standing, why): (String, String, String) = (row.get(2)?, row.get(4)?, row.get(5)?);
    let (Some(kind), Some(standing), Some(why)) = (Kind::parse(&kind), Standing::parse(&standing), Why::parse(&why)) else {
        return Ok(None);
    };
    let source = Source { mount: row.get(0)?, server: row.get(1)? };
    Ok(Some(Pin { source, kind, name: row.get(3)?, standing, why, since: row.get(6)?, definition: Definition::of_text(row.get(7)?) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_outlive_a_restart_and_are_bounded_by_tool() {
        let dir = tempfile::tempdir().unwrap();
        let source = Source { mount: "m".into(), server: "s".into() };
        let pin = |n: u64, standing| Pin {
            source: source.clone(),
            kind: Kind::Tool,
            name: "t".into(),
            standing,
            why: Why::Changed,
            since: n,
            definition: Definition::of_text(n.to_string()),
        };
        let mut pins = PinTable::open(dir.path()).unwrap();
        pins.add(&source, Kind::Tool, &[pin(0, Standing::Accepted)]).unwrap();
        (1..20).for_each(|n| pins.add(&source, Kind::Tool, &[pin(n, Standing::Held)]).unwrap());
        drop(pins);
        let mut pins = PinTable::open(dir.path()).unwrap();
        assert_eq!(pins.known(&source, Kind::Tool).unwrap()["t"].len(), 9);
        let all = pins.all(Some("m")).unwrap();
        assert_eq!(all.iter().map(|p| p.since).collect::<Vec<_>>(), [0, 12, 13, 14, 15, 16, 17, 18, 19]);
        pins.set(&all[8], Standing::Refused, 20).unwrap();
        let refused = pins.known(&source, Kind::Tool).unwrap()["t"].iter().filter(|one| one.standing == Standing::Refused).count();
        assert_eq!((refused, pins.all(None).unwrap().len(), pins.all(Some("other")).unwrap().len()), (1, 9, 0));
        let elsewhere = Source { server: "other".into(), ..source };
        assert!(pins.known(&elsewhere, Kind::Tool).unwrap().is_empty(), "another server under that name is another one");
    }

    #[test]
    fn thousands_of_changes_do_not_flood_the_decider() {
        let dir = tempfile::tempdir().unwrap();
        let source = Source { mount: "m".into(), server: "s".into() };
        let pin = |n: usize, standing| Pin {
            source: source.clone(),
            kind: Kind::Resource,
            name: format!("file:///{n}"),
            standing,
            why: Why::Changed,
            since: 0,
            definition: Definition::of_text(n.to_string()),
        };
        let mut pins = PinTable::open(dir.path()).unwrap();
        let good: Vec<Pin> = (0..MOST_PASSING + 5).map(|n| pin(n, Standing::Accepted)).collect();
        let held: Vec<Pin> = (0..1000).map(|n| pin(n + 1_000_000, Standing::Held)).collect();
        pins.add(&source, Kind::Resource, &[good, held.clone()].concat()).unwrap();
        let later = &held[MOST_PASSING_HELD..];
        pins.add(&source, Kind::Resource, later).unwrap();
        let all = pins.all(None).unwrap();
        let waiting: Vec<&Pin> = all.iter().filter(|one| one.standing == Standing::Held).collect();
        assert_eq!((all.len() - waiting.len(), waiting.len()), (MOST_PASSING, MOST_PASSING_HELD));
        pins.set(waiting[0], Standing::Accepted, 1).unwrap();
        pins.add(&source, Kind::Resource, later).unwrap();
        let waiting = pins.all(None).unwrap().into_iter().filter(|one| one.standing == Standing::Held).count();
        assert_eq!(waiting, MOST_PASSING_HELD, "the next one has its turn");
    }

    #[test]
    fn a_server_has_200000_remembered_definitions_of_a_kind() {
        let dir = tempfile::tempdir().unwrap();
        let source = Source { mount: "m".into(), server: "s".into() };
        let pin = |n: usize| Pin {
            source: source.clone(),
            kind: Kind::Tool,
            name: n.to_string(),
            standing: Standing::Accepted,
            why: Why::New,
            since: 0,
            definition: Definition::of_text(n.to_string()),
        };
        let mut pins = PinTable::open(dir.path()).unwrap();
        let most = 200_000;
        let sql = "INSERT INTO definitions (mount, server, kind, name, standing, why, since, definition, hash) WITH RECURSIVE of (n) AS (SELECT 1 UNION ALL \
                   SELECT n + 1 FROM of WHERE n < ?1) SELECT 'm', 's', 'tool', 'a' || n, 'accepted', 'new', 0, '{}', 'a' || n FROM of";
        assert_eq!(pins.connection.execute(sql, params![most - 3]).unwrap(), most - 3);
        pins.add(&source, Kind::Tool, &(0..10).map(pin).collect::<Vec<_>>()).unwrap();
        let count = pins.connection.query_row("SELECT count(*) FROM definitions", [], |row| row.get::<_, usize>(0)).unwrap();
        assert_eq!(count, most);
    }

    #[test]
    fn definitions_seen_by_several_gates_at_once_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let remember = &|server: usize| {
            let source = Source { mount: "m".into(), server: server.to_string() };
            for n in 0..20 {
                let definition = Definition::of_text(n.to_string());
                let (name, standing, why) = (n.to_string(), Standing::Accepted, Why::New);
                let pin = Pin { source: source.clone(), kind: Kind::Tool, name, standing, why, since: 0, definition };
                let (mut pins, mut added) = (PinTable::open(dir.path()).unwrap(), Ok(()));
                pins.together(|pins| added = pins.add(&source, Kind::Tool, &[pin])).unwrap();
                added.unwrap();
            }
        };
        std::thread::scope(|scope| (0..4).for_each(|server| drop(scope.spawn(move || remember(server)))));
        assert_eq!(PinTable::open(dir.path()).unwrap().all(None).unwrap().len(), 80);
    }

    #[test]
    fn tools_kept_by_an_earlier_version_are_taken_over() {
        let dir = tempfile::tempdir().unwrap();
        let old = "CREATE TABLE pins (mount TEXT, server TEXT, tool TEXT, hash TEXT, standing TEXT NOT NULL, why TEXT NOT NULL, since INTEGER \
                   NOT NULL, definition TEXT NOT NULL, PRIMARY KEY (mount, server, tool, hash)) WITHOUT ROWID; \
                   INSERT INTO pins VALUES ('m', 's', 'add', 'ab', 'refused', 'changed', 7, '{}')";
        open(dir.path()).unwrap().0.execute_batch(old).unwrap();
        for _ in 0..2 {
            let all = PinTable::open(dir.path()).unwrap().all(None).unwrap();
            assert_eq!((all.len(), all[0].kind, &*all[0].name, all[0].standing), (1, Kind::Tool, "add", Standing::Refused));
        }
    }
}
