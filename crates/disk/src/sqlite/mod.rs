//! What has to outlive a run: one SQLite file in the state directory, in WAL mode with `synchronous=FULL`, so that what was said to be kept
//! is on the disk. What is kept is not decided here.

mod approvals;
mod claims;
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
pub(crate) use claims::ClaimTable;
pub(crate) use learnt::LessonTable;
pub(crate) use pins::PinTable;
pub use ticket::Tickets;

/// The file.
const NAME: &str = "banyan.db";

/// Failure of the file, before it is told as one of a store.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DiskError {
    /// The directory or the file.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// What SQLite says.
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
}

impl From<DiskError> for StoreError {
    fn from(error: DiskError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// A configuration that lets servers register, and nowhere to keep which segment is whose.
#[derive(Debug, thiserror::Error)]
#[error(
    "who owns which segment can't be kept in {}: {why}. See that whoever runs the gate can write there, or name another place by \
     XDG_STATE_HOME; a damaged file can be moved away, and claims are then made anew. A gate without the section [registry] needs none",
    .file.display()
)]
pub struct Unkept {
    file: PathBuf,
    why: DiskError,
}

/// Looks whether all that `config` wants kept can be kept in `state_dir`.
///
/// # Errors
/// When it can't.
pub fn check(config: &Config, state_dir: &Path) -> Result<(), Unkept> {
    if config.registry.is_none() {
        return Ok(());
    }
    ClaimTable::made(state_dir).map(drop).map_err(|why| Unkept { file: state_dir.join(NAME), why })
}

/// Whether anything was ever kept in `dir`.
pub(crate) fn exists(dir: &Path) -> bool {
    dir.join(NAME).exists()
}

/// For how long another process may write, in milliseconds.
const PATIENCE: i32 = 30_000;
/// Another process that waits for the store looks so often.
const LOOK: Duration = Duration::from_millis(1);
/// Whoever writes batch after batch leaves the store alone for so long in between: there is no order among processes, but time to find it free.
const BREATH: Duration = Duration::from_millis(3);

/// Leaves the store to another process for a moment, between one batch and the next.
pub(crate) fn breathe() {
    pause(BREATH);
}

#[expect(clippy::disallowed_methods, reason = "whoever writes to the store is in a thread that may wait")]
fn pause(length: Duration) {
    std::thread::sleep(length);
}

/// Opens the store in `dir`, which is made where it is missing, with the tickets by which its writers take turns.
fn open(dir: &Path) -> Result<(Connection, Arc<Tickets>), DiskError> {
    /// Two that turn a new file to WAL at once find it locked, however long they would wait.
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
    Ok((connection, Tickets::of(dir)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::resolved::Registry;

    #[test]
    fn what_is_said_to_be_kept_is_brought_to_the_disk_first() {
        let dir = tempfile::tempdir().unwrap();
        let (store, _) = open(dir.path()).unwrap();
        let set = |pragma: &str| store.pragma_query_value(None, pragma, |row| row.get::<_, rusqlite::types::Value>(0)).unwrap();
        // 2 is FULL: with less, a loss of power takes what was committed last (SQLite, "PRAGMA synchronous").
        assert_eq!(set("synchronous"), rusqlite::types::Value::Integer(2));
        assert_eq!(set("journal_mode"), rusqlite::types::Value::Text("wal".into()));
    }

    #[test]
    fn ax_12_a_gate_that_takes_registrations_is_refused_where_claims_cannot_be_kept() {
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
