//! Claims of authorities on segments (AX-12), a row for each segment of each gate of this state directory. Does not judge claims.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use mesh_proto::parent::Claim;
use rusqlite::{Connection, TransactionBehavior, params};
use store::{ClaimChange, Claims, StoreError};
use tokio::sync::oneshot;

use super::{DiskError, Tickets, open};
use crate::ids;

/// Most changes in one commit.
const GROUP: usize = 1024;

/// Pause after a failure.
const AGAIN: Duration = Duration::from_secs(1);

/// Number of columns of a name in the table.
const COLUMNS: &str = "SELECT COUNT(*) FROM pragma_table_info('claims') WHERE name = ?1";

/// Claims of a gate on the disk.
pub(crate) struct ClaimTable {
    connection: Connection,
    tickets: Arc<Tickets>,
    gate: String,
}

/// Writes changes in a thread of its own, many with one commit. Failed changes are tried again until they succeed.
pub(crate) struct Keeper {
    changes: mpsc::Sender<Changes>,
    works: Arc<AtomicBool>,
}

/// Changes, with the waiter for them.
type Changes = (Vec<ClaimChange>, oneshot::Sender<()>);

impl ClaimTable {
    /// Opens and reads the claims of `gate` in `dir`.
    ///
    /// # Errors
    /// When they can't be kept there.
    pub(crate) async fn open(dir: PathBuf, gate: String) -> Result<(Keeper, Vec<Claim>), DiskError> {
        let opened = tokio::task::spawn_blocking(move || {
            let (connection, tickets) = Self::made(&dir)?;
            let claims = Self { connection, tickets, gate };
            let kept = claims.all()?;
            Ok((Keeper::start(claims)?, kept))
        });
        opened.await.unwrap_or_else(|gone| Err(std::io::Error::other(gone).into()))
    }

    /// Opens or makes the table in `dir`, and checks that it is writable.
    pub(super) fn made(dir: &Path) -> Result<(Connection, Arc<Tickets>), DiskError> {
        let (mut connection, tickets) = open(dir)?;
        let ticket = tickets.draw();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let columns = |of: &str| transaction.query_row(COLUMNS, params![of], |row| row.get::<_, i64>(0));
        let is_shared = columns("segment")? == 1 && columns("gate")? == 0;
        if is_shared {
            transaction.execute_batch("ALTER TABLE claims RENAME TO claims_of_all")?;
        }
        transaction.execute_batch(
            "CREATE TABLE IF NOT EXISTS claims (gate TEXT, segment TEXT, claim TEXT NOT NULL, PRIMARY KEY (gate, segment)) WITHOUT ROWID",
        )?;
        if is_shared {
            // The owners are unknown. Each gate keeps the claims, so that none releases a segment of another.
            for gate in ids::known(dir)? {
                transaction.execute("INSERT INTO claims SELECT ?1, segment, claim FROM claims_of_all", params![gate])?;
            }
            transaction.execute_batch("DROP TABLE claims_of_all")?;
        }
        transaction.commit()?;
        drop(ticket);
        Ok((connection, tickets))
    }

    /// Reads all readable claims.
    fn all(&self) -> Result<Vec<Claim>, DiskError> {
        let mut rows = self.connection.prepare("SELECT claim FROM claims WHERE gate = ?1 ORDER BY segment")?;
        let texts = rows.query_map(params![self.gate], |row| row.get::<_, String>(0))?;
        let mut claims = Vec::new();
        for text in texts {
            match Claim::decode(text?.as_bytes()) {
                Ok(claim) => claims.push(claim),
                Err(error) => tracing::error!(%error, "a claim in the state directory can't be read and is left there"),
            }
        }
        Ok(claims)
    }

    fn write(&mut self, changes: &[ClaimChange]) -> Result<(), DiskError> {
        let _ticket = self.tickets.draw();
        let transaction = self.connection.transaction()?;
        for change in changes {
            match change {
                ClaimChange::Made(claim) => {
                    let row = params![self.gate, claim.segment.as_str(), claim.encode()];
                    transaction.execute("INSERT OR REPLACE INTO claims (gate, segment, claim) VALUES (?1, ?2, ?3)", row)?;
                }
                ClaimChange::Released(segment) => {
                    transaction.execute("DELETE FROM claims WHERE gate = ?1 AND segment = ?2", params![self.gate, segment.as_str()])?;
                }
            }
        }
        transaction.commit()?;
        Ok(())
    }
}

impl Keeper {
    fn start(claims: ClaimTable) -> Result<Self, DiskError> {
        let (changes, unread) = mpsc::channel();
        let works = Arc::new(AtomicBool::new(true));
        let told = Arc::clone(&works);
        std::thread::Builder::new().name("claims".into()).spawn(move || keep(claims, &unread, &told))?;
        Ok(Self { changes, works })
    }
}

impl Claims for Keeper {
    fn keep(&self, changes: Vec<ClaimChange>) -> BoxFuture<'static, Result<(), StoreError>> {
        let (done, kept) = oneshot::channel();
        // Where the thread is gone, the receiver drops with the changes.
        drop(self.changes.send((changes, done)));
        Box::pin(async move { kept.await.map_err(|_| StoreError::Failed("claims are not written at present".to_owned())) })
    }

    fn works(&self) -> bool {
        self.works.load(Ordering::Relaxed)
    }
}

