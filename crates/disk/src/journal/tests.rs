mod disk;
mod killed;
mod power;

use std::fs;

use audit::record::{Gap, Intent};

use self::disk::names;
use super::archive::{Archive, ChainDir, records};
use super::examine::{BrokenPlace, Evidence, Report, examine};
use super::*;

fn audit_at(path: &Path) -> Audit {
    Audit { path: Some(path.to_owned()), keep_at_least: Duration::ZERO, ..Audit::default() }
}

fn journal(state: &Path, keep_bytes: u64) -> DiskJournal {
    DiskJournal::new(&Audit { keep_bytes, ..audit_at(&state.join("record")) }, state, None, &"node".into())
}

fn intent(name: &str) -> Intent<'_> {
    Intent { name: name.into(), method: "tools/call".into(), began: runtime::clock::wall(), ..Intent::default() }
}

fn part() -> Arc<Part> {
    Parts::default().of_principal("ann")
}

fn outcome() -> Outcome<'static> {
    Outcome { ending: "done".into(), ..Outcome::default() }
}

/// A record of `count` calls, written in order.
async fn written(state: &Path, count: u64) -> PathBuf {
    let journal = journal(state, 256 << 20);
    for number in 0..count {
        let name = number.to_string();
        journal.append_durable(&part(), &Record::Intended(intent(&name))).await.unwrap();
    }
    journal.close().await;
    state.join("record")
}

fn look(dir: &Path) -> Report {
    examine(dir, &Evidence::default()).unwrap()
}

fn broken(dir: &Path) -> BrokenPlace {
    let report = look(dir);
    assert!(!report.sound);
    report.breaks[0].clone()
}

