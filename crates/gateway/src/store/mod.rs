//! What has to outlive a run: one SQLite file in the state directory, in WAL mode with `synchronous=FULL`, so that what was said to be kept
//! is on the disk. What is kept is not decided here.

mod claims;

use std::path::Path;

use rusqlite::Connection;

pub(crate) use claims::{Change, Claims, Keeper};

/// The file.
const NAME: &str = "banyan.db";

/// Why the store can't be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// The directory or the file.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// What SQLite says.
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
}

/// Opens the store in `dir`, which is made where it is missing.
fn open(dir: &Path) -> Result<Connection, StoreError> {
    std::fs::create_dir_all(dir)?;
    let connection = Connection::open(dir.join(NAME))?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(connection)
}
