//! Watches files for changes on the disk. Does not read them.
//!
//! Directories are watched, because editors replace files, and because links change their targets. A look at each file finds the changed
//! ones.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

/// Quiet time on the disk before a change is told.
const QUIET: Duration = Duration::from_millis(200);
/// Longest delay of a change on a disk without quiet.
const PATIENCE: Duration = Duration::from_secs(2);
/// Interval between looks where the system tells of no changes.
const POLL: Duration = Duration::from_secs(2);

/// A watch over some files; ends with the value.
pub struct Watch {
    changed: mpsc::Receiver<Vec<PathBuf>>,
    _watcher: Option<RecommendedWatcher>,
}

impl Watch {
    /// Watches `files`, present or not. Needs a tokio runtime.
    ///
    /// Where the system tells of no changes (no such directory yet, or too many watches), every two seconds a look at the files replaces
    /// its news.
    pub fn start(files: Vec<PathBuf>) -> Self {
        let (stirred, stirs) = mpsc::channel(1);
        let watcher = watcher(&files, stirred.clone()).ok();
        if watcher.is_none() {
            tokio::spawn(stir_always(stirred));
        }
        let (tell, changed) = mpsc::channel(8);
        let seen = files.into_iter().map(|file| (stamp(&file), file)).collect();
        tokio::spawn(settle(seen, stirs, tell));
        Self { changed, _watcher: watcher }
    }

    /// Waits for the next change, and answers with the changed files: written, made, replaced or removed. `None` never comes while the
    /// watch lives.
    pub async fn changed(&mut self) -> Option<Vec<PathBuf>> {
        self.changed.recv().await
    }
}

/// Stirs at everything that happens beside a file.
fn watcher(files: &[PathBuf], stirred: mpsc::Sender<()>) -> notify::Result<RecommendedWatcher> {
    let tell = move |_: notify::Result<notify::Event>| {
        // A full channel holds a stir that is not yet looked at: one is enough.
        stirred.try_send(()).ok();
    };
    let mut watcher = RecommendedWatcher::new(tell, notify::Config::default())?;
    let dirs: BTreeSet<&Path> = files.iter().map(|file| directory(file)).collect();
    dirs.iter().try_for_each(|dir| watcher.watch(dir, RecursiveMode::NonRecursive))?;
    Ok(watcher)
}

async fn stir_always(stirred: mpsc::Sender<()>) {
    while stirred.send(()).await.is_ok() {
        tokio::time::sleep(POLL).await;
    }
}

/// Waits for quiet after each stir, then tells the changed files.
async fn settle(mut seen: Vec<(Stamp, PathBuf)>, mut stirs: mpsc::Receiver<()>, tell: mpsc::Sender<Vec<PathBuf>>) {
    while stirred(&mut stirs, &tell).await {
        let patience = Instant::now() + PATIENCE;
        while let Ok(Some(())) = timeout_at((Instant::now() + QUIET).min(patience), stirs.recv()).await {}
        let mut different = Vec::new();
        for (before, file) in &mut seen {
            let now = stamp(file);
            if *before != now {
                *before = now;
                different.push(file.clone());
            }
        }
        if !different.is_empty() && tell.send(different).await.is_err() {
            return;
        }
    }
}

/// Waits for a stir; `false` when nobody listens any more.
async fn stirred(stirs: &mut mpsc::Receiver<()>, tell: &mpsc::Sender<Vec<PathBuf>>) -> bool {
    tokio::select! {
        stir = stirs.recv() => stir.is_some(),
        () = tell.closed() => false,
    }
}

/// The marks of a change: length, time, and the file's number on systems with file numbers.
type Stamp = Option<(u64, Option<SystemTime>, u64)>;

fn stamp(file: &Path) -> Stamp {
    let meta = std::fs::metadata(file).ok()?;
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(&meta);
    #[cfg(not(unix))]
    let number = 0;
    Some((meta.len(), meta.modified().ok(), number))
}

fn directory(file: &Path) -> &Path {
    match file.parent() {
        Some(dir) if dir != Path::new("") => dir,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn next(watch: &mut Watch) -> Vec<PathBuf> {
        tokio::time::timeout(Duration::from_secs(5), watch.changed()).await.expect("told in time").unwrap()
    }

    async fn quiet(watch: &mut Watch) {
        let told = tokio::time::timeout(Duration::from_millis(600), watch.changed()).await;
        assert!(told.is_err(), "{told:?}");
    }

    #[tokio::test]
    async fn a_file_that_is_written_replaced_or_removed_is_told_once() {
        let dir = tempfile::tempdir().unwrap();
        let (file, other) = (dir.path().join("a.toml"), dir.path().join("b.json"));
        std::fs::write(&file, "1").unwrap();
        let mut watch = Watch::start(vec![file.clone(), other.clone()]);

        std::fs::write(&file, "12").unwrap();
        std::fs::write(&file, "123").unwrap();
        assert_eq!(next(&mut watch).await, [file.as_path()]);
        quiet(&mut watch).await;

        let temporary = dir.path().join(".a.toml.swp");
        std::fs::write(&temporary, "321").unwrap();
        #[expect(clippy::disallowed_methods, reason = "as an editor does it")]
        std::fs::rename(&temporary, &file).unwrap();
        assert_eq!(next(&mut watch).await, [file.as_path()]);

        std::fs::write(&other, "{}").unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(next(&mut watch).await, [file, other]);
    }

    #[tokio::test]
    async fn a_neighbour_is_not_told() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.toml");
        std::fs::write(&file, "1").unwrap();
        let mut watch = Watch::start(vec![file]);
        std::fs::write(dir.path().join("neighbour"), "1").unwrap();
        quiet(&mut watch).await;
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_link_that_is_turned_elsewhere_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("one"), "1").unwrap();
        std::fs::write(at("two"), "2").unwrap();
        std::os::unix::fs::symlink("one", at("a.toml")).unwrap();
        let mut watch = Watch::start(vec![at("a.toml")]);
        std::os::unix::fs::symlink("two", at("next")).unwrap();
        #[expect(clippy::disallowed_methods, reason = "as an editor does it")]
        std::fs::rename(at("next"), at("a.toml")).unwrap();
        assert_eq!(next(&mut watch).await, [at("a.toml")]);
    }

    #[tokio::test]
    async fn a_directory_that_comes_later_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("later/a.toml");
        let mut watch = Watch::start(vec![file.clone()]);
        std::fs::create_dir(dir.path().join("later")).unwrap();
        std::fs::write(&file, "1").unwrap();
        assert_eq!(next(&mut watch).await, [file]);
    }
}
