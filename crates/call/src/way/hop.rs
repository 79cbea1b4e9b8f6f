//! Members of `_meta` between gates: added for another gate, removed before any other server (AX-32). Does not spell routes; `mesh-proto`
//! does.

use std::borrow::Cow;

use banyan_model::Era;
use bytes::Bytes;
use mcp_proto::era::key;
use mcp_proto::json::{Members, Object};
use mcp_proto::projection::local_routes;
use mcp_proto::splice::{self, Change};
use mesh_proto::refusal::Refusal;
use mesh_proto::route_cursor::{CURSOR, Hop, PREFIX, ROUTE, write_route};

use crate::tree::caller::Caller;
use crate::tree::catalog::Offer;
use crate::tree::snapshot::Branch;
use crate::way::adapt;
use crate::words::node::Node;

/// Rest of the way to a tool below another gate: the raw values for `_meta` (AX-30).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Onward {
    route: Bytes,
    cursor: String,
}

/// Route of a call from another gate: the only word on the tool meant, whatever name stands beside the route (MCP-AX 7.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// Path from here to the tool: its name among the names for gates.
    pub path: String,
    route: Bytes,
    cursor: String,
    /// Cursor behind the current segment; `None` at the tool.
    moved: Option<String>,
}

impl Arrival {
    /// Reads the route of a call of `caller`; `None` from anybody but a gate, and without a route.
    ///
    /// # Errors
    /// If the route or its cursor can't be read.
    pub fn of_call(caller: &Caller, params: &Object) -> Result<Option<Self>, Refusal> {
        if caller.scope.is_for_gate() { Self::of_params(params) } else { Ok(None) }
    }

    fn of_params(params: &Object) -> Result<Option<Self>, Refusal> {
        let Some(meta) = params.meta() else { return Ok(None) };
        let (Some(route), Some(cursor)) = (meta.get(ROUTE), meta.get(CURSOR)) else { return Ok(None) };
        let hop = Hop::read(route, cursor)?;
        let cursor = String::from_utf8_lossy(cursor).into_owned();
        Ok(Some(Self { path: hop.path(), route: params.slice_ref(route), cursor, moved: hop.next_cursor() }))
    }

    /// Route for the next gate. On the endpoint of a single mount, the mount itself is not on the way, and the cursor stays.
    fn onward(&self, caller: &Caller) -> Option<Onward> {
        let cursor = if caller.scope.mount.is_none() { self.moved.clone() } else { Some(self.cursor.clone()) };
        cursor.map(|cursor| Onward { route: self.route.clone(), cursor })
    }
}

/// Way on for a call of `offer`, which stands below `branch`; `None` if its server routes nothing.
pub fn onward(caller: &Caller, branch: &Branch, offer: &Offer, arrival: Option<&Arrival>) -> Option<Onward> {
    if !branch.routes() {
        return None;
    }
    let is_renamed = *offer.name != *offer.entry.key;
    let own = if is_renamed { Cow::Owned(local_routes(&[&offer.entry.key]).swap_remove(0)) } else { Cow::Borrowed(&*offer.local) };
    // A name that the gate below does not spell as a path has no route, but still leads there. A route could lead to another tool.
    if own.to_string() != offer.entry.key {
        return None;
    }
    if let Some(arrived) = arrival.filter(|_| !is_renamed).and_then(|arrival| arrival.onward(caller)) {
        return Some(arrived);
    }
    Some(Onward { route: write_route(std::iter::once(&branch.mount.config.name).chain(&own.0)).into(), cursor: "1".into() })
}

/// Params of `caller` for the server of `branch`, which speaks `era`.
pub fn params<'a>(params: &'a Object, caller: &Caller, branch: &Branch, era: Era, onward: Option<&Onward>) -> Cow<'a, Object> {
    if !branch.is_gate() {
        // In this order, since the caller's own params know the places of their members.
        return match routed(params, onward) {
            None => adapt::params(params, caller, era),
            Some(params) => Cow::Owned(adapt::params(&params, caller, era).into_owned()),
        };
    }
    Cow::Owned(for_gate(&adapt::params(params, caller, era), &branch.mount.gate.node, caller.scope.is_for_gate(), era, onward))
}