fn lines_of(dir: &Path) -> Vec<String> {
    let archive = Archive::open(dir).unwrap();
    let segments = archive.chain(None).unwrap().segments().unwrap();
    segments.iter().flat_map(|s| fs::read_to_string(&s.path).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

fn set_lines(dir: &Path, lines: &[String]) {
    let path = Archive::open(dir).unwrap().chain(None).unwrap().segments().unwrap()[0].path.clone();
    fs::write(path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
}

#[tokio::test]
async fn the_record_on_the_disk_meets_the_journal_contract() {
    let state = tempfile::tempdir().unwrap();
    let numbers = std::cell::Cell::new(0);
    store::contract::journal::holds(|| {
        let dir = state.path().join(numbers.replace(numbers.get() + 1).to_string());
        (Arc::new(journal(&dir, 256 << 20)), Box::new(move || lines_of(&dir.join("record")).into_iter().map(String::into_bytes).collect()))
    })
    .await;
}

#[tokio::test]
async fn acknowledged_entries_are_in_a_sound_record() {
    let state = tempfile::tempdir().unwrap();
    let dir = written(state.path(), 20).await;
    let report = look(&dir);
    assert!(report.sound, "{report:?}");
    let chain = &report.chains[0];
    assert_eq!((chain.size, chain.signed, chain.starts), (22, 22, 1));
    let archive = Archive::open(&dir).unwrap();
    let chain = archive.chain(None).unwrap();
    for seq in 0..22 {
        let (found, proof) = archive.prove(&chain, seq).unwrap();
        assert_eq!((found.seq, proof.index), (seq, seq));
    }
    assert!(archive.prove(&chain, 22).is_err());
}

#[tokio::test]
async fn an_intent_and_its_outcome_become_one_entry() {
    let state = tempfile::tempdir().unwrap();
    let journal = journal(state.path(), 256 << 20);
    let quick = journal.intend(&part(), intent("quick"));
    journal.ended(&part(), quick, &|| "c-1".into(), outcome());
    journal.append_durable(&part(), &Record::Intended(intent("gated"))).await.unwrap();
    journal.ended(&part(), None, &|| "c-2".into(), outcome());
    journal.close().await;
    let lines = lines_of(&state.path().join("record"));
    let events: Vec<_> = lines.iter().filter_map(|line| line.split('"').nth(3)).collect();
    assert_eq!(events, ["started", "called", "intended", "ended", "stopped"]);
    assert!(look(&state.path().join("record")).sound);
}

#[tokio::test]
async fn a_long_call_is_written_before_it_ends() {
    let state = tempfile::tempdir().unwrap();
    let journal = journal(state.path(), 256 << 20);
    let slow = journal.intend(&part(), intent("slow"));
    let dir = state.path().join("record");
    let events = || lines_of(&dir).iter().filter_map(|line| line.split('"').nth(3).map(str::to_owned)).collect::<Vec<_>>();
    disk::until("the intent of a call that is under way", || journal.standing().dir.is_some() && events().contains(&"intended".to_owned()))
        .await;
    journal.ended(&part(), slow, &|| "c-1".into(), outcome());
    // A call under way at the end of the gate.
    assert!(journal.intend(&part(), intent("last")).is_some());
    journal.close().await;
    assert_eq!(events(), ["started", "intended", "ended", "intended", "stopped"]);
    assert!(look(&dir).sound && names(&lines_of(&dir)) == ["slow", "last"]);
}

#[tokio::test]
async fn a_record_continues_behind_a_cut_line() {
    let state = tempfile::tempdir().unwrap();
    let dir = written(state.path(), 3).await;
    written(state.path(), 3).await;
    let path = Archive::open(&dir).unwrap().chain(None).unwrap().segments().unwrap()[0].path.clone();
    let mut text = fs::read(&path).unwrap();
    text.extend_from_slice(b"{\"event\":\"half");
    fs::write(&path, &text).unwrap();
    assert!(broken(&dir).what.starts_with("14 bytes behind the last whole line"));
    written(state.path(), 1).await;
    let report = look(&dir);
    assert!(report.sound, "{report:?}");
    assert_eq!((report.chains[0].starts, report.chains[0].cut), (3, 1));
}

#[tokio::test]
async fn tampering_is_found_where_it_was_done() {
    let state = tempfile::tempdir().unwrap();
    let dir = written(state.path(), 9).await;
    let good = lines_of(&dir);
    let chain = Archive::open(&dir).unwrap().chain(None).unwrap();
    let with = |change: &dyn Fn(&mut Vec<String>)| {
        let mut lines = good.clone();
        change(&mut lines);
        set_lines(&dir, &lines);
        let at = broken(&dir);
        set_lines(&dir, &good);
        (at.line, at.seq)
    };
    assert_eq!(with(&|lines| lines[4] = lines[4].replace("\"name\":\"3\"", "\"name\":\"8\"")), (Some(6), Some(5)));
    assert_eq!(with(&|lines| drop(lines.remove(4))), (Some(5), Some(4)));
    assert_eq!(with(&|lines| lines.swap(4, 5)), (Some(5), Some(4)));
    assert_eq!(with(&|lines| lines.truncate(7)), (None, Some(7)));
    let last = good.len() - 1;
    assert_eq!(with(&|lines| lines[last] = lines[last].replace("\"time\":", "\"time\":9")), (Some(11), Some(10)));
    assert!(look(&dir).sound);
    let checkpoint = chain.path.join("checkpoint");
    let text = fs::read_to_string(&checkpoint).unwrap();
    for bad in [text.replace("\n11\n", "\n10\n"), text.replacen('=', "", 1), String::new()] {
        fs::write(&checkpoint, bad).unwrap();
        assert!(broken(&dir).file.ends_with("checkpoint"));
    }
    fs::remove_file(&checkpoint).unwrap();
    assert!(broken(&dir).what.starts_with("nothing signs"));
    fs::write(&checkpoint, &text).unwrap();
}

#[tokio::test]
async fn a_tile_that_was_changed_is_found() {
    let state = tempfile::tempdir().unwrap();
    let journal = journal(state.path(), 256 << 20);
    (0..600).for_each(|_| journal.append(&Record::Intended(intent("x"))));
    journal.close().await;
    let dir = state.path().join("record");
    assert!(look(&dir).sound);
    let chain = Archive::open(&dir).unwrap().chain(None).unwrap();
    let tile = chain.path.join("tile/1/000.p/2");
    let mut content = fs::read(&tile).unwrap();
    content[40] ^= 1;
    fs::write(&tile, content).unwrap();
    assert!(broken(&dir).what.starts_with("the tile"));
}

#[test]
fn a_call_id_is_run_and_number_in_hex() {
    let journal = journal(Path::new("state"), 0);
    for number in [0, 9, 0x1f, 0x10_0000, u64::MAX] {
        let spelled = journal.ids().spelled(store::CallId { number });
        assert_eq!(spelled.split_once('-').unwrap().1, format!("{number:x}"));
    }
}

#[tokio::test]
async fn an_earlier_checkpoint_or_key_reveals_a_rewritten_record() {
    let state = tempfile::tempdir().unwrap();
    let dir = written(state.path(), 3).await;
    let chain = Archive::open(&dir).unwrap().chain(None).unwrap();
    let (early, lines) = (fs::read_to_string(chain.path.join("checkpoint")).unwrap(), lines_of(&dir));
    written(state.path(), 3).await;
    let late = Evidence { key: None, seen: vec![fs::read_to_string(chain.path.join("checkpoint")).unwrap()] };
    assert!(examine(&dir, &Evidence { key: None, seen: vec![early.clone()] }).unwrap().sound);
    // An old state put back is sound in itself.
    set_lines(&dir, &lines);
    fs::write(chain.path.join("checkpoint"), &early).unwrap();
    assert!(look(&dir).sound);
    assert!(examine(&dir, &late).unwrap().breaks[0].what.contains("a checkpoint seen before"));
    let other = tempfile::tempdir().unwrap();
    let elsewhere = written(other.path(), 3).await;
    assert!(!examine(&elsewhere, &late).unwrap().sound);
    let key = audit::key::Verifier::parse(&look(&dir).chains[0].key).unwrap();
    assert!(examine(&dir, &Evidence { key: Some(key.clone()), seen: Vec::new() }).unwrap().sound);
    assert!(!examine(&elsewhere, &Evidence { key: Some(key), seen: Vec::new() }).unwrap().sound);
}

#[tokio::test]
async fn a_new_chain_names_the_broken_one_beside_it() {
    let state = tempfile::tempdir().unwrap();
    let dir = written(state.path(), 3).await;
    let mut lines = lines_of(&dir);
    lines.remove(2);
    set_lines(&dir, &lines);
    written(state.path(), 1).await;
    let report = look(&dir);
    assert_eq!(report.breaks.iter().map(|b| b.chain.as_str()).collect::<Vec<_>>(), ["chain-0001"]);
    assert_eq!(report.chains.len(), 2);
    assert!(lines_of(&dir)[0].contains(r#""after":{"chain":"chain-0001""#));
}

#[tokio::test]
async fn an_empty_chain_is_begun_again() {
    let state = tempfile::tempdir().unwrap();
    let dir = state.path().join("record");
    fs::create_dir_all(dir.join("chain-0001")).unwrap();
    written(state.path(), 1).await;
    assert_eq!(look(&dir).chains.iter().map(|chain| chain.size).collect::<Vec<_>>(), [3]);
    // A chain without its key must show as broken.
    fs::remove_file(dir.join("chain-0001/key.pub")).unwrap();
    fs::create_dir_all(dir.join("chain-0002/entries")).unwrap();
    written(state.path(), 1).await;
    let chains: Vec<_> = ChainDir::all(&dir).unwrap();
    let first = fs::read_to_string(&chains[1].segments().unwrap()[0].path).unwrap();
    assert!(chains.len() == 2 && first.contains(r#""after":{"chain":"chain-0001""#), "{first}");
}

#[tokio::test]
async fn the_rest_is_proved_after_old_entries_are_removed() {
    let state = tempfile::tempdir().unwrap();
    let journal = journal(state.path(), 1 << 20);
    let long = "x".repeat(1500);
    for _ in 0..3 {
        for _ in 0..600 {
            journal.append(&Record::Intended(intent(&long)));
        }
        journal.append_durable(&part(), &Record::Gap(Gap { missing: 0, since: 0 })).await.unwrap();
    }
    journal.close().await;
    let dir = state.path().join("record");
    let report = look(&dir);
    assert!(report.sound, "{report:?}");
    let (first, size) = (report.chains[0].first, report.chains[0].size);
    assert!(first > 256 && size > 1800, "{report:?}");
    let archive = Archive::open(&dir).unwrap();
    let chain = archive.chain(None).unwrap();
    let kept: u64 = chain.segments().unwrap().iter().map(|s| s.bytes).sum();
    assert!(kept < 2 << 20, "{kept}");
    for seq in [first, first + 1, size - 1] {
        archive.prove(&chain, seq).unwrap();
    }
    assert!(archive.entry(&chain, first - 1).is_err());
    let again = self::journal(state.path(), 1 << 20);
    again.append_durable(&part(), &Record::Gap(Gap { missing: 0, since: 0 })).await.unwrap();
    again.close().await;
    assert!(look(&dir).sound && look(&dir).chains[0].starts >= 1);
    // Bounds remove the oldest, nothing from between.
    let taken = chain.segments().unwrap().swap_remove(1);
    fs::remove_file(&taken.path).unwrap();
    let at = broken(&dir);
    assert!(at.seq == Some(taken.first) && at.what.contains("are missing before this file"), "{at:?}");
}

#[tokio::test]
async fn a_failed_write_is_refused_and_leaves_a_gap() {
    let state = tempfile::tempdir().unwrap();
    let record = state.path().join("record");
    fs::write(&record, "in the way").unwrap();
    let journal = journal(state.path(), 256 << 20);
    journal.append(&Record::Intended(intent("lost")));
    assert!(journal.append_durable(&part(), &Record::Intended(intent("gated"))).await.is_err());
    assert!(journal.standing().failing.is_some());
    assert_eq!(journal.unrecorded(), 1);
    fs::remove_file(&record).unwrap();
    journal.append_durable(&part(), &Record::Intended(intent("there"))).await.unwrap();
    assert!(journal.standing().failing.is_none());
    journal.close().await;
    assert_eq!(look(&record).chains[0].missing, 1);
}

#[tokio::test]
async fn gates_of_one_name_write_beside_each_other() {
    let state = tempfile::tempdir().unwrap();
    let off = DiskJournal::new(&Audit { enabled: false, ..Audit::default() }, state.path(), None, &"n".into());
    assert_eq!(off.append_durable(&part(), &Record::Stopped).await, Ok(()));
    off.close().await;
    let idle = DiskJournal::new(&Audit::default(), state.path(), None, &"n".into());
    idle.close().await;
    assert_eq!(fs::read_dir(state.path()).unwrap().count(), 0);
    let both = [0, 1].map(|_| DiskJournal::new(&Audit::default(), state.path(), Some(Path::new("/a.toml")), &"n".into()));
    for journal in &both {
        journal.append_durable(&part(), &Record::Intended(intent("x"))).await.unwrap();
    }
    let found = records(state.path());
    assert_eq!(found.len(), 2);
    for journal in &both {
        journal.close().await;
    }
    assert!(found.iter().all(|dir| look(dir).sound));
}

#[tokio::test]
async fn entries_are_found_and_the_index_is_made_again() {
    use super::index::Search;
    let state = tempfile::tempdir().unwrap();
    let journal = journal(state.path(), 256 << 20);
    let of = |call: &'static str, principal: &'static str, mount: &'static str| Intent {
        call: call.into(),
        principal: principal.into(),
        mount: Some(mount.into()),
        ..intent("read")
    };
    let traced = |intent: Intent<'static>| Intent { trace: Some("7".repeat(32).into()), ..intent };
    let quick = journal.intend(&part(), of("c-1", "ann", "files"));
    journal.ended(&part(), quick, &|| "c-1".into(), outcome());
    journal.append_durable(&part(), &Record::Intended(traced(of("c-2", "bob", "git")))).await.unwrap();
    journal.ended(&part(), None, &|| "c-2".into(), Outcome { ending: "tool_error".into(), ..Outcome::default() });
    journal.close().await;
    let dir = state.path().join("record");
    let archive = Archive::open(&dir).unwrap();
    let find = |search: Search| -> Vec<u64> { archive.search(&Search { limit: 9, ..search }).unwrap().iter().map(|f| f.seq).collect() };
    let text = |text: &str| Some(text.to_owned());
    for _ in 0..2 {
        assert_eq!(find(Search::default()), [4, 3, 2, 1, 0]);
        assert_eq!(find(Search { principal: text("ann"), ..Search::default() }), [1]);
        assert_eq!(find(Search { route: text("git.*"), ..Search::default() }), [3, 2]);
        assert_eq!(find(Search { route: text("git.read"), outcome: text("tool_error"), ..Search::default() }), [3]);
        assert_eq!(find(Search { id: text("c-2"), ..Search::default() }), [3, 2]);
        assert_eq!(find(Search { trace: text(&"7".repeat(32)), ..Search::default() }), [3, 2]);
        assert_eq!(find(Search { event: text("started"), since: Some(1), ..Search::default() }), [0]);
        assert!(find(Search { until: Some(1), ..Search::default() }).is_empty());
        // Written by an older version, which knows no traces.
        fs::remove_file(dir.join("index.db")).unwrap();
        let old = rusqlite::Connection::open(dir.join("index.db")).unwrap();
        old.execute_batch("CREATE TABLE entries (chain INTEGER); CREATE TABLE reached (chain INTEGER)").unwrap();
    }
    let again = self::journal(state.path(), 256 << 20);
    find(Search::default());
    again.append_durable(&part(), &Record::Intended(of("c-3", "ann", "files"))).await.unwrap();
    again.close().await;
    assert_eq!(find(Search { principal: text("ann"), ..Search::default() }), [6, 1]);
    let found = archive.search(&Search { id: text("c-3"), limit: 1, ..Search::default() }).unwrap();
    assert!(found[0].line.contains("\"call\":\"c-3\""));
}

#[tokio::test]
async fn a_record_is_handed_on_as_a_static_log() {
    use audit::tile::{Tile, Tiles};
    let state = tempfile::tempdir().unwrap();
    let journal = journal(state.path(), 256 << 20);
    for _ in 0..300 {
        journal.append(&Record::Intended(intent("x")));
    }
    journal.close().await;
    let archive = Archive::open(&state.path().join("record")).unwrap();
    let chain = archive.chain(None).unwrap();
    let mut log = std::collections::BTreeMap::new();
    archive
        .log(&chain, |path, content| {
            log.insert(path.to_owned(), content.to_vec());
            Ok(())
        })
        .unwrap();
    let paths: Vec<_> = log.keys().map(String::as_str).collect();
    assert_eq!(paths, ["checkpoint", "tile/0/000", "tile/0/001.p/46", "tile/1/000.p/1", "tile/entries/000", "tile/entries/001.p/46"]);
    let bundle = audit::bundle::decode(&log["tile/entries/001.p/46"]).unwrap();
    let hashes = Tile::parse("tile/0/001.p/46").unwrap().hashes(&log["tile/0/001.p/46"]).unwrap();
    assert_eq!(bundle.iter().map(|entry| audit::hash::leaf(entry)).collect::<Vec<_>>(), hashes);
    let signed = audit::checkpoint::Checkpoint::parse(&archive.checkpoint(&chain).unwrap()).unwrap();
    let root = Tiles::new(302, |tile: &Tile| log.get(&tile.to_string()).cloned()).edge().unwrap().root();
    assert_eq!((signed.size, signed.root), (302, root));
}