fn keep(mut claims: ClaimTable, changes: &Receiver<Changes>, works: &AtomicBool) {
    while let Ok((mut group, done)) = changes.recv() {
        let mut waiting = vec![done];
        while group.len() < GROUP
            && let Ok((more, done)) = changes.try_recv()
        {
            group.extend(more);
            waiting.push(done);
        }
        if let Err(error) = claims.write(&group) {
            works.store(false, Ordering::Relaxed);
            tracing::error!(%error, "claims of registered servers can't be written: nobody registers until they can be");
            drop(waiting);
            insist(&mut claims, group, changes);
            tracing::info!("claims of registered servers are written again");
            works.store(true, Ordering::Relaxed);
            continue;
        }
        // The waiter may be gone.
        waiting.into_iter().for_each(|done| _ = done.send(()));
    }
}

/// Tries until the changes are written, or the gate ends.
fn insist(claims: &mut ClaimTable, mut group: Vec<ClaimChange>, changes: &Receiver<Changes>) {
    loop {
        let is_over = match changes.recv_timeout(AGAIN) {
            Ok((more, _)) => {
                group.extend(more);
                continue;
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => true,
        };
        if claims.write(&group).is_ok() || is_over {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use banyan_model::Segment;
    use mesh_proto::authority::Authority;
    use mesh_proto::id::NodeId;

    use super::*;

    fn claim(segment: &str, id: u128) -> Claim {
        let authority = Authority::parse("dns:a.example").unwrap();
        Claim { segment: Segment::nearest(segment), authority, proven: true, subserver_id: NodeId::new(id) }
    }

    async fn opened(dir: &Path, gate: &str) -> Result<(Keeper, Vec<Claim>), DiskError> {
        ClaimTable::open(dir.to_owned(), gate.to_owned()).await
    }

    #[tokio::test]
    async fn ax_12_only_unreleased_claims_outlive_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let (keeper, kept) = opened(&dir.path().join("state"), "g").await.unwrap();
        assert_eq!(kept, []);
        keeper.keep(vec![ClaimChange::Made(claim("a", 1)), ClaimChange::Made(claim("b", 2))]).await.unwrap();
        keeper.keep(vec![ClaimChange::Made(claim("a", 3)), ClaimChange::Released(Segment::nearest("b"))]).await.unwrap();
        drop(keeper);
        let (_keeper, kept) = opened(&dir.path().join("state"), "g").await.unwrap();
        assert_eq!(kept, [claim("a", 3)]);
    }

    #[tokio::test]
    async fn claims_are_written_once_the_disk_allows() {
        let dir = tempfile::tempdir().unwrap();
        let (keeper, _) = opened(dir.path(), "g").await.unwrap();
        let (other, _) = open(dir.path()).unwrap();
        other.execute_batch("ALTER TABLE claims RENAME TO away").unwrap();
        assert!(keeper.keep(vec![ClaimChange::Made(claim("a", 1))]).await.is_err() && !keeper.works());
        other.execute_batch("ALTER TABLE away RENAME TO claims").unwrap();
        while !keeper.works() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        keeper.keep(vec![ClaimChange::Made(claim("b", 2))]).await.unwrap();
        let (_again, kept) = opened(dir.path(), "g").await.unwrap();
        assert_eq!(kept, [claim("a", 1), claim("b", 2)]);
    }
    #[tokio::test]
    async fn ax_12_gates_of_one_state_directory_have_separate_claims() {
        let dir = tempfile::tempdir().unwrap();
        let ((one, _), (two, _)) = (opened(dir.path(), "one").await.unwrap(), opened(dir.path(), "two").await.unwrap());
        one.keep(vec![ClaimChange::Made(claim("a", 1))]).await.unwrap();
        two.keep(vec![ClaimChange::Made(claim("a", 2)), ClaimChange::Made(claim("b", 3))]).await.unwrap();
        one.keep(vec![ClaimChange::Released(Segment::nearest("b"))]).await.unwrap();
        assert_eq!(opened(dir.path(), "one").await.unwrap().1, [claim("a", 1)]);
        assert_eq!(opened(dir.path(), "two").await.unwrap().1, [claim("a", 2), claim("b", 3)]);
        assert_eq!(opened(dir.path(), "three").await.unwrap().1, []);
    }

    #[tokio::test]
    async fn ax_12_each_gate_keeps_claims_once_shared() {
        let dir = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|place| ids::keep(dir.path(), Path::new(place)).unwrap().0.to_string());
        let (before, _) = open(dir.path()).unwrap();
        before.execute_batch("CREATE TABLE claims (segment TEXT PRIMARY KEY, claim TEXT NOT NULL) WITHOUT ROWID").unwrap();
        before.execute("INSERT INTO claims VALUES ('a', ?1)", params![claim("a", 1).encode()]).unwrap();
        let (keeper, kept) = opened(dir.path(), &one).await.unwrap();
        assert_eq!(kept, [claim("a", 1)]);
        keeper.keep(vec![ClaimChange::Released(Segment::nearest("a"))]).await.unwrap();
        assert_eq!(opened(dir.path(), &one).await.unwrap().1, []);
        assert_eq!(opened(dir.path(), &two).await.unwrap().1, [claim("a", 1)]);
        assert_eq!(opened(dir.path(), "another").await.unwrap().1, []);
    }
}
