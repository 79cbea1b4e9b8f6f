//! Reports that daemons of FRR left when they crashed, below a directory of the machine. All path spaces share the directory. Changes nothing.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use net_proto::machine::{LONGEST_REPORT, MOST_REPORTS, crashed_at};
use serde_json::{Value, json};

use crate::clock::written;

/// Most entries of the directory that are looked at.
const MOST_ENTRIES: usize = 4_096;

/// Crashes of the daemon `name`, the newest first, as an array.
pub(crate) fn reports(below: &Path, name: &str) -> Vec<Value> {
    let entries = std::fs::read_dir(below).into_iter().flatten().take(MOST_ENTRIES).filter_map(Result::ok);
    let of_daemon = entries.filter_map(|entry| {
        let file = entry.file_name().into_string().ok()?;
        let number = file.strip_prefix(name)?.strip_prefix('.')?;
        number.parse::<u32>().ok()?;
        // Others can write here as well, and a link would lead to any file of this machine.
        entry.file_type().ok()?.is_dir().then(|| (file.clone(), entry.path().join("crashlog")))
    });
    newest(name, of_daemon.filter_map(|(file, path)| Some((file, report(&path)?))))
}

/// The newest of reports with their names, the newest first; a report without a time counts as none.
pub(super) fn newest(daemon: &str, reports: impl IntoIterator<Item = (String, String)>) -> Vec<Value> {
    let timed = reports.into_iter().filter_map(|(file, text)| {
        let time = crashed_at(&text)?;
        Some((time, json!({ "daemon": daemon, "report": file, "time": written(time * 1000), "text": text })))
    });
    let mut all: Vec<(u64, Value)> = timed.collect();
    all.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
    all.into_iter().take(MOST_REPORTS).map(|(_, report)| report).collect()
}

fn report(path: &Path) -> Option<String> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(i32::try_from(flags.bits()).ok()?).open(path).ok()?;
    let mut bytes = Vec::new();
    file.metadata().ok()?.is_file().then_some(())?;
    file.take(LONGEST_REPORT).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nm_03_crashes_of_a_daemon_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let crash = |name: &str, text: &str| {
            std::fs::create_dir(dir.path().join(name)).unwrap();
            std::fs::write(dir.path().join(name).join("crashlog"), text).unwrap();
        };
        crash("zebra.7", "ZEBRA: Received signal 11 at 1795548348 (si_addr 0x1); aborting...\n");
        crash("zebra.8", "ZEBRA: Received signal 6 at 1795548349 (si_addr 0x1); aborting...\n");
        crash("zebra.x", "ZEBRA: Received signal 11 at 1 (");
        crash("bgpd.7", "BGP: Received signal 11 at 1795548348 (");
        std::fs::create_dir(dir.path().join("zebra.9")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("zebra.9/crashlog")).unwrap();
        let all = reports(dir.path(), "zebra");
        assert_eq!(all.iter().map(|one| one["report"].as_str().unwrap()).collect::<Vec<_>>(), ["zebra.8", "zebra.7"]);
        assert_eq!(all[1]["time"], "2026-11-24T19:25:48Z");
        assert_eq!(reports(&dir.path().join("none"), "zebra"), [] as [Value; 0]);
    }
}
