//! The record on a disk that is slow, fails, or forgets unsynced data: writing goes on, no acknowledged entry is at the mercy of a loss of
//! power, and none is missing after a kill.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::sync::{Condvar, MutexGuard};

use audit::checkpoint::Checkpoint;
use futures_util::FutureExt;

use super::super::layout::ChainDir;
use super::*;
use crate::journal::keeper::Flush;

/// A disk that syncs on command, and knows what a loss of power would leave.
#[derive(Default)]
pub(super) struct Disk {
    now: Mutex<Now>,
    changed: Condvar,
}

#[derive(Default)]
pub(super) struct Now {
    pub(super) is_held: bool,
    /// Syncs fail, and unsynced data is forgotten.
    fails: bool,
    /// Synced bytes of each file, by inode.
    pub(super) lasting: BTreeMap<u64, u64>,
    /// Files with a synced name.
    pub(super) named: BTreeSet<u64>,
}

impl Disk {
    pub(super) fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap()
    }

    pub(super) fn set(&self, change: impl FnOnce(&mut Now)) {
        change(&mut self.now());
        self.changed.notify_all();
    }

    fn sync(&self, file: &File, state: &Path) -> io::Result<()> {
        if file.metadata()?.is_dir() {
            let mut now = self.changed.wait_while(self.now(), |now| now.is_held).unwrap();
            now.named.extend(inodes(state));
            return Ok(());
        }
        let (bytes, inode) = (file.metadata()?.len(), file.metadata()?.ino());
        let mut now = self.changed.wait_while(self.now(), |now| now.is_held).unwrap();
        if now.fails {
            file.set_len(now.lasting.get(&inode).copied().unwrap_or(0))?;
            return Err(io::Error::other("the disk is gone"));
        }
        // Bytes that come during the sync are not promised.
        now.lasting.insert(inode, bytes);
        Ok(())
    }

    /// Bytes of a file left after a loss of power; `None` for a file without a synced name. The first file is there from the start.
    pub(super) fn lasting(&self, path: &Path) -> Option<u64> {
        let (inode, now) = (fs::metadata(path).unwrap().ino(), self.now());
        let is_first = path.file_stem().is_some_and(|first| first.to_str().is_some_and(|first| first.bytes().all(|digit| digit == b'0')));
        (is_first || now.named.contains(&inode)).then(|| now.lasting.get(&inode).copied().unwrap_or(0))
    }

    /// Lines of a chain left after a loss of power.
    fn left(&self, chain: &ChainDir) -> Vec<String> {
        let mut lines = Vec::new();
        for segment in chain.segments().unwrap() {
            let whole = fs::read(&segment.path).unwrap();
            let kept = self.lasting(&segment.path).unwrap_or(0);
            let kept = &whole[..usize::try_from(kept).unwrap()];
            lines.extend(kept.split_inclusive(|b| *b == b'\n').map(|line| String::from_utf8_lossy(line).into_owned()));
        }
        lines
    }
}

/// Inodes of the files of lines.
fn inodes(state: &Path) -> BTreeSet<u64> {
    let chain = ChainDir::numbered(&state.join("record"), 1);
    chain.segments().unwrap_or_default().iter().map(|segment| fs::metadata(&segment.path).unwrap().ino()).collect()
}

pub(super) fn on(disk: &Arc<Disk>, state: &Path, keep_bytes: u64) -> DiskJournal {
    let (disk, of_disk) = (Arc::clone(disk), state.to_owned());
    let flush: Flush = Arc::new(move |file| disk.sync(file, &of_disk));
    DiskJournal::on(&Audit { keep_bytes, ..audit_at(&state.join("record")) }, state, None, &"node".into(), flush)
}

pub(super) fn chain_of(state: &Path) -> ChainDir {
    Archive::open(&state.join("record")).unwrap().chain(None).unwrap()
}

/// Number of entries signed for.
pub(super) fn signed(state: &Path) -> u64 {
    Checkpoint::parse(&chain_of(state).checkpoint().unwrap().unwrap()).unwrap().size
}

pub(super) async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..6000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what} never came to be");
}

/// Copies the state that a kill at this moment leaves. Signatures come first, since the gate goes on meanwhile.
pub(super) fn killed(state: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    let chain = chain_of(state);
    let to = copy.path().join("record").join(chain.name());
    for name in ["checkpoint", "key.pub", "tile", "entries"] {
        copied(&chain.path.join(name), &to.join(name));
    }
    fs::copy(state.join("audit.key"), copy.path().join("audit.key")).unwrap();
    copy
}

fn copied(from: &Path, to: &Path) {
    if from.is_file() {
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    } else if let Ok(all) = fs::read_dir(from) {
        let mut names: Vec<_> = all.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names.iter().for_each(|name| copied(&from.join(name), &to.join(name)));
    }
}

pub(super) fn names(lines: &[String]) -> Vec<String> {
    let of = |line: &String| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["facts"]["name"].as_str().map(str::to_owned)
    };
    lines.iter().filter_map(of).collect()
}

