//! The files of the repository, as the other checks see them. Does not look into build output or dot directories.

use std::fs;
use std::path::{Path, PathBuf};

/// A text file of the repository.
pub(crate) struct Source {
    /// Path from the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    /// The file name without directories.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Tells if the file exists for tests only.
    pub(crate) fn is_test(&self) -> bool {
        let dirs = ["tests/", "/tests/", "/benches/", "bench/", "fuzz/"];
        self.name() == "tests.rs" || dirs.iter().any(|d| if d.starts_with('/') { self.path.contains(d) } else { self.path.starts_with(d) })
    }

    /// The text above the first `#[cfg(test)]` module.
    pub(crate) fn production(&self) -> &str {
        let is_module = |rest: &str| rest.lines().skip(1).find(|line| !line.starts_with("#[")).is_some_and(|line| line.starts_with("mod "));
        let end = self.text.match_indices("#[cfg(test)]\n").map(|(i, _)| i).find(|i| is_module(&self.text[*i..]));
        &self.text[..end.unwrap_or(self.text.len())]
    }
}

/// The repository's root directory.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Reads a file, by its path from the root.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Lists all files with one of the `extensions`, sorted by path.
pub(crate) fn sources(extensions: &[&str]) -> Vec<Source> {
    let mut found = Vec::new();
    collect(&root(), "", extensions, &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    let rust = extensions.contains(&".rs");
    assert!(!(rust && found.is_empty()), "no Rust file below {}", root().display());
    found
}

fn collect(dir: &Path, prefix: &str, extensions: &[&str], found: &mut Vec<Source>) {
    let entries = fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') || ["target", "node_modules", "corpus", "generated"].contains(&name.as_str()) {
            continue;
        }
        let path = format!("{prefix}{name}");
        if entry.path().is_dir() {
            collect(&entry.path(), &format!("{path}/"), extensions, found);
        } else if extensions.iter().any(|e| name.ends_with(e)) {
            let text = fs::read_to_string(entry.path()).unwrap_or_else(|e| panic!("{path}: {e}"));
            found.push(Source { path, text });
        }
    }
}
