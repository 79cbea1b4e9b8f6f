//! Checks for readers of names, header values and URIs chosen by peers, and of words in searches. Nothing about whole messages.

use std::collections::BTreeMap;
use std::sync::Arc;

use banyan_model::{QualifiedName, Route, Segment};
use mcp_proto::catalog::Kind;
use mcp_proto::cursor::ListCursor;
use mcp_proto::header::{check_name, check_params, decode, encode, expected_params, param_headers};
use mcp_proto::json::{Duplicates, Members};
use mcp_proto::projection::{Entry, Projection, Style, local_names, local_routes};
use mcp_proto::resource_index::{Listed, ResourceIndex};
use search::tools::{Found, describe_result, search_arguments, search_result};
use search::{Doc, Index, parameter_text};

/// A cursor leads to an entry of one list at most, and equals the cursor written for that entry.
pub(super) fn cursor(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let cursors = Kind::ALL.map(|kind| ListCursor::decode(kind, &text).inspect(|cursor| assert_eq!(cursor.encode(kind), text)));
    assert!(cursors.iter().flatten().count() <= 1);
}

/// A value, a schema and params, with a line end between them: all three may be anything.
pub(super) fn header(data: &[u8]) {
    let mut parts = data.splitn(3, |b| *b == b'\n');
    let (value, schema, params) = (parts.next(), parts.next(), parts.next());
    if let Some(text) = value.and_then(|raw| decode(raw).ok()) {
        assert_eq!(check_name(value, &text), Ok(()));
        assert!(decode(encode(&text).as_bytes()).is_ok_and(|again| again == text));
    }
    let text = String::from_utf8_lossy(data);
    assert_eq!(check_name(Some(encode(&text).as_bytes()), &text), Ok(()));
    let (Some(Ok(headers)), Some(params)) = (schema.map(param_headers), params) else { return };
    let sent = expected_params(params, &headers);
    let lookup = |name: &str| sent.iter().find(|(sent, _)| sent == name).map(|(_, value)| value.as_bytes());
    assert_eq!(check_params(params, &headers, lookup), Ok(()));
}

/// Lines are tools; the first character chooses the mount, and mounts of small letters are gates.
pub(super) fn projection(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut by_mount: BTreeMap<Option<Segment>, Vec<&str>> = BTreeMap::new();
    for line in text.split('\n') {
        let mount = line.chars().next().filter(|c| *c != '-').map(|c| Segment::nearest(&c.to_string()));
        by_mount.entry(mount).or_default().push(line.char_indices().nth(1).map_or("", |(at, _)| &line[at..]));
    }
    let mut entries = Vec::new();
    for (mount, names) in by_mount {
        let is_gate = mount.as_ref().is_some_and(|m| m.as_str().starts_with(|c: char| c.is_ascii_lowercase()));
        let locals = if is_gate { local_routes(&names) } else { local_names(&names).into_iter().map(|s| Route(vec![s])).collect() };
        let named = names.iter().zip(locals);
        entries.extend(named.map(|(name, local)| Entry {
            mount: mount.clone(),
            original: Arc::from(*name),
            local: local.into(),
            rename: None,
        }));
    }
    // Longer paths are not in a catalog.
    entries.retain(|entry| entry.dotted().len() <= QualifiedName::MAX);
    for (style, limit) in [(Style::Dotted, 128), (Style::Qualified, QualifiedName::MAX), (Style::Safe, 64)] {
        let table = Projection::build(style, entries.clone());
        for (index, entry) in entries.iter().enumerate() {
            let shown = table.shown(index).cloned().unwrap_or_default();
            assert_eq!(table.entry(&shown), Some(entry));
            assert!(style.is_legal(&shown) && (1..=limit).contains(&shown.len()), "{shown}");
        }
    }
}

/// Lines are URIs or, with a brace, templates; the first character chooses the mount.
pub(super) fn resources(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut listed: Vec<Listed> = Vec::new();
    for line in text.split('\n') {
        let Some((first, uri)) = line.chars().next().map(|c| line.split_at(c.len_utf8())) else { continue };
        let mount = Segment::nearest(first);
        let at = listed.iter().position(|list| list.mount == mount).unwrap_or_else(|| {
            listed.push(Listed { mount, uris: Vec::new(), templates: Vec::new() });
            listed.len() - 1
        });
        let list = if uri.contains('{') { &mut listed[at].templates } else { &mut listed[at].uris };
        list.push(uri.into());
    }
    let index = ResourceIndex::build(&listed);
    for list in &listed {
        for uri in &list.uris {
            let shown = index.shown(&list.mount, uri).unwrap_or_default();
            let owner = index.owner(&shown, |_| None).map(|owner| (owner.mount, owner.uri));
            assert_eq!(owner, Some((&list.mount, &**uri)));
        }
        for template in &list.templates {
            assert!(index.shown_template(&list.mount, template).is_some_and(|shown| shown.ends_with(&**template)));
        }
    }
    for line in text.split('\n') {
        index.owner(line, |_| None);
    }
}

/// The arguments of a search, then a definition of a tool on each line. Found tools exist, and the answer is JSON.
pub(super) fn search(data: &[u8]) {
    let is_json = |raw: &[u8]| serde_json::from_slice::<serde_json::Value>(raw).is_ok();
    let mut lines = data.split(|b| *b == b'\n').filter(|line| is_json(line));
    let asked = lines.next().and_then(search_arguments);
    let tools: Vec<&[u8]> = lines.filter(|line| Members::parse(line, Duplicates::RefuseTop).is_ok()).collect();
    let texts: Vec<[String; 4]> = tools
        .iter()
        .map(|raw| {
            let members = Members::again(raw);
            let text = |key: &str| members.str(key).unwrap_or_default().into_owned();
            [text("name"), text("title"), text("description"), members.get("inputSchema").map(parameter_text).unwrap_or_default()]
        })
        .collect();
    let index = Index::build(texts.iter().map(|[dotted, title, description, parameters]| Doc { dotted, title, description, parameters }));
    assert_eq!(index.len(), tools.len());
    let Some(asked) = asked else { return };
    let hits = index.search(&asked.query, asked.limit, |_| true);
    assert!(hits.len() <= asked.limit && hits.iter().all(|hit| hit.index < tools.len() && hit.score.is_finite()));
    let found: Vec<Found<'_>> = hits.iter().map(|hit| Found { name: &texts[hit.index][0], definition: tools[hit.index] }).collect();
    assert!(is_json(&search_result(&asked.query, &found, tools.len())));
    assert!(tools.iter().all(|raw| is_json(&describe_result(raw))));
}
