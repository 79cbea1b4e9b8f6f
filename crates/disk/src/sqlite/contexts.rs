//! Contexts shared with other nodes: a row for each version, each snapshot and each peer. Does not read their content.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row, params};
use store::{ContextAddition, Contexts, KeptContext, KeptProgress, StoreError};

use super::{DiskError, Tickets, open};

/// Name of the gate itself among the epochs of peers: no peer has an empty name.
const OWN: &str = "";

pub(crate) struct ContextTable(Connection, Arc<Tickets>);

impl ContextTable {
    /// Opens the tables in `dir`.
    pub(crate) fn open(dir: &Path) -> Result<Self, DiskError> {
        let (connection, tickets) = open(dir)?;
        connection.execute_batch(
            "CREATE TABLE IF NOT EXISTS context_versions (gate TEXT, context TEXT, version INTEGER, kept BLOB NOT NULL, \
             PRIMARY KEY (gate, context, version)) WITHOUT ROWID;
             CREATE TABLE IF NOT EXISTS context_snapshots (gate TEXT, context TEXT, version INTEGER NOT NULL, kept BLOB NOT NULL, \
             PRIMARY KEY (gate, context));
             CREATE TABLE IF NOT EXISTS context_peers (gate TEXT, context TEXT, peer TEXT, known INTEGER NOT NULL, \
             PRIMARY KEY (gate, context, peer)) WITHOUT ROWID;
             CREATE TABLE IF NOT EXISTS context_epochs (gate TEXT, context TEXT, peer TEXT, epoch INTEGER NOT NULL, \
             PRIMARY KEY (gate, context, peer)) WITHOUT ROWID",
        )?;
        Ok(Self(connection, tickets))
    }

    fn read_all(&self, gate: &str, context: &str) -> Result<KeptContext, DiskError> {
        // Reads of one moment: another process may write between them.
        let moment = self.0.unchecked_transaction()?;
        let snapshot = moment
            .prepare_cached("SELECT version, kept FROM context_snapshots WHERE gate = ?1 AND context = ?2")?
            .query_row([gate, context], |row| Ok((number(row.get(0)?), row.get(1)?)))
            .optional()?;
        let (base, snapshot) = snapshot.unwrap_or_default();
        let mut rows =
            moment.prepare_cached("SELECT version, kept FROM context_versions WHERE gate = ?1 AND context = ?2 ORDER BY version")?;
        let versions = rows.query_map([gate, context], |row| Ok((number(row.get(0)?), row.get(1)?)))?.collect::<Result<_, _>>()?;
        let mut rows = moment.prepare_cached("SELECT peer, epoch FROM context_epochs WHERE gate = ?1 AND context = ?2")?;
        let epochs: BTreeMap<String, u64> = rows.query_map([gate, context], epoch)?.collect::<Result<_, _>>()?;
        let epoch_of = |peer: &str| epochs.get(peer).copied().unwrap_or_default();
        let mut rows = moment.prepare_cached("SELECT peer, known FROM context_peers WHERE gate = ?1 AND context = ?2")?;
        let known = rows.query_map([gate, context], |row| {
            let (peer, version) = (row.get::<_, String>(0)?, number(row.get(1)?));
            let epoch = epoch_of(&peer);
            Ok((peer, KeptProgress { version, epoch }))
        });
        let known = known?.collect::<Result<_, _>>()?;
        Ok(KeptContext { base, snapshot, versions, known, epoch: epoch_of(OWN) })
    }

    fn write(&self, gate: &str, context: &str, addition: &ContextAddition) -> Result<(), DiskError> {
        let _ticket = self.1.draw();
        let together = self.0.unchecked_transaction()?;
        for (version, kept) in &addition.versions {
            let row = params![gate, context, column(*version), kept];
            together.prepare_cached("INSERT OR REPLACE INTO context_versions VALUES (?1, ?2, ?3, ?4)")?.execute(row)?;
        }
        for (peer, known) in &addition.known {
            let row = params![gate, context, peer, column(known.version)];
            together.prepare_cached("INSERT OR REPLACE INTO context_peers VALUES (?1, ?2, ?3, ?4)")?.execute(row)?;
        }
        let own = addition.epoch.map(|epoch| (OWN, epoch));
        for (peer, epoch) in addition.known.iter().map(|(peer, known)| (peer.as_str(), known.epoch)).chain(own) {
            let row = params![gate, context, peer, epoch.cast_signed()];
            together.prepare_cached("INSERT OR REPLACE INTO context_epochs VALUES (?1, ?2, ?3, ?4)")?.execute(row)?;
        }
        Ok(together.commit()?)
    }

    fn replace(&self, gate: &str, context: &str, version: u64, snapshot: &[u8]) -> Result<(), DiskError> {
        let _ticket = self.1.draw();
        let together = self.0.unchecked_transaction()?;
        let version = column(version);
        together.execute("INSERT OR REPLACE INTO context_snapshots VALUES (?1, ?2, ?3, ?4)", params![gate, context, version, snapshot])?;
        let older = "DELETE FROM context_versions WHERE gate = ?1 AND context = ?2 AND version <= ?3";
        together.execute(older, params![gate, context, version])?;
        Ok(together.commit()?)
    }
}

impl Contexts for ContextTable {
    fn read(&self, gate: &str, context: &str) -> Result<KeptContext, StoreError> {
        Ok(self.read_all(gate, context)?)
    }

    fn add(&self, gate: &str, context: &str, addition: &ContextAddition) -> Result<(), StoreError> {
        Ok(self.write(gate, context, addition)?)
    }

    fn rebase(&self, gate: &str, context: &str, version: u64, snapshot: &[u8]) -> Result<(), StoreError> {
        Ok(self.replace(gate, context, version, snapshot)?)
    }
}

/// Number of a version for a column, which has a sign: a peer may claim any number.
fn column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn number(column: i64) -> u64 {
    u64::try_from(column).unwrap_or_default()
}

/// Reads a peer and its epoch, of which all 64 bits count.
fn epoch(row: &Row<'_>) -> rusqlite::Result<(String, u64)> {
    Ok((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned()))
}
