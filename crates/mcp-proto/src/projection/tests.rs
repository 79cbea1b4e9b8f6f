//! Names as the configuration and real servers make them. What holds for all names is in `tests/projection.rs` of the crate.

use super::*;

#[test]
fn ax_15_legal_names_stay_and_others_are_mapped() {
    let names = ["get_user", "getURL", "network.cli.exec", "a/b", "HTTPServer2Go", "x-1", "--Größe--"];
    assert_eq!(local(&names), ["get_user", "get_url", "network_cli_exec", "a_b", "http_server2_go", "x-1", "--gr_e--"]);
}

#[test]
fn ax_15_names_that_map_to_one_are_told_apart() {
    let got = local(&["getUser", "get_user", "GetUser", "get.user", "a.b", "a/b"]);
    assert_eq!(got[1], "get_user");
    let mut distinct = got.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), got.len(), "{got:?}");
    assert!(got[0].starts_with("get_user_") && got[4].starts_with("a_b_") && got[5].starts_with("a_b_"), "{got:?}");
}

#[test]
fn ax_15_empty_foreign_and_endless_names_become_legal_ones() {
    let long = "readTheWholeFile".repeat(30);
    let got = local(&["", "日本語", "日本", &long]);
    assert!(got[..3].iter().all(|name| name.starts_with("tool_")), "{got:?}");
    assert_eq!(got[3].len(), 63);
    assert!(got[3].starts_with("read_the_whole_file"), "{got:?}");
}

#[test]
fn ax_15_a_name_made_to_block_a_tail_only_moves_it_on() {
    let mut names = vec!["getUser".to_owned(), "get_user".to_owned()];
    for _ in 0..6 {
        let taken = local(&names)[0].clone();
        assert!(!names.contains(&taken));
        names.push(taken);
    }
    assert_eq!(local(&names)[1..], names[1..]);
}

#[test]
fn a_safe_name_keeps_the_original_where_it_can() {
    let table = build(Style::Safe, &[("net", "getUser"), ("net", "cli.exec"), ("fs", "日本")]);
    assert_eq!(
        rows(&table)[..2],
        [("net.get_user".into(), "net__getUser".into(), Reason::Kept), ("net.cli_exec".into(), "net__cli_exec".into(), Reason::Escaped),]
    );
    assert_eq!(table.entry("net__cli_exec").map(|entry| &*entry.original), Some("cli.exec"));
    assert_eq!(rows(&table)[2].1, format!("fs__{}", local(&["日本"])[0]));
    assert_eq!(table.entry("net.getUser"), None);
}

#[test]
fn a_dotted_name_takes_the_original_or_else_the_local_name() {
    let table = build(Style::Dotted, &[("net", "getUser"), ("net", "cli.exec"), ("net", "a/b")]);
    let shown: Vec<_> = rows(&table).into_iter().map(|(_, shown, reason)| (shown, reason)).collect();
    assert_eq!(shown, [("net.getUser".into(), Reason::Kept), ("net.cli.exec".into(), Reason::Kept), ("net.a_b".into(), Reason::Escaped),]);
}

#[test]
fn without_a_mount_legal_originals_stay_as_they_are() {
    let entries = ["test_simple_text", "getUser", "a.b"].map(|original| entry(None, original));
    let shown = |style| rows(&Projection::build(style, entries.to_vec())).into_iter().map(|row| row.1).collect::<Vec<_>>();
    assert_eq!(shown(Style::Safe), ["test_simple_text", "getUser", "a_b"]);
    assert_eq!(shown(Style::Dotted), ["test_simple_text", "getUser", "a.b"]);
}

#[test]
fn a_long_name_keeps_head_and_end_and_differs_by_its_hash() {
    let (one, two) = ("x".repeat(70) + "_create", "x".repeat(71) + "_create");
    let table = build(Style::Safe, &[("github", &one), ("github", &two)]);
    let got = rows(&table);
    assert!(got.iter().all(|row| row.1.len() == 64 && row.2 == Reason::Shortened), "{got:?}");
    assert!(got.iter().all(|row| row.1.starts_with("github__xxx") && row.1.contains("_create_")), "{got:?}");
    assert_ne!(got[0].1, got[1].1);
}

#[test]
fn a_name_that_needed_no_change_keeps_it() {
    let table = build(Style::Safe, &[("m", "a.b"), ("m", "a_b")]);
    let got = rows(&table);
    assert_eq!((got[1].1.as_str(), got[1].2), ("m__a_b", Reason::Kept));
    assert!(got[0].1.starts_with("m__a_b_") && got[0].2 == Reason::Disambiguated, "{got:?}");
}

#[test]
fn no_server_takes_a_name_under_another_mounts_prefix() {
    let table = build(Style::Safe, &[("a", "b__c"), ("a", "b__d_"), ("a__b", "c"), ("a__b", "d.")]);
    for shown in ["a__b__c", "a__b__d_"] {
        assert_eq!(table.entry(shown).and_then(|entry| entry.mount.clone()), Segment::new("a__b").ok(), "{shown}");
    }
    assert!(rows(&table)[..2].iter().all(|row| row.2 == Reason::Disambiguated));
}

