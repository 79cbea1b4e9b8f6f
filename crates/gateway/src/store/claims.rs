//! The claims of authorities on segments (AX-12), one row a segment. Whether a claim holds is not decided here.

use std::path::PathBuf;
use std::sync::mpsc;

use banyan_model::Segment;
use mesh_proto::parent::Claim;
use rusqlite::{Connection, params};
use tokio::sync::oneshot;

use super::{StoreError, open};

/// How many changes are written with one commit.
const GROUP: usize = 1024;

/// A change of what is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// Keep this.
    Made(Claim),
    /// Forget what is kept for this segment.
    Released(Segment),
}

/// The claims on the disk.
pub(crate) struct Claims(Connection);

/// Writes changes in a thread of its own, many with one commit.
pub(crate) struct Keeper(mpsc::Sender<(Vec<Change>, oneshot::Sender<()>)>);

impl Claims {
    /// Opens the claims in `dir`, and reads them. `None`, with a word in the log: they can't be used, so that nothing outlives this run.
    pub(crate) async fn open(dir: PathBuf) -> Option<(Keeper, Vec<Claim>)> {
        let place = dir.clone();
        let opened = tokio::task::spawn_blocking(move || {
            let claims = Self::at(&dir)?;
            let kept = claims.all()?;
            Ok::<_, StoreError>((Keeper::start(claims)?, kept))
        });
        match opened.await {
            Ok(Ok(opened)) => Some(opened),
            Ok(Err(error)) => {
                tracing::error!(%error, dir = %place.display(), "the claims of registered servers can't be kept: see that the state directory can be written");
                None
            }
            Err(error) => {
                tracing::error!(%error, "the claims of registered servers can't be kept");
                None
            }
        }
    }

    fn at(dir: &std::path::Path) -> Result<Self, StoreError> {
        let connection = open(dir)?;
        connection.execute_batch("CREATE TABLE IF NOT EXISTS claims (segment TEXT PRIMARY KEY, claim TEXT NOT NULL) WITHOUT ROWID")?;
        Ok(Self(connection))
    }

    /// All that can be read.
    fn all(&self) -> Result<Vec<Claim>, StoreError> {
        let mut rows = self.0.prepare("SELECT claim FROM claims ORDER BY segment")?;
        let texts = rows.query_map([], |row| row.get::<_, String>(0))?;
        let mut claims = Vec::new();
        for text in texts {
            match Claim::decode(text?.as_bytes()) {
                Ok(claim) => claims.push(claim),
                Err(error) => tracing::error!(%error, "a claim in the state directory can't be read and is left there"),
            }
        }
        Ok(claims)
    }

    fn write(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        let transaction = self.0.transaction()?;
        for change in changes {
            match change {
                Change::Made(claim) => {
                    let text = claim.encode();
                    transaction
                        .execute("INSERT OR REPLACE INTO claims (segment, claim) VALUES (?1, ?2)", params![claim.segment.as_str(), text])?;
                }
                Change::Released(segment) => {
                    transaction.execute("DELETE FROM claims WHERE segment = ?1", params![segment.as_str()])?;
                }
            }
        }
        transaction.commit()?;
        Ok(())
    }
}

impl Keeper {
    fn start(mut claims: Claims) -> Result<Self, StoreError> {
        let (sender, changes) = mpsc::channel::<(Vec<Change>, oneshot::Sender<()>)>();
        let write = move || {
            while let Ok((mut group, done)) = changes.recv() {
                let mut waiting = vec![done];
                while group.len() < GROUP
                    && let Ok((more, done)) = changes.try_recv()
                {
                    group.extend(more);
                    waiting.push(done);
                }
                match claims.write(&group) {
                    // Nobody may wait for it any more.
                    Ok(()) => waiting.into_iter().for_each(|done| _ = done.send(())),
                    Err(error) => tracing::error!(%error, "claims of registered servers could not be written"),
                }
            }
        };
        std::thread::Builder::new().name("claims".into()).spawn(write)?;
        Ok(Self(sender))
    }

    /// Keeps these changes, in order. The receiver hears when they are on the disk, or is dropped when that failed.
    pub(crate) fn keep(&self, changes: Vec<Change>) -> Option<oneshot::Receiver<()>> {
        let (done, kept) = oneshot::channel();
        self.0.send((changes, done)).is_ok().then_some(kept)
    }
}

#[cfg(test)]
mod tests {
    use mesh_proto::authority::Authority;
    use mesh_proto::id::NodeId;

    use super::*;

    fn claim(segment: &str, id: u128) -> Claim {
        let authority = Authority::parse("dns:a.example").unwrap();
        Claim { segment: Segment::nearest(segment), authority, proven: true, subserver_id: NodeId::new(id) }
    }

    #[tokio::test]
    async fn ax_12_claims_are_there_after_a_restart_and_those_released_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let (keeper, kept) = Claims::open(dir.path().join("state")).await.unwrap();
        assert_eq!(kept, []);
        keeper.keep(vec![Change::Made(claim("a", 1)), Change::Made(claim("b", 2))]).unwrap().await.unwrap();
        keeper.keep(vec![Change::Made(claim("a", 3)), Change::Released(Segment::nearest("b"))]).unwrap().await.unwrap();
        drop(keeper);
        let (_keeper, kept) = Claims::open(dir.path().join("state")).await.unwrap();
        assert_eq!(kept, [claim("a", 3)]);
    }

    #[tokio::test]
    async fn a_store_that_cannot_be_opened_is_none() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "x").unwrap();
        assert!(Claims::open(dir.path().join("file")).await.is_none());
    }
}
