//! The copy beside a connected client's file. Its name holds the time, and the hash of the changed file, so that an
//! unchanged file can be put back to the byte. Does not read the copy.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};

/// Between the name of the file and the date.
const MARK: &str = ".banyan-";

/// The copy made when the file was connected.
#[derive(Clone, Debug)]
pub(super) struct Backup {
    pub(super) path: PathBuf,
    /// There was no file then.
    pub(super) was_absent: bool,
    /// Beginning of the hash of the changed file.
    hash: String,
}

/// Names the copy: `mcp.json.banyan-20261121-024000-1a2b3c4d5e6f7081.bak`; ends in `.none` without anything to copy.
pub(super) fn path(file: &Path, now: SystemTime, after: &str, exists: bool) -> PathBuf {
    let end = if exists { "bak" } else { "none" };
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!("{MARK}{}-{}.{end}", date(now), hash(after)));
    file.with_file_name(name)
}

impl Backup {
    /// Finds the newest copy beside the file.
    pub(super) fn newest(file: &Path) -> Option<Self> {
        let before = format!("{}{MARK}", file.file_name()?.to_str()?);
        let entries = std::fs::read_dir(file.parent()?).ok()?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let backups = names.filter_map(|name| Some((parts(name.strip_prefix(&before)?)?, name)));
        let ((_, hash, was_absent), name) = backups.max()?;
        Some(Self { path: file.with_file_name(name), was_absent, hash })
    }

    /// Tells if the file is unchanged since its connection.
    pub(super) fn is_of(&self, current: &str) -> bool {
        self.hash == hash(current)
    }

    /// Removes a copy that is back in the file as a whole. Any other copy is kept, under a name out of use.
    #[expect(clippy::disallowed_methods, reason = "nothing is written")]
    pub(super) fn spend(&self, whole: bool) -> std::io::Result<()> {
        if whole { std::fs::remove_file(&self.path) } else { std::fs::rename(&self.path, self.path.with_extension("old")) }
    }
}

/// Splits a name into date, hash, and the absence of the file.
fn parts(name: &str) -> Option<(String, String, bool)> {
    let (stem, end) = name.rsplit_once('.')?;
    let (date, hash) = stem.rsplit_once('-')?;
    let was_absent = match end {
        "bak" => false,
        "none" => true,
        _ => return None,
    };
    Some((date.to_owned(), hash.to_owned(), was_absent))
}

fn hash(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// `YYYYMMDD-HHMMSS` in UTC.
fn date(now: SystemTime) -> String {
    let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (year, month, day) = civil(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
}

/// Year, month and day of the Gregorian calendar, from days since 1970-01-01.
fn civil(days: u64) -> (u64, u64, u64) {
    let is_leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut year, mut rest) = (1970, days);
    while rest >= 365 + u64::from(is_leap(year)) {
        rest -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if rest < length {
            break;
        }
        rest -= length;
        month += 1;
    }
    (year, month, rest + 1)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "19700101-000000"),
            (951_827_696, "20000229-123456"),
            (1_795_228_800, "20261121-024000"),
            (1_767_225_599, "20251231-235959"),
        ] {
            assert_eq!(date(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn the_newest_backup_is_found_by_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mcp.json");
        assert!(Backup::newest(&file).is_none());
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        for (seconds, exists) in [(5, true), (9, false), (7, true)] {
            std::fs::write(path(&file, at(seconds), "after", exists), "").unwrap();
        }
        std::fs::write(dir.path().join("mcp.json.banyan-99999999-000000-00.old"), "").unwrap();
        let newest = Backup::newest(&file).unwrap();
        assert!(newest.was_absent && newest.is_of("after") && !newest.is_of("other"));
        newest.spend(false).unwrap();
        assert!(!Backup::newest(&file).unwrap().was_absent);
    }
}
