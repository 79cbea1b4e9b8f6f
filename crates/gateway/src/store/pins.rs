//! Definitions of tools that were seen: one row a definition, for all gates of this user. How one stands is not decided here.

use std::collections::BTreeMap;
use std::path::Path;

use policy::pin::{Definition, Known, Standing, Why};
use rusqlite::{Connection, Row, params};

use super::{StoreError, open};

/// How many definitions of one tool may wait; those that came first are forgotten beyond.
const MOST_HELD: u32 = 8;
/// How many definitions of one server are remembered.
const MOST: usize = 200_000;

/// Whose tool it is: the mount, and by what its server is reached, so that another server under that name is another one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Source {
    pub(crate) mount: String,
    pub(crate) server: String,
}

/// One definition that is kept.
#[derive(Debug, Clone)]
pub(crate) struct Pin {
    pub(crate) source: Source,
    pub(crate) tool: String,
    pub(crate) standing: Standing,
    pub(crate) why: Why,
    /// When it was seen first, or somebody looked at it: Unix time, in seconds.
    pub(crate) since: u64,
    pub(crate) definition: Definition,
}

/// The table.
pub(crate) struct Pins(Connection);

const COLUMNS: &str = "mount, server, tool, standing, why, since, definition";

impl Pins {
    /// Opens the table in `dir`.
    pub(crate) fn open(dir: &Path) -> Result<Self, StoreError> {
        let connection = open(dir)?;
        connection.execute_batch(
            "CREATE TABLE IF NOT EXISTS pins (mount TEXT, server TEXT, tool TEXT, hash TEXT, standing TEXT NOT NULL, why TEXT NOT NULL, \
             since INTEGER NOT NULL, definition TEXT NOT NULL, PRIMARY KEY (mount, server, tool, hash)) WITHOUT ROWID",
        )?;
        Ok(Self(connection))
    }

    /// What is known of a server's tools.
    pub(crate) fn known(&self, source: &Source) -> Result<BTreeMap<String, Vec<Known>>, StoreError> {
        let mut rows = self.0.prepare("SELECT tool, hash, standing, why FROM pins WHERE mount = ?1 AND server = ?2")?;
        let rows = rows.query_map(params![source.mount, source.server], |row| {
            let word = |at| row.get::<_, String>(at);
            Ok((word(0)?, word(1)?, word(2)?, word(3)?))
        })?;
        let mut known: BTreeMap<String, Vec<Known>> = BTreeMap::new();
        for row in rows {
            let (tool, hash, standing, why) = row?;
            let (Some(hash), Some(standing), Some(why)) = (crate::config::hex_digest(&hash), Standing::parse(&standing), Why::parse(&why))
            else {
                continue;
            };
            known.entry(tool).or_default().push(Known { hash, standing, why });
        }
        Ok(known)
    }

    /// Remembers definitions of a server, all or none. They are on the disk when it returns.
    pub(crate) fn add(&mut self, source: &Source, pins: &[Pin]) -> Result<(), StoreError> {
        let Source { mount, server } = source;
        let transaction = self.0.transaction()?;
        let count = "SELECT count(*) FROM pins WHERE mount = ?1 AND server = ?2";
        let count: usize = transaction.query_row(count, params![mount, server], |row| row.get(0))?;
        let mut insert =
            transaction.prepare(&format!("INSERT OR IGNORE INTO pins ({COLUMNS}, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"))?;
        for Pin { tool, standing, why, since, definition, .. } in pins.iter().take(MOST.saturating_sub(count)) {
            let hash = policy::approval::hex(&definition.hash());
            insert.execute(params![mount, server, tool, standing.as_str(), why.as_str(), since, definition.text(), hash])?;
            if *standing != Standing::Held {
                continue;
            }
            transaction.execute(
                "DELETE FROM pins WHERE mount = ?1 AND server = ?2 AND tool = ?3 AND standing = 'held' AND hash NOT IN (SELECT hash FROM \
                 pins WHERE mount = ?1 AND server = ?2 AND tool = ?3 AND standing = 'held' ORDER BY since DESC, hash = ?5 DESC LIMIT ?4)",
                params![mount, server, tool, MOST_HELD, hash],
            )?;
        }
        drop(insert);
        transaction.commit()?;
        Ok(())
    }

    /// All that are kept of a mount, or of all of them: by tool, those that stand longest first.
    pub(crate) fn all(&self, mount: Option<&str>) -> Result<Vec<Pin>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM pins WHERE ?1 IS NULL OR mount = ?1 ORDER BY mount, server, tool, since");
        let mut rows = self.0.prepare(&sql)?;
        let pins = rows.query_map(params![mount], pin)?;
        Ok(pins.filter_map(Result::transpose).collect::<Result<_, _>>()?)
    }

    /// Somebody looked at a definition: from now on it stands like this.
    pub(crate) fn set(&mut self, pin: &Pin, standing: Standing, now: u64) -> Result<(), StoreError> {
        let Source { mount, server } = &pin.source;
        let hash = policy::approval::hex(&pin.definition.hash());
        self.0.execute(
            "UPDATE pins SET standing = ?1, since = ?2 WHERE mount = ?3 AND server = ?4 AND tool = ?5 AND hash = ?6",
            params![standing.as_str(), now, mount, server, pin.tool, hash],
        )?;
        Ok(())
    }
}

/// A row that a later version wrote is not read.
fn pin(row: &Row<'_>) -> rusqlite::Result<Option<Pin>> {
    let (standing, why): (String, String) = (row.get(3)?, row.get(4)?);
    let (Some(standing), Some(why)) = (Standing::parse(&standing), Why::parse(&why)) else { return Ok(None) };
    let source = Source { mount: row.get(0)?, server: row.get(1)? };
    Ok(Some(Pin { source, tool: row.get(2)?, standing, why, since: row.get(5)?, definition: Definition::of_text(row.get(6)?) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_known_after_a_restart_and_one_tool_does_not_fill_the_store() {
        let dir = tempfile::tempdir().unwrap();
        let source = Source { mount: "m".into(), server: "s".into() };
        let pin = |n: u64, standing| Pin {
            source: source.clone(),
            tool: "t".into(),
            standing,
            why: Why::Changed,
            since: n,
            definition: Definition::of_text(n.to_string()),
        };
        let mut pins = Pins::open(dir.path()).unwrap();
        pins.add(&source, &[pin(0, Standing::Accepted)]).unwrap();
        (1..20).for_each(|n| pins.add(&source, &[pin(n, Standing::Held)]).unwrap());
        drop(pins);
        let mut pins = Pins::open(dir.path()).unwrap();
        assert_eq!(pins.known(&source).unwrap()["t"].len(), 9);
        let all = pins.all(Some("m")).unwrap();
        assert_eq!(all.iter().map(|p| p.since).collect::<Vec<_>>(), [0, 12, 13, 14, 15, 16, 17, 18, 19]);
        pins.set(&all[8], Standing::Refused, 20).unwrap();
        let refused = pins.known(&source).unwrap()["t"].iter().filter(|one| one.standing == Standing::Refused).count();
        assert_eq!((refused, pins.all(None).unwrap().len(), pins.all(Some("other")).unwrap().len()), (1, 9, 0));
        let elsewhere = Source { server: "other".into(), ..source };
        assert!(pins.known(&elsewhere).unwrap().is_empty(), "another server under that name is another one");
    }
}
