//! Checks for what a part behind a wire sends: values, frames of both profiles, messages and conversations. Nothing about JSON.

use std::time::Duration;

use stub_proto::can::CanForm;
use stub_proto::cbor::Value;
use stub_proto::check::Width;
use stub_proto::fixed::{FixedForm, FixedFrame, FixedKind, FixedReader};
use stub_proto::frame::{FrameOrNoise, FrameReader, frame};
use stub_proto::message::PartMessage;
use stub_proto::mqtt::{Packet, PacketReader, publish};
use stub_proto::session::{CallEnd, Content, Order, PartSession, PartStanding, PartStep, Profile, SessionSettings};
use stub_proto::table::{TableRow, ValueKind};

const BUS: CanForm = CanForm { to: 0x123, from: 0x124, is_extended: false, rate: 6 };
const FORM: FixedForm = FixedForm { width: Width::Sixteen, most_payload: 12 };

/// A value is written as it was read.
pub(super) fn value(data: &[u8]) {
    match Value::decode(data) {
        Ok(value) => assert_eq!(value.encode(), data),
        Err(why) => assert!(!why.text().is_empty()),
    }
}

/// A stream in pieces holds the same frames as the stream at once, each frame is written as it stood there, and all bytes are accounted for.
pub(super) fn fixed(data: &[u8]) {
    let (size, stream) = data.split_first().map_or((1, data), |(size, stream)| (usize::from(*size).max(1), stream));
    for width in [Width::Eight, Width::Sixteen] {
        let form = FixedForm { width, most_payload: 12 };
        let (mut whole, mut pieces) = (FixedReader::new(form), FixedReader::new(form));
        let frames = whole.push(stream);
        let again: Vec<_> = stream.chunks(size).flat_map(|piece| pieces.push(piece)).collect();
        assert_eq!(again, frames);
        whole.rest();
        let written: Vec<Vec<u8>> = frames.iter().map(|read| form.frame(read)).collect();
        assert_eq!(whole.noise() + written.iter().map(Vec::len).sum::<usize>() as u64, stream.len() as u64);
        let stands_there = |frame: &Vec<u8>| stream.windows(frame.len()).any(|window| window == frame);
        assert!(stream.len() > 4096 || written.iter().all(stands_there));
    }
}

/// A message means the same when it is written again, and a refusal says why.
pub(super) fn message(data: &[u8]) {
    for read in [PartMessage::from_part, PartMessage::from_gate] {
        match read(data) {
            Ok(message) => assert_eq!(read(&message.write()).as_ref().map(same), Ok(same(&message))),
            Err(why) => assert!(!why.text().is_empty()),
        }
    }
    let wire = frame(data.get(..255).unwrap_or(data));
    let framed = FrameReader::default().push(&wire);
    assert_eq!(framed, [FrameOrNoise::Message(data.get(..255).unwrap_or(data).to_vec())]);
}

/// Packets of a broker are the same in pieces as at once, and so is a refusal.
pub(super) fn packets(data: &[u8]) {
    let (size, stream) = data.split_first().map_or((1, data), |(size, stream)| (usize::from(*size).max(1), stream));
    let (mut whole, mut pieces) = (PacketReader::default(), PacketReader::default());
    let again: Result<Vec<Vec<Packet>>, _> = stream.chunks(size).map(|piece| pieces.push(piece)).collect();
    assert_eq!(again.map(|packets| packets.concat()), if stream.is_empty() { Ok(Vec::new()) } else { whole.push(stream) });
    let payload = stream.get(..1024).unwrap_or(stream);
    let sent = PacketReader::default().push(&publish("a", payload));
    assert_eq!(sent, Ok(vec![Packet::Message { topic: "a".into(), payload: payload.to_vec(), is_retained: false }]));
}

/// A text of a part behind a broker is a message as any other, or none.
pub(super) fn text(data: &[u8]) {
    if let Some(message) = gateway::outside::part_message(data) {
        assert!(PartMessage::from_part(&message).is_ok());
    }
}

