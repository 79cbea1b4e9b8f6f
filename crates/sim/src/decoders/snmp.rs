//! Checks for what agents of SNMP send, and for the settings that callers ask for. Knows no socket.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

use net_proto::snmp::{
    AuthProtocol, CommunityMessage, Oid, Pdu, PduKind, PrivacyProtocol, SnmpAccess, SnmpHeard, SnmpSession, SnmpUser, SnmpValue, TableWalk,
    TrapHeard, TrapReader, UserMessage, edited, interface_columns, interfaces, memory, memory_columns, named, settings_of, settings_text,
};

const ENGINE: &[u8] = b"\x80\x00\x1f\x88\x04abc";

/// Keys take a mebibyte of hashing each.
static USER: LazyLock<SnmpUser> =
    LazyLock::new(|| SnmpUser::new("ro", AuthProtocol::Sha256, "authpass12", Some((PrivacyProtocol::Aes128, "privpass12"))));

/// A datagram is read or refused, is no answer to a request that it does not name, and no message of a user whose key it lacks.
pub(super) fn message(data: &[u8]) {
    if let Ok(Some(message)) = CommunityMessage::read(data) {
        assert!(message.pdu.bindings.len() * 5 <= data.len());
        let again = CommunityMessage::read(&message.write());
        assert_eq!(again, Ok(Some(message)));
    }
    if let Ok(message) = UserMessage::read(data) {
        assert!(USER.at(ENGINE).open(&message).is_err(), "a message was opened that nobody signed");
        drop(message.plain());
    }
    for access in [SnmpAccess::Community("public".to_owned()), SnmpAccess::User(USER.clone())] {
        let mut session = SnmpSession::new(access, seed(data), 1);
        session.begin();
        assert!(session.message(&Pdu::asking(PduKind::Get, [Oid::new(&[1, 3])]), 0).is_ok());
        assert!(!matches!(session.hear(data, 0), SnmpHeard::Response(_)), "an answer to a request that it can't know");
    }
    let mut reader = TrapReader::new(SnmpAccess::User(USER.clone()), ENGINE.to_vec(), 1, 1);
    assert!(!matches!(reader.hear(data, 0), TrapHeard::Notification(..)), "a notification that nobody signed");
    let mut reader = TrapReader::new(SnmpAccess::Community("public".to_owned()), ENGINE.to_vec(), 1, 1);
    if let TrapHeard::Notification(notification, _) = reader.hear(data, 0) {
        assert!(notification.json()["oid"].is_string());
    }
}

/// A seed for ids that no answer can hold: the fuzzer sees what is compared, and would write a constant one into its input.
fn seed(data: &[u8]) -> u32 {
    let mut hasher = DefaultHasher::new();
    data.hash(&mut hasher);
    u32::try_from(hasher.finish() >> 32).unwrap_or_default()
}

/// Answers to a walk, one behind the other: the walk ends, or is refused; whatever was found has a form.
pub(super) fn walk(data: &[u8]) {
    let columns = interface_columns();
    let mut walk = TableWalk::new(columns.clone());
    for part in data.chunks(200) {
        let Some(request) = walk.request() else { break };
        // Three bytes make a binding: column, row and value.
        let bindings = part.chunks_exact(3).map(|bytes| {
            let root = &columns[usize::from(bytes[0]) % columns.len()];
            let value = if bytes[2] % 3 == 0 { SnmpValue::Integer(bytes[2].into()) } else { SnmpValue::Octets(bytes.to_vec()) };
            (root.with(&[bytes[1].into()]), value)
        });
        if walk.hear(Pdu { id: request.id, ..Pdu::new(PduKind::Response, bindings.collect()) }).is_err() {
            break;
        }
    }
    let found = walk.values();
    assert!(interfaces(&found).iter().all(|one| one["name"].is_string()));
    assert!(memory(&found).is_none() || memory_columns().len() == 5);
    assert!(named(&found.into_iter().flatten().collect()).is_object());
}

/// A path on each line, and its value behind a space: settings are those that differ, and lead back.
pub(super) fn settings(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let text_value = |text: &str| SnmpValue::Octets(text.as_bytes().to_vec());
    let running = settings_text(&BTreeMap::from([
        (Oid::new(&[1, 3, 6, 1, 2, 1, 1, 5, 0]), text_value("r1")),
        (Oid::new(&[1, 3, 6, 1, 2, 1, 2, 2, 1, 7, 2]), SnmpValue::Integer(1)),
    ]));
    let values: Vec<(&str, Option<serde_json::Value>)> = text
        .lines()
        .map(|line| line.split_once(' ').unwrap_or((line, "")))
        .map(|(path, value)| (path, serde_json::from_str(value).ok()))
        .collect();
    let edits: Vec<_> = values.iter().map(|(path, value)| (*path, value.as_ref())).collect();
    match edited(&running, &edits) {
        Ok(new) => {
            let (there, back) = (settings_of(&running, &new), settings_of(&new, &running));
            assert_eq!(there.map(|all| all.len()), back.map(|all| all.len()));
        }
        Err(fault) => assert!(!fault.detail.is_empty()),
    }
}
