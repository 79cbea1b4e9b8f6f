//! Facts of a Linux machine that a device runs on: load, memory, processors, counters of interfaces and crash reports, out of the texts of `/proc`
//! and of scripts. Reads no file.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Most crash reports that are shown, the newest ones.
pub const MOST_REPORTS: usize = 16;
/// Bytes that are shown of a crash report.
pub const LONGEST_REPORT: u64 = 64 << 10;
/// Counters of `/proc/net/dev` with the names of OpenConfig, by their places in a line; the kernel keeps them with 64 bits.
const COUNTERS: [(usize, &str); 8] = [
    (0, "in-octets"),
    (1, "in-pkts"),
    (2, "in-errors"),
    (3, "in-discards"),
    (8, "out-octets"),
    (9, "out-pkts"),
    (10, "out-errors"),
    (11, "out-discards"),
];
/// Numbers in a line of `/proc/net/dev`.
const COLUMNS: usize = 16;

/// Load of all processors between the first two looks at `/proc/stat` in a text, in percent; `None`: the text holds no two looks.
pub fn load(stat: &str) -> Option<f64> {
    let mut looks = stat.lines().filter_map(|line| ticks(line.strip_prefix("cpu ")?));
    let (before, after) = (looks.next()?, looks.next()?);
    let (all, idle) = (after.0.saturating_sub(before.0), after.1.saturating_sub(before.1));
    Some(if all == 0 { 0.0 } else { (1000.0 * (all - idle.min(all)) as f64 / all as f64).round() / 10.0 })
}

/// Ticks in all, and those of them without work.
fn ticks(numbers: &str) -> Option<(u64, u64)> {
    let numbers: Vec<u64> = numbers.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    let sum = |from: usize, count: usize| numbers.iter().skip(from).take(count).fold(0, |sum: u64, number| sum.saturating_add(*number));
    (numbers.len() >= 4).then(|| (sum(0, 8), sum(3, 2)))
}

/// Main memory in bytes, out of `/proc/meminfo`; `None`: the text holds no total.
pub fn memory(meminfo: &str) -> Option<Value> {
    let bytes = |name: &str| {
        let rest = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        rest.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).and_then(|kib| kib.checked_mul(1024))
    };
    let total = bytes("MemTotal")?;
    Some(json!({ "total": total, "available": bytes("MemAvailable"), "free": bytes("MemFree") }))
}

/// Model and number of the processors, out of `/proc/cpuinfo`.
pub fn processors(cpuinfo: &str) -> (Option<&str>, usize) {
    let member = |line: &'static str| move |one: &str| one.split_once(':').is_some_and(|(name, _)| name.trim() == line);
    let model =
        cpuinfo.lines().find(|line| member("model name")(line)).and_then(|line| line.split_once(':')).map(|(_, model)| model.trim());
    (model, cpuinfo.lines().filter(|line| member("processor")(line)).count())
}

/// Counters of each interface, out of `/proc/net/dev`.
pub fn counters(net_dev: &str) -> BTreeMap<&str, Value> {
    let line = |line: &'_ str| -> Option<Vec<u64>> {
        let numbers: Vec<u64> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        (numbers.len() == COLUMNS).then_some(numbers)
    };
    let known = net_dev.lines().filter_map(|one| {
        // A name may hold colons, and numbers hold none.
        let (name, numbers) = one.rsplit_once(':')?;
        let numbers = line(numbers)?;
        let counters: Map<String, Value> = COUNTERS.iter().map(|(place, name)| ((*name).to_owned(), numbers[*place].into())).collect();
        Some((name.trim(), Value::Object(counters)))
    });
    known.collect()
}

/// Time of a crash in seconds since 1970, out of its report: `Received signal 11 at 1795548348 (…)`.
pub fn crashed_at(report: &str) -> Option<u64> {
    report.split(" at ").nth(1)?.split(' ').next()?.parse().ok().filter(|time| *time < 1 << 40)
}

/// Names and texts of reports, as [`FrrPrograms::crashes`](crate::change::FrrPrograms::crashes) prints them.
pub fn reports(printed: &str) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for line in printed.lines() {
        match (line.strip_prefix('='), line.strip_prefix('>'), all.last_mut()) {
            (Some(name), _, _) => all.push((name.to_owned(), String::new())),
            (None, Some(text), Some((_, report))) => {
                report.push_str(text);
                report.push('\n');
            }
            _ => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nm_03_the_load_is_the_work_between_two_looks() {
        let looks = "cpu family\t: 6\ncpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1 1 1 1\ncpu  130 0 120 840 10 0 0 0 0 0\n";
        assert_eq!(load(looks), Some(50.0));
        assert_eq!(load("cpu  1 2 3 4\ncpu  1 2 3 4\n"), Some(0.0));
        assert_eq!(load("cpu  1 2 3 4\n"), None);
        let most = u64::MAX;
        assert_eq!(load(&format!("cpu  {most} 1 1 {most} 1\ncpu  {most} 9 9 {most} 9\n")), Some(0.0));
    }

    #[test]
    fn nm_03_memory_and_processors_are_those_of_proc() {
        let found = memory("MemTotal:       1000 kB\nMemFree:         400 kB\n");
        assert_eq!(found, Some(json!({ "total": 1_024_000, "available": null, "free": 409_600 })));
        assert_eq!(memory("nothing"), None);
        assert_eq!(processors("processor\t: 0\nmodel name\t: A: B\n\nprocessor\t: 1\nmodel name\t: A: B\n"), (Some("A: B"), 2));
    }

    #[test]
    fn nm_03_counters_of_the_kernel_have_openconfig_names() {
        let text = "Inter-|   Receive  |  Transmit\n face |bytes packets errs\n  eth0: 18446744073709551615 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n\
                    br:1: 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n bad: 1 2 3\n";
        let found = counters(text);
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), ["br:1", "eth0"]);
        let wanted = json!({ "in-octets": u64::MAX, "in-pkts": 2, "in-errors": 3, "in-discards": 4,
            "out-octets": 9, "out-pkts": 10, "out-errors": 11, "out-discards": 12 });
        assert_eq!(found["eth0"], wanted);
    }

    #[test]
    fn nm_03_reports_are_told_apart_whatever_they_hold() {
        let printed = "=zebra.7\n>ZEBRA: Received signal 11 at 1795548348 (x)\n>=zebra.9\n\n=zebra.8\n>\n";
        let found = reports(printed);
        assert_eq!(found[0].1, "ZEBRA: Received signal 11 at 1795548348 (x)\n=zebra.9\n");
        assert_eq!((found[1].0.as_str(), found.len()), ("zebra.8", 2));
        assert_eq!(crashed_at(&found[0].1), Some(1_795_548_348));
    }

    proptest! {
        #[test]
        fn nm_03_any_text_of_a_machine_is_read(text in "(cpu |MemTotal:|eth0:|=|>| at |[0-9 ]{0,40}|\n|\\PC{0,6}){0,30}") {
            load(&text);
            memory(&text);
            processors(&text);
            crashed_at(&text);
            prop_assert!(counters(&text).len() <= text.lines().count() && reports(&text).len() <= text.lines().count());
        }
    }
}
