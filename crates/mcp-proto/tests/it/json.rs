//! The scanner and the splice against a reference: trees that are written down with random space and spelling.

use std::borrow::Cow;
use std::collections::BTreeSet;

use bytes::Bytes;
use mcp_proto::envelope::{Answer, EnvelopeError, Message, Poured};
use mcp_proto::json::{self, Duplicates, JsonError, Members, Object};
use mcp_proto::splice::{Change, edit};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::value::RawValue;

/// A document as a tree with leaves spelled already.
#[derive(Clone, Debug)]
enum Tree {
    Leaf(String),
    Array(Vec<(Space, Tree)>),
    Object(Vec<Member>),
}

type Space = [&'static str; 4];

#[derive(Clone, Debug)]
struct Member {
    /// The meaning of the key.
    key: String,
    /// The spelling, without quotes.
    spelled: String,
    value: Tree,
    space: Space,
}

fn space() -> impl Strategy<Value = Space> {
    let one = || prop_oneof![3 => Just(""), 1 => select(vec![" ", "\n", "\t", "\r\n  "])];
    [one(), one(), one(), one()]
}

fn leaf() -> impl Strategy<Value = String> {
    let known = ["null", "true", "false", "0", "-0", "1e5", "1E+2", "1.0", "12345678901234567890123", "-1.50e-3", "1e999", "\"\""];
    prop_oneof![
        select(known.to_vec()).prop_map(str::to_owned),
        any::<String>().prop_map(|text| serde_json::Value::from(text).to_string()),
        r#""(\\u[0-9a-fA-F]{4}|\\[bfnrt/"\\]|[a-z{}\[\],: ]){0,6}""#,
    ]
}

/// Few different keys, so that some are doubled; some of them with an escape.
fn key() -> impl Strategy<Value = (String, String)> {
    let escaped = |c: char| format!("\\u{:04x}", u32::from(c));
    let known = select(vec!["a", "b", "name", "_meta", "", "ä", "a\"b"]);
    (prop_oneof![5 => known.prop_map(str::to_owned), 1 => "[a-z]{1,3}"], any::<bool>()).prop_map(move |(key, escape)| {
        let plain = json::quote(&key);
        let spelled = if escape { key.chars().filter(char::is_ascii).map(escaped).collect() } else { String::new() };
        let whole = escape && key.is_ascii();
        (key, if whole { spelled } else { plain[1..plain.len() - 1].to_owned() })
    })
}

fn member(value: impl Strategy<Value = Tree>) -> impl Strategy<Value = Member> {
    (key(), value, space()).prop_map(|((key, spelled), value, space)| Member { key, spelled, value, space })
}

fn tree() -> impl Strategy<Value = Tree> {
    leaf().prop_map(Tree::Leaf).prop_recursive(5, 40, 6, |inner| {
        prop_oneof![vec((space(), inner.clone()), 0..5).prop_map(Tree::Array), vec(member(inner), 0..5).prop_map(Tree::Object),]
    })
}

fn object() -> impl Strategy<Value = Vec<Member>> {
    vec(member(tree()), 0..6)
}

/// The same members without the second of equal keys.
fn without_duplicates(members: Vec<Member>) -> Vec<Member> {
    let mut seen = BTreeSet::new();
    members.into_iter().filter(|member| seen.insert(member.key.clone())).collect()
}

impl Tree {
    fn write(&self, out: &mut String) {
        match self {
            Self::Leaf(text) => out.push_str(text),
            Self::Array(list) => {
                out.push('[');
                for (at, (space, value)) in list.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    out.push_str(space[0]);
                    value.write(out);
                    out.push_str(space[1]);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (at, member) in members.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    member.write(out);
                }
                out.push('}');
            }
        }
    }

    fn text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn has_duplicates(&self) -> bool {
        match self {
            Self::Leaf(_) => false,
            Self::Array(list) => list.iter().any(|(_, value)| value.has_duplicates()),
            Self::Object(members) => {
                let keys: BTreeSet<&String> = members.iter().map(|member| &member.key).collect();
                keys.len() < members.len() || members.iter().any(|member| member.value.has_duplicates())
            }
        }
    }
}