#[tokio::test]
async fn a_slow_disk_delays_acknowledgements_but_not_writes() {
    let (state, disk) = (tempfile::tempdir().unwrap(), Arc::<Disk>::default());
    let journal = on(&disk, state.path(), 1 << 20);
    journal.append_durable(&part(), &Record::Intended(intent("first"))).await.unwrap();
    until("a checkpoint", || signed(state.path()) == 2).await;
    disk.set(|now| now.is_held = true);
    let mut gated = Box::pin(journal.append_durable(&part(), &Record::Intended(intent("gated"))));
    let written = |name: &str| lines_of(&state.path().join("record")).iter().any(|line| line.contains(&format!("\"name\":\"{name}\"")));
    until("the entry of which somebody waits to hear", || written("gated")).await;
    // Each finds the disk busy, and so does each full file.
    for number in 0..4 {
        let name = format!("{number}-{}", "x".repeat(100));
        (0..300).for_each(|_| journal.append(&Record::Intended(intent(&name))));
        until("an entry for which nobody waits", || written(&name)).await;
    }
    assert!(chain_of(state.path()).segments().unwrap().len() > 2);
    assert!(gated.as_mut().now_or_never().is_none(), "it is not on the disk, and somebody was told that it is");
    assert_eq!(signed(state.path()), 2, "what is not on the disk was signed for");
    disk.set(|now| now.is_held = false);
    gated.await.unwrap();
    until("a checkpoint over all of it", || signed(state.path()) == 1203).await;
    journal.close().await;
    assert!(look(&state.path().join("record")).sound);
}

#[tokio::test]
async fn acknowledged_and_signed_entries_outlive_a_loss_of_power() {
    for seed in 1..=4_u64 {
        let (state, disk) = (tempfile::tempdir().unwrap(), Arc::<Disk>::default());
        let journal = on(&disk, state.path(), 1 << 20);
        journal.append_durable(&part(), &Record::Intended(intent("first"))).await.unwrap();
        let told: Arc<Mutex<Vec<String>>> = Arc::default();
        let mut dice = seed;
        let mut roll = |sides: u64| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (dice >> 33) % sides
        };
        let mut all = tokio::task::JoinSet::new();
        for step in 0..60 {
            let name = format!("{step}-{}", "y".repeat(usize::try_from(roll(9)).unwrap() * 200));
            match roll(6) {
                0 => disk.set(|now| now.is_held = true),
                1 => disk.set(|now| now.is_held = false),
                2 => (0..roll(60)).for_each(|_| journal.append(&Record::Intended(intent(&name)))),
                _ => {
                    let (kept, told) = (journal.append_durable(&part(), &Record::Intended(intent(&name))), Arc::clone(&told));
                    all.spawn(async move { kept.await.map(|()| told.lock().unwrap().push(name)).unwrap() });
                }
            }
            tokio::time::sleep(Duration::from_micros(roll(3000))).await;
            if step % 4 != 0 {
                continue;
            }
            // In this order, since the rest only ever grows.
            let (heard, signed) = (told.lock().unwrap().clone(), signed(state.path()));
            let left = disk.left(&chain_of(state.path()));
            assert!(left.len() as u64 >= signed, "seed {seed}, step {step}: {signed} are signed for and {} are left", left.len());
            let left = left.concat();
            let lost: Vec<_> = heard.iter().filter(|name| !left.contains(&format!("\"name\":\"{name}\""))).collect();
            assert!(lost.is_empty(), "seed {seed}, step {step}: told of {lost:.60?}");
        }
        disk.set(|now| now.is_held = false);
        all.join_all().await;
        journal.close().await;
        assert!(look(&state.path().join("record")).sound, "seed {seed}");
    }
}

#[tokio::test]
async fn a_killed_gate_goes_on_with_its_unsigned_files() {
    let (state, disk) = (tempfile::tempdir().unwrap(), Arc::<Disk>::default());
    let journal = on(&disk, state.path(), 1 << 20);
    let long = "z".repeat(1500);
    let write = |count: usize| (0..count).for_each(|_| journal.append(&Record::Intended(intent(&long))));
    // The first lines must be gone, so that nothing can be made again from them.
    for _ in 0..3 {
        write(600);
        journal.append_durable(&part(), &Record::Intended(intent("told"))).await.unwrap();
    }
    let first = || chain_of(state.path()).segments().unwrap()[0].first;
    until("lines that were taken away", || first() > 0).await;
    disk.set(|now| now.is_held = true);
    let before = chain_of(state.path()).segments().unwrap().last().unwrap().first;
    write(900);
    let segments = || chain_of(state.path()).segments().unwrap();
    until("files that wait for the disk", || segments().iter().filter(|segment| segment.first > before).count() > 1).await;
    let left = killed(state.path());
    let lines = lines_of(&left.path().join("record")).len();
    disk.set(|now| now.is_held = false);
    journal.close().await;
    let again = self::journal(left.path(), 256 << 20);
    again.append_durable(&part(), &Record::Intended(intent("again"))).await.unwrap();
    again.close().await;
    let report = look(&left.path().join("record"));
    assert!(report.sound && report.chains.len() == 1, "{report:?}");
    assert!(lines_of(&left.path().join("record")).len() >= lines + 3, "{report:?}");
}

#[tokio::test]
async fn a_failed_sync_reaches_its_waiter_and_counts_losses() {
    let (state, disk) = (tempfile::tempdir().unwrap(), Arc::<Disk>::default());
    let journal = on(&disk, state.path(), 256 << 20);
    journal.append_durable(&part(), &Record::Intended(intent("first"))).await.unwrap();
    until("a checkpoint", || signed(state.path()) == 2).await;
    disk.set(|now| now.fails = true);
    assert!(journal.append_durable(&part(), &Record::Intended(intent("gated"))).await.is_err());
    assert!(journal.standing().failing.is_some());
    disk.set(|now| now.fails = false);
    journal.append_durable(&part(), &Record::Intended(intent("there"))).await.unwrap();
    assert_eq!(journal.standing().failing, None);
    journal.close().await;
    let dir = state.path().join("record");
    let report = look(&dir);
    assert!(report.sound && report.chains.len() == 1, "{report:?}");
    assert!(report.chains[0].missing >= 1 && report.chains[0].starts == 2, "{report:?}");
    assert_eq!(names(&lines_of(&dir)), ["first", "there"]);
}
