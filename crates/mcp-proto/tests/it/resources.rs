//! Whatever mounts list, what a client is shown leads back to the owner; and templates match their expansions.

use std::collections::BTreeMap;
use std::sync::Arc;

use banyan_model::Segment;
use mcp_proto::glob::Glob;
use mcp_proto::resource_index::{Listed, ResourceIndex, Seen};
use mcp_proto::template::Template;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;

fn uri() -> impl Strategy<Value = Arc<str>> {
    let text = prop_oneof![4 => "(a\\+|b\\+|a-b\\+){0,2}x:[12]", 1 => "(file|https|ui)://[a-c/]{0,4}", 1 => any::<String>()];
    text.prop_map(Arc::from)
}

fn listed() -> impl Strategy<Value = Vec<Listed>> {
    let templates = select(vec!["x:{n}", "file:///{+path}", "file://{host}/a", "b+x:{n}", "{broken"]).prop_map(Arc::from);
    let mount = select(vec!["a", "b", "a_b", "a-b", "9", "_"]);
    btree_map(mount, (vec(uri(), 0..6), vec(templates, 0..2)), 0..6).prop_map(|map| {
        let listed = map.into_iter().map(|(mount, (uris, templates))| Listed { mount: Segment::nearest(mount), uris, templates });
        listed.collect()
    })
}

/// A possible expansion of a template (RFC 6570).
fn expansion(operator: &str, values: &[String]) -> String {
    match operator {
        "" | "+" => values.join(","),
        "#" => format!("#{}", values.join(",")),
        "?" | "&" => format!("{operator}{}", values.iter().enumerate().map(|(n, v)| format!("v{n}={v}")).collect::<Vec<_>>().join("&")),
        ";" => values.iter().enumerate().map(|(n, v)| format!(";v{n}={v}")).collect(),
        _ => values.iter().map(|value| format!("{operator}{value}")).collect(),
    }
}

/// The plain recursive definition, for short texts.
fn glob_by_definition(pattern: &[char], text: &[char]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, _) => text.is_empty(),
        (Some(('*', rest)), None) => glob_by_definition(rest, text),
        (Some(('*', rest)), Some((_, behind))) => glob_by_definition(rest, text) || glob_by_definition(pattern, behind),
        (Some((wanted, rest)), Some((c, behind))) => (*wanted == '?' || wanted == c) && glob_by_definition(rest, behind),
        (Some(_), None) => false,
    }
}

proptest! {
    #[test]
    fn a_listed_uri_leads_back_to_its_owner(listed in listed()) {
        let index = ResourceIndex::build(&listed);
        let mut shown_to: BTreeMap<String, (Segment, Arc<str>)> = BTreeMap::new();
        for list in &listed {
            for uri in &list.uris {
                let shown = index.shown(&list.mount, uri).unwrap_or_default().into_owned();
                let owner = index.owner(&shown, |_| None).map(|owner| (owner.mount.clone(), Arc::from(owner.uri)));
                let expected = (list.mount.clone(), Arc::clone(uri));
                prop_assert_eq!(owner.as_ref(), Some(&expected), "{}", shown);
                let before = shown_to.insert(shown, expected.clone());
                prop_assert!(before.is_none_or(|before| before == expected));
            }
        }
    }

    #[test]
    fn the_first_mount_keeps_its_uris_as_they_are(listed in listed()) {
        let index = ResourceIndex::build(&listed);
        for uri in listed.first().map(|list| list.uris.clone()).unwrap_or_default() {
            prop_assert!(index.shown(&listed[0].mount, &uri).is_some_and(|shown| *shown == *uri));
        }
    }

    #[test]
    fn no_uri_makes_the_index_panic(listed in listed(), uri in uri(), mount in 0usize..6) {
        let index = ResourceIndex::build(&listed);
        let seen = listed.get(mount).map(|list| list.mount.clone());
        if let Some(owner) = index.owner(&uri, |_| seen) {
            prop_assert!(uri.ends_with(owner.uri));
        }
    }

    #[test]
    fn an_expansion_matches_its_template(
        head in "[a-z]{1,4}:[a-z/]{0,5}", tail in "[a-z/.]{0,4}", operator in select(vec!["", "+", "#", "/", ".", "?", "&", ";"]),
        values in vec("[a-z0-9%._~-]{1,6}", 1..4),
    ) {
        let names: Vec<String> = (0..values.len()).map(|n| format!("v{n}")).collect();
        let template = Template::parse(&format!("{head}{{{operator}{}}}{tail}", names.join(",")));
        let uri = format!("{head}{}{tail}", expansion(operator, &values));
        prop_assert!(template.is_ok_and(|template| template.matches(&uri)), "{uri}");
    }

    #[test]
    fn a_template_without_variables_matches_itself_only(template in "[^{}]{0,12}", uri in "[^{}]{0,12}") {
        let parsed = Template::parse(&template);
        prop_assert!(parsed.is_ok_and(|parsed| parsed.matches(&template) && parsed.matches(&uri) == (template == uri)));
    }

    #[test]
    fn no_text_makes_the_template_parser_panic(text in "[{}a+*,:/?#]{0,20}", uri in "[a:/?#]{0,20}") {
        if let Ok(template) = Template::parse(&text) {
            template.matches(&uri);
        }
    }

    #[test]
    fn a_glob_matches_as_its_definition_says(pattern in "[ab*?]{0,7}", text in "[ab]{0,8}") {
        let (p, t): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
        prop_assert_eq!(Glob::new(&pattern).matches(&text), glob_by_definition(&p, &t));
    }

    #[test]
    fn what_was_seen_last_is_still_known(notes in vec((select(vec!["a", "b"]), 0u8..30), 1..200)) {
        let mut seen = Seen::new(1000);
        for (mount, n) in notes {
            let uri = format!("x:{n}");
            let owner = seen.owner(&uri);
            seen.note(&Segment::nearest(mount), &uri);
            prop_assert_eq!(seen.owner(&uri), owner.or_else(|| Segment::new(mount).ok()));
        }
    }
}