/// Whatever a part sends, over a line or a bus, each call ends once, and as its profile has it.
pub(super) fn session(data: &[u8]) {
    conversation(Profile::Described, data);
    conversation(Profile::Fixed(FORM), data);
    conversation(Profile::Can(BUS), data);
    conversation(Profile::Mqtt, data);
}

fn conversation(profile: Profile, data: &[u8]) {
    let heartbeat = Duration::from_secs(5);
    let mut session = PartSession::new(SessionSettings { profile, speed: 115_200, heartbeat, most_waiting: 4, seed: 7 });
    let (mut now, mut calls, mut ended) = (Duration::ZERO, 0_u64, Vec::new());
    session.open(now);
    // Long texts come in few pieces: a conversation answers each. A page of a table has room in the shortest.
    for piece in data.chunks((data.len() / 64).max(16)) {
        calls += 1;
        session.call(order(calls, profile), now);
        session.received(piece, now);
        session.received(&framed(profile, piece), now);
        now += Duration::from_millis(40);
        session.pass(now);
        collect(&mut session, profile, &mut ended);
    }
    session.close();
    session.call(order(0, profile), now);
    collect(&mut session, profile, &mut ended);
    assert_eq!(session.standing(), PartStanding::Silent);
    ended.sort_unstable();
    let all: Vec<u64> = (0..=calls).collect();
    assert_eq!(ended, all);
}

/// A frame around the piece, so that the conversation behind the checksum is reached.
fn framed(profile: Profile, piece: &[u8]) -> Vec<u8> {
    match (profile, piece) {
        (Profile::Described, _) => frame(piece.get(..255).unwrap_or(piece)),
        (Profile::Fixed(form), [kind, tool, seq, payload @ ..]) => {
            let kind = [FixedKind::Call, FixedKind::Response, FixedKind::Heartbeat][usize::from(kind % 3)];
            form.frame(&FixedFrame { kind, tool: *tool, seq: *seq, payload: payload.to_vec() })
        }
        (Profile::Fixed(_), _) => piece.to_vec(),
        (Profile::Mqtt, _) => piece.to_vec(),
        (Profile::Can(bus), _) => piece.chunks(8).flat_map(|data| CanForm { to: bus.from, ..bus }.line(data)).collect(),
    }
}

fn order(id: u64, profile: Profile) -> Order {
    let content = match profile {
        Profile::Described | Profile::Can(_) | Profile::Mqtt => Content::Values(Vec::new()),
        Profile::Fixed(_) => Content::Raw(Vec::new()),
    };
    // Every third was judged by a table.
    let row = id.is_multiple_of(3).then(|| TableRow { tool: 1, answer: ValueKind::Map, arguments: Vec::new() });
    Order { id, tool: 1, row, content, is_repeatable: id % 2 == 1, work: Duration::from_millis(10) }
}

/// Takes the steps and notes which calls have ended.
fn collect(session: &mut PartSession, profile: Profile, ended: &mut Vec<u64>) {
    let is_described = profile.lists_tools();
    let is_framed = |bytes: &[u8]| match profile {
        Profile::Described => bytes.ends_with(&[0]),
        Profile::Can(_) => bytes.ends_with(b"\r"),
        Profile::Fixed(_) | Profile::Mqtt => true,
    };
    while let Some(step) = session.step() {
        match step {
            PartStep::Send(bytes) => assert!(bytes.len() < 1000 && is_framed(&bytes)),
            PartStep::Done { id, outcome } => {
                assert!(!matches!(&outcome, CallEnd::Raw(_) if is_described) && !matches!(&outcome, CallEnd::Values(_) if !is_described));
                ended.push(id);
            }
            PartStep::Table(table) => assert!(is_described && table.rows.len() <= 255),
            PartStep::Standing(_) => {}
        }
    }
}

/// A message without floats that differ from themselves.
fn same(message: &PartMessage) -> String {
    format!("{message:?}")
}
