//! State that outlives a run: a SQLite file in the state directory, in WAL mode with `synchronous=FULL`, so that acknowledged data is on
//! the disk. Does not decide what is stored.

mod approvals;
mod claims;
mod contexts;
mod learnt;
mod pins;
mod ticket;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;

use config::resolved::Config;
use store::StoreError;

pub(crate) use approvals::RowTable;
pub use approvals::void_open;
pub(crate) use claims::ClaimTable;
pub(crate) use contexts::ContextTable;
pub(crate) use learnt::LessonTable;
pub(crate) use pins::PinTable;
pub use ticket::Tickets;

/// File name of the store.
const NAME: &str = "banyan.db";

/// Failure of the file, before it becomes a [`StoreError`].
#[derive(Debug, thiserror::Error)]
pub(crate) enum DiskError {
    /// Failure of the directory or the file.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// Error of SQLite.
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
}

impl From<DiskError> for StoreError {
    fn from(error: DiskError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Registration is configured, but claims on segments have no place.
#[derive(Debug, thiserror::Error)]
#[error(
    "who owns which segment can't be kept in {}: {why}. See that whoever runs the gate can write there, or name another place by \
     XDG_STATE_HOME; a damaged file can be moved away, and claims are then made anew. A gate without the section [registry] needs none",
    .file.display()
)]
pub struct UnwritableClaims {
    file: PathBuf,
    why: DiskError,
}

/// Checks that everything `config` needs to keep has a place in `state_dir`.
///
/// # Errors
/// When not.
pub fn check(config: &Config, state_dir: &Path) -> Result<(), UnwritableClaims> {
    if config.registry.is_none() {
        return Ok(());
    }
    ClaimTable::made(state_dir).map(drop).map_err(|why| UnwritableClaims { file: state_dir.join(NAME), why })
}

/// Checks for a store in `dir`.
pub(crate) fn exists(dir: &Path) -> bool {
    dir.join(NAME).exists()
}

/// Copies the store in `dir` into the new file `to`, whole and at one moment, also while gates write. `false`: there is no store.
///
/// # Errors
/// When the store can't be read, or the copy can't be written.
pub fn snapshot(dir: &Path, to: &Path) -> Result<bool, StoreError> {
    if !exists(dir) {
        return Ok(false);
    }
    let copied = open(dir).and_then(|(store, _)| Ok(store.execute("VACUUM INTO ?1", [to.to_string_lossy()])?));
    copied.map(|_| true).map_err(StoreError::from)
}

/// Longest wait for another process that writes, in milliseconds.
const PATIENCE: i32 = 30_000;
/// Pause between two tries of a process that waits for the store.
const LOOK: Duration = Duration::from_millis(1);
/// Pause between batches of a writer. Processes have no order among each other, but get time to find the store free.
const BREATH: Duration = Duration::from_millis(3);

/// Leaves the store to other processes between two batches.
pub(crate) fn breathe() {
    pause(BREATH);
}

#[expect(clippy::disallowed_methods, reason = "whoever writes to the store is in a thread that may wait")]
fn pause(length: Duration) {
    std::thread::sleep(length);
}

/// Opens or makes the store in `dir`, with the tickets by which its writers take turns.
fn open(dir: &Path) -> Result<(Connection, Arc<Tickets>), DiskError> {
    // Two connections that turn a new file to WAL at once find it locked, however long they would wait.
    static OPENING: Mutex<()> = Mutex::new(());
    let _turn = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    std::fs::create_dir_all(dir)?;
    let connection = Connection::open(dir.join(NAME))?;
    connection.busy_handler(Some(|times| {
        pause(LOOK);
        times < PATIENCE
    }))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok((connection, Tickets::of_store(dir)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::resolved::Registry;

    #[test]
    fn the_store_syncs_every_commit() {
        let dir = tempfile::tempdir().unwrap();
        let (store, _) = open(dir.path()).unwrap();
        let set = |pragma: &str| store.pragma_query_value(None, pragma, |row| row.get::<_, rusqlite::types::Value>(0)).unwrap();
        // 2 is FULL: with less, a loss of power takes what was committed last (SQLite, "PRAGMA synchronous").
        assert_eq!(set("synchronous"), rusqlite::types::Value::Integer(2));
        assert_eq!(set("journal_mode"), rusqlite::types::Value::Text("wal".into()));
    }

    #[test]
    fn ax_12_registrations_need_a_writable_place_for_claims() {
        let dir = tempfile::tempdir().unwrap();
        let (nobody, taking) = (Config::default(), Config { registry: Some(Registry::default()), ..Config::default() });
        check(&taking, &dir.path().join("new")).unwrap();
        let damaged = dir.path().join("damaged");
        std::fs::create_dir(&damaged).unwrap();
        std::fs::write(damaged.join(NAME), "this is no database, whatever its name says".repeat(100)).unwrap();
        check(&nobody, &damaged).unwrap();
        let why = check(&taking, &damaged).unwrap_err().to_string();
        assert!(why.contains("banyan.db") && why.contains("not a database") && why.contains("moved away"), "{why}");
        std::fs::write(dir.path().join("file"), "x").unwrap();
        assert!(check(&taking, &dir.path().join("file")).is_err());
    }
}
