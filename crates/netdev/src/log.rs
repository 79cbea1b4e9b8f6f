//! The log file of the device on this machine: the last lines, and what comes to the file from a moment on. Survives rotation. Decides nothing
//! about messages.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use net_proto::fault::{Code, Fault};
use net_proto::log::{Arrival, FileLines, LogMessage, LogTail};

use crate::clock::now;
use crate::site::Site;

/// Bytes of the end of the file that a read looks at.
const LAST: u64 = 4 << 20;
/// Bytes of the file that are taken at a time; what came beyond is taken the next time.
const PIECE: u64 = 4 << 20;
/// Lines and bytes kept for subscribers.
const KEPT_LINES: usize = 2_000;
const KEPT_BYTES: usize = 1 << 20;

/// A log file that is followed.
#[derive(Debug)]
pub(crate) struct LogFollower {
    path: PathBuf,
    place: Option<(u64, u64)>,
    lines: FileLines,
    pub(crate) tail: LogTail,
}

/// Path of the file that the device logs to.
pub(crate) async fn path(site: &Site) -> Result<PathBuf, Fault> {
    let running = site.backend.running().await?;
    let named = running.lines().find_map(|line| line.strip_prefix("log file ")?.split(' ').next());
    named.map(PathBuf::from).ok_or_else(|| Fault::new(Code::ConfigIncompatible, "the device logs to no file: configure `log file PATH`"))
}

/// The last lines of a file, each with its message.
pub(crate) fn last(path: &Path, count: usize) -> Result<Vec<(String, LogMessage)>, Fault> {
    let read = || {
        let mut file = File::open(path)?;
        let from = file.metadata()?.len().saturating_sub(LAST);
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(from))?;
        file.take(LAST).read_to_end(&mut bytes)?;
        // The first line may be the end of one.
        let begin = if from == 0 { 0 } else { bytes.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1) };
        bytes.push(b'\n');
        Ok(FileLines::default().receive(&bytes[begin..]))
    };
    let lines = read().map_err(|error: std::io::Error| Fault::new(Code::ConfigIncompatible, format!("{}: {error}", path.display())))?;
    let skipped = lines.len().saturating_sub(count);
    Ok(lines.into_iter().skip(skipped).map(|line| (line.clone(), message(&line))).collect())
}

impl LogFollower {
    /// Begins at the present end of the file.
    pub(crate) fn begin(path: PathBuf) -> Self {
        let place = std::fs::metadata(&path).ok().map(|facts| (facts.ino(), facts.len()));
        Self { path, place, lines: FileLines::default(), tail: LogTail::new(KEPT_LINES, KEPT_BYTES) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Takes what has come since. A file that can't be read has nothing new.
    pub(crate) fn take_news(&mut self) {
        let Ok(mut file) = File::open(&self.path) else { return };
        let Ok(facts) = file.metadata() else { return };
        let from = match self.place {
            Some((inode, at)) if inode == facts.ino() && at <= facts.len() => at,
            _ => {
                self.lines.forget_partial();
                0
            }
        };
        let mut bytes = Vec::new();
        if file.seek(SeekFrom::Start(from)).is_err() || file.take(PIECE).read_to_end(&mut bytes).is_err() {
            return;
        }
        self.place = Some((facts.ino(), from + bytes.len() as u64));
        let arrived = i64::try_from(now().wall).unwrap_or(i64::MAX);
        let lines = self.lines.receive(&bytes);
        let unkept = lines.len().saturating_sub(KEPT_LINES);
        for (number, line) in lines.into_iter().enumerate() {
            // Nobody sees the message of a line that gives way at once.
            let message = if number < unkept { LogMessage::default() } else { message(&line) };
            self.tail.push(arrived, message, line);
        }
    }
}

/// Message of a line of the log.
pub(crate) fn message(line: &str) -> LogMessage {
    let now = now().wall;
    let at = i64::try_from(now).unwrap_or(i64::MAX);
    let zone = jiff::Timestamp::from_millisecond(at).map_or(0, |at| jiff::tz::TimeZone::system().to_offset(at).seconds());
    LogMessage::read(line.as_bytes(), Arrival { at, zone })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn texts(follower: &LogFollower, from: u64) -> Vec<String> {
        follower.tail.since(from).1.map(|line| line.line.clone()).collect()
    }

    #[test]
    fn nm_10_a_file_is_followed_over_its_rotation() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, "old\n").unwrap();
        let mut follower = LogFollower::begin(path.clone());
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"one\ntw").unwrap();
        follower.take_news();
        assert_eq!(texts(&follower, 0), ["one"]);
        file.write_all(b"o\n").unwrap();
        follower.take_news();
        assert_eq!(texts(&follower, 1), ["two"]);
        std::fs::copy(&path, dir.path().join("log.1")).unwrap();
        std::fs::remove_file(&path).unwrap();
        follower.take_news();
        std::fs::write(&path, "three\n").unwrap();
        follower.take_news();
        assert_eq!(texts(&follower, 2), ["three"]);
        std::fs::write(&path, "4\n").unwrap();
        follower.take_news();
        assert_eq!(texts(&follower, 3), ["4"]);
    }

    #[test]
    fn nm_10_a_flood_leaves_bounded_lines_and_a_count() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut follower = LogFollower::begin(path.clone());
        std::fs::write(&path, "a line of a flood\n".repeat(50_000)).unwrap();
        follower.take_news();
        let (lost, lines) = follower.tail.since(0);
        assert_eq!(lost + lines.count() as u64, 50_000);
        assert!(lost >= 48_000);
    }

    #[test]
    fn nm_03_the_last_lines_of_a_file_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, format!("{}\nlast but one\nlast", "x".repeat(5 << 20))).unwrap();
        let lines: Vec<String> = last(&path, 10).unwrap().into_iter().map(|(line, _)| line).collect();
        assert_eq!(lines, ["last but one", "last"]);
        assert_eq!(last(&path, 1).unwrap().len(), 1);
        assert!(last(&dir.path().join("none"), 1).is_err());
    }
}
