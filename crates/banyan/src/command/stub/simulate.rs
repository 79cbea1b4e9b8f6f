//! `banyan stub simulate`: the lamp of `firmware/examples/lamp` in software, on a pseudo-terminal. For people without hardware; no
//! simulator of a chip.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use serde_json::json;
use stub_proto::cbor::Value;
use stub_proto::part::{RunTool, SoftwarePart};
use stub_proto::table::{PartTable, TableRow, ValueKind};

use crate::failure::Failure;
use crate::output::Output;

pub(super) fn run(link: Option<&Path>, output: &Output) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Failed(format!("no pseudo-terminal: {error}"));
    let (mut wire, path, _held) = terminal().map_err(failed)?;
    let shown = match link {
        Some(link) => linked(link, &path)?,
        None => path,
    };
    if output.wants_json() {
        output.line(&json!({ "port": shown }).to_string())?;
    } else {
        output.line(&format!("a lamp at {}: add it with `banyan stub add lamp --port {0}`", shown.display()))?;
    }
    let (mut part, hello) = SoftwarePart::start(table(), runtime::random::bytes::<1>()[0], lamp());
    wire.write_all(&hello).map_err(failed)?;
    let mut buffer = [0; 512];
    loop {
        let length = wire.read(&mut buffer).map_err(failed)?;
        let answer = part.push(buffer.get(..length).unwrap_or_default());
        wire.write_all(&answer).map_err(failed)?;
    }
}

/// Makes a raw pseudo-terminal: the part's end, and the path and an open end of the gate's, so that the wire outlives who uses it.
fn terminal() -> std::io::Result<(File, PathBuf, File)> {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let path = PathBuf::from(std::ffi::OsStr::from_bytes(ptsname(&ours, Vec::new())?.as_bytes()));
    let theirs = File::options().read(true).write(true).open(&path)?;
    let mut settings = tcgetattr(&theirs)?;
    settings.make_raw();
    tcsetattr(&theirs, OptionalActions::Now, &settings)?;
    Ok((File::from(ours), path, theirs))
}

/// Makes a link, in the place of an older one and of nothing else.
fn linked(link: &Path, path: &Path) -> Result<PathBuf, Failure> {
    let failed = |error: std::io::Error| Failure::Failed(format!("the link {} can't be made: {error}", link.display()));
    if link.is_symlink() {
        std::fs::remove_file(link).map_err(failed)?;
    }
    std::os::unix::fs::symlink(path, link).map_err(failed)?;
    Ok(link.to_owned())
}

fn table() -> PartTable {
    let row = |tool, answer, arguments: &[ValueKind]| TableRow { tool, answer, arguments: arguments.to_vec() };
    let rows = vec![
        row(1, ValueKind::Map, &[]),
        row(2, ValueKind::Bool, &[ValueKind::Bool]),
        row(3, ValueKind::Int, &[ValueKind::Int]),
        row(4, ValueKind::Map, &[]),
    ];
    PartTable { most_bytes: 64, rows, device: b"lamp".to_vec() }
}

fn lamp() -> RunTool {
    let (mut position, mut lamps, mut turns) = (0_i64, 0, 0);
    Box::new(move |tool, arguments| match (tool, arguments) {
        (1, []) => Ok(pair(300 + (position & 15), -4)),
        (2, [Value::Bool(on)]) => {
            lamps += 1;
            Ok(Value::Bool(*on))
        }
        (3, [Value::Int(steps)]) if (-100..=100).contains(steps) => {
            turns += 1;
            position += steps;
            Ok(Value::Int(position))
        }
        (4, []) => Ok(pair(lamps, turns)),
        _ => Err(-32602),
    })
}

fn pair(first: i64, second: i64) -> Value {
    Value::Map(vec![(0, Value::Int(first)), (1, Value::Int(second))])
}