impl Member {
    fn write(&self, out: &mut String) {
        let [before, after_key, before_value, after] = self.space;
        out.push_str(&format!("{before}\"{}\"{after_key}:{before_value}", self.spelled));
        self.value.write(out);
        out.push_str(after);
    }
}

/// A change of a text's bytes.
#[derive(Clone, Debug)]
enum Damage {
    Cut(Index),
    Insert(Index, u8),
    Replace(Index, u8),
    Twice(Index, Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let byte = || prop_oneof![select(b"{}[]\",:\\u0189-+.eEtfn \n\x00\x1f\x7f\xc3\xa4\xff/".to_vec()), any::<u8>()];
    prop_oneof![
        any::<Index>().prop_map(Damage::Cut),
        (any::<Index>(), byte()).prop_map(|(at, byte)| Damage::Insert(at, byte)),
        (any::<Index>(), byte()).prop_map(|(at, byte)| Damage::Replace(at, byte)),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Damage::Twice(from, to)),
    ]
}

fn damaged(text: &str, list: &[Damage]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for damage in list {
        match damage {
            _ if bytes.is_empty() => break,
            Damage::Cut(at) => _ = bytes.remove(at.index(bytes.len())),
            Damage::Insert(at, byte) => bytes.insert(at.index(bytes.len()), *byte),
            Damage::Replace(at, byte) => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            Damage::Twice(from, to) => {
                let (from, to) = (from.index(bytes.len()), to.index(bytes.len()));
                bytes.extend_from_within(from.min(to)..from.max(to));
            }
        }
    }
    bytes
}

fn is_json(text: &[u8]) -> bool {
    serde_json::from_slice::<&RawValue>(text).is_ok()
}

