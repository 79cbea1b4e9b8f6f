//! Properties of any flood of notifications.

#![expect(clippy::disallowed_methods, reason = "a test has to begin at some time")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use banyan_model::{Machine, Now, Segment};
use bytes::Bytes;
use mesh_proto::id::SessionKey;
use mesh_proto::relay::{Relay, RelayLimits, RelayOutput, source};
use proptest::collection::vec;
use proptest::prelude::*;

const SMALL: RelayLimits = RelayLimits { per_second: 100, depth: 20, depth_bytes: 400 };

/// Both clocks at an instant; no machine of the mesh reads the wall clock.
fn at(instant: Instant) -> Now {
    Now { instant, wall: SystemTime::UNIX_EPOCH }
}

fn drain(relay: &mut Relay) -> Vec<RelayOutput> {
    std::iter::from_fn(|| relay.poll_output()).collect()
}

fn open(limits: RelayLimits) -> Relay {
    let mut relay = Relay::new(limits);
    for n in 0..3u64 {
        relay.handle_opened(SessionKey(n), Segment::nearest(&format!("s{n}")));
    }
    relay
}

/// Counts the notifications dropped of a session.
fn dropped_of(relay: &Relay, session: u64) -> u64 {
    let name = format!("s{session}");
    relay.losses().find(|(segment, _)| segment.as_str() == name).map_or(0, |(_, dropped)| dropped)
}

/// Drives the relay for `time`, at exactly the requested times.
fn wait(relay: &mut Relay, from: Instant, time: Duration) -> Vec<(Instant, RelayOutput)> {
    let mut seen = Vec::new();
    while let Some((due, _)) = relay.poll_timeout().filter(|(due, _)| *due <= from + time) {
        relay.handle_timeout(at(due));
        seen.extend(drain(relay).into_iter().map(|relayed| (due, relayed)));
    }
    seen
}

#[test]
fn ax_51_floods_wait_and_then_lose_the_oldest() {
    let (start, mut relay) = (Instant::now(), open(RelayLimits::default()));
    for n in 0..1500 {
        relay.handle_notification(at(start), SessionKey(0), Bytes::from(n.to_string()));
    }
    let at_once = drain(&mut relay);
    let overflows = at_once.iter().filter(|r| matches!(r, RelayOutput::Overflow { .. })).count();
    assert_eq!((at_once.len(), overflows), (11, 1), "a tenth of a second's worth, and one notice");
    assert_eq!((relay.dropped(), dropped_of(&relay, 0)), (490, 490));
    let second = wait(&mut relay, start, Duration::from_secs(1));
    assert_eq!(second.len(), 100);
    assert_eq!(second[0].1, RelayOutput::Notification { segment: Segment::nearest("s0"), bytes: Bytes::from("500") });
    let rest = wait(&mut relay, start, Duration::from_secs(60));
    assert_eq!(rest.last().unwrap().1, RelayOutput::Notification { segment: Segment::nearest("s0"), bytes: Bytes::from("1499") });
}

#[test]
fn ax_51_a_subserver_may_have_bounds_of_its_own() {
    let (start, mut relay) = (Instant::now(), open(RelayLimits::default()));
    relay.handle_limits(&SessionKey(1), RelayLimits { per_second: 20, depth: 5, depth_bytes: 1000 });
    for session in [0, 1] {
        (0..100).for_each(|n| relay.handle_notification(at(start), SessionKey(session), Bytes::from(n.to_string())));
    }
    assert_eq!((dropped_of(&relay, 0), dropped_of(&relay, 1)), (0, 93), "two at once, and five wait");
    let of_one = drain(&mut relay).into_iter().chain(wait(&mut relay, start, Duration::from_millis(100)).into_iter().map(|(_, seen)| seen));
    let passed = of_one.filter(|seen| matches!(seen, RelayOutput::Notification { segment, .. } if segment.as_str() == "s1"));
    assert_eq!(passed.count(), 4, "two at once and two in a tenth of a second");
}

#[test]
fn ax_51_notifications_of_all_are_bounded_in_bytes() {
    let (start, large) = (Instant::now(), Bytes::from(vec![b'x'; 1 << 20]));
    let mut relay = Relay::new(RelayLimits { per_second: 1, depth: 100, depth_bytes: 8 << 20 });
    for n in 0..100u64 {
        relay.handle_opened(SessionKey(n), Segment::nearest(&format!("s{n}")));
        (0..10).for_each(|_| relay.handle_notification(at(start), SessionKey(n), large.clone()));
    }
    let passed = drain(&mut relay).iter().filter(|seen| matches!(seen, RelayOutput::Notification { .. })).count() as u64;
    let waiting = 1000 - passed - relay.dropped();
    // The newest of each stays, whatever the others hold.
    assert!((256..=256 + 100).contains(&waiting), "{waiting}");
    (0..100).for_each(|n| relay.handle_closed(&SessionKey(n)));
    assert_eq!(relay.dropped(), 1000 - passed);
}

