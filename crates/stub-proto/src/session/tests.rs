//! Conversations with parts that lose, repeat, reboot and babble. Has no wire.

mod bus;
mod doubts;
mod tables;

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::cbor::Value;
use crate::check::Width;
use crate::fixed::{FixedForm, FixedFrame, FixedKind};
use crate::frame::{FrameOrNoise, FrameReader, frame};
use crate::message::{ASK_FIRST, PartMessage, TablePage, is_newer};
use crate::table::{TableRow, ValueKind};

const FORM: FixedForm = FixedForm { width: Width::Sixteen, most_payload: 8 };

fn ms(number: u64) -> Duration {
    Duration::from_millis(number)
}

fn settings(profile: Profile) -> SessionSettings {
    SessionSettings { profile, speed: 115_200, heartbeat: ms(5000), most_waiting: 2, seed: 200 }
}

fn order(id: u64, is_repeatable: bool) -> Order {
    Order { id, tool: 2, row: table(2).row(2).cloned(), content: Content::Values(vec![Value::Int(1)]), is_repeatable, work: ms(10) }
}

fn table(count: u8) -> PartTable {
    let rows = (1..=count).map(|tool| TableRow { tool, answer: ValueKind::Map, arguments: vec![ValueKind::Uint] }).collect();
    PartTable { most_bytes: 96, rows, device: Vec::new() }
}

fn page(last: Option<u8>) -> PartMessage {
    started(last, 77)
}

/// A whole table, from a part with this mark.
fn started(last: Option<u8>, boot: u8) -> PartMessage {
    PartMessage::Table(TablePage { last, boot, first: 0, table: table(2), next: None })
}

/// Word of a table part for the number of its last call.
fn counted(mark: u8, last: u8) -> Vec<u8> {
    FORM.frame(&FixedFrame { kind: FixedKind::Response, tool: last, seq: 0, payload: vec![mark] })
}

/// A conversation with a hand that plays the part.
struct Play {
    session: PartSession,
    now: Duration,
}

impl Play {
    fn new(profile: Profile) -> Self {
        let mut session = PartSession::new(settings(profile));
        session.open(Duration::ZERO);
        Self { session, now: Duration::ZERO }
    }

    /// A part that was found and listed its tools.
    fn alive() -> Self {
        let mut play = Self::new(Profile::Described);
        play.steps();
        play.say(&page(None));
        play.steps();
        play.say(&page(Some(200)));
        assert_eq!(play.steps(), [PartStep::Table(table(2)), PartStep::Standing(PartStanding::Alive)]);
        play
    }

    fn steps(&mut self) -> Vec<PartStep> {
        core::iter::from_fn(|| self.session.step()).collect()
    }

    fn say(&mut self, message: &PartMessage) {
        self.session.received(&frame(&message.write()), self.now);
    }

    /// Lets the next timer run out.
    fn wait(&mut self) {
        self.now = self.session.due().expect("a timer");
        self.session.pass(self.now);
    }

    /// Messages sent, without the other steps.
    fn sent(&mut self) -> Vec<PartMessage> {
        self.split().0
    }

    fn split(&mut self) -> (Vec<PartMessage>, Vec<PartStep>) {
        let (mut sent, mut others) = (Vec::new(), Vec::new());
        for step in self.steps() {
            match &step {
                PartStep::Send(bytes) => {
                    let framed = FrameReader::default().push(bytes).into_iter();
                    sent.extend(framed.map(|framed| match framed {
                        FrameOrNoise::Message(bytes) => PartMessage::from_gate(&bytes).expect("a message of the gate"),
                        FrameOrNoise::Noise(noise) => panic!("{noise:?}"),
                    }));
                }
                PartStep::Done { .. } | PartStep::Table(_) | PartStep::Standing(_) => others.push(step),
            }
        }
        (sent, others)
    }

    fn call(&mut self, order: Order) -> u8 {
        self.session.call(order, self.now);
        match self.sent().as_slice() {
            [PartMessage::Call { seq, .. }] => *seq,
            other => panic!("no call: {other:?}"),
        }
    }

    fn outcome(&mut self) -> CallEnd {
        let (_, others) = self.split();
        let mut ended = others.into_iter().filter_map(|step| match step {
            PartStep::Done { outcome, .. } => Some(outcome),
            PartStep::Send(_) | PartStep::Table(_) | PartStep::Standing(_) => None,
        });
        let outcome = ended.next().expect("an outcome");
        assert_eq!(ended.next(), None);
        outcome
    }
}

fn answer(seq: u8) -> PartMessage {
    PartMessage::Answer { seq, result: Value::Map(vec![(0, Value::Int(1))]) }
}

