//! Reads texts with decoders and cleaners, so that `bench/linear` can count the instructions of each reading. Counts nothing and makes up no text.
//!
//! Each line of the input names a reader and a file. A line `read N` is written when the text of line N was read.

use std::error::Error;
use std::hint::black_box;
use std::io::{BufRead, Write};
use std::sync::{Arc, LazyLock};

use mcp_proto::hidden;
use mcp_proto::projection::local_names;
use mcp_proto::sse::Decoder;
use mcp_proto::template::Template;
use net_proto::dialect::{Dialect, Terminal};
use net_proto::netconf;
use sim::decoders::{self, Check};

/// Cleaners, and readers of texts that a decoder would refuse before they are long.
const CLEANERS: [(&str, Check); 9] = [
    ("cleaned", |data| drop(black_box(hidden::cleaned(data)))),
    ("device", |data| drop(black_box(netconf::read(data)))),
    ("event", |data| {
        drop(black_box(netconf::NetconfEvent::read(&String::from_utf8_lossy(data), None, &netconf::NetconfCapabilities::default())))
    }),
    ("events", |data| {
        let mut decoder = Decoder::new(data.len());
        decoder.handle_bytes(data);
        while let Ok(Some(event)) = decoder.poll_event() {
            black_box(event);
        }
    }),
    ("names", |data| {
        let text = String::from_utf8_lossy(data);
        drop(black_box(local_names(&text.split('\n').collect::<Vec<_>>())));
    }),
    ("screen", screen),
    ("shown", |data| drop(black_box(hidden::shown(&String::from_utf8_lossy(data))))),
    ("template", |data| {
        let text = String::from_utf8_lossy(data);
        let (template, uri) = text.split_once('\n').unwrap_or((&text, ""));
        black_box(Template::parse(template).is_ok_and(|template| template.matches(uri)));
    }),
    ("without", |data| drop(black_box(hidden::without(&String::from_utf8_lossy(data))))),
];

static DIALECT: LazyLock<Option<Arc<Dialect>>> = LazyLock::new(|| Dialect::named("frr"));

/// Reads a reply of a device that is kept whole. The second byte is the length of the pieces in which it comes.
fn screen(data: &[u8]) {
    let Some((dialect, [_, length, bytes @ ..])) = DIALECT.clone().zip(Some(data)) else { return };
    let mut terminal = Terminal::new(dialect, bytes.len());
    terminal.command("show version");
    for piece in bytes.chunks(usize::from(*length).max(1)) {
        drop(black_box(terminal.receive(piece)));
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout();
    // Expressions take long to build, once: no text is charged for that.
    screen(b"\0\0");
    decoders::named("command").ok_or("there is no decoder `command`")?(b"\0show");
    for (number, line) in std::io::stdin().lock().lines().enumerate() {
        let line = line?;
        let (name, file) = line.split_once(' ').ok_or("a line is a name and a file")?;
        let cleaner = CLEANERS.iter().find(|(known, _)| *known == name).map(|(_, check)| *check);
        let check = cleaner.or_else(|| decoders::named(name)).ok_or_else(|| format!("there is no decoder `{name}`"))?;
        let data = std::fs::read(file)?;
        counted_reading(check, &data);
        writeln!(out, "read {number}")?;
        out.flush()?;
    }
    Ok(())
}

/// Work counted by callgrind: counting is switched on in this function, and the count is written at its end.
#[inline(never)]
fn counted_reading(check: Check, data: &[u8]) {
    check(black_box(data));
    black_box(());
}
