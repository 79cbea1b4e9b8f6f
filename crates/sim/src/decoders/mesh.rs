//! Checks for messages between nodes of a tree, and for annotations of tools. Nothing about the machines that use them.

use banyan_model::{QualifiedName, Segment};
use mcp_proto::mcpax::{self, Peer};
use mesh_proto::annotation::{Annotation, Transport};
use mesh_proto::message::{HeartbeatAnswer, Method, ParentAnswer, ReceivedRefusal, RegistrationResult, Request};
use mesh_proto::parent::Claim;
use mesh_proto::relay;
use mesh_proto::route_cursor::Hop;

/// A readable request survives writing and reading, and so do answers; the data of a refusal is JSON.
pub(super) fn messages(data: &[u8]) {
    for method in Method::ALL {
        match Request::decode(method.as_str(), data) {
            Ok(request) => {
                let (written, params) = request.encode();
                assert_eq!(method, written);
                assert_eq!(Request::decode(method.as_str(), params.as_bytes()), Ok(request));
            }
            Err(refusal) => {
                let error = refusal.error();
                assert!(serde_json::from_str::<serde_json::Value>(&error.data).is_ok_and(|data| data["reason"] == error.message));
            }
        }
    }
    if let Ok(result) = RegistrationResult::decode(data) {
        assert_eq!(RegistrationResult::decode(result.encode().as_bytes()), Ok(result));
    }
    if let Ok(result) = HeartbeatAnswer::decode(data) {
        assert_eq!(HeartbeatAnswer::decode(result.encode().as_bytes()), Ok(result));
    }
    if let Ok(result) = ParentAnswer::decode(data) {
        assert_eq!(ParentAnswer::decode(result.encode().as_bytes()), Ok(result));
    }
    let refused = ReceivedRefusal::decode(data);
    assert!(refused.reason.chars().count() <= 200 && refused.hint.chars().count() <= 1000);
}

/// Additions to a definition are legal JSON, and make it read the same one hop further up.
pub(super) fn annotation(data: &[u8]) {
    let here = Annotation::of_tool(data, &Transport::default());
    let Ok(serde_json::Value::Object(mut tool)) = serde_json::from_slice(data) else { return };
    let meta = tool.entry("_meta").or_insert_with(|| serde_json::json!({}));
    let Some(meta) = meta.as_object_mut() else { return };
    for (key, raw) in here.additions(false) {
        meta.insert(key.to_owned(), serde_json::from_str(&raw).unwrap_or_default());
    }
    let above = Annotation::of_tool(serde_json::Value::Object(tool).to_string().as_bytes(), &Transport::default());
    assert_eq!((above.mutable, above.reversible, above.idempotent), (here.mutable, here.reversible, here.idempotent));
    assert_eq!((above.latency_class, above.auth_scope, above.cost_class), (here.latency_class, here.auth_scope, here.cost_class));
    assert_eq!(above.hops, here.hops.saturating_add(1));
}

/// A route, a line end, and a cursor.
pub(super) fn route(data: &[u8]) {
    let mut parts = data.splitn(2, |b| *b == b'\n');
    let (route, cursor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    if let Ok(hop) = Hop::read(route, cursor) {
        let next = hop.next_cursor().map(|next| Hop::read(route, next.as_bytes()).map(|hop| hop.remaining()));
        assert_eq!(next, (!hop.is_last()).then(|| Ok(hop.remaining() - 1)));
        assert!(!hop.is_last() || hop.segment() == hop.tool());
    }
}

/// A claim read from a store survives writing and reading.
pub(super) fn claim(data: &[u8]) {
    if let Ok(claim) = Claim::decode(data) {
        assert_eq!(Claim::decode(claim.encode().as_bytes()), Ok(claim));
    }
}

/// A capability object, a line end, and a list of ids: a gate found there declares itself so that others find it too.
pub(super) fn gate(data: &[u8]) {
    let mut parts = data.splitn(2, |b| *b == b'\n');
    let (capabilities, ids) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    if let Peer::Gate(id) = mcpax::peer(capabilities) {
        assert_eq!(mcpax::peer(&mcpax::declared(capabilities, &id)), Peer::Gate(id));
    }
    let ids = mcpax::read_ids(ids);
    assert_eq!(mcpax::read_ids(mcpax::write_ids(ids.iter().map(String::as_str)).as_bytes()), ids);
}

/// The source of a notification as told to the next gate: a legal name that begins with the forwarding child, or nothing.
pub(super) fn source(data: &[u8]) {
    let (text, from) = (String::from_utf8_lossy(data), Segment::nearest("edge"));
    if let Some(source) = relay::source(&from, Some(&text)) {
        assert!(source.len() <= QualifiedName::MAX && source.strip_prefix("edge.") == Some(&*text), "{source}");
        assert!(source.split('.').all(|part| Segment::new(part).is_ok()), "{source}");
    }
}
