//! Conversations with a table part, whose number an opening must not move far. Has no wire.

use alloc::vec;
use alloc::vec::Vec;

use super::super::*;
use super::{FORM, Play, counted, order, settings};
use crate::fixed::{FixedFrame, FixedKind, FixedReader};

/// A table part as `firmware/src/stub_a.c` counts, with a counter of its calls.
struct TablePart {
    reader: FixedReader,
    /// 0: none yet.
    last: u8,
    ran: Vec<u8>,
    /// Firmware from before the question with the number 0.
    is_old: bool,
}

impl TablePart {
    fn new(last: u8) -> Self {
        Self { reader: FixedReader::new(FORM), last, ran: vec![], is_old: false }
    }

    fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let frames = self.reader.push(bytes);
        self.reader.rest();
        frames.into_iter().filter_map(|frame| self.answer(frame)).flat_map(|frame| FORM.frame(&frame)).collect()
    }

    fn answer(&mut self, frame: FixedFrame) -> Option<FixedFrame> {
        let is_call = frame.kind == FixedKind::Call;
        if frame.kind == FixedKind::Response || !is_call && frame.tool != 0 {
            return None;
        }
        if frame.seq == 0 {
            let is_taken = !is_call && !self.is_old;
            return is_taken.then_some(FixedFrame { kind: FixedKind::Response, tool: self.last, ..frame });
        }
        if self.last == 0 || frame.seq.wrapping_sub(self.last).cast_signed() > 0 {
            self.last = frame.seq;
        } else if is_call {
            return None;
        }
        if !is_call {
            return Some(FixedFrame { tool: self.last, ..frame });
        }
        self.ran.push(frame.seq);
        Some(FixedFrame { kind: FixedKind::Response, payload: vec![0], ..frame })
    }
}

/// A gate before a table part.
struct TableLine {
    session: PartSession,
    part: TablePart,
    /// The line brings back what the gate sends.
    has_echo: bool,
    now: Duration,
}

impl TableLine {
    fn open(part: TablePart, seed: u8, has_echo: bool) -> Self {
        let mut session = PartSession::new(SessionSettings { seed, ..settings(Profile::Fixed(FORM)) });
        session.open(Duration::ZERO);
        let mut line = Self { session, part, has_echo, now: Duration::ZERO };
        line.carry();
        line
    }

    /// Carries all there is, and gives what the gate has sent last.
    fn carry(&mut self) -> Vec<u8> {
        let mut sent = vec![];
        while let Some(step) = self.session.step() {
            if let PartStep::Send(bytes) = step {
                if self.has_echo {
                    self.session.received(&bytes, self.now);
                }
                let answer = self.part.push(&bytes);
                self.session.received(&answer, self.now);
                sent = bytes;
            }
        }
        sent
    }

    /// Lets a rest pass, with all due then.
    fn beat(&mut self) {
        self.now = self.session.due().expect("a timer");
        self.session.pass(self.now);
        self.carry();
    }

    fn call(&mut self) -> Vec<u8> {
        self.session.call(Order { content: Content::Raw(vec![1]), ..order(1, false) }, self.now);
        self.carry()
    }
}

#[test]
fn ax_74_an_opening_hardly_moves_a_table_part() {
    for last in [1, 100, 128, 200, 255] {
        for seed in (0..=u8::MAX).step_by(5) {
            let mut line = TableLine::open(TablePart::new(last), seed, seed % 2 == 1);
            assert_eq!(line.session.standing(), PartStanding::Alive, "{last}, {seed}");
            let kept = line.call();
            line = TableLine::open(line.part, seed, seed % 2 == 1);
            let late = (0..128).take_while(|_| {
                let before = line.part.ran.len();
                line.part.push(&kept);
                let is_late = line.part.ran.len() == before;
                line.call();
                is_late
            });
            let late = late.count();
            assert!((90..=121).contains(&late), "{last}, {seed}: {late} calls");
        }
    }
}

#[test]
fn ax_74_a_table_part_that_starts_takes_any_number() {
    for seed in 0..=u8::MAX {
        let mut line = TableLine::open(TablePart::new(0), seed, seed % 2 == 1);
        assert_eq!(line.session.standing(), PartStanding::Alive, "{seed}");
        line.call();
        assert_eq!(line.part.ran.len(), 1, "{seed}");
    }
}

#[test]
fn ax_74_an_old_table_part_gets_no_number() {
    let mut line = TableLine::open(TablePart { is_old: true, ..TablePart::new(100) }, 7, false);
    while line.session.standing() != PartStanding::Silent {
        let due = line.session.due().expect("a timer");
        line.session.pass(due);
        line.carry();
    }
    assert_eq!((line.part.last, line.part.ran.len()), (100, 0), "the number is where it was");
}

#[test]
fn ax_74_a_table_part_keeps_its_newer_number() {
    let mut play = Play::new(Profile::Fixed(FORM));
    let heartbeat = |tool, seq| FORM.frame(&FixedFrame { kind: FixedKind::Heartbeat, tool, seq, payload: vec![] });
    play.steps();
    play.session.received(&counted(201, 230), play.now);
    play.steps();
    // A call of an earlier conversation came in between.
    play.session.received(&heartbeat(240, 239), play.now);
    let asked = play.steps();
    assert!(
        matches!(asked.as_slice(), [PartStep::Send(bytes)] if bytes.ends_with(&heartbeat(0, 249))),
        "8 on from 240, and the next: {asked:?}"
    );
    play.session.received(&heartbeat(249, 249), play.now);
    assert_eq!(play.steps(), [PartStep::Standing(PartStanding::Alive)]);
}

#[test]
fn ax_74_an_answer_to_an_earlier_opening_tells_no_number() {
    let mut play = Play::new(Profile::Fixed(FORM));
    play.steps();
    play.session.received(&counted(200, 90), play.now);
    assert_eq!((play.steps(), play.session.tally().stray), (vec![], 1));
}

#[test]
fn ax_74_heartbeats_move_no_number_of_a_table_part() {
    let mut line = TableLine::open(TablePart::new(100), 7, false);
    let kept = line.call();
    let before = line.part.last;
    for _ in 0..300 {
        line.beat();
    }
    assert_eq!((line.session.standing(), line.part.last), (PartStanding::Alive, before));
    line.part.push(&kept);
    assert_eq!(line.part.ran.len(), 1, "a late call runs once");
    line.call();
    assert_eq!(line.part.ran, [before, before + 1]);
}

#[test]
fn ax_74_a_table_part_that_lost_its_number_gets_another() {
    for last in [0, 90] {
        let mut line = TableLine::open(TablePart::new(100), 7, false);
        let kept = line.call();
        line.part.last = last;
        line.beat();
        assert_ne!(line.part.last, last, "{last}");
        line.part.push(&kept);
        line.call();
        assert_eq!(line.part.ran.len(), 2, "{last}: what was sent before the heartbeat does not run behind it");
    }
}
