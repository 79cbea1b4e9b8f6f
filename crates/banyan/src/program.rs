//! Programs: found in `PATH`, startable, or hiding elsewhere. Starts nothing.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Obstacles to starting a program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MissingProgram {
    /// Names a missing interpreter in its first line.
    Interpreter(String),
    /// Present, and executable by nobody.
    NotExecutable(PathBuf),
    NotFound,
    /// Missing in `PATH`, but here.
    OutsidePath(PathBuf),
}

/// Directories of version managers and installers that only an interactive shell searches, below the home directory.
const HIDING_PLACES: &[&str] = &[
    ".local/bin",
    ".cargo/bin",
    ".bun/bin",
    ".deno/bin",
    ".volta/bin",
    ".asdf/shims",
    ".local/share/mise/shims",
    ".pyenv/shims",
    ".npm-global/bin",
    ".yarn/bin",
    "go/bin",
    "n/bin",
];

/// The same, for every user.
const SYSTEM_PLACES: &[&str] = &["/usr/local/bin", "/opt/homebrew/bin", "/home/linuxbrew/.linuxbrew/bin", "/snap/bin"];

/// Looks for `program` as the system would: a path as it is (relative ones from `directory`), a name in `path`.
pub(crate) fn find(program: &str, path: &OsStr, home: &Path, directory: &Path) -> Result<PathBuf, MissingProgram> {
    if program.contains('/') {
        let at = directory.join(program);
        return if !at.is_file() {
            Err(MissingProgram::NotFound)
        } else if !executable(&at) {
            Err(MissingProgram::NotExecutable(at))
        } else {
            interpreted(at, path)
        };
    }
    if let Some(at) = within(program, std::env::split_paths(path)) {
        return interpreted(at, path);
    }
    let hidden = HIDING_PLACES.iter().map(|p| home.join(p)).chain(SYSTEM_PLACES.iter().map(PathBuf::from)).chain(nvm(home));
    Err(within(program, hidden).map_or(MissingProgram::NotFound, MissingProgram::OutsidePath))
}

fn within(program: &str, directories: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    directories.map(|d| d.join(program)).find(|p| p.is_file() && executable(p))
}

fn executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|m| m.permissions().mode() & 0o111 != 0)
}

/// Lists the directories of all Node versions installed by nvm or fnm, newest first.
fn nvm(home: &Path) -> Vec<PathBuf> {
    let places = [(".nvm/versions/node", "bin"), (".local/share/fnm/node-versions", "installation/bin")];
    let mut found: Vec<PathBuf> = places
        .iter()
        .flat_map(|(dir, bin)| std::fs::read_dir(home.join(dir)).into_iter().flatten().flatten().map(move |v| v.path().join(bin)))
        .collect();
    found.sort_by_key(|p| std::cmp::Reverse(version(p)));
    found
}

/// Gives the numbers in a path, so that v22 comes after v8.
fn version(path: &Path) -> Vec<u64> {
    path.to_string_lossy().split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect()
}

/// Checks the interpreter of a script: `#!/usr/bin/env NAME` needs NAME in `path`; `#!/PATH` needs that file.
fn interpreted(at: PathBuf, path: &OsStr) -> Result<PathBuf, MissingProgram> {
    let Some(line) = first_line(&at) else { return Ok(at) };
    let mut words = line.split_whitespace().map(str::to_owned);
    let Some(program) = words.next() else { return Ok(at) };
    let (wanted, there) = if program.ends_with("/env") {
        let name = words.find(|w| !w.starts_with('-')).unwrap_or_default();
        let there = within(&name, std::env::split_paths(path)).is_some();
        (name, there)
    } else {
        let there = Path::new(&program).is_file();
        (program, there)
    };
    if there { Ok(at) } else { Err(MissingProgram::Interpreter(wanted)) }
}

fn first_line(path: &Path) -> Option<String> {
    use std::io::Read;
    let mut start = [0; 256];
    let count = std::fs::File::open(path).ok()?.read(&mut start).ok()?;
    let text = start.get(..count)?.strip_prefix(b"#!")?;
    let line = text.split(|b| *b == b'\n').next()?;
    Some(String::from_utf8_lossy(line).into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn program(dir: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn a_program_is_found_in_the_path_or_where_it_hides() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        let bin = home.join("bin");
        let there = program(home, "bin/there", "", 0o755);
        program(home, ".nvm/versions/node/v8.1.0/bin/npx-x", "", 0o755);
        let newest = program(home, ".nvm/versions/node/v22.0.0/bin/npx-x", "", 0o755);
        let find = |name| find(name, bin.as_os_str(), home, home);
        assert_eq!(find("there"), Ok(there.clone()));
        assert_eq!(find("bin/there"), Ok(there));
        assert_eq!(find("npx-x"), Err(MissingProgram::OutsidePath(newest)));
        assert_eq!(find("nowhere-at-all"), Err(MissingProgram::NotFound));
        assert_eq!(find("bin/nowhere"), Err(MissingProgram::NotFound));
    }

    #[test]
    fn a_script_needs_its_interpreter() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        let bin = home.join("bin");
        program(home, "bin/script", "#!/usr/bin/env -S no-such-node --x\n", 0o755);
        program(home, "bin/other", "#!/no/such/python -u\n", 0o755);
        let plain = program(home, "bin/plain", "no script", 0o644);
        let find = |name| find(name, bin.as_os_str(), home, home);
        assert_eq!(find("script"), Err(MissingProgram::Interpreter("no-such-node".into())));
        assert_eq!(find("other"), Err(MissingProgram::Interpreter("/no/such/python".into())));
        assert_eq!(find("bin/plain"), Err(MissingProgram::NotExecutable(plain)));
    }
}
