//! Checks for what participants of a room send, and for the patterns that say what they may. Nothing about the room itself.

use room_proto::capability::{Capabilities, Pattern};
use room_proto::envelope::{Envelope, PROTOCOL};
use room_proto::kind::Kind;
use serde_json::Value;

/// An envelope that is read says what another reader finds in it; one that is refused is told why, and by its own id. That reader takes
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

/// A pattern, a line end, and a kind. Nothing that is reserved is covered; a pattern covers itself, and with a star behind it no less.
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