/// Marks every request as a gate's, since a gate shows other names to gates than to clients. Members from another gate travel on; the same
/// members from a client do not.
fn for_gate(params: &Object, node: &Node, is_from_gate: bool, era: Era, onward: Option<&Onward>) -> Object {
    let raw = params.get("_meta");
    let raw = raw.as_deref().unwrap_or(b"{}");
    let meta = Members::again(raw);
    let is_set = |key: &str| onward.is_some() && (key == ROUTE || key == CURSOR);
    let mut changes = between_gates(&meta);
    changes.retain(|(key, _)| !is_from_gate || (onward.is_none() && (key == ROUTE || key == CURSOR)));
    changes.retain(|(key, _)| !is_set(key));
    if let Some(onward) = onward {
        changes.push((ROUTE.into(), Change::Set(&onward.route)));
        changes.push((CURSOR.into(), Change::Set(onward.cursor.as_bytes())));
    }
    if era == Era::Initialize {
        return changed(params, raw, &changes);
    }
    let identity = node.with(meta.get(key::CLIENT_CAPABILITIES).unwrap_or(b"{}"));
    changes.push((key::CLIENT_CAPABILITIES.into(), Change::Set(&identity.capabilities)));
    changes.push((key::CLIENT_INFO.into(), Change::Set(&identity.info)));
    changed(params, raw, &changes)
}

/// Removes the members between gates, but for the way on to an aggregator that does not name our extension; `None`: nothing to change.
fn routed(params: &Object, onward: Option<&Onward>) -> Option<Object> {
    let meta = params.meta().unwrap_or_default();
    let mut changes = between_gates(&meta);
    if let Some(onward) = onward {
        changes.retain(|(key, _)| key != ROUTE && key != CURSOR);
        changes.push((ROUTE.into(), Change::Set(&onward.route)));
        changes.push((CURSOR.into(), Change::Set(onward.cursor.as_bytes())));
    }
    if changes.is_empty() {
        return None;
    }
    Some(changed(params, params.get("_meta").as_deref().unwrap_or(b"{}"), &changes))
}

fn between_gates(meta: &Members<'_>) -> Vec<(Cow<'static, str>, Change<'static>)> {
    meta.beginning_with(PREFIX).map(|key| (key.into_owned().into(), Change::Remove)).collect()
}

