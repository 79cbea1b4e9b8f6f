//! Keys against the examples of the RFC, and messages that were changed on the way.

use proptest::prelude::*;

use super::super::{PduKind, SnmpValue};
use super::*;

const ENGINE: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

/// Keys take a mebibyte of hashing each.
static USER: std::sync::LazyLock<SnmpUser> =
    std::sync::LazyLock::new(|| SnmpUser::new("ro", AuthProtocol::Sha, "authpass12", Some((PrivacyProtocol::Aes128, "privpass12"))));

fn user() -> &'static SnmpUser {
    &USER
}

fn pdu() -> Pdu {
    let name = SnmpValue::Octets(b"r1".to_vec());
    Pdu { id: 7, ..Pdu::new(PduKind::Response, vec![(Oid::new(&[1, 3, 6, 1, 2, 1, 1, 5, 0]), name)]) }
}

#[test]
fn nm_10_keys_are_those_of_the_rfc() {
    // RFC 3414, appendix A.3.2.
    let user = SnmpUser::new("x", AuthProtocol::Sha, "maplesyrup", None);
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(hex(&user.auth_key), "9fb5cc0381497b3793528939ff788d5d79145211");
    assert_eq!(hex(&user.at(ENGINE).auth_key), "6695febc9288e36282235fc7151f128497b38f3f");
}

#[test]
fn nm_10_only_the_users_own_messages_are_opened() {
    for auth in [AuthProtocol::Sha, AuthProtocol::Sha256, AuthProtocol::Sha384, AuthProtocol::Sha512] {
        for privacy in [None, Some((PrivacyProtocol::Aes128, "privpass12")), Some((PrivacyProtocol::Aes256, "privpass12"))] {
            if auth == AuthProtocol::Sha && matches!(privacy, Some((PrivacyProtocol::Aes256, _))) {
                continue;
            }
            let user = SnmpUser::new("ro", auth, "authpass12", privacy).at(ENGINE);
            let bytes = user.seal(&pdu(), 9, (3, 100), 1).unwrap();
            let message = UserMessage::read(&bytes).unwrap();
            assert_eq!((message.id, message.clock, message.user), (9, (3, 100), &b"ro"[..]));
            assert_eq!(user.open(&message), Ok(pdu()), "{auth:?} {privacy:?}");
            let other = SnmpUser::new("ro", auth, "authpass13", privacy).at(ENGINE);
            assert_eq!(other.open(&message), Err(SnmpError::Signature));
        }
    }
}

#[test]
fn nm_10_a_message_without_protection_is_nobodys() {
    let user = user().at(ENGINE);
    let bytes = UserMessage::unsecured(ENGINE, (1, 1), &pdu(), 1);
    let message = UserMessage { user: b"ro", ..UserMessage::read(&bytes).unwrap() };
    assert_eq!(user.open(&message), Err(SnmpError::Level));
    let signed = SnmpUser::new("ro", AuthProtocol::Sha, "authpass12", None).at(ENGINE).seal(&pdu(), 1, (1, 1), 1).unwrap();
    assert_eq!(user.open(&UserMessage::read(&signed).unwrap()), Err(SnmpError::Level), "an answer in clear text");
}

#[test]
fn nm_10_what_is_late_or_a_copy_does_not_count() {
    let mut clock = EngineClock::default();
    clock.advance((2, 1000), 0).unwrap();
    assert_eq!(clock.read(60_000), (2, 1060));
    assert!(clock.advance((2, 1000), 140_000).is_ok());
    assert_eq!(clock.advance((2, 1000), 160_000), Err(SnmpError::Time));
    assert_eq!(clock.advance((1, 9000), 0), Err(SnmpError::Time));
    assert!(clock.advance((3, 0), 0).is_ok());
    assert_eq!(clock.advance((i32::MAX as u32, 0), 0), Err(SnmpError::Time));
}

proptest! {
    #[test]
    fn nm_10_a_changed_byte_spoils_a_message(at in any::<prop::sample::Index>(), bit in 0u8..8) {
        let user = user().at(ENGINE);
        let mut bytes = user.seal(&pdu(), 9, (3, 100), 77).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let opened = UserMessage::read(&bytes).and_then(|message| user.open(&message));
        prop_assert!(opened.is_err(), "{opened:?}");
    }

    #[test]
    fn nm_10_any_bytes_are_a_message_of_v3_or_none(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let whole = ber::sequence(&[&ber::write_integer(V3), &bytes]);
        for bytes in [bytes, whole] {
            if let Ok(message) = UserMessage::read(&bytes) {
                prop_assert!(user().at(ENGINE).open(&message).is_err());
            }
        }
    }
}
