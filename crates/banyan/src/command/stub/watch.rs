//! `banyan stub watch`: asks a part once for its table, and shows what it sends. Calls nothing.

use serde_json::json;
use stub::port;
use stub_proto::frame::{FrameOrNoise, FrameReader, frame};
use stub_proto::message::PartMessage;

use super::BenchWire;
use crate::failure::Failure;
use crate::output::Output;
use crate::printable::printable;

pub(super) async fn run(wire: &BenchWire, hex: bool, output: &Output) -> Result<(), Failure> {
    let gone = |error: std::io::Error| Failure::Failed(format!("the port {}: {error}", printable(&wire.port)));
    let port = port::open(&wire.port, wire.speed).map_err(gone)?;
    // Without a number, so that a part that has just started stays as it is.
    let ask = [&[0][..], &frame(&PartMessage::Ask { seq: None, first: 0, boot: None }.write())].concat();
    port.wire.write_all(&ask).await.map_err(gone)?;
    let (mut reader, mut buffer) = (FrameReader::default(), [0; 512]);
    loop {
        let length = port.wire.read(&mut buffer).await.map_err(gone)?;
        if length == 0 {
            return Err(Failure::Failed("the port was unplugged".into()));
        }
        for framed in reader.push(buffer.get(..length).unwrap_or_default()) {
            show(&framed, hex, output)?;
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
