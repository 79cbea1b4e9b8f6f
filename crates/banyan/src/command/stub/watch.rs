//! `banyan stub watch`: asks a part once for its table, and shows what it sends. Calls nothing.

use std::time::Duration;

use serde_json::json;
use stub::port;
use stub_proto::can::isotp::IsoTp;
use stub_proto::can::{CanForm, LineReader};
use stub_proto::frame::{FrameOrNoise, FrameReader, frame};
use stub_proto::message::PartMessage;

use super::BenchWire;
use crate::failure::Failure;
use crate::output::Output;
use crate::printable::printable;

pub(super) async fn run(wire: &BenchWire, hex: bool, output: &Output) -> Result<(), Failure> {
    let gone = |error: std::io::Error| Failure::Failed(format!("the port {}: {error}", printable(&wire.port)));
    let mut watched = WatchedWire::new(wire.bus()?);
    let port = port::open(&wire.port, wire.speed).map_err(gone)?;
    // Without a number, so that a part that has just started stays as it is.
    let ask = watched.message(&PartMessage::Ask { seq: None, first: 0, boot: None }.write());
    port.wire.write_all(&ask).await.map_err(gone)?;
    let mut buffer = [0; 512];
    loop {
        let length = port.wire.read(&mut buffer).await.map_err(gone)?;
        if length == 0 {
            return Err(Failure::Failed("the port was unplugged".into()));
        }
        for framed in watched.push(buffer.get(..length).unwrap_or_default()) {
            show(&framed, hex, output)?;
        }
        port.wire.write_all(&watched.owed()).await.map_err(gone)?;
    }
}

/// A line, or a bus behind it, on which nothing is late: nobody waits for more of a message.
enum WatchedWire {
    Line(FrameReader),
    Bus(CanForm, LineReader, IsoTp),
}

impl WatchedWire {
    fn new(bus: Option<CanForm>) -> Self {
        bus.map_or_else(|| Self::Line(FrameReader::default()), |bus| Self::Bus(bus, LineReader::default(), IsoTp::default()))
    }

    /// Bytes that open the wire and send a message of one frame.
    fn message(&mut self, message: &[u8]) -> Vec<u8> {
        match self {
            Self::Line(_) => [&[0][..], &frame(message)].concat(),
            Self::Bus(bus, _, link) => {
                link.send(message, Duration::ZERO);
                [bus.opening(), self.owed()].concat()
            }
        }
    }

    fn push(&mut self, bytes: &[u8]) -> Vec<FrameOrNoise> {
        match self {
            Self::Line(reader) => reader.push(bytes),
            Self::Bus(bus, reader, link) => {
                let frames = reader.push(bytes, *bus);
                frames.iter().filter_map(|data| link.received(data, Duration::ZERO)).map(FrameOrNoise::Message).collect()
            }
        }
    }

    /// Bytes that the wire has to send: leave for the part.
    fn owed(&mut self) -> Vec<u8> {
        match self {
            Self::Line(_) => Vec::new(),
            Self::Bus(bus, _, link) => std::iter::from_fn(|| link.frame()).flat_map(|data| bus.line(&data)).collect(),
        }
    }
}

fn show(framed: &FrameOrNoise, hex: bool, output: &Output) -> Result<(), Failure> {
    let (text, bytes) = match framed {
        FrameOrNoise::Message(bytes) => match PartMessage::from_part(bytes) {
            Ok(message) => (format!("{message:?}"), bytes.as_slice()),
            Err(why) => (format!("no message: {}", why.text()), bytes.as_slice()),
        },
        FrameOrNoise::Noise(noise) => (format!("no frame: {noise:?}"), &[][..]),
    };
    let bytes: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    if output.wants_json() {
        return output.line(&json!({ "text": text, "bytes": bytes }).to_string());
    }
    output.line(&printable(&if hex && !bytes.is_empty() { format!("{text}  {bytes}") } else { text }))
}