#[test]
fn ax_74_a_part_is_asked_until_it_answers() {
    let mut play = Play::new(Profile::Described);
    assert_eq!(play.sent(), [PartMessage::Ask { seq: Some(200), first: 0, boot: None }]);
    for misses in 1..10 {
        play.wait();
        let (sent, others) = play.split();
        assert_eq!(sent, [PartMessage::Ask { seq: Some(200), first: 0, boot: None }]);
        assert_eq!(others.contains(&PartStep::Standing(PartStanding::Silent)), misses == MOST_MISSES.into(), "{misses}");
    }
    assert!(play.session.due().expect("a timer") - play.now <= LONGEST_PAUSE + ms(100));
    // It has started anew, and hears the next question.
    play.say(&page(None));
    assert_eq!(play.sent(), [PartMessage::Ask { seq: Some(200), first: 0, boot: Some(77) }]);
    play.say(&page(None));
    assert_eq!(play.steps(), [], "the question with its mark is on its way");
    play.say(&page(Some(200)));
    assert_eq!(play.steps(), [PartStep::Table(table(2)), PartStep::Standing(PartStanding::Alive)]);
}

#[test]
fn ax_73_a_long_table_is_asked_page_by_page() {
    let mut play = Play::new(Profile::Described);
    play.steps();
    play.say(&page(None));
    assert_eq!(play.sent(), [PartMessage::Ask { seq: Some(200), first: 0, boot: Some(77) }]);
    let mut first = table(3);
    let rest = first.rows.split_off(2);
    let first = PartMessage::Table(TablePage { last: Some(200), boot: 77, first: 0, table: first, next: Some(2) });
    play.say(&first);
    assert_eq!(play.sent(), [PartMessage::Ask { seq: Some(200), first: 2, boot: Some(77) }]);
    play.say(&first);
    assert_eq!(play.steps(), [], "the first page again, for the second");
    let table = PartTable { rows: rest, ..table(0) };
    play.say(&PartMessage::Table(TablePage { last: Some(200), boot: 77, first: 2, table, next: None }));
    assert_eq!(play.steps(), [PartStep::Table(self::table(3)), PartStep::Standing(PartStanding::Alive)]);
}

#[test]
fn ax_43_an_answer_with_another_number_is_none() {
    let mut play = Play::alive();
    let seq = play.call(order(1, false));
    play.say(&answer(seq - 1));
    play.say(&PartMessage::Heartbeat { seq, boot: Some(77) });
    assert_eq!((play.steps(), play.session.tally().stray), (vec![], 2));
    play.say(&answer(seq));
    assert_eq!(play.outcome(), CallEnd::Values(Value::Map(vec![(0, Value::Int(1))])));
    play.say(&answer(seq));
    assert_eq!((play.steps(), play.session.tally().stray), (vec![], 3));
}

#[test]
fn ax_74_an_actuator_call_leaves_once() {
    let mut play = Play::alive();
    play.call(order(1, false));
    play.wait();
    let (sent, others) = play.split();
    assert_eq!(sent, [PartMessage::Ask { seq: Some(201), first: 0, boot: Some(77) }], "and the part is asked how far it is");
    assert_eq!(others, [PartStep::Done { id: 1, outcome: CallEnd::Unknown(Unknown::NoAnswer { tries: 1 }) }]);
    play.say(&page(Some(201)));
    assert_eq!(play.call(order(2, false)), 202);
}

#[test]
fn ax_74_a_repeatable_call_keeps_its_number() {
    let mut play = Play::alive();
    let seq = play.call(order(1, true));
    for _ in 1..MOST_TRIES {
        play.wait();
        assert!(matches!(play.sent().as_slice(), [PartMessage::Call { seq: again, .. }] if *again == seq));
    }
    assert_eq!(play.session.tally().repeated, 2);
    play.wait();
    assert_eq!(play.outcome(), CallEnd::Unknown(Unknown::NoAnswer { tries: MOST_TRIES }));
}

#[test]
fn a_part_started_anew_is_asked_before_a_call() {
    let mut play = Play::alive();
    let seq = play.call(order(1, false));
    play.say(&PartMessage::Failure { seq, code: ASK_FIRST, text: None });
    let steps = play.steps();
    assert!(
        steps.contains(&PartStep::Done { id: 1, outcome: CallEnd::Unknown(Unknown::StartedAnew) }),
        "a handler may have said so: {steps:?}"
    );
    play.say(&page(Some(seq)));
    let seq = play.call(order(2, true));
    play.say(&PartMessage::Failure { seq, code: ASK_FIRST, text: None });
    assert_eq!(play.sent(), [PartMessage::Ask { seq: Some(seq), first: 0, boot: Some(77) }]);
    play.say(&page(Some(seq)));
    let sent = play.sent();
    assert!(
        matches!(sent.as_slice(), [PartMessage::Call { seq: next, .. }] if *next == seq + 1),
        "what may run twice goes again: {sent:?}"
    );
}

