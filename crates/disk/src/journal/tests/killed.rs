//! A process that writes a record and is killed, hundreds of times, at any moment: while opening the record, in the middle of a line,
//! between two files, while signing. Acknowledged entries are there, and the next process continues behind them.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use super::*;

/// Kills in each of four tests.
const KILLS: u64 = 50;
/// Kills between two full readings of the record.
const READ: u64 = 5;
/// Record of the process to be killed, and its first number.
const STATE: &str = "BANYAN_TEST_KILLED";
const FROM: &str = "BANYAN_TEST_KILLED_FROM";

/// Process to be killed: prints each acknowledged entry. A file is full after some 256 entries.
fn write(state: &Path, from: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let journal = journal(state, 512 << 10);
        let mut told = io::stdout().lock();
        for number in from.. {
            let name = format!("{number}-{}", "k".repeat(100));
            // Entries without a waiter stand between, and are on their way.
            (0..40).for_each(|_| journal.append(&Record::Intended(intent("between"))));
            journal.append_durable(&part(), &Record::Intended(intent(&name))).await.unwrap();
            writeln!(told, "told {number}").unwrap();
        }
    });
}

fn start(this: &str, state: &Path, from: u64) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", &format!("journal::tests::killed::{this}"), "--nocapture"]).env(STATE, state).env(FROM, from.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// Numbers printed by a process, until it is gone.
fn told(child: &mut Child) -> mpsc::Receiver<u64> {
    let (tell, heard) = mpsc::channel();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    thread::spawn(move || {
        let numbers = lines.map_while(Result::ok).filter_map(|line| line.split_once("told ")?.1.parse().ok());
        numbers.for_each(|number| tell.send(number).unwrap());
    });
    heard
}

/// Numbers in the record, from the first that is kept.
fn kept(dir: &Path) -> Vec<u64> {
    let number = |line: &String| line.split_once("\"name\":\"")?.1.split_once("-k")?.0.parse().ok();
    lines_of(dir).iter().filter_map(number).collect()
}

/// Kills again and again a process that runs the test of this name; `dice` chooses the moments.
fn kill(this: &str, mut dice: u64) {
    if let Some(state) = env::var_os(STATE) {
        return write(Path::new(&state), env::var(FROM).unwrap().parse().unwrap());
    }
    let state = tempfile::tempdir().unwrap();
    let dir = state.path().join("record");
    let (mut from, mut halves) = (0, 0);
    let mut roll = |sides: u64| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) % sides
    };
    for run in 0..KILLS {
        let mut child = start(this, state.path(), from);
        let heard = told(&mut child);
        // Some before their first word, and so while they open what the last process left.
        let (few, moment) = if roll(4) == 0 { (0, roll(60_000)) } else { (roll(8), roll(4000)) };
        let mut told: Vec<u64> = (0..few).map_while(|_| heard.recv().ok()).collect();
        assert_eq!(told.len() as u64, few, "run {run}: it ended by itself");
        let until = Instant::now() + Duration::from_micros(moment);
        while let Ok(number) = heard.recv_timeout(until.saturating_duration_since(Instant::now())) {
            told.push(number);
        }
        let seen = Archive::open(&dir).ok().and_then(|archive| archive.chain(None).ok()?.checkpoint().ok()?);
        child.kill().unwrap();
        child.wait().unwrap();
        told.extend(heard);
        from += 1_000_000;
        if !dir.join("chain-0001/checkpoint").exists() {
            assert!(told.is_empty(), "run {run}: nothing is there, and somebody was told of {told:?}");
            continue;
        }
        if run % READ == 0 || run + 1 == KILLS {
            let report = examine(&dir, &Evidence { key: None, seen: seen.into_iter().collect() }).unwrap();
            let wrong: Vec<_> = report.breaks.iter().filter(|broken| !broken.what.contains("behind the last whole line")).collect();
            assert!(wrong.is_empty() && report.chains.len() == 1, "run {run}: {wrong:?}");
            halves += report.breaks.len();
        }
        let kept = kept(&dir);
        // Entries beyond the bounds of the record are gone, the oldest first.
        let first = kept.first().copied().unwrap_or_default();
        let lost: Vec<_> = told.iter().filter(|number| **number >= first && !kept.contains(number)).collect();
        assert!(lost.is_empty() && (told.is_empty() || told.last() >= Some(&first)), "run {run}: told of {lost:?}, and they are not there");
    }
    let segments = Archive::open(&dir).unwrap().chain(None).unwrap().segments().unwrap();
    assert!(segments[0].first > 0, "it was never killed while old files were taken away: {halves} half lines");
}

#[test]
fn acknowledged_entries_outlive_the_first_fifty_kills() {
    kill("acknowledged_entries_outlive_the_first_fifty_kills", 7);
}

#[test]
fn acknowledged_entries_outlive_a_second_fifty_kills() {
    kill("acknowledged_entries_outlive_a_second_fifty_kills", 8);
}

#[test]
fn acknowledged_entries_outlive_a_third_fifty_kills() {
    kill("acknowledged_entries_outlive_a_third_fifty_kills", 9);
}

#[test]
fn acknowledged_entries_outlive_a_fourth_fifty_kills() {
    kill("acknowledged_entries_outlive_a_fourth_fifty_kills", 10);
}
