//! Promises of a [`Journal`]. The reader beside a journal gives the lines of the record; nothing here knows files.

use std::sync::Arc;

use audit::chain::Chain;
use audit::entry::Entry;
use audit::record::{Changed, Intent, Outcome, Record, Refused};

use crate::{Journal, Refusal, Way};

/// Journal without entries, with a reader for the lines of the record.
pub type Fresh = (Arc<dyn Journal>, Box<dyn Fn() -> Vec<Vec<u8>>>);

/// Tries every promise, each on a fresh journal.
pub async fn holds(fresh: impl Fn() -> Fresh) {
    what_was_awaited_lasts_in_order(fresh()).await;
    every_call_has_its_intent_and_its_outcome(fresh()).await;
    refusals_are_all_counted_and_few_of_them_are_written(fresh()).await;
    nothing_is_recorded_after_the_end(fresh()).await;
    no_two_calls_have_one_id(&fresh());
}

fn intent(name: &str) -> Intent<'_> {
    Intent { name: name.into(), method: "tools/call".into(), principal: "ann".into(), ..Intent::default() }
}

fn outcome() -> Outcome<'static> {
    Outcome { ending: "done".into(), ..Outcome::default() }
}

/// Reads the lines back, and checks the chain.
fn entries(lines: &[Vec<u8>]) -> Vec<Entry<'_>> {
    let mut chain = Chain::new();
    lines.iter().map(|line| line.strip_suffix(b"\n").unwrap_or(line)).for_each(|line| drop(chain.follow(line).unwrap()));
    lines.iter().map(|line| Entry::decode(line.strip_suffix(b"\n").unwrap_or(line)).unwrap()).collect()
}

async fn what_was_awaited_lasts_in_order((journal, read): Fresh) {
    let part = journal.part("ann");
    for number in 0..20 {
        journal.append_durable(&part, &Record::Intended(intent(&number.to_string()))).await.unwrap();
        // It lasts when the wait is over, not when the next one comes.
        let lines = read();
        let last = entries(&lines).into_iter().rev().find_map(|entry| entry.record.intent().map(|intent| intent.name.to_string()));
        assert_eq!(last, Some(number.to_string()));
    }
    journal.append(&Record::Changed(Changed { lines: Vec::new(), version: None, what: "configuration".into() }));
    journal.close().await;
    let lines = read();
    let entries = entries(&lines);
    let names: Vec<_> = entries.iter().filter_map(|entry| entry.record.intent()).map(|intent| intent.name.to_string()).collect();
    assert_eq!(names, (0..20).map(|number| number.to_string()).collect::<Vec<_>>());
    assert!(entries.iter().any(|entry| matches!(&entry.record, Record::Changed(changed) if changed.what == "configuration")));
    assert!(part.fresh() > 0, "entries count for their principal");
    assert_eq!(journal.unrecorded(), 0);
}

async fn every_call_has_its_intent_and_its_outcome((journal, read): Fresh) {
    let part = journal.part("ann");
    for _ in 0..50 {
        let call = journal.ids().next_call();
        let id = journal.ids().spelled(call);
        let ticket = journal.intend(&part, Intent { call: id.as_str().into(), ..intent("add") });
        journal.ended(&part, ticket, &|| id.clone(), outcome());
    }
    journal.close().await;
    let lines = read();
    let (mut began, mut done) = (Vec::new(), Vec::new());
    for entry in entries(&lines) {
        match entry.record {
            Record::Called(called) => {
                began.push(called.intent.call.to_string());
                done.push(called.intent.call.to_string());
            }
            Record::Intended(intent) => began.push(intent.call.to_string()),
            Record::Ended(ended) => done.push(ended.call.to_string()),
            Record::ApprovalAsked(_)
            | Record::ApprovalDecided(_)
            | Record::BrokeHere(_)
            | Record::Changed(_)
            | Record::Gap(_)
            | Record::Refused(_)
            | Record::Registration(_)
            | Record::Started(_)
            | Record::Stopped
            | Record::Unknown { .. } => {}
        }
    }
    began.sort();
    done.sort();
    assert_eq!((began.len(), &began), (50, &done));
}

async fn refusals_are_all_counted_and_few_of_them_are_written((journal, read): Fresh) {
    for _ in 0..1000 {
        let way = journal.count_refusal("ann", "unknown");
        if way != Way::Counted {
            let refused = Refused { code: -32602, count: None, intent: intent("add"), reason: "unknown".into(), rules: Vec::new() };
            journal.refuse(way, Refusal::Call(refused));
        }
    }
    journal.sweep();
    journal.close().await;
    let lines = read();
    let counts: Vec<u64> = entries(&lines)
        .into_iter()
        .filter_map(|entry| if let Record::Refused(refused) = entry.record { Some(refused.count.unwrap_or(1)) } else { None })
        .collect();
    assert_eq!(counts.iter().sum::<u64>(), 1000);
    assert!(counts.len() < 100, "{}", counts.len());
}

async fn nothing_is_recorded_after_the_end((journal, read): Fresh) {
    journal.start();
    journal.append(&Record::Changed(Changed { lines: Vec::new(), version: None, what: "room".into() }));
    journal.close().await;
    let before = read();
    assert!(!before.is_empty());
    let part = journal.part("ann");
    journal.append(&Record::Changed(Changed { lines: Vec::new(), version: None, what: "room".into() }));
    assert!(journal.append_durable(&part, &Record::Intended(intent("late"))).await.is_err());
    assert_eq!(read(), before);
}

fn no_two_calls_have_one_id((journal, _): &Fresh) {
    let ids: std::collections::BTreeSet<_> = (0..1000).map(|_| journal.ids().spelled(journal.ids().next_call())).collect();
    assert_eq!(ids.len(), 1000);
}
