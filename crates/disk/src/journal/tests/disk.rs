//! The record on a disk that takes its time, fails, or forgets what was not synced: nobody is kept from writing, nobody is told of what a
//! loss of power would take, and nothing that was told of is missing after a kill.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::sync::{Condvar, MutexGuard};

use audit::checkpoint::Checkpoint;
use futures_util::FutureExt;

use super::super::layout::ChainDir;
use super::*;
use crate::journal::keeper::Flush;

/// A disk that syncs when it is let to, and knows what a loss of power would leave.
#[derive(Default)]
pub(super) struct Disk {
    now: Mutex<Now>,
    changed: Condvar,
}

#[derive(Default)]
pub(super) struct Now {
    pub(super) is_held: bool,
    /// It fails, and forgets what it had not synced.
    fails: bool,
    /// How much of each file is on the disk, by its inode.
    pub(super) lasting: BTreeMap<u64, u64>,
    /// Files whose names are there, too.
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
        // What comes while it syncs is not promised.
        now.lasting.insert(inode, bytes);
        Ok(())
    }

    /// How much of a file a loss of power would leave; `None`: it would not be found again. The first one is there before anything is written.
    pub(super) fn lasting(&self, path: &Path) -> Option<u64> {
        let (inode, now) = (fs::metadata(path).unwrap().ino(), self.now());
        let is_first = path.file_stem().is_some_and(|first| first.to_str().is_some_and(|first| first.bytes().all(|digit| digit == b'0')));
        (is_first || now.named.contains(&inode)).then(|| now.lasting.get(&inode).copied().unwrap_or(0))
    }

    /// What a loss of power would leave of a chain.
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

/// The files of lines that are there.
fn inodes(state: &Path) -> BTreeSet<u64> {
    let chain = ChainDir::of(&state.join("record"), 1);
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

/// How many entries are signed for.
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

/// What a kill at this moment leaves: what is signed for is copied first, for the gate goes on meanwhile.
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
async fn whatever_the_disk_does_is_written_at_once_and_told_of_when_it_is_there() {
    let (state, disk) = (tempfile::tempdir().unwrap(), Arc::<Disk>::default());
    let journal = on(&disk, state.path(), 1 << 20);
    journal.append_durable(&part(), &Record::Intended(intent("first"))).await.unwrap();
    until("a checkpoint", || signed(state.path()) == 2).await;
    disk.set(|now| now.is_held = true);
    let mut gated = Box::pin(journal.append_durable(&part(), &Record::Intended(intent("gated"))));
    let written = |name: &str| lines_of(&state.path().join("record")).iter().any(|line| line.contains(&format!("\"name\":\"{name}\"")));
    until("the entry of which somebody waits to hear", || written("gated")).await;
    // Each of these finds the disk busy, and so does each file that is full.
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
    journal.end().await;
    assert!(look(&state.path().join("record")).sound);
}

#[tokio::test]
async fn what_somebody_was_told_of_or_signed_for_outlives_a_loss_of_power_at_any_moment() {
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
            // In this order: what is left only ever grows.
            let (heard, signed) = (told.lock().unwrap().clone(), signed(state.path()));
            let left = disk.left(&chain_of(state.path()));
            assert!(left.len() as u64 >= signed, "seed {seed}, step {step}: {signed} are signed for and {} are left", left.len());
            let left = left.concat();
            let lost: Vec<_> = heard.iter().filter(|name| !left.contains(&format!("\"name\":\"{name}\""))).collect();
            assert!(lost.is_empty(), "seed {seed}, step {step}: told of {lost:.60?}");
        }
        disk.set(|now| now.is_held = false);
        all.join_all().await;
        journal.end().await;
        assert!(look(&state.path().join("record")).sound, "seed {seed}");
    }
}

#[tokio::test]
async fn a_gate_that_is_killed_while_files_are_not_signed_for_goes_on_with_all_of_them() {
    let (state, disk) = (tempfile::tempdir().unwrap(), Arc::<Disk>::default());
    let journal = on(&disk, state.path(), 1 << 20);
    let long = "z".repeat(1500);
    let write = |count: usize| (0..count).for_each(|_| journal.append(&Record::Intended(intent(&long))));
    // So that the first lines are gone, and nothing can be made again from them.
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
    journal.end().await;
    let again = self::journal(left.path(), 256 << 20);
    again.append_durable(&part(), &Record::Intended(intent("again"))).await.unwrap();
    again.end().await;
    let report = look(&left.path().join("record"));
    assert!(report.sound && report.chains.len() == 1, "{report:?}");
    assert!(lines_of(&left.path().join("record")).len() >= lines + 3, "{report:?}");
}

#[tokio::test]
async fn whoever_waits_for_a_sync_that_fails_hears_it_and_what_the_disk_forgot_is_counted() {
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
    journal.end().await;
    let dir = state.path().join("record");
    let report = look(&dir);
    assert!(report.sound && report.chains.len() == 1, "{report:?}");
    assert!(report.chains[0].missing >= 1 && report.chains[0].starts == 2, "{report:?}");
    assert_eq!(names(&lines_of(&dir)), ["first", "there"]);
}
