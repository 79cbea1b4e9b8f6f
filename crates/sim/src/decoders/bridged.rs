//! Checks for messages of other agents that are translated: what is read is written again without a loss. Knows no connection.

use std::borrow::Cow;

use bridge::{BindingId, BridgeError, Hop, LossFate, decode, encode};

/// A message of A2A.
pub(super) fn a2a(data: &[u8]) {
    crossing(BindingId::A2a, data);
}

/// A message of MCP.
pub(super) fn mcp(data: &[u8]) {
    crossing(BindingId::Mcp, data);
}

/// Reads a message, writes it for every binding and reads that: nothing but credentials is gone.
fn crossing(from: BindingId, data: &[u8]) {
    let Ok(read) = decode(from, data) else { return };
    let raw = |text: &'static [u8]| Some(Cow::Borrowed(text));
    let hop = Hop { id: raw(b"1"), token: raw(b"2"), target: raw(b"3"), stateless: true, ..Hop::default() };
    for to in [BindingId::A2a, BindingId::Mcp] {
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