#[test]
fn ax_51_losses_on_the_way_are_counted_and_announced() {
    let (start, mut relay) = (Instant::now(), open(RelayLimits::default()));
    relay.handle_lost(&SessionKey(2), 7);
    relay.handle_lost(&SessionKey(9), 3);
    relay.handle_notification(at(start), SessionKey(2), Bytes::from_static(b"next"));
    assert_eq!(drain(&mut relay)[0], RelayOutput::Overflow { segment: Segment::nearest("s2"), dropped: 7 });
    assert_eq!((relay.dropped(), relay.losses().collect::<Vec<_>>()), (10, vec![(&Segment::nearest("s2"), 7)]));
}

#[test]
fn ax_51_each_flood_is_announced_once() {
    let (mut now, mut relay) = (Instant::now(), open(SMALL));
    for _ in 0..2 {
        for n in 0..100 {
            relay.handle_notification(at(now), SessionKey(1), Bytes::from(n.to_string()));
        }
        assert_eq!(drain(&mut relay).iter().filter(|r| matches!(r, RelayOutput::Overflow { .. })).count(), 1);
        wait(&mut relay, now, Duration::from_secs(5));
        now += Duration::from_secs(10);
    }
}

#[test]
fn ax_51_a_flood_of_one_subserver_holds_up_no_other() {
    let (now, mut relay) = (Instant::now(), open(SMALL));
    for n in 0..100 {
        relay.handle_notification(at(now), SessionKey(0), Bytes::from(n.to_string()));
    }
    drain(&mut relay);
    relay.handle_notification(at(now), SessionKey(1), Bytes::from_static(b"x"));
    assert_eq!(drain(&mut relay), [RelayOutput::Notification { segment: Segment::nearest("s1"), bytes: Bytes::from_static(b"x") }]);
}

#[test]
fn ax_50_each_aggregator_prefixes_the_source_with_its_segment() {
    let segment = |text| Segment::new(text).unwrap();
    let first = source(&segment("stm32h7"), None).unwrap();
    assert_eq!(source(&segment("edge"), Some(&first)).as_deref(), Some("edge.stm32h7"));
    assert_eq!(source(&segment("edge"), Some("Not.Legal")), None);
    assert_eq!(source(&segment("edge"), Some(&"a.".repeat(130))), None);
}

#[test]
fn ax_52_what_a_notification_carries_passes_byte_for_byte() {
    let (now, mut relay) = (Instant::now(), open(SMALL));
    let bytes = Bytes::from_static(br#"{"method":"x" ,"params":{"_meta":{"x-mcpax-event-id":"E","x-mcpax-causal-parent":null}}}"#);
    relay.handle_notification(at(now), SessionKey(0), bytes.clone());
    assert_eq!(drain(&mut relay), [RelayOutput::Notification { segment: Segment::nearest("s0"), bytes }]);
}

proptest! {
    #[test]
    fn ax_50_nothing_is_reordered_doubled_or_lost_without_being_counted(
        steps in vec((0..3u64, 0..60u64, 0..40usize), 0..200), closed in prop::option::of(0..200usize),
    ) {
        let (start, mut relay) = (Instant::now(), open(SMALL));
        let (mut now, mut sent, mut counted) = (start, BTreeMap::new(), BTreeMap::new());
        let mut seen: BTreeMap<Segment, Vec<u64>> = BTreeMap::new();
        let mut take = |relayed: Vec<RelayOutput>| for relayed in relayed {
            if let RelayOutput::Notification { segment, bytes } = relayed {
                let number = String::from_utf8_lossy(&bytes).trim().parse().unwrap();
                seen.entry(segment).or_default().push(number);
            }
        };
        for (step, (lane, pause, size)) in steps.iter().enumerate() {
            if closed == Some(step) {
                relay.handle_closed(&SessionKey(2));
            }
            now += Duration::from_millis(*pause);
            relay.handle_timeout(at(now));
            let number = sent.entry(*lane).or_insert(0u64);
            relay.handle_notification(at(now), SessionKey(*lane), Bytes::from(format!("{number:>size$}")));
            *number += 1;
            *counted.entry(()).or_insert(0u64) += 1;
            take(drain(&mut relay));
        }
        take(wait(&mut relay, now, Duration::from_secs(60)).into_iter().map(|(_, relayed)| relayed).collect());
        let passed: u64 = seen.values().map(|list| list.len() as u64).sum();
        prop_assert_eq!(passed + relay.dropped(), counted.values().sum::<u64>());
        for list in seen.values() {
            prop_assert!(list.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", list);
        }
    }
}
