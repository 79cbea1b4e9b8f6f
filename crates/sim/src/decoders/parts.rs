//! Checks for what a part behind a wire sends: values, frames of both profiles, messages and conversations. Nothing about JSON.

use std::time::Duration;

use stub_proto::cbor::Value;
use stub_proto::check::Width;
use stub_proto::fixed::{FixedForm, FixedReader};
use stub_proto::frame::{FrameOrNoise, FrameReader, frame};
use stub_proto::message::PartMessage;
use stub_proto::session::{CallEnd, Content, Order, PartSession, PartStanding, PartStep, Profile, SessionSettings};

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

/// Whatever a part sends, each call ends once, and what is not repeatable has left once at most.
pub(super) fn session(data: &[u8]) {
    let mut session = PartSession::new(SessionSettings {
        profile: Profile::Described,
        speed: 115_200,
        heartbeat: Duration::from_secs(5),
        most_waiting: 4,
        seed: 7,
    });
    let (mut now, mut calls, mut ended) = (Duration::ZERO, 0_u64, Vec::new());
    session.open(now);
    // Long texts come in few pieces: a conversation answers each.
    for piece in data.chunks((data.len() / 64).max(8)) {
        calls += 1;
        session.call(order(calls), now);
        session.received(piece, now);
        session.received(&frame(piece.get(..255).unwrap_or(piece)), now);
        now += Duration::from_millis(40);
        session.pass(now);
        collect(&mut session, &mut ended);
    }
    session.close();
    session.call(order(0), now);
    collect(&mut session, &mut ended);
    assert_eq!(session.standing(), PartStanding::Silent);
    ended.sort_unstable();
    let all: Vec<u64> = (0..=calls).collect();
    assert_eq!(ended, all);
}

fn order(id: u64) -> Order {
    Order { id, tool: 1, row: None, content: Content::Values(Vec::new()), is_repeatable: id % 2 == 1, work: Duration::from_millis(10) }
}

/// Takes the steps and notes which calls have ended.
fn collect(session: &mut PartSession, ended: &mut Vec<u64>) {
    while let Some(step) = session.step() {
        match step {
            PartStep::Send(bytes) => assert!(bytes.len() < 600 && bytes.ends_with(&[0])),
            PartStep::Done { id, outcome } => {
                assert!(!matches!(outcome, CallEnd::Raw(_)));
                ended.push(id);
            }
            PartStep::Table(table) => assert!(table.rows.len() <= 255),
            PartStep::Standing(_) => {}
        }
    }
}

/// A message without floats that differ from themselves.
fn same(message: &PartMessage) -> String {
    format!("{message:?}")
}
