//! Conversations over a wire that brings what is late, foreign, its own echo, or from before a start. Has no wire.

use alloc::vec;
use alloc::vec::Vec;

use super::super::*;
use super::{FORM, Play, answer, ms, order, page, settings, started, table};
use crate::frame::frame;
use crate::message::{PartMessage, TablePage};
use crate::table::ValueKind;

/// A table whose second tool takes a text.
fn other_table() -> PartTable {
    let mut other = table(2);
    other.rows[1].arguments = vec![ValueKind::Text];
    other
}

fn listed(last: u8, boot: u8, table: PartTable) -> PartMessage {
    PartMessage::Table(TablePage { last: Some(last), boot, first: 0, table, next: None })
}

#[test]
fn ax_74_a_page_from_before_a_start_does_not_count() {
    let mut play = Play::alive();
    play.say(&started(None, 78));
    assert_eq!(play.sent(), [PartMessage::Ask { seq: Some(200), first: 0, boot: Some(78) }]);
    // Late: the part listed so before its start.
    play.say(&page(Some(200)));
    assert_eq!(play.sent(), [PartMessage::Ask { seq: Some(200), first: 0, boot: Some(77) }], "nothing is agreed, and the part is asked");
    play.say(&started(Some(200), 78));
    assert_eq!(play.sent(), [PartMessage::Ask { seq: Some(200), first: 0, boot: Some(78) }]);
    play.say(&listed(200, 78, other_table()));
    assert_eq!(play.steps(), [PartStep::Table(other_table())]);
}

#[test]
fn ax_74_pages_of_two_starts_make_no_table() {
    let mut play = Play::new(Profile::Described);
    play.say(&page(None));
    let first = PartTable { rows: table(1).rows, ..table(0) };
    play.say(&PartMessage::Table(TablePage { last: Some(200), boot: 77, first: 0, table: first, next: Some(1) }));
    play.steps();
    let second = PartTable { rows: table(2).rows.split_off(1), ..table(0) };
    play.say(&PartMessage::Table(TablePage { last: Some(200), boot: 78, first: 1, table: second, next: None }));
    let (sent, others) = play.split();
    assert!(matches!(sent.as_slice(), [PartMessage::Ask { first: 0, boot: Some(78), .. }]), "from the first row on: {sent:?}");
    assert_eq!(others, []);
}

#[test]
fn ax_74_a_page_from_before_the_question_does_not_count() {
    let mut play = Play::alive();
    play.call(order(1, false));
    play.wait();
    play.steps();
    play.say(&page(Some(200)));
    assert_eq!((play.steps(), play.session.tally().stray), (vec![], 1), "the part had not taken 201 then");
    play.say(&page(Some(201)));
    assert_eq!(play.call(order(2, false)), 202);
}

#[test]
fn ax_74_a_mark_of_another_start_in_a_heartbeat_asks() {
    let mut play = Play::alive();
    play.wait();
    play.steps();
    play.say(&PartMessage::Heartbeat { seq: 1, boot: Some(78) });
    assert_eq!(play.sent(), [PartMessage::Ask { seq: Some(200), first: 0, boot: Some(78) }]);
}

#[test]
fn ax_74_a_new_conversation_begins_away_from_the_old() {
    for seed in 0..=u8::MAX {
        let mut session = PartSession::new(SessionSettings { seed, ..settings(Profile::Described) });
        session.open(Duration::ZERO);
        // The old conversation is over, and its calls up to 54 may be on their way.
        session.received(&frame(&page(Some(51)).write()), Duration::ZERO);
        let asked: Vec<PartStep> = core::iter::from_fn(|| session.step()).collect();
        let Some(PartStep::Send(bytes)) = asked.last() else { panic!("{asked:?}") };
        let ours = session.seq;
        assert!(bytes.ends_with(&frame(&PartMessage::Ask { seq: Some(ours), first: 0, boot: Some(77) }.write())));
        assert!((8..=32).contains(&ours.wrapping_sub(51)), "{seed}: {ours}");
    }
}

