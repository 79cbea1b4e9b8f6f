//! A loss of power just between two files of lines: the end of the first may be lost while lines of the second remain, or a name be gone.
//! Acknowledged and signed entries are there, and the gate continues with a sound record.

use std::collections::BTreeSet;

use super::disk::{Disk, chain_of, killed, names, on, signed, until};
use super::*;

/// A linear congruential generator, so that each case can be repeated.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// Copies a state that a loss of power at this moment may leave: signatures first, and of each file at least the synced bytes. The dice
/// choose the rest, since a disk writes in any order.
fn powerless(disk: &Disk, state: &Path, dice: &mut Dice) -> tempfile::TempDir {
    let left = killed(state);
    let entries = left.path().join("record").join(chain_of(state).name()).join("entries");
    for file in fs::read_dir(&entries).unwrap() {
        let copy = file.unwrap().path();
        let original = chain_of(state).path.join("entries").join(copy.file_name().unwrap());
        let (lasting, whole) = (disk.lasting(&original), fs::metadata(&copy).unwrap().len());
        if lasting.is_none() && dice.roll(2) == 0 {
            fs::remove_file(copy).unwrap();
            continue;
        }
        let rest = whole.saturating_sub(lasting.unwrap_or(0));
        let more = match dice.roll(3) {
            0 => 0,
            1 => rest,
            _ => dice.roll(rest + 1),
        };
        let file = fs::OpenOptions::new().write(true).open(copy).unwrap();
        file.set_len(lasting.unwrap_or(0) + more).unwrap();
    }
    left
}

/// Writes until the file is full and the next begun, on a disk that keeps up or does not; returns the acknowledged entries.
async fn turned(journal: &DiskJournal, disk: &Disk, state: &Path, dice: &mut Dice) -> Vec<String> {
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let files = || chain_of(state).segments().unwrap().len();
    // More than 64 KiB for every 256 entries, so that each fills a file.
    let (before, long) = (files(), "x".repeat(300));
    let mut all = tokio::task::JoinSet::new();
    let held_from = dice.roll(300);
    for number in 0..400 {
        if number == held_from {
            disk.set(|now| now.is_held = true);
        }
        let name = format!("{number}-{long}");
        if dice.roll(8) == 0 {
            let (kept, told) = (journal.append_durable(&part(), &Record::Intended(intent(&name))), Arc::clone(&told));
            all.spawn(async move { kept.await.map(|()| told.lock().unwrap().push(name)) });
        } else {
            journal.append(&Record::Intended(intent(&name)));
        }
        tokio::task::yield_now().await;
    }
    until("the next file", || files() > before).await;
    // Waiters may hear that the disk does not keep up, but never a falsehood.
    if dice.roll(2) == 0 {
        disk.set(|now| now.is_held = false);
        tokio::time::sleep(Duration::from_micros(dice.roll(4000))).await;
    }
    let told = told.lock().unwrap().clone();
    all.detach_all();
    told
}

#[tokio::test]
async fn acknowledged_entries_outlive_a_loss_of_power_between_files() {
    // Whole, a line cut short, and a file behind lost lines. How soon each comes depends on the load of the machine.
    let wanted = BTreeSet::from([(0, false), (1, false), (1, true)]);
    let mut found = BTreeSet::new();
    for seed in 1..=400_u64 {
        if seed > 20 && found.is_superset(&wanted) {
            break;
        }
        let (state, disk, mut dice) = (tempfile::tempdir().unwrap(), Arc::<Disk>::default(), Dice(seed));
        let journal = on(&disk, state.path(), 1 << 20);
        journal.append_durable(&part(), &Record::Intended(intent("first"))).await.unwrap();
        let told = turned(&journal, &disk, state.path(), &mut dice).await;
        let left = powerless(&disk, state.path(), &mut dice);
        disk.set(|now| now.is_held = false);
        journal.close().await;

        let again = self::journal(left.path(), 256 << 20);
        again.append_durable(&part(), &Record::Intended(intent("again"))).await.unwrap();
        // The next file begins with another entry than the lost one would have.
        (0..600).for_each(|_| again.append(&Record::Intended(intent("more"))));
        again.close().await;
        let dir = left.path().join("record");
        let (report, lines) = (look(&dir), lines_of(&dir));
        assert!(report.sound && report.chains.len() == 1, "seed {seed}: {report:?}");
        let names: BTreeSet<String> = names(&lines).into_iter().collect();
        let lost: Vec<_> = told.iter().filter(|name| !names.contains(*name)).collect();
        assert!(lost.is_empty() && names.contains("first") && names.contains("again"), "seed {seed}: told of {lost:.60?}");
        let (archive, size) = (Archive::open(&dir).unwrap(), report.chains[0].size);
        let chain = archive.chain(None).unwrap();
        for seq in (0..size).step_by(97).chain([size - 1]) {
            assert_eq!(archive.prove(&chain, seq).unwrap().0.seq, seq, "seed {seed}");
        }
        let torn = fs::read_dir(chain.path.join("entries"))
            .unwrap()
            .filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|e| e == "torn"));
        found.insert((report.chains[0].cut, torn.count() > 0));
    }
    assert!(found.is_superset(&wanted), "{found:?}");
}

#[tokio::test]
async fn lines_set_aside_are_the_first_to_be_removed() {
    let state = tempfile::tempdir().unwrap();
    let before = journal(state.path(), 1 << 20);
    before.append_durable(&part(), &Record::Intended(intent("first"))).await.unwrap();
    before.close().await;
    let entries = chain_of(state.path()).path.join("entries");
    let torn = || {
        let names = fs::read_dir(&entries).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(".torn")).collect::<BTreeSet<_>>()
    };
    for first in [100, 1100, 90] {
        fs::write(entries.join(format!("{first:020}.torn")), vec![b'x'; 500 << 10]).unwrap();
    }
    let again = journal(state.path(), 1 << 20);
    again.append_durable(&part(), &Record::Intended(intent("again"))).await.unwrap();
    assert_eq!(torn(), BTreeSet::from([format!("{:020}.torn", 100), format!("{:020}.torn", 1100)]), "the oldest is too much");
    let long = "y".repeat(300);
    (0..1500).for_each(|_| again.append(&Record::Intended(intent(&long))));
    again.close().await;
    assert!(torn().is_empty(), "{:?}", torn());
    let (report, lines) = (look(&state.path().join("record")), lines_of(&state.path().join("record")));
    assert!(report.sound && names(&lines).len() > 1500, "nothing else was taken away: {report:?}");
}

#[tokio::test]
async fn a_killed_gates_lines_are_synced_before_signing() {
    let (state, disk) = (tempfile::tempdir().unwrap(), Arc::<Disk>::default());
    let journal = on(&disk, state.path(), 1 << 20);
    journal.append_durable(&part(), &Record::Intended(intent("first"))).await.unwrap();
    disk.set(|now| now.is_held = true);
    let long = "z".repeat(300);
    (0..400).for_each(|_| journal.append(&Record::Intended(intent(&long))));
    until("the next file", || chain_of(state.path()).segments().unwrap().len() > 1).await;
    let left = killed(state.path());
    disk.set(|now| now.is_held = false);
    journal.close().await;

    let fresh = Arc::<Disk>::default();
    let again = on(&fresh, left.path(), 1 << 20);
    again.append_durable(&part(), &Record::Intended(intent("again"))).await.unwrap();
    until("a checkpoint", || signed(left.path()) > 256).await;
    let first = &chain_of(left.path()).segments().unwrap()[0];
    assert_eq!(fresh.lasting(&first.path), Some(first.bytes), "a file that was signed for is not on the disk");
    again.close().await;
}
