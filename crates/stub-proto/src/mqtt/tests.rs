//! Packets as the specification prints them, and as a broker sent them. Has no connection.

use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;

fn message(topic: &str, payload: &[u8]) -> Packet {
    Packet::Message { topic: topic.into(), payload: payload.to_vec(), is_retained: false }
}

#[test]
fn ax_70_packets_are_those_of_the_standard() {
    let greeting = Greeting { client: "b", user: Some("u"), password: Some("pw") };
    let head = [0x10, 0x1a, 0, 4, b'M', b'Q', b'T', b'T', 5, 0xc2, 0, 60, 5, 0x27, 0, 0, 0x10, 0];
    assert_eq!(greet(greeting), [&head[..], &[0, 1, b'b', 0, 1, b'u', 0, 2, b'p', b'w']].concat());
    assert_eq!(subscribe("a/rsp"), [0x82, 11, 0, 1, 0, 0, 5, b'a', b'/', b'r', b's', b'p', 0x20]);
    assert_eq!(publish("a", b"{}"), [0x30, 11, 0, 1, b'a', 5, 2, 0, 0, 0, 5, b'{', b'}']);
    assert_eq!(publish("a", &[7; 128])[..3], [0x30, 0x89, 1], "a length of two bytes");
    // Of mosquitto 2.0: the greeting taken, the subscription taken, a message.
    let sent = [&[0x20, 9, 0, 0, 6, 0x22, 0, 10, 0x21, 0, 20][..], &[0x90, 4, 0, 1, 0, 0], &[0x30, 6, 0, 1, b'a', 0, b'h', b'i']].concat();
    let expected = [Packet::Accepted { reason: 0, keep_alive: None }, Packet::Subscribed { reason: 0 }, message("a", b"hi")];
    assert_eq!(PacketReader::default().push(&sent).as_deref(), Ok(&expected[..]));
    let mut reader = PacketReader::default();
    let slowly: Vec<Packet> = sent.iter().flat_map(|byte| reader.push(&[*byte]).expect("packets")).collect();
    assert_eq!((slowly.as_slice(), reader.held.len()), (&expected[..], 0));
}

#[test]
fn a_broker_may_grant_less_silence() {
    let sent = [0x20, 12, 0, 0, 9, 0x13, 0, 10, 0x1f, 0, 3, b'w', b'h', b'y'];
    assert_eq!(PacketReader::default().push(&sent), Ok(vec![Packet::Accepted { reason: 0, keep_alive: Some(10) }]));
    // Refused, without properties: banned.
    assert_eq!(PacketReader::default().push(&[0x20, 2, 0, 0x8a]), Ok(vec![Packet::Accepted { reason: 0x8a, keep_alive: None }]));
}

#[test]
fn ax_74_a_retained_message_is_told_from_others() {
    let sent = [0x31, 5, 0, 1, b'a', 0, b'x'];
    let kept = Packet::Message { topic: "a".into(), payload: b"x".to_vec(), is_retained: true };
    assert_eq!(PacketReader::default().push(&sent), Ok(vec![kept]));
}

#[test]
fn what_no_broker_may_send_is_refused() {
    // A quality of service that nobody asked for, a packet of another client, an open length, a text beyond its packet.
    for sent in [&[0x32, 7, 0, 1, b'a', 0, 1, 0, b'x'][..], &[0x10, 0], &[0x30, 0xff, 0xff, 0xff, 0xff], &[0x30, 3, 0, 9, b'a']] {
        assert_eq!(PacketReader::default().push(sent), Err(PacketError::Malformed), "{sent:x?}");
    }
    assert_eq!(PacketReader::default().push(&[0x30, 0x81, 0x20]), Err(PacketError::TooLong));
}

proptest! {
    #[test]
    fn a_message_is_read_as_written(payload in proptest::collection::vec(any::<u8>(), 0..300)) {
        let written = publish("plant/valve/rsp", &payload);
        prop_assert_eq!(PacketReader::default().push(&written), Ok(vec![message("plant/valve/rsp", &payload)]));
    }
}