fn changed(params: &Object, meta: &[u8], changes: &[(Cow<'static, str>, Change<'_>)]) -> Object {
    if changes.is_empty() {
        return params.clone();
    }
    let changes: Vec<(&str, Change<'_>)> = changes.iter().map(|(key, change)| (&**key, *change)).collect();
    let meta = splice::edit(meta, &changes);
    let change = if Members::again(&meta).is_empty() { Change::Remove } else { Change::Set(&meta) };
    splice::edit(params, &[("_meta", change)]).into()
}

#[cfg(test)]
mod tests {
    use mcp_proto::mcpax::{Peer, peer};

    use super::*;

    fn object(text: &'static str) -> Object {
        Bytes::from_static(text.as_bytes()).into()
    }

    #[test]
    fn ax_32_only_members_between_gates_are_removed() {
        let meta = |inner: &str| object(Box::leak(format!(r#"{{ "name":"x","_meta":{inner},"n":1.0 }}"#).into_boxed_str()));
        let forged = meta(r#"{"x-mcpax-route":["a"],"progressToken":1, "x-mcpax-cursor" : 0,"\u0078-mcpax-hops":2}"#);
        assert_eq!(&routed(&forged, None).unwrap()[..], br#"{ "name":"x","_meta":{"progressToken":1},"n":1.0 }"#);
        assert_eq!(&routed(&meta(r#"{"x-mcpax-cursor":0}"#), None).unwrap()[..], br#"{ "name":"x","n":1.0 }"#);
        for same in [meta(r#"{"progressToken":1,"y-mcpax-":2}"#), meta("{}"), meta("7"), object(r#"{"name":"x-mcpax-route"}"#)] {
            assert_eq!(routed(&same, None), None);
        }
        // An aggregator that does not name the extension gets the way on, and nothing else.
        let onward = Onward { route: Bytes::from_static(br#"["m","a"]"#), cursor: "1".into() };
        let sent = routed(&forged, Some(&onward)).unwrap();
        let meta = sent.meta().unwrap();
        assert_eq!((meta.get(ROUTE), meta.get(CURSOR)), (Some(&br#"["m","a"]"#[..]), Some(&b"1"[..])));
        assert_eq!((meta.has("progressToken"), meta.has("x-mcpax-hops")), (true, false));
        let bare = routed(&object(r#"{"name":"x"}"#), Some(&onward)).unwrap();
        assert_eq!(&bare[..], br#"{"name":"x","_meta":{"x-mcpax-route":["m","a"],"x-mcpax-cursor":1}}"#);
    }

    #[test]
    fn another_gate_sees_a_gate_with_the_clients_capabilities() {
        let node = Node::with_id("11111111-1111-4111-8111-111111111111".into(), None);
        let text = r#"{"name":"x","_meta":{"io.modelcontextprotocol/clientInfo":{"name":"c"},"io.modelcontextprotocol/clientCapabilities":{"sampling":{}},"x-mcpax-hops":1}}"#;
        let params = for_gate(&object(text), &node, false, Era::Stateless, None);
        let meta = params.meta().unwrap();
        assert_eq!(meta.get(key::CLIENT_INFO), Some(&Node::info()[..]));
        let capabilities = meta.get(key::CLIENT_CAPABILITIES).unwrap();
        assert!(mcp_proto::era::declares(capabilities, "sampling"));
        assert_eq!((peer(capabilities), meta.has("x-mcpax-hops")), (Peer::Gate(node.id.to_string()), false));
    }

    #[test]
    fn ax_30_only_routes_of_gates_go_on() {
        let node = Node::with_id("11111111-1111-4111-8111-111111111111".into(), None);
        let text = r#"{"name":"x","_meta":{"x-mcpax-route":["a","b"],"x-mcpax-cursor":0,"x-mcpax-event-id":"e"}}"#;
        let onward = Onward { route: Bytes::from_static(br#"["m","a","b"]"#), cursor: "1".into() };
        let sent = |is_from_gate, onward| {
            String::from_utf8_lossy(&for_gate(&object(text), &node, is_from_gate, Era::Initialize, onward)).into_owned()
        };
        assert_eq!(sent(false, None), r#"{"name":"x"}"#);
        assert_eq!(sent(false, Some(&onward)), r#"{"name":"x","_meta":{"x-mcpax-route":["m","a","b"],"x-mcpax-cursor":1}}"#);
        let event = r#""x-mcpax-event-id":"e""#;
        assert_eq!(
            sent(true, Some(&onward)),
            format!(r#"{{"name":"x","_meta":{{"x-mcpax-route":["m","a","b"],"x-mcpax-cursor":1,{event}}}}}"#)
        );
        assert_eq!(sent(true, None), format!(r#"{{"name":"x","_meta":{{{event}}}}}"#));
    }

    #[test]
    fn ax_30_a_route_that_came_moves_on() {
        let at = |route: &str, cursor: &str| {
            let params = format!(r#"{{"name":"any","_meta":{{"x-mcpax-cursor":{cursor},"x-mcpax-route":{route}}}}}"#);
            Arrival::of_params(&Bytes::from(params).into())
        };
        let route = r#"["infra", "edge","stm","dma"]"#;
        let arrival = at(route, "1").unwrap().unwrap();
        assert_eq!((&*arrival.path, &*arrival.route), ("edge.stm.dma", route.as_bytes()));
        assert_eq!((&*arrival.cursor, arrival.moved.as_deref()), ("1", Some("2")));
        assert_eq!(at(route, "3").unwrap().unwrap().moved, None);
        for (route, cursor) in [("7", "0"), (route, "9"), (route, "-1"), (r#"["edge","a.b"]"#, "0")] {
            assert!(matches!(at(route, cursor), Err(Refusal::RouteInvalid { .. })), "{route} {cursor}");
        }
        assert_eq!(Arrival::of_params(&Object::empty()), Ok(None));
    }
}
