//! An empty home directory and the binary in it. Nothing of the developer's own environment reaches the binary but `PATH`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A home directory, removed at the end.
pub(crate) struct Home {
    dir: tempfile::TempDir,
    /// Further environment of the binary.
    pub(crate) env: Vec<(&'static str, PathBuf)>,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a temporary directory"), env: Vec::new() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Writes a file below the home directory and gives its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(&path, text).expect("a file");
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// Makes a command of the binary, in this home as its working directory, with empty standard input.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_banyan"));
        command.args(arguments).env_clear().current_dir(self.path()).stdin(Stdio::null());
        command.env("HOME", self.path()).env("XDG_RUNTIME_DIR", self.path().join("runtime"));
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs the binary to its end.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Ran {
        Ran::of(self.command(arguments).output().expect("the binary runs"))
    }
}

/// The outcome of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Self { code: output.status.code().expect("an exit code"), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Insists on the exit code, and shows everything on another code.
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// Standard output as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {self:#?}"))
    }

    /// Standard error as the JSON of a failure.
    pub(crate) fn failure(&self) -> Value {
        serde_json::from_str(&self.err).unwrap_or_else(|e| panic!("{e}: {self:#?}"))
    }
}
