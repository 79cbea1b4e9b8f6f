//! Reports that daemons of FRR left when they crashed, below a directory of the machine. All path spaces share the directory. Changes nothing.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::clock::written;

/// Directory of crash reports, made by FRR.
pub(crate) const CRASHES: &str = "/var/tmp/frr";
/// Most reports of a read, the newest ones, and bytes of each.
const MOST: usize = 16;
const LONGEST: u64 = 64 << 10;
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
    let mut all: Vec<(u64, Value)> = of_daemon
        .filter_map(|(file, path)| {
            let text = report(&path)?;
            let time = seconds(&text)?;
            Some((time, json!({ "daemon": name, "report": file, "time": written(time * 1000), "text": text })))
        })
        .collect();
    all.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
    all.into_iter().take(MOST).map(|(_, report)| report).collect()
}

fn report(path: &Path) -> Option<String> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(i32::try_from(flags.bits()).ok()?).open(path).ok()?;
    let mut bytes = Vec::new();
    file.metadata().ok()?.is_file().then_some(())?;
    file.take(LONGEST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Time of a crash, in seconds since 1970: `Received signal 11 at 1795548348 (…)`.
fn seconds(text: &str) -> Option<u64> {
    text.split(" at ").nth(1)?.split(' ').next()?.parse().ok().filter(|time| *time < 1 << 40)
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