proptest! {
    #[test]
    fn what_serde_json_accepts_is_accepted_and_nothing_else(tree in tree(), list in vec(damage(), 0..4)) {
        let text = damaged(&tree.text(), &list);
        prop_assert_eq!(json::check(&text, Duplicates::RefuseTop).is_ok(), is_json(&text), "{}", String::from_utf8_lossy(&text));
    }

    #[test]
    fn any_bytes_are_judged_like_serde_json_does(text in vec(select(b"{}[]\",:\\u01-.eE tfnalsrue\xc3\xa4".to_vec()), 0..12)) {
        prop_assert_eq!(json::check(&text, Duplicates::RefuseTop).is_ok(), is_json(&text), "{}", String::from_utf8_lossy(&text));
    }

    #[test]
    fn duplicate_keys_are_refused_at_every_depth_however_they_are_spelled(tree in tree()) {
        let text = tree.text();
        let found = json::check(text.as_bytes(), Duplicates::RefuseDeep);
        prop_assert_eq!(matches!(found, Err(JsonError::DuplicateKey(_))), tree.has_duplicates(), "{} {:?}", text, found);
        prop_assert_eq!(found.is_ok(), !tree.has_duplicates());
    }

    #[test]
    fn members_come_out_in_order_with_their_bytes(members in object(), pad in select(vec!["", " ", "\n\t"])) {
        let text = format!("{pad}{}{pad}", Tree::Object(members.clone()).text());
        let parsed = Members::parse(text.as_bytes(), Duplicates::RefuseTop);
        let expected: Vec<(Cow<'_, str>, String)> = members.iter().map(|m| (m.key.as_str().into(), m.value.text())).collect();
        if without_duplicates(members.clone()).len() < members.len() {
            prop_assert!(parsed.is_err());
            return Ok(());
        }
        let parsed = parsed.map_err(|error| TestCaseError::fail(error.to_string()))?;
        let got: Vec<_> = parsed.iter().map(|(key, raw)| (key, String::from_utf8_lossy(raw).into_owned())).collect();
        prop_assert_eq!(&got, &expected);
        for (key, value) in &expected {
            prop_assert_eq!(parsed.get(key), Some(value.as_bytes()));
        }
    }

    #[test]
    fn strings_read_as_serde_json_reads_them(text in any::<String>(), tree in leaf()) {
        let quoted = json::quote(&text);
        let as_read: Option<String> = serde_json::from_str(&quoted).ok();
        prop_assert_eq!(as_read.as_deref(), Some(text.as_str()));
        prop_assert_eq!(json::as_str(quoted.as_bytes()), Some(Cow::Owned(text)));
        if let Ok(text) = serde_json::from_str::<String>(&tree) {
            prop_assert_eq!(json::as_str(tree.as_bytes()), Some(Cow::Owned(text)));
        }
    }

    #[test]
    fn elements_of_an_array_are_its_bytes(list in vec((space(), tree()), 0..6)) {
        let text = Tree::Array(list.clone()).text();
        let expected: Vec<String> = list.iter().map(|(_, value)| value.text()).collect();
        let got = json::elements(text.as_bytes()).unwrap_or_default();
        prop_assert_eq!(got.into_iter().map(|raw| String::from_utf8_lossy(raw).into_owned()).collect::<Vec<_>>(), expected);
    }

    /// Setting present members replaces their values' bytes and no other byte.
    #[test]
    fn a_splice_keeps_every_other_byte(members in object(), chosen in vec(any::<bool>(), 6), new in leaf(), pad in select(vec!["", "\r\n "])) {
        let mut members = without_duplicates(members);
        let text = format!("{pad}{}{pad}", Tree::Object(members.clone()).text());
        let keys: Vec<String> = members.iter().zip(&chosen).filter(|(_, chosen)| **chosen).map(|(m, _)| m.key.clone()).collect();
        let changes: Vec<_> = keys.iter().map(|key| (key.as_str(), Change::Set(new.as_bytes()))).collect();
        members.iter_mut().filter(|m| keys.contains(&m.key)).for_each(|m| m.value = Tree::Leaf(new.clone()));
        let expected = format!("{pad}{}{pad}", Tree::Object(members).text());
        let edited = edit(text.as_bytes(), &changes);
        prop_assert_eq!(String::from_utf8_lossy(&edited), expected);
    }

    /// With removals and additions too, the members that stay keep their bytes and their order, and new ones come last.
    #[test]
    fn a_splice_does_what_it_says(members in object(), changes in vec((key(), proptest::option::of(leaf())), 0..5)) {
        let members = without_duplicates(members);
        let text = Tree::Object(members.clone()).text();
        let mut wanted: Vec<(String, Option<String>)> = Vec::new();
        for ((key, _), value) in changes {
            if wanted.iter().all(|(other, _)| *other != key) {
                wanted.push((key, value));
            }
        }
        let list: Vec<(&str, Change<'_>)> =
            wanted.iter().map(|(key, value)| (key.as_str(), value.as_ref().map_or(Change::Remove, |new| Change::Set(new.as_bytes())))).collect();
        let edited = edit(text.as_bytes(), &list);
        let mut expected: Vec<(String, String)> = Vec::new();
        for member in &members {
            match wanted.iter().find(|(key, _)| *key == member.key) {
                None => expected.push((member.key.clone(), member.value.text())),
                Some((key, value)) => expected.extend(value.clone().map(|new| (key.clone(), new))),
            }
        }
        let is_new = |key: &String| members.iter().all(|member| member.key != *key);
        expected.extend(wanted.iter().filter(|(key, _)| is_new(key)).filter_map(|(key, value)| Some((key.clone(), value.clone()?))));
        let parsed = Members::parse(&edited, Duplicates::RefuseTop);
        let parsed = parsed.map_err(|error| TestCaseError::fail(format!("{error}: {}", String::from_utf8_lossy(&edited))))?;
        let got: Vec<_> = parsed.iter().map(|(key, raw)| (key.into_owned(), String::from_utf8_lossy(raw).into_owned())).collect();
        prop_assert_eq!(got, expected, "{}", String::from_utf8_lossy(&edited));
    }

    /// An object read alone or within a message has the members found by a reading of its own text.
    #[test]
    fn an_object_has_the_members_of_its_text(members in object(), meta in prop::option::of(object()), pad in select(vec!["", " ", "\r\n"])) {
        let mut members = without_duplicates(members.into_iter().filter(|m| m.key != "_meta").collect());
        if let Some(meta) = meta {
            let at = members.len() / 2;
            let spelled = if pad.is_empty() { "_m\\u0065ta" } else { "_meta" };
            members.insert(at, Member {
                key: "_meta".into(),
                spelled: spelled.into(),
                value: Tree::Object(without_duplicates(meta)),
                space: [pad; 4],
            });
        }
        let whole = Tree::Object(members).text();
        let params = if pad.is_empty() { "params" } else { "p\\u0061rams" };
        let message = format!("{pad}{{\"method\":\"m\",{pad}\"{params}\":{pad}{whole}{pad},\"jsonrpc\":\"2.0\",\"id\":1}}");
        let within = match Message::parse(&Bytes::from(message), Duplicates::RefuseTop) {
            Ok(Message::Request(request)) => request.params,
            other => return Err(TestCaseError::fail(format!("{other:?}"))),
        };
        let reference = Members::parse(whole.as_bytes(), Duplicates::RefuseTop).map_err(|e| TestCaseError::fail(e.to_string()))?;
        for object in [within, Object::from(Bytes::from(whole.clone())), Object::from(format!("{pad}{whole}{pad}").into_bytes())] {
            agrees(&object, &reference)?;
            for (key, _) in reference.iter().filter(|(key, _)| key != "_meta") {
                let edited = object.with(&key, b"[\"new\"]");
                prop_assert_eq!(&edited[..], &edit(&object, &[(&key, Change::Set(b"[\"new\"]"))])[..]);
                agrees(&edited, &Members::again(&edited))?;
            }
        }
    }
}

/// The content of a response, and its wanted members.
type Said = Option<(Vec<u8>, Vec<(String, Vec<u8>)>)>;

const WANTED: [&str; 4] = ["a", "b", "name", ""];

fn said(text: &[u8]) -> Said {
    let Ok(Message::Response(response)) = Message::parse(&Bytes::copy_from_slice(text), Duplicates::RefuseDeep) else { return None };
    let Answer::Result(result) = response.answer else { return None };
    let members = result.members();
    let wanted = members.iter().filter(|(key, _)| WANTED.contains(&&**key)).map(|(key, raw)| (key.into_owned(), raw.to_vec()));
    result.starts_with(b"{").then(|| (result.to_vec(), wanted.collect()))
}

/// Reads a response cut at these places.
fn said_in_pieces(text: &[u8], cuts: &[Index]) -> Said {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).chain([0, text.len()]).collect();
    places.sort_unstable();
    let mut poured = Poured::new(&WANTED);
    for pair in places.windows(2) {
        poured.read(&text[pair[0]..pair[1]]).ok()?;
        assert_eq!(poured.at(), pair[1]);
    }
    let wanted = poured.finish().ok()?;
    let list = Members::again(&wanted).iter().map(|(key, raw)| (key.into_owned(), raw.to_vec())).collect();
    Some((text[poured.begin()?..poured.end()?].to_vec(), list))
}

proptest! {
    #[test]
    fn a_response_in_pieces_says_what_it_says_as_a_whole(
        result in prop_oneof![3 => object().prop_map(|members| Tree::Object(without_duplicates(members))), 1 => tree()],
        more in prop_oneof![4 => Just(""), 1 => select(vec![r#","result":{}"#, r#","error":{}"#, r#","method":"m""#, r#","x":{"y":1,"\u0079":2}"#])],
        list in prop_oneof![2 => Just(Vec::new()), 1 => vec(damage(), 1..3)],
        cuts in vec(any::<Index>(), 0..12),
    ) {
        for text in [
            format!(r#" {{"jsonrpc":"2.0", "id": 7,"result":{} {more}}}"#, result.text()),
            format!(r#"{{"result": {},"x":[{{}}],"\u0069d":"y","jsonrpc":"2.0"{more} }} "#, result.text()),
        ] {
            let text = damaged(&text, &list);
            prop_assert_eq!(said_in_pieces(&text, &cuts), said(&text), "{}", String::from_utf8_lossy(&text));
        }
    }

    #[test]
    fn any_bytes_in_pieces_are_judged_as_a_whole(
        inner in vec(select(b"{}[]\",:\\u01-.eE tfnalsrue\xc3\xa4\xf0\x9f\x98\x80".to_vec()), 0..14),
        cuts in vec(any::<Index>(), 0..6),
    ) {
        let text = [br#"{"jsonrpc":"2.0","id":7,"result":{"x":"#, &inner[..], b"}}"].concat();
        prop_assert_eq!(said_in_pieces(&text, &cuts), said(&text), "{}", String::from_utf8_lossy(&text));
    }
}

/// Tells if `object` answers every question as `reference` does.
fn agrees(object: &Object, reference: &Members<'_>) -> Result<(), TestCaseError> {
    let list = |members: &Members<'_>| members.iter().map(|(key, raw)| (key.into_owned(), raw.to_vec())).collect::<Vec<_>>();
    prop_assert_eq!(list(&object.members()), list(reference));
    for (key, raw) in reference.iter() {
        prop_assert!(object.get(&key).is_some_and(|own| own == raw));
        prop_assert_eq!(object.str(&key), reference.str(&key));
    }
    prop_assert_eq!(object.get("not there"), None);
    prop_assert_eq!(object.meta().as_ref().map(list), reference.object("_meta").as_ref().map(list));
    Ok(())
}

#[test]
fn what_is_read_of_a_message_is_not_there_twice_however_it_is_spelled() {
    let parse = |text: &str, duplicates| Message::parse(&Bytes::copy_from_slice(text.as_bytes()), duplicates);
    for doubled in [
        r#""params":{"p":1},"p\u0061rams":{}"#,
        r#""params":{"_meta":{},"_m\u0065ta":{}}"#,
        r#""p\u0061rams":{"name":"a","n\u0061me":"b"}"#,
        r#""params":{"_m\u0065ta":{"a":1,"\u0061":2}}"#,
        r#""params":[],"params":{}"#,
    ] {
        for duplicates in [Duplicates::RefuseTop, Duplicates::RefuseDeep] {
            let found = parse(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m",{doubled}}}"#), duplicates);
            assert!(matches!(found, Err(EnvelopeError::Json(JsonError::DuplicateKey(_)))), "{doubled}: {found:?}");
        }
    }
    let deep = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"arguments":{"a":1,"a":2}}}"#;
    assert!(parse(deep, Duplicates::RefuseTop).is_ok() && parse(deep, Duplicates::RefuseDeep).is_err());
    // What a `_meta` says may stand in the params as well.
    let both = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1,"_meta":{"name":1,"a":2},"name":"n","b":3}}"#;
    let Ok(Message::Request(request)) = parse(both, Duplicates::RefuseDeep) else { panic!() };
    assert_eq!((request.params.get("name").as_deref(), request.params.members().len()), (Some(&b"\"n\""[..]), 4));
    assert_eq!(request.params.meta().unwrap().get("a"), Some(&b"2"[..]));
    for twice in [r#"{"_meta":{"x":1},"a":1,"a":2}"#, r#"{"a":1,"_meta":{"x":1},"a":2}"#, r#"{"a":1,"_meta":{"x":1},"_meta":{"y":1}}"#] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{twice}}}"#);
        assert!(matches!(parse(&text, Duplicates::RefuseTop), Err(EnvelopeError::Json(JsonError::DuplicateKey(_)))), "{twice}");
    }
    // The members of a `_meta` elsewhere are not those of the params.
    let other = r#"{"jsonrpc":"2.0","id":1,"_meta":{"x":1},"method":"m","params":{"o":{"_meta":{"y":2}},"params":{"_meta":{"z":3}}}}"#;
    let Ok(Message::Request(request)) = parse(other, Duplicates::RefuseDeep) else { panic!() };
    assert!(request.params.meta().is_none());
    assert_eq!(request.params.get("o").as_deref(), Some(&br#"{"_meta":{"y":2}}"#[..]));
}
