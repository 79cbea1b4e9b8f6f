//! The processes of this machine, from `/proc`: numbers and names only, never command lines.

use serde_json::{Value, json};

use super::system::{SystemReading, proc_file, size};

/// Bytes of a page of memory, the same on all supported machines except a few large ARM ones.
const PAGE: u64 = 4096;
/// Clock ticks a second in `/proc` (USER_HZ, fixed in Linux's interface to programs).
const TICKS: u64 = 100;

struct Process {
    pid: u32,
    name: String,
    state: char,
    memory: u64,
    cpu_seconds: u64,
}

/// The first `limit` processes by `sort`: `memory` or `cpu`.
pub(super) fn top(sort: &str, limit: usize) -> SystemReading {
    proc_file("stat")?;
    let entries = std::fs::read_dir("/proc").map_err(|error| format!("/proc can't be listed: {error}"))?;
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    // A process may end while it is looked at.
    let mut all: Vec<Process> = pids.filter_map(|pid| parse(pid, &proc_file(&format!("{pid}/stat")).ok()?)).collect();
    let count = all.len();
    if sort == "cpu" {
        all.sort_by_key(|process| std::cmp::Reverse((process.cpu_seconds, process.pid)));
    } else {
        all.sort_by_key(|process| std::cmp::Reverse((process.memory, process.pid)));
    }
    all.truncate(limit);
    let line = |p: &Process| format!("{:>7}  {:<16} {}  {:>10}  {:>6} s", p.pid, p.name, p.state, size(p.memory), p.cpu_seconds);
    let value = |p: &Process| json!({ "pid": p.pid, "name": p.name, "state": p.state.to_string(), "memoryBytes": p.memory, "cpuSeconds": p.cpu_seconds });
    let text = format!("{count} processes; by {sort}:\n{}", all.iter().map(line).collect::<Vec<_>>().join("\n"));
    Ok((text, json!({ "count": count, "processes": all.iter().map(value).collect::<Vec<Value>>() })))
}

/// Reads `/proc/PID/stat` (proc(5)). The name stands in brackets and may itself hold brackets and spaces.
fn parse(pid: u32, stat: &str) -> Option<Process> {
    let (head, rest) = stat.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok());
    Some(Process {
        pid,
        name: name.to_owned(),
        state: fields.first()?.chars().next()?,
        cpu_seconds: (number(11)? + number(12)?) / TICKS,
        memory: number(21)? * PAGE,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let stat = "42 (odd) name (x)) S 1 42 42 0 -1 4194560 1 2 3 4 150 250 0 0 20 0 1 0 100 1000000 512 18446744073709551615";
        let process = parse(42, stat).unwrap();
        assert_eq!((process.name.as_str(), process.state, process.cpu_seconds, process.memory), ("odd) name (x)", 'S', 4, 512 * 4096));
        assert!(parse(42, "42 (short) S 1").is_none());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_very_process_is_among_all() {
        let (_, value) = top("memory", 100_000).unwrap();
        let own = u64::from(std::process::id());
        assert!(value["processes"].as_array().unwrap().iter().any(|process| process["pid"] == own));
    }
}
