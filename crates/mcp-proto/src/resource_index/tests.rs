//! The order of precedence, and collisions between mounts. What holds for all lists is in `tests/resources.rs` of the crate.

use super::*;

#[test]
fn a_listed_uri_goes_to_its_owner_as_it_is() {
    let index = ResourceIndex::build(&[listed("a", &["x:1", "x:1"], &[]), listed("b", &["x:2"], &[])]);
    assert_eq!(owner(&index, "x:2"), Some(("b", "x:2")));
    assert_eq!(index.shown(&segment("b"), "x:2").as_deref(), Some("x:2"));
    assert_eq!(index.shown(&segment("c"), "x:2"), None);
}

#[test]
fn the_first_mount_keeps_a_uri_and_the_later_one_gets_its_label() {
    let index = ResourceIndex::build(&[listed("a", &["x:1"], &[]), listed("net_1", &["x:1"], &[]), listed("9p", &["x:1"], &[])]);
    for (mount, shown) in [("a", "x:1"), ("net_1", "net-1+x:1"), ("9p", "m9p+x:1")] {
        assert_eq!(index.shown(&segment(mount), "x:1").as_deref(), Some(shown));
        assert_eq!(owner(&index, shown), Some((mount, "x:1")));
    }
}

#[test]
fn labels_that_would_be_the_same_are_told_apart() {
    let index = ResourceIndex::build(&[listed("z", &["x:1"], &[]), listed("a_b", &["x:1"], &[]), listed("a-b", &["x:1"], &[])]);
    assert_eq!(index.shown(&segment("a_b"), "x:1").as_deref(), Some("a-b-2+x:1"));
    assert_eq!(owner(&index, "a-b-2+x:1"), Some(("a_b", "x:1")));
    assert_eq!(owner(&index, "a-b+x:1"), Some(("a-b", "x:1")));
}

#[test]
fn a_uri_that_looks_labelled_keeps_its_owner() {
    let index = ResourceIndex::build(&[listed("a", &["x:1", "git+x:1"], &[]), listed("git", &["x:1"], &[])]);
    assert_eq!(owner(&index, "git+x:1"), Some(("a", "git+x:1")));
    assert_eq!(index.shown(&segment("git"), "x:1").as_deref(), Some("git+git+x:1"));
    assert_eq!(owner(&index, "git+git+x:1"), Some(("git", "x:1")));
}

#[test]
fn the_template_with_the_most_fixed_bytes_wins() {
    let wide = listed("a", &[], &["file:///{+path}", "not a {template"]);
    let index = ResourceIndex::build(&[wide, listed("b", &[], &["file:///logs/{name}"]), listed("c", &["file:///logs/c"], &[])]);
    assert_eq!(owner(&index, "file:///etc/x"), Some(("a", "file:///etc/x")));
    assert_eq!(owner(&index, "file:///logs/x"), Some(("b", "file:///logs/x")));
    assert_eq!(owner(&index, "file:///logs/c"), Some(("c", "file:///logs/c")));
}

#[test]
fn the_later_mount_of_one_template_is_reached_by_its_label() {
    let template = "file:///{+path}";
    let index = ResourceIndex::build(&[listed("a", &[], &[template]), listed("b", &[], &[template])]);
    assert_eq!(index.shown_template(&segment("a"), template).as_deref(), Some(template));
    assert_eq!(index.shown_template(&segment("b"), template).as_deref(), Some("b+file:///{+path}"));
    assert_eq!(owner(&index, "b+file:///x"), Some(("b", "file:///x")));
    assert_eq!(index.shown(&segment("b"), "file:///x").as_deref(), Some("b+file:///x"));
    assert_eq!(index.shown(&segment("a"), "file:///x").as_deref(), Some("file:///x"));
}

#[test]
fn what_nobody_lists_is_found_by_results_then_by_scheme() {
    let index = ResourceIndex::build(&[listed("a", &["memo:1", "file:///a"], &[]), listed("b", &["file:///b"], &[])]);
    let seen = |uri: &str| (uri == "file:///c").then(|| segment("b"));
    assert_eq!(index.owner("file:///c", seen).map(|owner| owner.mount.as_str().to_owned()).as_deref(), Some("b"));
    assert_eq!(index.owner("x:1", |_| Some(segment("gone"))), None);
    assert_eq!(owner(&index, "memo:2"), Some(("a", "memo:2")));
    assert_eq!(owner(&index, "file:///d"), None);
    assert_eq!(owner(&index, "b+file:///d"), Some(("b", "file:///d")));
    assert_eq!(owner(&index, "no uri"), None);
}

fn segment(text: &str) -> Segment {
    Segment::new(text).unwrap()
}

fn listed(mount: &str, uris: &[&str], templates: &[&str]) -> Listed {
    let texts = |list: &[&str]| list.iter().map(|text| Arc::from(*text)).collect();
    Listed { mount: segment(mount), uris: texts(uris), templates: texts(templates) }
}

fn owner<'a>(index: &'a ResourceIndex, uri: &'a str) -> Option<(&'a str, &'a str)> {
    let owner = index.owner(uri, |_| None)?;
    Some((owner.mount.as_str(), owner.uri))
}
