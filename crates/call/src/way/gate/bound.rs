//! Parts of a request that an approval binds: every member that goes out. Only the id of the request, the progress token and the trace
//! context may differ when the call is made again. Does not know the people who agree.

use mcp_proto::era::key;
use mcp_proto::json::{Members, Object};
use mcp_proto::splice::{self, Change};
use mesh_proto::route_cursor::{CURSOR, ROUTE};
use policy::approval::{Call, NotCanonical, canonical};
use sha2::{Digest, Sha256};

use telemetry::trace_context::TraceContext;

/// Members of `_meta` that may differ each time.
const FREE: [&str; 3] = ["progressToken", "traceparent", "tracestate"];
/// Members of `_meta` by which gates find the way; they lead to the named tool, or are refused.
const WAY: [&str; 2] = [CURSOR, ROUTE];
/// Members of `_meta` by which a stateless request describes its client.
const CLIENT: [&str; 4] = [key::PROTOCOL_VERSION, key::CLIENT_CAPABILITIES, key::CLIENT_INFO, key::LOG_LEVEL];
/// Members of a request that comes back with input.
const ROUND: [&str; 2] = ["inputResponses", "requestState"];

/// Members of a request, in canonical form.
#[derive(Debug, PartialEq, Eq)]
pub struct Bound {
    /// Arguments of a tool; of any other request, all its params.
    pub arguments: String,
    /// Other members; empty if none.
    pub others: String,
    /// Description of the client in the request, in canonical form; empty if none.
    pub client: String,
}

