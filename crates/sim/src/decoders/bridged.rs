//! Checks for messages of other agents that are translated: what is read is written again without a loss. Knows no connection.

use std::borrow::Cow;

use bridge::{BindingId, BridgeError, EnvelopeFacts, Hop, LossFate, QuotedText, decode, encode};

/// A message of A2A.
pub(super) fn a2a(data: &[u8]) {
    crossing(BindingId::A2a, data);
}

/// A message of MCP.
pub(super) fn mcp(data: &[u8]) {
    crossing(BindingId::Mcp, data);
}

/// An envelope of AINP.
pub(super) fn ainp(data: &[u8]) {
    crossing(BindingId::Ainp, data);
    let sealed = bridge::seal_of(data, &[7; 32]);
    assert!(!matches!(sealed, Ok(Some(_))), "nobody has signed for the key");
    if let Some(key) = std::str::from_utf8(data).ok().and_then(bridge::key_of_did) {
        assert_eq!(bridge::key_of_did(&bridge::did_of_key(&key)), Some(key));
    }
}

/// A frame of µACP.
pub(super) fn uacp(data: &[u8]) {
    crossing(BindingId::Uacp, data);
}

/// Reads a message, writes it for every binding and reads that: nothing but credentials is gone.
fn crossing(from: BindingId, data: &[u8]) {
    let Ok(read) = decode(from, data) else { return };
    let raw = |text: &'static [u8]| Some(Cow::Borrowed(text));
    let name = |text| Some(QuotedText::quote(text));
    let id = name("2f1e4fc0-81fd-4a9b-8b0e-6f1b2a3c4d5e");
    let envelope = EnvelopeFacts { id, from: name("did:web:a"), to: name("did:web:b"), ..EnvelopeFacts::default() };
    let hop = Hop { id: raw(b"1"), token: raw(b"2"), target: raw(b"3"), stateless: true, envelope, ..Hop::default() };
    for to in BindingId::ALL.into_iter().filter(|to| to.has_codec()) {
        let sent = match encode(to, &read.message, &hop) {
            Ok(sent) => sent,
            Err(BridgeError::SemanticLoss(_)) => continue,
            Err(error) => panic!("a message that was read cannot be written: {error}"),
        };
        let mut before = read.message.clone();
        if sent.losses.iter().any(|loss| loss.fate == LossFate::Dropped) {
            before.wants.push_secret = false;
        }
        let after = decode(to, &sent.text).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&sent.text)));
        assert_eq!(after.message, before, "{}", String::from_utf8_lossy(&sent.text));
    }
}