#[test]
fn heartbeats_use_up_no_numbers_of_calls() {
    let mut play = Play::alive();
    let before = play.call(order(1, false));
    play.say(&PartMessage::Answer { seq: before, result: Value::Null });
    play.steps();
    for _ in 0..300 {
        play.now = play.session.due().unwrap();
        play.session.pass(play.now);
        let sent = play.sent();
        let [PartMessage::Heartbeat { seq, .. }] = sent.as_slice() else { panic!("{sent:?}") };
        play.say(&PartMessage::Heartbeat { seq: *seq, boot: Some(77) });
    }
    assert_eq!(play.call(order(2, false)), before + 1, "127 numbers on, a part takes a call for a late one");
}

#[test]
fn ax_74_an_idle_part_has_the_networks_allowance() {
    let mut play = Play::new(Profile::Mqtt);
    play.session = PartSession::new(SessionSettings { speed: 10_000, ..settings(Profile::Mqtt) });
    play.session.open(Duration::ZERO);
    for last in [None, Some(200)] {
        play.session.received(&page(last).write(), play.now);
    }
    play.steps();
    for _ in 0..10 {
        play.wait();
        let steps = play.steps();
        let [PartStep::Send(bytes)] = steps.as_slice() else { panic!("{steps:?}") };
        let Ok(PartMessage::Heartbeat { seq, .. }) = PartMessage::from_gate(bytes) else { panic!("{bytes:?}") };
        // As late as the answer of a call may be that works for no time.
        play.now += patience(ms(2 * 250), Duration::ZERO) - ms(1);
        play.session.pass(play.now);
        play.session.received(&PartMessage::Heartbeat { seq, boot: Some(77) }.write(), play.now);
        assert_eq!((play.steps(), play.session.tally().stray), (vec![], 0));
    }
}

#[test]
fn ax_43_an_overlong_answer_ends_its_call() {
    let mut play = Play::alive();
    let seq = play.call(order(1, true));
    play.session.received_overlong(seq - 1, play.now);
    assert_eq!((play.steps(), play.session.tally().stray), (vec![], 1));
    play.session.received_overlong(seq, play.now);
    assert_eq!(play.outcome(), CallEnd::TooLong);
    for _ in 0..MOST_BABBLE {
        play.session.received_overlong(seq, play.now);
    }
    assert_eq!(play.session.standing(), PartStanding::Babbling);
}

#[test]
fn pages_that_lead_nowhere_make_a_part_silent() {
    let mut play = Play::alive();
    play.say(&page(None));
    for _ in 0..40 {
        let table = PartTable { rows: Vec::new(), ..table(1) };
        play.say(&PartMessage::Table(TablePage { last: Some(200), boot: 77, first: 0, table, next: Some(0) }));
        if let Some(due) = play.session.due() {
            play.now = due;
            play.session.pass(due);
        }
        play.steps();
    }
    assert_eq!(play.session.standing(), PartStanding::Silent);
}

#[test]
fn a_reboot_during_a_call_leaves_its_outcome_unknown() {
    let mut play = Play::alive();
    play.call(order(1, false));
    play.say(&started(None, 76));
    assert_eq!(play.outcome(), CallEnd::Unknown(Unknown::StartedAnew));
    play.say(&started(Some(201), 76));
    play.steps();
    play.call(order(2, true));
    play.say(&started(None, 76));
    assert_eq!((play.steps(), play.session.tally().stray), (vec![], 1), "a greeting of the start that both agreed on");
    play.say(&started(None, 78));
    assert!(matches!(play.sent().as_slice(), [PartMessage::Ask { .. }]));
    play.say(&started(Some(202), 78));
    assert!(matches!(play.sent().as_slice(), [PartMessage::Call { seq: 203, .. }]), "what may run twice goes again");
}

#[test]
fn one_call_is_under_way_and_few_wait() {
    let mut play = Play::alive();
    let seq = play.call(order(1, false));
    for id in 2..=4 {
        play.session.call(order(id, false), play.now);
    }
    assert_eq!(play.steps(), [PartStep::Done { id: 4, outcome: CallEnd::NeverRan(NeverRan::Full { waiting: 2 }) }]);
    assert_eq!(play.session.load(), 3);
    play.session.cancel(1);
    play.session.cancel(2);
    assert_eq!(
        play.steps(),
        [PartStep::Done { id: 2, outcome: CallEnd::NeverRan(NeverRan::Cancelled) }],
        "what has left is not taken back"
    );
    play.say(&answer(seq));
    assert!(matches!(play.sent().as_slice(), [PartMessage::Call { .. }]));
    play.session.close();
    let (_, others) = play.split();
    assert_eq!(others, [PartStep::Done { id: 3, outcome: CallEnd::Unknown(Unknown::WireLost) }, PartStep::Standing(PartStanding::Silent)]);
}

