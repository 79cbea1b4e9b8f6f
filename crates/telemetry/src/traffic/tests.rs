//! Checks of the calls of the last hour.

use super::*;

fn call<'a>(caller: &'a str, name: &'a str, fate: Fate) -> EndedCall<'a> {
    let took = Duration::from_millis(15);
    EndedCall { caller, mount: "lab", is_gate: false, name, is_listed: true, fate, word: "done", call: "c1", began: 1, took }
}

fn busiest(found: &[NameReport]) -> Vec<(&str, u32)> {
    found.iter().map(|one| (&*one.name, one.counts.calls)).collect()
}

#[test]
fn calls_are_counted_by_step_caller_server_and_tool() {
    let begin = Instant::now();
    let traffic = Traffic::new(begin);
    traffic.ended(&call("ann", "add", Fate::Done), begin);
    traffic.ended(&call("ann", "add", Fate::Failed), begin);
    traffic.ended(&call("bob", "list", Fate::Refused), begin + Duration::from_secs(25));
    let report = traffic.report(begin + Duration::from_secs(30));
    let counts = |at: usize| report.steps[STEPS - at].counts;
    assert_eq!(counts(4), Counts { calls: 2, failed: 1, refused: 0 });
    assert_eq!(counts(2), Counts { calls: 1, failed: 0, refused: 1 });
    assert_eq!(report.whole.counts, Counts { calls: 3, failed: 1, refused: 1 });
    assert_eq!(busiest(&report.callers), [("ann", 2), ("bob", 1)]);
    assert_eq!(busiest(&report.servers), [("lab", 3)]);
    assert_eq!(busiest(&report.tools), [("lab.add", 2), ("lab.list", 1)]);
    let last: Vec<_> = report.last.iter().map(|one| (&*one.route, one.is_failed, one.is_refused)).collect();
    assert_eq!(last, [("lab.list", false, true), ("lab.add", true, false), ("lab.add", false, false)]);
}

#[test]
fn an_hour_later_nothing_is_counted() {
    let begin = Instant::now();
    let traffic = Traffic::new(begin);
    traffic.ended(&call("ann", "add", Fate::Done), begin);
    let later = traffic.report(begin + Duration::from_secs(400));
    assert_eq!((later.callers[0].counts.calls, later.callers[0].lately.calls), (1, 0));
    let report = traffic.report(begin + Duration::from_secs(3601));
    assert_eq!((report.whole.counts.calls, report.callers.len(), report.tools.len()), (0, 0, 0));
    assert_eq!(report.whole.p50_ms, None);
}

#[test]
fn durations_lie_between_the_bounds_around_them() {
    let begin = Instant::now();
    let traffic = Traffic::new(begin);
    for millis in [15, 15, 15, 400] {
        traffic.ended(&EndedCall { took: Duration::from_millis(millis), ..call("ann", "add", Fate::Done) }, begin);
    }
    let refused = EndedCall { took: Duration::from_secs(50), ..call("ann", "add", Fate::Refused) };
    (0..100).for_each(|_| traffic.ended(&refused, begin));
    let whole = traffic.report(begin).whole;
    assert!((10.0..=20.0).contains(&whole.p50_ms.unwrap()), "{whole:?}");
    assert!((200.0..=500.0).contains(&whole.p95_ms.unwrap()), "{whole:?}");
    traffic.ended(&EndedCall { took: Duration::from_secs(9000), ..call("ann", "add", Fate::Done) }, begin);
    assert_eq!(traffic.report(begin).whole.p95_ms, Some(300_000.0));
}

#[test]
fn a_server_below_a_gate_has_its_own_counts() {
    let begin = Instant::now();
    let traffic = Traffic::new(begin);
    traffic.ended(&EndedCall { is_gate: true, ..call("ann", "bench.kafka.send", Fate::Done) }, begin);
    traffic.ended(&EndedCall { is_gate: true, is_listed: false, ..call("ann", "a.b.c", Fate::Done) }, begin);
    let report = traffic.report(begin);
    assert_eq!(busiest(&report.servers), [("lab", 1), ("lab.bench.kafka", 1)]);
    assert_eq!(busiest(&report.tools), [("lab.bench.kafka.send", 1)], "a name in no catalog has no counts");
}

#[test]
fn names_beyond_the_bound_are_counted_together() {
    let begin = Instant::now();
    let traffic = Traffic::new(begin);
    for number in 0..CALLERS + 7 {
        traffic.ended(&call(&format!("caller {number}"), &"n".repeat(10_000), Fate::Done), begin);
    }
    let report = traffic.report(begin);
    assert_eq!((report.callers.len(), busiest(&report.callers)[0]), (CALLERS + 1, ("", 7)));
    assert_eq!(report.last.len(), LAST);
    assert!(traffic.seen.lock().unwrap().dotted.capacity() <= DOTTED, "a long name leaves no memory behind");
    assert!(report.last.iter().all(|one| one.route.len() <= "lab.".len() + 256), "texts are cut");
    let later = begin + Duration::from_secs(3700);
    traffic.ended(&call("new", "add", Fate::Done), later);
    assert_eq!(busiest(&traffic.report(later).callers), [("new", 1)], "the quiet make room");
}

#[test]
fn a_held_call_has_no_time_nor_refusal() {
    let begin = Instant::now();
    let traffic = Traffic::new(begin);
    traffic.ended(&EndedCall { word: "held", ..call("ann", "wipe", Fate::Held) }, begin);
    let report = traffic.report(begin);
    assert_eq!(report.whole, StepReport { counts: Counts { calls: 1, failed: 0, refused: 0 }, p50_ms: None, p95_ms: None });
    assert_eq!((&*report.last[0].route, &*report.last[0].outcome), ("lab.wipe", "held"));
}

#[test]
fn a_long_path_below_a_gate_is_cut() {
    let begin = Instant::now();
    let traffic = Traffic::new(begin);
    let long = format!("deep.{}", "n".repeat(1 << 20));
    traffic.ended(&EndedCall { is_gate: true, ..call("ann", &long, Fate::Done) }, begin);
    assert_eq!(busiest(&traffic.report(begin).servers), [("lab.deep", 1)]);
}
