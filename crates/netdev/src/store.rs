//! The record of a device on the disk, and the lock for a single process at a time. Does not know the meaning of a record.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use net_proto::change::ChangeRecord;
use net_proto::fault::{Code, Fault};
use runtime::whole::{self, Readers};
use rustix::fs::{FlockOperation, flock};

/// File with the id of a change that somebody wants back while another process has the lock, and the name of whoever does.
const ASKED_BACK: &str = "asked-back";
/// Pause before a taken lock is tried again.
const AGAIN: Duration = Duration::from_millis(50);

/// Directory of a device.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    dir: PathBuf,
}

/// The right to change a device, held by a process and by the children that inherited the lock.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Lock {
    /// The lock again, for a child process: the lock lasts until both processes have ended.
    pub(crate) fn shared(&self) -> io::Result<File> {
        self.0.try_clone()
    }
}

impl Store {
    pub(crate) fn open(state: &Path, device: &str) -> io::Result<Self> {
        let dir = state.join("devices").join(device);
        whole::make_dirs(&dir, 0o700)?;
        Ok(Self { dir })
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The record; a new record for a new device.
    pub(crate) fn load(&self) -> Result<ChangeRecord, Fault> {
        let path = self.file("change.json");
        let unreadable = |why: String| Fault::new(Code::RollbackFailed, format!("{} can't be read: {why}", path.display()));
        match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(ChangeRecord::default()),
            Err(error) => Err(unreadable(error.to_string())),
        }
    }

    /// Brings a record to the disk. Only the owner may read the file, since configurations hold secrets.
    pub(crate) fn keep(&self, record: &ChangeRecord) -> io::Result<()> {
        whole::replace(&self.file("change.json"), &serde_json::to_vec_pretty(record)?, Readers::Owner)
    }

    /// Asks the process with the lock to take the change with an id back instead of waiting for the device.
    pub(crate) fn ask_back(&self, change: &str, name: &str) -> io::Result<()> {
        whole::replace(&self.file(ASKED_BACK), format!("{change}\n{name}").as_bytes(), Readers::Owner)
    }

    /// Finds whoever has asked for the change with an id back.
    pub(crate) fn asked_back(&self, change: &str) -> Option<String> {
        let asked = std::fs::read_to_string(self.file(ASKED_BACK)).ok()?;
        asked.split_once('\n').filter(|(id, _)| *id == change).map(|(_, name)| name.to_owned())
    }

    /// Forgets what was asked before a commit begins: the same change may be tried a second time.
    pub(crate) fn forget_asked(&self, _lock: &Lock) {
        drop(std::fs::remove_file(self.file(ASKED_BACK)));
    }

    /// Waits for the lock of the device.
    pub(crate) async fn lock(&self, patience: Duration) -> Result<Lock, Fault> {
        let failed = |error: io::Error| Fault::new(Code::AccessDenied, format!("the lock of the device can't be taken: {error}"));
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(self.file("lock")).map_err(failed)?;
        let began = Instant::now();
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Lock(file)),
                Err(rustix::io::Errno::WOULDBLOCK) if began.elapsed() < patience => tokio::time::sleep(AGAIN).await,
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    return Err(Fault::new(Code::AccessDenied, "locked: another change of this device is under way").retryable());
                }
                Err(error) => return Err(failed(error.into())),
            }
        }
    }
}

impl Store {
    /// Name of the receiver of a device as an engine of SNMP, and the number of its starts. Where neither can be kept, both are new.
    pub(crate) fn engine(&self) -> (Vec<u8>, u32) {
        let path = self.file("engine.json");
        let known = std::fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<(Vec<u8>, u32)>(&bytes).ok());
        let fresh = || ([b"\x80\x00\x00\x00\x05".as_slice(), &runtime::random::bytes::<12>()].concat(), 0);
        let (engine, boots) = known.filter(|(engine, _)| (5..=32).contains(&engine.len())).unwrap_or_else(fresh);
        let started = (engine, boots.saturating_add(1));
        if let Ok(bytes) = serde_json::to_vec(&started) {
            drop(whole::replace(&path, &bytes, Readers::Owner));
        }
        started
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_lock_is_held_once_and_by_children() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), "r1").unwrap();
        let lock = store.lock(Duration::ZERO).await.unwrap();
        assert!(store.lock(Duration::ZERO).await.unwrap_err().may_retry);
        let child = lock.shared().unwrap();
        drop(lock);
        assert!(store.lock(Duration::ZERO).await.is_err());
        drop(child);
        store.lock(Duration::ZERO).await.unwrap();
    }

    #[tokio::test]
    async fn what_was_asked_before_a_commit_means_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), "r1").unwrap();
        store.ask_back("r1-1", "token:ada").unwrap();
        assert_eq!((store.asked_back("r1-1").as_deref(), store.asked_back("r1-11")), (Some("token:ada"), None));
        store.forget_asked(&store.lock(Duration::ZERO).await.unwrap());
        assert_eq!(store.asked_back("r1-1"), None);
    }
}
