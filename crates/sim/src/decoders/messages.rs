//! Checks for what reads JSON: scanner, splice, envelopes, list pages, the pipe to a server. Nothing about streams of bytes.

use bytes::Bytes;
use mcp_proto::catalog::{Kind, Page};
use mcp_proto::client::{Event, Identity, Pipe};
use mcp_proto::envelope::{self, Answer, Message, Poured};
use mcp_proto::era::RequestMeta;
use mcp_proto::json::{self, Before, Duplicates, JsonError, Members};
use mcp_proto::splice::{Change, edit};
use serde_json::value::RawValue;

/// The scanner agrees with serde_json, its spans are sound, and a splice leaves every other member alone.
pub(super) fn json(data: &[u8]) {
    let checked = json::check(data, Duplicates::RefuseTop);
    if checked != Err(JsonError::TooDeep) {
        let reference = serde_json::from_slice::<&RawValue>(data).is_ok();
        assert_eq!(checked.is_ok(), reference, "{}", String::from_utf8_lossy(data));
    }
    if json::check(data, Duplicates::RefuseDeep).is_ok() {
        assert!(checked.is_ok());
    }
    if let Some(elements) = json::elements(data) {
        assert!(elements.iter().all(|raw| json::check(raw, Duplicates::RefuseTop).is_ok()));
    }
    let Ok(members) = Members::parse(data, Duplicates::RefuseTop) else { return };
    for (key, raw) in members.iter() {
        assert!(json::check(raw, Duplicates::RefuseTop).is_ok());
        assert_eq!(json::as_str(json::quote(&key).as_bytes()).as_deref(), Some(&*key));
    }
    let changes = [("name", Change::Set(b"\"new\"")), ("_meta", Change::Remove), ("added", Change::Set(b"[1.0]"))];
    let edited = edit(data, &changes);
    let after = Members::parse(&edited, Duplicates::RefuseTop);
    assert!(after.is_ok(), "{}", String::from_utf8_lossy(&edited));
    let Ok(after) = after else { return };
    assert_eq!(after.get("name"), Some(&b"\"new\""[..]));
    assert_eq!(after.get("added"), Some(&b"[1.0]"[..]));
    assert!(!after.has("_meta"));
    let others = |members: &Members<'_>| -> Vec<(String, Vec<u8>)> {
        let kept = members.iter().filter(|(key, _)| !["name", "_meta", "added"].contains(&&**key));
        kept.map(|(key, raw)| (key.into_owned(), raw.to_vec())).collect()
    };
    assert_eq!(others(&members), others(&after));
}

/// A message read and written again is the same message.
pub(super) fn envelope(data: &[u8]) {
    let text = Bytes::copy_from_slice(data);
    let glance = envelope::glance(&text);
    let Ok(message) = Message::parse(&text, Duplicates::RefuseDeep) else { return };
    match (&message, glance) {
        (Message::Request(request), Some(glance)) => assert_eq!(glance.id, request.id),
        // A key that is spelled with escapes is not seen at a glance.
        (Message::Request(_), None) => assert!(text.contains(&b'\\')),
        (Message::Notification(_) | Message::Response(_), glance) => assert_eq!(glance, None),
    }
    assert_eq!(Message::parse(&text, Duplicates::RefuseTop).as_ref(), Ok(&message));
    let mut before = Before::default();
    for _ in 0..2 {
        let again = Message::parse_after(&text, &mut before);
        assert_eq!(again.as_ref(), Ok(&message));
        if let (Ok(Message::Request(again)), Message::Request(alone)) = (again, &message) {
            assert_eq!(RequestMeta::of(&again.params), RequestMeta::of(&alone.params));
        }
    }
    let written = match &message {
        Message::Notification(notification) => notification.whole.clone(),
        Message::Request(request) => {
            assert_eq!(RequestMeta::of(&request.params).is_stateless(), RequestMeta::of(&request.params).version.is_some());
            envelope::request(&request.id, &request.method, &request.params)
        }
        Message::Response(response) => envelope::response(&response.id, &response.answer),
    };
    assert_eq!(Message::parse(&written, Duplicates::RefuseDeep), Ok(message), "{}", String::from_utf8_lossy(&written));
}

/// A response in pieces reads as it does as a whole. The first byte is the length of the pieces.
pub(super) fn poured(data: &[u8]) {
    const WANTED: [&str; 2] = ["isError", "a"];
    let [length, text @ ..] = data else { return };
    let in_pieces = || {
        let mut poured = Poured::new(&WANTED);
        text.chunks(usize::from(*length).max(1)).try_for_each(|piece| poured.read(piece)).ok()?;
        let wanted = poured.finish().ok()?;
        Some((text.get(poured.begin()?..poured.end()?)?, wanted))
    };
    let whole = match Message::parse(&Bytes::copy_from_slice(text), Duplicates::RefuseDeep) {
        Ok(Message::Response(response)) => Some(response.answer),
        _ => None,
    };
    match (whole, in_pieces()) {
        (Some(Answer::Result(result)), Some((raw, wanted))) => {
            assert_eq!(&result[..], raw);
            let wanted = Members::again(&wanted);
            let kept = |key: &str| result.members().get(key).filter(|raw| raw.len() <= 4 << 10).map(<[u8]>::to_vec);
            assert!(WANTED.iter().all(|key| wanted.get(key).map(<[u8]>::to_vec) == kept(key)));
        }
        (whole, None) => assert!(!matches!(whole, Some(Answer::Result(result)) if result.starts_with(b"{"))),
        (whole, Some(_)) => panic!("{whole:?} in pieces: {}", String::from_utf8_lossy(text)),
    }
}

/// A page's entries are parts of it that can be shown under another key. The first byte chooses the kind of list.
pub(super) fn page(data: &[u8]) {
    let Some((choice, result)) = data.split_first() else { return };
    let kind = Kind::ALL[usize::from(*choice) % Kind::ALL.len()];
    let result = Bytes::copy_from_slice(result);
    let Some(page) = Page::parse(kind, &result) else { return };
    for entry in &page.entries {
        assert!(json::check(&entry.raw, Duplicates::RefuseTop).is_ok());
        let shown = entry.shown_as(kind, "other");
        let key = Members::parse(&shown, Duplicates::RefuseTop).ok().and_then(|members| members.str(kind.key()).map(String::from));
        assert_eq!(key.as_deref(), Some("other"), "{}", String::from_utf8_lossy(&shown));
    }
}

/// A server may send any lines: each call ends once at most, and all that goes out is a message.
pub(super) fn pipe(data: &[u8]) {
    let identity = Identity { info: Bytes::from_static(br#"{"name":"n","version":"1"}"#), capabilities: Bytes::from_static(b"{}") };
    let mut pipe = Pipe::new(None, identity);
    let params = Bytes::from_static(br#"{"_meta":{"progressToken":"mine"}}"#);
    let mut open = Vec::new();
    for line in data.split(|b| *b == b'\n') {
        pipe.handle_message(&Bytes::copy_from_slice(line));
        if pipe.is_ready() && open.len() < 3 {
            open.push(pipe.handle_call("tools/call", &params.clone().into()));
        }
        while let Some(event) = pipe.poll_event() {
            if let Event::Answered(call, _) | Event::Garbled(call, _) = event {
                assert!(open.contains(&call), "{call:?} has ended twice");
                open.retain(|other| *other != call);
            }
        }
        assert!(pipe.in_flight().eq(open.iter().copied()));
        while let Some(message) = pipe.poll_transmit() {
            assert!(Message::parse(&message, Duplicates::RefuseTop).is_ok(), "{}", String::from_utf8_lossy(&message));
        }
    }
}