impl Bound {
    /// Reads the members of `params`. A tool called without arguments is called with `{}`.
    ///
    /// # Errors
    /// If the params have no canonical form.
    pub fn of_params(params: &Object, is_call: bool) -> Result<Self, NotCanonical> {
        let (meta, client) = meta(params)?;
        let named = if is_call { &["name", "arguments"][..] } else { &[] };
        let arguments = if is_call {
            canonical(params.get("arguments").as_deref().unwrap_or(b"{}"))?
        } else {
            canonical(&splice::edit(params, &[("_meta", Change::Remove)]))?
        };
        let others = if is_call {
            let mut changes: Vec<(&str, Change<'_>)> = named.iter().map(|name| (*name, Change::Remove)).collect();
            changes.push(("_meta", meta.as_deref().map_or(Change::Remove, Change::Set)));
            canonical(&splice::edit(params, &changes))?
        } else {
            let meta = meta.map_or_else(Vec::new, |meta| [b"\"_meta\":", &meta[..]].concat());
            canonical(&[b"{", &meta[..], b"}"].concat())?
        };
        Ok(Self { arguments, others: if others == "{}" { String::new() } else { others }, client })
    }
}

/// Params exactly as people were shown them, since a server may see two values in two texts of the same value. Free members stay if
/// well-formed.
pub fn as_shown(params: &Object, call: &Call, is_call: bool) -> Object {
    let (shown, beside) = if is_call {
        (vec![("arguments".to_owned(), call.arguments.clone())], members_of(&call.others))
    } else {
        (members_of(&call.arguments), members_of(&call.others))
    };
    let meta = params.meta().map(|members| {
        let shown = beside.iter().find(|(name, _)| name == "_meta").map(|(_, raw)| members_of(raw)).unwrap_or_default();
        let mut changes = set(&shown);
        if TraceContext::of_meta(&members).is_none() {
            changes.extend(["traceparent", "tracestate"].map(|name| (name, Change::Remove)));
        }
        if members.get("progressToken").is_some_and(|raw| !matches!(raw.first(), Some(b'"' | b'-' | b'0'..=b'9'))) {
            changes.push(("progressToken", Change::Remove));
        }
        splice::edit(&params.get("_meta").unwrap_or_default(), &changes)
    });
    let beside: Vec<(String, String)> = beside.into_iter().filter(|(name, _)| meta.is_none() || name != "_meta").collect();
    let mut changes = set(&shown);
    changes.extend(set(&beside));
    changes.extend(meta.as_deref().map(|meta| ("_meta", Change::Set(meta))));
    splice::edit(params, &changes).into()
}

/// Members of an object in canonical form, as written.
fn members_of(canonical: &str) -> Vec<(String, String)> {
    let members = Members::again(canonical.as_bytes());
    members.iter().map(|(name, raw)| (name.into_owned(), String::from_utf8_lossy(raw).into_owned())).collect()
}

fn set(members: &[(String, String)]) -> Vec<(&str, Change<'_>)> {
    members.iter().map(|(name, raw)| (name.as_str(), Change::Set(raw.as_bytes()))).collect()
}

/// Part of `_meta` bound and shown among other members, and the part that describes the client. Members between gates are shown as well:
/// anybody who claims to be a gate has them go out to the gates below.
fn meta(params: &Object) -> Result<(Option<Vec<u8>>, String), NotCanonical> {
    let Some(raw) = params.get("_meta") else { return Ok((None, String::new())) };
    let Some(members) = params.meta() else { return Ok((Some(raw.to_vec()), String::new())) };
    let is_of = |all: &[&str], name: &str| all.contains(&name);
    let removed = |gone: &dyn Fn(&str) -> bool| {
        let names: Vec<String> = members.iter().map(|(name, _)| name.into_owned()).filter(|name| gone(name)).collect();
        let changes: Vec<(&str, Change<'_>)> = names.iter().map(|name| (name.as_str(), Change::Remove)).collect();
        splice::edit(&raw, &changes)
    };
    let shown = removed(&|name| is_of(&FREE, name) || is_of(&CLIENT, name) || is_of(&WAY, name));
    let client = removed(&|name| !is_of(&CLIENT, name));
    let client = if Members::again(&client).is_empty() { String::new() } else { canonical(&client)? };
    Ok(((!Members::again(&shown).is_empty()).then_some(shown), client))
}

/// Digest of the state with which a request comes back, or is to.
pub fn state(raw: Option<&[u8]>) -> [u8; 32] {
    let raw = raw.unwrap_or_default();
    canonical(raw).map_or_else(|_| Sha256::digest(raw), Sha256::digest).into()
}

/// Original request and digest of its state, for a request that comes back with input.
pub fn round(params: &Object) -> Option<(Object, [u8; 32])> {
    let members = params.members();
    ROUND.iter().any(|name| members.has(name)).then(|| (without_state(params), state(members.get("requestState"))))
}

/// Params as they were before any question.
pub fn without_state(params: &Object) -> Object {
    splice::edit(params, &ROUND.map(|name| (name, Change::Remove))).into()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;

    /// Makes the call of a server as people are shown it.
    fn call(params: &Value, is_call: bool, server: &str) -> Call {
        let params = Bytes::from(params.to_string()).into();
        let Bound { arguments, others, client } = Bound::of_params(&params, is_call).unwrap();
        Call { arguments, others, client, server: server.into(), ..Call::default() }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-z\\PC]{0,6}".prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-z]{0,4}", inner, 0..3).prop_map(|all| Value::Object(all.into_iter().collect())),
            ]
        })
    }

    fn name() -> impl Strategy<Value = String> {
        prop_oneof![
            prop::sample::select(["task", "inputResponses", "requestState", "x", "vendor/y", ""].map(str::to_owned).to_vec()),
            "[a-zA-Z]{1,6}",
        ]
    }

    fn object(most: usize) -> impl Strategy<Value = Map<String, Value>> {
        prop::collection::btree_map(name(), value(), 0..most).prop_map(|all| all.into_iter().collect())
    }

    fn params() -> impl Strategy<Value = Value> {
        (object(4), prop::option::of(object(3)), prop::option::of(object(3)), any::<bool>()).prop_map(|(mut all, arguments, meta, says)| {
            all.insert("name".into(), json!("t"));
            all.extend(arguments.map(|arguments| ("arguments".to_owned(), Value::Object(arguments))));
            let mut meta = meta.unwrap_or_default();
            if says {
                meta.insert(key::CLIENT_INFO.into(), json!({"name": "c"}));
            }
            all.insert("_meta".into(), Value::Object(meta));
            Value::Object(all)
        })
    }

    proptest! {
        #[test]
        fn h4_any_changed_member_makes_another_call(
            params in params(), name in name(), other in value(), is_in_meta: bool, is_call: bool, at in 0usize..8,
        ) {
            let before = call(&params, is_call, "s");
            let all = if is_in_meta { &params["_meta"] } else { &params }.as_object().unwrap();
            let names: Vec<String> = all.keys().filter(|key| !["_meta", "name"].contains(&key.as_str())).cloned().collect();
            let gone = names.get(at % names.len().max(1)).cloned();
            let with = |inside: Map<String, Value>| {
                let mut changed = params.clone();
                if is_in_meta { changed["_meta"] = Value::Object(inside) } else { changed = Value::Object(inside) }
                changed
            };
            let mut put = all.clone();
            if put.insert(name.clone(), other.clone()) != Some(other) && name != "_meta" && name != "name" {
                prop_assert!(before.difference(&call(&with(put), is_call, "s")).is_some(), "{name} was put in or changed");
            }
            if let Some(gone) = gone {
                let mut less = all.clone();
                let was = less.remove(&gone);
                let is_same = is_call && !is_in_meta && gone == "arguments" && was == Some(json!({}));
                prop_assert_eq!(before.difference(&call(&with(less), is_call, "s")).is_none(), is_same, "{} was taken out", gone);
            }
            prop_assert_eq!(before.difference(&call(&params, is_call, "s2")), Some("server"));
        }

        #[test]
        fn h4_only_progress_token_and_trace_may_differ(params in params(), token in value(), is_call: bool) {
            let before = call(&params, is_call, "s");
            let mut again = params;
            for free in FREE {
                again["_meta"][free] = token.clone();
            }
            prop_assert_eq!(before.difference(&call(&again, is_call, "s")), None);
            let bare = Bytes::from(again.to_string()).into();
            prop_assert_eq!(round(&bare).is_some(), again.get("inputResponses").is_some() || again.get("requestState").is_some());
        }
    }

    #[test]
    fn h4_members_between_gates_are_shown_and_bound() {
        let with = |meta: Value| call(&json!({"name": "t", "_meta": meta}), true, "s");
        let plain = with(json!({"x-mcpax-cursor": 0, "x-mcpax-route": ["s", "t"]}));
        assert_eq!(plain.others, "");
        let more = with(json!({"x-mcpax-cursor": 1, "x-mcpax-account": "another"}));
        assert_eq!((more.others.as_str(), plain.difference(&more).is_some()), (r#"{"_meta":{"x-mcpax-account":"another"}}"#, true));
    }

    #[test]
    fn h4_a_plain_call_has_nothing_but_its_arguments() {
        let meta = json!({"progressToken": 1, key::CLIENT_INFO: {"name": "c"}, "x-mcpax-cursor": 0});
        let plain = call(&json!({"name": "t", "arguments": {"b": 1, "a": 2}, "_meta": meta}), true, "s");
        assert_eq!((plain.arguments.as_str(), plain.others.as_str()), (r#"{"a":2,"b":1}"#, ""));
        let other = call(&json!({"taskId": "t", "_meta": {"progressToken": 1, "vendor/x": true}}), false, "s");
        assert_eq!((other.arguments.as_str(), other.others.as_str()), (r#"{"taskId":"t"}"#, r#"{"_meta":{"vendor/x":true}}"#));
    }
}