#[test]
fn a_rename_is_shown_as_it_is_and_beats_other_claims() {
    let mut renamed = entry(Some("gh"), "create_issue");
    renamed.rename = Some("m__a".into());
    let table = Projection::build(Style::Safe, vec![entry(Some("m"), "a"), renamed]);
    assert_eq!(rows(&table)[1], ("gh.create_issue".into(), "m__a".into(), Reason::Renamed));
    assert_eq!(rows(&table)[0].2, Reason::Disambiguated);
}

#[test]
fn a_thing_said_twice_has_one_name() {
    let table = build(Style::Safe, &[("m", "a"), ("m", "a"), ("m", "b")]);
    assert_eq!(rows(&table).len(), 2);
    assert_eq!(table.shown(1).map(|name| &**name), Some("m__a"));
    assert_eq!(table.find("m__a"), Some(0));
}

#[test]
fn a_hundred_thousand_tools_are_named_apart() {
    let entries: Vec<_> = (0..100_000).map(|n| entry(Some(["fs", "net"][n % 2]), &format!("do.thing{}", n / 3))).collect();
    let table = Projection::build(Style::Safe, entries);
    assert!(table.rows().all(|row| table.find(row.shown).is_some()));
}

#[test]
fn an_empty_rename_is_not_the_same_as_none() {
    let mut renamed = entry(Some("m"), "a");
    renamed.rename = Some("".into());
    let table = Projection::build(Style::Safe, vec![entry(Some("m"), "a"), renamed]);
    assert_eq!(table.rows().map(|row| row.shown).collect::<Vec<_>>(), ["m__a", "tool"]);
}

#[test]
fn only_clients_known_to_take_dots_get_them() {
    assert_eq!(style_for("inspector-cli"), Style::Dotted);
    for other in ["claude-ai", "claude-code", "codex-mcp-client", "Visual Studio Code", "", "mcp"] {
        assert_eq!(style_for(other), Style::Safe, "{other}");
    }
}

#[test]
fn ax_02_the_names_of_a_gate_are_its_paths() {
    let names = ["edge.stm32h7.dma2d_status", "edge.getUser", "reset", "edge..x", "a.b", "edge__get_user"];
    let routes: Vec<String> = local_routes(&names).iter().map(ToString::to_string).collect();
    assert_eq!(routes, ["edge.stm32h7.dma2d_status", "edge_get_user", "reset", "edge_x", "a.b", "edge__get_user"]);
}

#[test]
fn ax_02_a_nested_name_reads_alike_in_every_style() {
    let shown = |style, mount| {
        let table = Projection::build(style, vec![nested(mount, "edge.stm32h7.dma2d_status")]);
        let row = table.rows().next().map(|row| (row.shown.to_owned(), row.reason)).unwrap();
        assert_eq!(table.find(&row.0), Some(0));
        row
    };
    assert_eq!(shown(Style::Safe, Some("infra")), ("infra__edge__stm32h7__dma2d_status".into(), Reason::Escaped));
    assert_eq!(shown(Style::Safe, None).0, "edge__stm32h7__dma2d_status");
    assert_eq!(shown(Style::Dotted, Some("infra")), ("infra.edge.stm32h7.dma2d_status".into(), Reason::Kept));
    assert_eq!(shown(Style::Qualified, Some("infra")), ("infra.edge.stm32h7.dma2d_status".into(), Reason::Kept));
}

#[test]
fn ax_02_a_long_nested_name_is_whole_between_gates_and_has_a_tail_elsewhere() {
    let long = vec!["abcdefghij"; 22].join(".");
    let entries = vec![nested(Some("infra"), &long), nested(Some("infra"), &format!("{long}k"))];
    let qualified = Projection::build(Style::Qualified, entries.clone());
    assert_eq!(qualified.shown(0).map(|name| name.to_string()), Some(format!("infra.{long}")));
    let safe = Projection::build(Style::Safe, entries);
    let names: Vec<_> = safe.rows().map(|row| (row.shown.len(), row.reason, safe.find(row.shown))).collect();
    assert_eq!(names, [(64, Reason::Shortened, Some(0)), (64, Reason::Shortened, Some(1))]);
}

#[test]
fn between_gates_a_tool_has_its_name_in_the_tree_and_not_its_servers() {
    let table = build(Style::Qualified, &[("net", "getUser"), ("net", "cli.exec")]);
    assert_eq!(table.rows().map(|row| row.shown).collect::<Vec<_>>(), ["net.get_user", "net.cli_exec"]);
}

fn nested(mount: Option<&str>, original: &str) -> Entry {
    Entry { local: local_routes(&[original]).remove(0).into(), ..entry(mount, original) }
}

fn local<S: AsRef<str>>(names: &[S]) -> Vec<String> {
    local_names(names).iter().map(|segment| segment.as_str().to_owned()).collect()
}

fn entry(mount: Option<&str>, original: &str) -> Entry {
    let local = Route(local_names(&[original])).into();
    Entry { mount: mount.map(|mount| Segment::new(mount).unwrap()), original: original.into(), local, rename: None }
}

fn build(style: Style, names: &[(&str, &str)]) -> Projection {
    Projection::build(style, names.iter().map(|(mount, original)| entry(Some(mount), original)).collect::<Vec<_>>())
}

fn rows(table: &Projection) -> Vec<(String, String, Reason)> {
    table.rows().map(|row| (row.dotted.clone(), row.shown.to_owned(), row.reason)).collect()
}