#[test]
fn ax_74_three_missed_heartbeats_make_a_part_silent() {
    let mut play = Play::alive();
    let began = play.now;
    let beat = |seq| [PartMessage::Heartbeat { seq, boot: None }];
    play.wait();
    assert_eq!(play.sent(), beat(1));
    play.say(&PartMessage::Heartbeat { seq: 1, boot: Some(77) });
    assert_eq!(play.steps(), []);
    for seq in 2..5 {
        play.wait();
        assert_eq!(play.sent(), beat(seq));
        play.wait();
    }
    assert!(play.now - began >= 3 * settings(Profile::Described).heartbeat, "three rests, and not three in a row");
    let (sent, others) = play.split();
    assert!(matches!(sent.as_slice(), [PartMessage::Ask { .. }]));
    assert_eq!(others, [PartStep::Standing(PartStanding::Silent)]);
    play.session.call(order(1, true), play.now);
    assert_eq!(play.outcome(), CallEnd::NeverRan(NeverRan::Silent), "not even sent");
}

#[test]
fn a_part_that_babbles_is_degraded() {
    let mut play = Play::alive();
    for _ in 0..MOST_BABBLE {
        play.session.received(&frame(&[9]), play.now);
    }
    assert_eq!(play.steps(), [PartStep::Standing(PartStanding::Babbling)]);
    assert_eq!(play.session.tally().nonsense, MOST_BABBLE.into());
}

#[test]
fn a_call_longer_than_the_part_takes_never_leaves() {
    let mut play = Play::alive();
    let content = Content::Values(vec![Value::Text(String::from_utf8(vec![b'a'; 96]).expect("text"))]);
    play.session.call(Order { content, ..order(1, true) }, play.now);
    assert_eq!(play.steps(), [PartStep::Done { id: 1, outcome: CallEnd::NeverRan(NeverRan::TooLong { most: 96 }) }]);
}

#[test]
fn ax_72_a_table_part_is_called_with_its_layout() {
    let mut play = Play::new(Profile::Fixed(FORM));
    let question = FORM.frame(&FixedFrame { kind: FixedKind::Heartbeat, tool: 0, seq: 0, payload: vec![201] });
    assert!(matches!(play.steps().as_slice(), [PartStep::Send(bytes)] if bytes.ends_with(&question) && bytes.starts_with(&[0; 15])));
    let heartbeat = |tool, seq| FORM.frame(&FixedFrame { kind: FixedKind::Heartbeat, tool, seq, payload: vec![] });
    play.session.received(&counted(201, 201), play.now);
    assert!(matches!(play.steps().as_slice(), [PartStep::Send(bytes)] if bytes.ends_with(&heartbeat(0, 210))));
    play.session.received(&heartbeat(210, 210), play.now);
    assert_eq!(play.steps(), [PartStep::Standing(PartStanding::Alive)]);
    let order = |id, is_repeatable| Order { content: Content::Raw(vec![1]), ..order(id, is_repeatable) };
    play.session.call(order(1, false), play.now);
    let call = |seq| FORM.frame(&FixedFrame { kind: FixedKind::Call, tool: 2, seq, payload: vec![1] });
    assert_eq!(play.steps(), [PartStep::Send(call(211))]);
    let answer = |seq, payload: &[u8]| FixedFrame { kind: FixedKind::Response, tool: 2, seq, payload: payload.to_vec() };
    play.session.received(&FORM.frame(&answer(211, &[7, 0])), play.now);
    assert_eq!(play.outcome(), CallEnd::Raw(vec![7]));
    play.session.call(order(2, true), play.now);
    play.steps();
    play.wait();
    assert!(
        matches!(play.steps().as_slice(), [PartStep::Send(bytes)] if bytes.ends_with(&call(213))),
        "a new number, for want of a memory"
    );
    play.session.received(&FORM.frame(&answer(213, &[2])), play.now);
    assert_eq!(play.outcome(), CallEnd::Failed { code: -32602, text: None });
}

#[test]
fn numbers_are_compared_on_their_circle() {
    assert!(is_newer(1, 255) && is_newer(130, 3) && !is_newer(3, 130) && !is_newer(7, 7) && !is_newer(200, 3));
}
