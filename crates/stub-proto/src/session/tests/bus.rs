//! Conversations with a part on a CAN bus that takes its time. Has no bus.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::super::*;
use super::{Play, ms, order, page};
use crate::can::CanForm;
use crate::cbor::Value;
use crate::message::PartMessage;

const BUS: CanForm = CanForm { to: 0x123, from: 0x124, is_extended: false, rate: 6 };
/// Leave for one frame, and for all of them with 100 milliseconds between two.
const ONE: [u8; 3] = [0x30, 1, 0];
const SLOWLY: [u8; 3] = [0x30, 0, 100];

impl Play {
    fn hear(&mut self, data: &[u8]) {
        let line = CanForm { to: BUS.from, ..BUS }.line(data);
        self.session.received(&line, self.now);
    }

    /// Says a message in frames, without a look at the leave of the gate.
    fn say_on_bus(&mut self, message: &PartMessage) {
        let bytes = message.write();
        let (head, rest) = bytes.split_at(6);
        self.hear(&[&[0x10, u8::try_from(bytes.len()).expect("short")], head].concat());
        for (number, data) in (1_u8..).zip(rest.chunks(7)) {
            self.hear(&[&[0x20 | number], data].concat());
        }
    }

    /// A part on a bus with a long call under way, of which the first frame has gone.
    fn calling_on_bus(is_repeatable: bool) -> Self {
        let mut play = Self::new(Profile::Can(BUS));
        play.say_on_bus(&page(None));
        play.hear(&[0x30, 0, 0]);
        play.say_on_bus(&page(Some(200)));
        assert_eq!(play.session.standing(), PartStanding::Alive);
        play.steps();
        let content = Content::Values(vec![Value::Text(String::from("the long way of a text"))]);
        play.session.call(Order { content, ..order(1, is_repeatable) }, play.now);
        assert_eq!(play.frames(), 1);
        play
    }

    /// Frames sent since, where nothing else has happened.
    fn frames(&mut self) -> usize {
        let lines = |step| if let PartStep::Send(bytes) = step { bytes } else { panic!("{step:?}") };
        self.steps().into_iter().flat_map(lines).filter(|byte| *byte == b'\r').count()
    }
}

#[test]
fn ax_74_patience_begins_behind_the_last_frame() {
    let mut play = Play::calling_on_bus(false);
    for leave in [ONE, SLOWLY] {
        play.now += ms(900);
        play.session.pass(play.now);
        assert_eq!(play.frames(), 0, "the part may take a second for its leave");
        play.hear(&leave);
        assert_eq!(play.frames(), 1);
    }
    for _ in 0..2 {
        play.wait();
        assert_eq!(play.frames(), 1);
    }
    let gone = play.now;
    play.wait();
    assert_eq!(play.outcome(), CallEnd::Unknown(Unknown::NoAnswer { tries: 1 }));
    assert!(play.now - gone >= order(1, false).work + GRACE, "{:?}", play.now - gone);
}

#[test]
fn a_part_without_leave_ends_a_call() {
    let mut play = Play::calling_on_bus(false);
    let began = play.now;
    let mut steps: Vec<PartStep> = vec![];
    while steps.is_empty() {
        play.wait();
        steps = play.steps();
    }
    assert!(matches!(steps.first(), Some(PartStep::Done { outcome: CallEnd::Unknown(_), .. })), "{steps:?}");
    assert!(play.now - began < ms(1500), "{:?}", play.now - began);
}

#[test]
fn a_part_that_asks_to_wait_ends_a_call() {
    let mut play = Play::calling_on_bus(false);
    let began = play.now;
    let mut leaves = 0;
    while play.session.load() > 0 {
        play.now = play.session.due().expect("a timer") - ms(1);
        leaves += 1;
        // Waits three times before each frame.
        play.hear(if leaves % 4 == 0 { &ONE } else { &[0x31, 0, 0] });
        play.session.pass(play.now + ms(1));
    }
    assert!(play.now - began < ms(15_000), "{:?}", play.now - began);
}
