//! What only gates say to each other in a request's `_meta`: put in for another gate, taken out before any other server (AX-32).

use banyan_model::Era;
use mcp_proto::era::key;
use mcp_proto::json::{Members, Object};
use mcp_proto::mcpax::PREFIX;
use mcp_proto::splice::{self, Change};

use crate::node::Node;
use crate::tree::Branch;

/// The params, already those of `era`, as the server of `branch` may see them.
pub(crate) fn params(params: Object, branch: &Branch, era: Era) -> Object {
    if branch.is_gate && era == Era::Stateless {
        return for_gate(&params, &branch.mount.gateway.node);
    }
    without(params)
}

/// A gate is shown that a gate asks, by every single request: it shows a gate other names than it shows the client behind it.
fn for_gate(params: &Object, node: &Node) -> Object {
    let raw = params.get("_meta");
    let meta = Members::again(raw.as_deref().unwrap_or(b"{}"));
    let identity = node.with(meta.get(key::CLIENT_CAPABILITIES).unwrap_or(b"{}"));
    let mut changes = between_gates(&meta);
    changes.push((key::CLIENT_CAPABILITIES.into(), Change::Set(&identity.capabilities)));
    changes.push((key::CLIENT_INFO.into(), Change::Set(&identity.info)));
    changed(params, raw.as_deref().unwrap_or(b"{}"), &changes)
}

fn without(params: Object) -> Object {
    let Some(meta) = params.meta() else { return params };
    let changes = between_gates(&meta);
    match params.get("_meta") {
        Some(raw) if !changes.is_empty() => changed(&params, &raw, &changes),
        _ => params,
    }
}

fn between_gates(meta: &Members<'_>) -> Vec<(String, Change<'static>)> {
    meta.beginning_with(PREFIX).map(|key| (key.into_owned(), Change::Remove)).collect()
}

fn changed(params: &Object, meta: &[u8], changes: &[(String, Change<'_>)]) -> Object {
    let changes: Vec<(&str, Change<'_>)> = changes.iter().map(|(key, change)| (key.as_str(), *change)).collect();
    let meta = splice::edit(meta, &changes);
    let change = if Members::again(&meta).is_empty() { Change::Remove } else { Change::Set(&meta) };
    splice::edit(params, &[("_meta", change)]).into()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use mcp_proto::mcpax::{Peer, peer};

    use super::*;

    fn object(text: &'static str) -> Object {
        Bytes::from_static(text.as_bytes()).into()
    }

    #[test]
    fn ax_32_what_is_between_gates_leaves_and_every_other_byte_stays() {
        let meta = |inner: &str| object(Box::leak(format!(r#"{{ "name":"x","_meta":{inner},"n":1.0 }}"#).into_boxed_str()));
        let stripped = without(meta(r#"{"x-mcpax-route":["a"],"progressToken":1, "x-mcpax-cursor" : 0,"\u0078-mcpax-hops":2}"#));
        assert_eq!(&stripped[..], br#"{ "name":"x","_meta":{"progressToken":1},"n":1.0 }"#);
        assert_eq!(&without(meta(r#"{"x-mcpax-cursor":0}"#))[..], br#"{ "name":"x","n":1.0 }"#);
        for same in [meta(r#"{"progressToken":1,"y-mcpax-":2}"#), meta("{}"), meta("7"), object(r#"{"name":"x-mcpax-route"}"#)] {
            assert_eq!(without(same.clone()), same);
        }
    }

    #[test]
    fn another_gate_is_told_that_a_gate_asks_for_a_client_that_can_do_this() {
        let node = Node::new();
        let text = r#"{"name":"x","_meta":{"io.modelcontextprotocol/clientInfo":{"name":"c"},"io.modelcontextprotocol/clientCapabilities":{"sampling":{}},"x-mcpax-hops":1}}"#;
        let params = for_gate(&object(text), &node);
        let meta = params.meta().unwrap();
        assert_eq!(meta.get(key::CLIENT_INFO), Some(&Node::info()[..]));
        let capabilities = meta.get(key::CLIENT_CAPABILITIES).unwrap();
        assert!(mcp_proto::era::declares(capabilities, "sampling"));
        assert_eq!((peer(capabilities), meta.has("x-mcpax-hops")), (Peer::Gate(node.id.to_string()), false));
    }
}
