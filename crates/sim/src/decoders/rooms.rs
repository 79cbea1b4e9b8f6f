//! Checks for envelopes of participants, for their frames, and for patterns of capabilities. Nothing about the room itself.

use room_proto::capability::{Capabilities, Pattern};
use room_proto::envelope::{Envelope, PROTOCOL};
use room_proto::kind::Kind;
use room_proto::mew::{Inward, Join, Outward, Translator, object_of, pattern_of};
use room_proto::participant;
use room_proto::websocket::{End, Reader, WebSocketError, WebSocketEvent};
use serde_json::Value;

/// An envelope that can be read says what another reader finds in it; a refused envelope is answered with the reason and its own id. That
/// reader takes
/// no half characters and no numbers out of its range, in payloads either.
pub(super) fn envelope(data: &[u8]) {
    const MOST: usize = 1 << 16;
    let decoded = Envelope::decode(data, MOST);
    let Ok(reference) = serde_json::from_slice::<Value>(data) else { return };
    match decoded {
        Ok(envelope) => {
            assert_eq!(reference["protocol"], PROTOCOL);
            assert_eq!(reference["id"], *envelope.id);
            assert_eq!(reference["from"], *envelope.from);
            assert_eq!(reference["kind"], envelope.kind().as_str());
            let to: Vec<&str> = reference["to"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            assert_eq!(to, envelope.to);
            assert_eq!(reference["correlation_id"].as_str(), envelope.correlation_id.as_deref());
            assert!(reference["payload"].is_object());
            let (class, refers) = (envelope.kind().class().to_owned(), envelope.correlation_id.is_some());
            assert!(class != "mcp/response" || refers);
            assert!(class != "mcp/proposal" || !refers);
            // What a receiver makes of it rests on the payload alone.
            let held = participant::check(&envelope);
            let method = reference["payload"]["method"].as_str();
            assert!(held.is_err() || class != "mcp/request" || method == envelope.kind().method());
        }
        Err(refused) => {
            let text = refused.why.to_string();
            assert!(!text.is_empty() && text.len() <= 1000, "{text}");
            if let Some(id) = refused.id {
                assert_eq!(reference["id"], id);
            }
        }
    }
}

/// Lines by turns from a client of MEW and from a room. A translated line is an envelope whose kind fits its payload,
/// and comes back unchanged; a room's message becomes a message of MEW, or nothing.
pub(super) fn mew(data: &[u8]) {
    const MOST: usize = 1 << 16;
    let mut translator = Translator::default();
    for (place, line) in data.split(|b| *b == b'\n').enumerate() {
        // Neither panics.
        drop(Join::read(line));
        if let (Some(pattern), Ok(text)) = (pattern_of(line), std::str::from_utf8(line)) {
            assert!(Pattern::new(&pattern).is_err() || serde_json::from_str::<Value>(&object_of(&pattern)).is_ok(), "{text}: {pattern}");
        }
        if place % 2 == 1 {
            translated(translator.outward(line));
            continue;
        }
        let Ok(Inward::Envelope(mcpx)) = translator.inward(line, MOST) else { continue };
        let Ok(envelope) = Envelope::decode(&mcpx, usize::MAX) else { continue };
        let class = envelope.kind().class();
        if matches!(class, "mcp/request" | "mcp/proposal") {
            assert_eq!(participant::check(&envelope), Ok(()), "its kind comes from its payload");
            assert!(envelope.kind().method().is_some());
        }
        let Some(again) = translated(translator.outward(&mcpx)) else { continue };
        let (Ok(said), Ok(back)) = (serde_json::from_slice::<Value>(line), serde_json::from_slice::<Value>(&again)) else { continue };
        for member in ["id", "from", "to", "kind", "ts", "context"] {
            assert_eq!(said.get(member), back.get(member), "{member}");
        }
        let ids = |message: &Value| message["correlation_id"].as_array().cloned().unwrap_or_default();
        assert_eq!(ids(&said), ids(&back));
    }
}

/// Gives the written envelope, after reading it with another reader.
fn translated(outward: Outward) -> Option<bytes::Bytes> {
    let Outward::Envelope(bytes) = outward else { return None };
    let text = std::str::from_utf8(&bytes).unwrap_or_else(|error| panic!("{error}"));
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        assert_eq!(value["protocol"], "mew/v0.4");
    }
    Some(bytes)
}

/// A pattern, a line end, and a kind. Nothing reserved is covered; a pattern covers itself, and no less with a star behind it.
pub(super) fn capability(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (pattern, kind) = text.split_once('\n').unwrap_or((&text, ""));
    let (Ok(known), kind) = (Pattern::new(pattern), Kind::new(kind)) else { return };
    let covers = |pattern: &Pattern, kind| Capabilities::new([pattern.clone()]).is_ok_and(|set| set.cover(kind));
    let covered = covers(&known, kind);
    assert!(!covered || !kind.is_reserved(), "{pattern} covers {}", kind.as_str());
    assert!(covers(&known, Kind::new(pattern)), "{pattern} does not cover itself");
    if let Ok(wider) = Pattern::new(&format!("{pattern}*"))
        && !pattern.ends_with('*')
    {
        assert!(!covered || covers(&wider, kind), "{pattern}* does not cover {}", kind.as_str());
    }
    if !pattern.contains('*') {
        assert_eq!(covered, pattern == kind.as_str() || (pattern.matches(':').count() == 1 && pattern == kind.without_context()));
    }
    let parts = [kind.class(), kind.method().unwrap_or_default(), kind.context().unwrap_or_default()];
    let colons = usize::from(kind.method().is_some()) + usize::from(kind.context().is_some());
    assert_eq!(parts.iter().map(|part| part.len()).sum::<usize>() + colons, kind.as_str().len());
}

/// Frames in pieces give the same messages as the whole, and hold no more than has come. The first byte is the length of the pieces, and
/// chooses the reading end.
pub(super) fn websocket(data: &[u8]) {
    const MOST: usize = 1 << 10;
    let [choice, frames @ ..] = data else { return };
    let end = if choice & 1 == 0 { End::Server } else { End::Client };
    let read = |piece: usize| -> Result<Vec<WebSocketEvent>, WebSocketError> {
        let mut reader = Reader::new(end, MOST);
        let mut all = Vec::new();
        for piece in frames.chunks(piece.max(1)) {
            reader.handle_bytes(piece);
            while let Some(received) = reader.poll()? {
                assert!(!matches!(all.last(), Some(WebSocketEvent::Close(..))), "something comes behind the end");
                all.push(received);
            }
            assert!(reader.held() <= frames.len());
        }
        Ok(all)
    };
    let whole = read(frames.len());
    assert_eq!(read(usize::from(*choice)), whole);
    for received in whole.iter().flatten() {
        match received {
            WebSocketEvent::Text(text) => assert!(text.len() <= MOST && std::str::from_utf8(text).is_ok()),
            WebSocketEvent::Ping(payload) | WebSocketEvent::Pong(payload) => assert!(payload.len() <= 125),
            WebSocketEvent::Close(code, reason) => assert!(reason.len() <= 123 && code.is_none_or(|code| code >= 1000)),
        }
    }
}
