//! Facts about a call that this gate tells a server of ours: the caller, and the members of a group at which that caller may not make the call.
//! A caller's own words under these names never arrive. Does not ask the rules.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use mcp_proto::json::{Members, Object, elements};
use mcp_proto::splice::{self, Change};
use policy::decide::Subject;
use serde::Serialize;
use serde_json::json;

use crate::way::resolve::Resolved;

/// Member of `_meta` about the caller, as this gate knows the caller.
pub const CALLER: &str = "io.banyan/caller";
/// Member of `_meta` with the members of a group that are left out, and why.
pub const REFUSED: &str = "io.banyan/refused";

/// A member of a group at which a call may not be made.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct RefusedMember {
    /// `hidden` from the caller, `denied`, or `gated`: a person has to agree.
    pub reason: &'static str,
    /// Decision that the owner of the gate can ask about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
}

/// Members of `_meta` for a call.
pub fn facts(subject: &Subject, refused: Option<&BTreeMap<String, RefusedMember>>) -> Vec<(&'static str, Vec<u8>)> {
    let Subject { name, kind, groups, roles, scopes: _, client: _ } = subject;
    let caller = json!({ "name": name, "kind": kind.as_str(), "groups": groups, "roles": roles });
    let refused = refused.filter(|refused| !refused.is_empty()).map(|refused| (REFUSED, serde_json::to_vec(refused).unwrap_or_default()));
    [(CALLER, caller.to_string().into_bytes())].into_iter().chain(refused).collect()
}

/// Members that a call names in `argument`, and the params without it: what the call would be at each of them. `None`: all members.
pub fn members_named(params: &Object, argument: &str) -> (Option<BTreeSet<String>>, Vec<u8>) {
    let Some(raw) = params.members().get("arguments") else { return (None, params.to_vec()) };
    let Some(list) = Members::again(raw).get(argument) else { return (None, params.to_vec()) };
    let named = elements(list).map(|all| all.into_iter().filter_map(|one| serde_json::from_slice(one).ok()).collect());
    let arguments = splice::edit(raw, &[(argument, Change::Remove)]);
    (named, splice::edit(params, &[("arguments", Change::Set(&arguments))]))
}

/// Params with the facts for a server that is told who calls, and without a caller's own words under these names for any other: such a
/// server may believe them of another gate. `asked` are the caller's own params: the places of their members are known, and a scan of `params`
/// for each call costs as much as a twentieth of the call.
pub fn add_facts<'a>(params: Cow<'a, Object>, asked: &Object, resolved: &Resolved) -> Cow<'a, Object> {
    if resolved.branch.mount.config.is_told_callers {
        return Cow::Owned(with_facts(&params, &resolved.facts));
    }
    if asked.members().get("_meta").is_some_and(may_claim) { Cow::Owned(with_facts(&params, &[])) } else { params }
}

/// Can a fact stand in this `_meta`, as its name or in escapes?
fn may_claim(raw: &[u8]) -> bool {
    let has = |text: &str| memchr::memmem::find(raw, text.as_bytes()).is_some();
    memchr::memchr(b'\\', raw).is_some() || (has("io.banyan/") && (has(CALLER) || has(REFUSED)))
}

fn with_facts(params: &Object, facts: &[(&'static str, Vec<u8>)]) -> Object {
    let fact = |key| facts.iter().find(|(known, _)| *known == key).map_or(Change::Remove, |(_, raw)| Change::Set(raw));
    let raw = params.get("_meta").filter(|raw| raw.starts_with(b"{"));
    let meta = splice::edit(raw.as_deref().unwrap_or(b"{}"), &[(CALLER, fact(CALLER)), (REFUSED, fact(REFUSED))]);
    splice::edit(params, &[("_meta", Change::Set(&meta))]).into()
}

#[cfg(test)]
mod tests {
    use banyan_model::PrincipalKind;
    use bytes::Bytes;

    use super::*;

    fn object(text: &str) -> Object {
        Bytes::copy_from_slice(text.as_bytes()).into()
    }

    #[test]
    fn nm_12_a_caller_cannot_claim_to_be_another() {
        let subject = Subject {
            name: "ada".into(),
            kind: PrincipalKind::Token,
            groups: ["noc".to_owned()].into(),
            roles: Default::default(),
            scopes: Default::default(),
            client: "x".into(),
        };
        let facts = facts(&subject, None);
        let told = |meta: &str| String::from_utf8(with_facts(&object(&format!(r#"{{"name":"t"{meta}}}"#)), &facts).to_vec()).unwrap();
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        let caller = serde_json::json!({"groups": ["noc"], "kind": "token", "name": "ada", "roles": []});
        assert_eq!(read(&told("")), serde_json::json!({"name": "t", "_meta": {"io.banyan/caller": caller}}));
        let claimed = told(r#","_meta":{"io.banyan/caller":{"name":"root"},"io.banyan/refused":{},"progressToken":1}"#);
        assert!(
            read(&claimed)["_meta"]["io.banyan/caller"] == caller && !claimed.contains("root") && !claimed.contains("refused"),
            "{claimed}"
        );
        let spelt = told(r#","_meta":{"io.banyan\u002fcaller":{"name":"root"}}"#);
        assert!(read(&spelt)["_meta"]["io.banyan/caller"] == caller && !spelt.contains("root"), "{spelt}");
        assert_eq!(read(&told(r#","_meta":7"#)), serde_json::json!({"name": "t", "_meta": {"io.banyan/caller": caller}}));
    }

    #[test]
    fn nm_12_facts_are_found_in_any_spelling() {
        for raw in
            [r#"{"io.banyan/caller":1}"#, r#"{"io.banyan/refused":1}"#, r#"{"io.banyan\/caller":1}"#, r#"{"\u0069o.banyan/caller":1}"#]
        {
            assert!(may_claim(raw.as_bytes()), "{raw}");
            assert_eq!(with_facts(&object(&format!(r#"{{"_meta":{raw}}}"#)), &[]).to_vec(), br#"{"_meta":{}}"#, "{raw}");
        }
        assert!(!may_claim(br#"{"progressToken":1,"io.banyan/other":2}"#));
    }

    #[test]
    fn nm_12_a_call_is_judged_at_members_without_their_names() {
        let of = |text: &str| {
            let (named, params) = members_named(&object(text), "devices");
            (named.map(|named| named.into_iter().collect::<Vec<_>>()), String::from_utf8(params).unwrap())
        };
        let bare = r#"{"name":"t","arguments":{"cmd":"x"}}"#;
        assert_eq!(of(bare), (None, bare.to_owned()));
        let named = of(r#"{"name":"t","arguments":{"cmd":"x","devices":["b","a","a",7]}}"#);
        assert_eq!(named, (Some(vec!["a".to_owned(), "b".to_owned()]), bare.to_owned()));
        // The server refuses what is no list.
        assert_eq!(of(r#"{"name":"t","arguments":{"cmd":"x","devices":"a"}}"#).0, None);
    }
}