#[test]
fn ax_43_a_waiting_call_is_held_against_a_new_table() {
    let mut play = Play::alive();
    let seq = play.call(order(1, false));
    let first = Order { tool: 1, row: table(1).row(1).cloned(), ..order(3, false) };
    play.session.call(order(2, false), play.now);
    play.session.call(first, play.now);
    play.say(&started(None, 78));
    assert_eq!(play.outcome(), CallEnd::Unknown(Unknown::StartedAnew));
    play.say(&listed(seq, 78, other_table()));
    let (sent, others) = play.split();
    assert_eq!(others, [PartStep::Table(other_table()), PartStep::Done { id: 2, outcome: CallEnd::NeverRan(NeverRan::OtherTable) }]);
    assert!(matches!(sent.as_slice(), [PartMessage::Call { tool: 1, .. }]), "whose row is the same: {sent:?}");
}

#[test]
fn ax_43_a_call_judged_by_another_table_does_not_leave() {
    let mut play = Play::alive();
    play.session.call(Order { row: other_table().row(2).cloned(), ..order(1, true) }, play.now);
    assert_eq!(play.steps(), [PartStep::Done { id: 1, outcome: CallEnd::NeverRan(NeverRan::OtherTable) }]);
}

#[test]
fn a_call_tried_before_a_new_table_ends_unknown() {
    let mut play = Play::alive();
    play.call(order(1, true));
    play.say(&started(None, 78));
    play.steps();
    play.say(&listed(201, 78, other_table()));
    assert_eq!(play.outcome(), CallEnd::Unknown(Unknown::StartedAnew), "its first try may have run");
}

#[test]
fn an_echo_is_no_sign_of_life() {
    for profile in [Profile::Described, Profile::Fixed(FORM)] {
        let mut play = Play::new(profile);
        let mut standing = None;
        for _ in 0..MOST_MISSES {
            for step in play.steps() {
                match step {
                    PartStep::Send(bytes) => play.session.received(&bytes, play.now),
                    PartStep::Standing(now) => standing = Some(now),
                    PartStep::Done { .. } | PartStep::Table(_) => {}
                }
            }
            play.wait();
        }
        standing = play.steps().into_iter().find_map(|step| if let PartStep::Standing(now) = step { Some(now) } else { None }).or(standing);
        assert_eq!(standing, Some(PartStanding::Silent), "{profile:?}");
        assert!(play.session.tally().echoes >= 3);
    }
}

#[test]
fn noise_alone_is_babble() {
    for (profile, piece) in [(Profile::Described, &[7, 0][..]), (Profile::Fixed(FORM), &[7; 7][..])] {
        let mut play = Play::new(profile);
        play.steps();
        for number in 1..=MOST_BABBLE {
            play.session.received(piece, play.now);
            assert_eq!(play.session.standing() == PartStanding::Babbling, number == MOST_BABBLE, "{profile:?}, {number}");
        }
    }
}

#[test]
fn answers_without_a_question_are_babble() {
    let mut play = Play::alive();
    for _ in 1..MOST_BABBLE {
        play.say(&answer(9));
    }
    play.wait();
    play.say(&PartMessage::Heartbeat { seq: 1, boot: Some(77) });
    for _ in 1..MOST_BABBLE {
        play.say(&answer(9));
    }
    assert_eq!(play.session.standing(), PartStanding::Alive, "with a sign of life between them");
    play.say(&answer(9));
    assert_eq!(play.session.standing(), PartStanding::Babbling);
}

#[test]
fn a_call_does_not_wait_for_a_lost_heartbeat() {
    let mut play = Play::alive();
    play.wait();
    play.steps();
    play.session.call(order(1, false), play.now);
    assert_eq!(play.steps(), [], "a part answers one thing at a time");
    let began = play.now;
    play.wait();
    assert!(matches!(play.sent().as_slice(), [PartMessage::Call { .. }]));
    assert!(play.now - began < ms(100));
}
