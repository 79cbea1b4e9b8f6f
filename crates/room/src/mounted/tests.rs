use mcp_proto::json::Members;

use crate::mounted::*;

fn tools(names: &[&str]) -> Vec<Bytes> {
    names.iter().map(|name| Bytes::from(format!(r#"{{"name":{},"v":1.0}}"#, quote(name)))).collect()
}

fn listed(mounted: &RoomMount) -> Vec<String> {
    let list = mounted.list(Kind::Tools);
    let all = mcp_proto::json::elements(list.members().get("tools").unwrap()).unwrap();
    all.into_iter().map(|raw| Members::again(raw).str("name").unwrap().into_owned()).collect()
}

fn topic(name: &str) -> Topic {
    Topic::new(name).unwrap()
}

#[test]
fn mx_21_a_tree_name_leads_to_its_own_participant() {
    let mounted = RoomMount::default();
    let (ops, lab) = (topic("ops"), topic("lab"));
    let (_first, _second) = (mounted.open(&ops), mounted.open(&lab));
    assert!(mounted.offered(&ops, "bot", Kind::Tools, &tools(&["wipe", "Read File", "wipe", "room__ops__x", "a.b"])));
    assert!(!mounted.offered(&ops, "bot", Kind::Tools, &tools(&["wipe", "Read File", "a.b"])), "it is what was known");
    assert!(mounted.offered(&lab, "bot", Kind::Tools, &tools(&["wipe"])));
    assert_eq!(listed(&mounted), ["lab.bot.wipe", "ops.bot.wipe", "ops.bot.read_file", "ops.bot.a_b"]);
    let found = |path: &str| mounted.find(Kind::Tools, path).map(|(_, who, tool)| format!("{who} {tool}"));
    assert_eq!(found("ops.bot.read_file").as_deref(), Some("bot Read File"));
    assert_eq!(found("ops.bot.a_b").as_deref(), Some("bot a.b"));
    assert!(["ops.bot", "ops.bot.nope", "ops.carl.wipe", "ops.bot.wipe.x", ""].iter().all(|path| found(path).is_none()));
    assert_eq!(whose("ops.bot.wipe"), "ops.bot");
}

#[test]
fn mx_21_a_taken_tree_name_stays_with_its_owner() {
    let mounted = RoomMount::default();
    let ops = topic("ops");
    let _queue = mounted.open(&ops);
    // A name that is no segment has one that is the same whoever else is there.
    let odd = offers::segment("Ömer Ğ");
    assert!(odd.as_str().starts_with("_mer___") && odd.as_str().len() == 15, "{odd}");
    assert_eq!(offers::segment(&"x".repeat(128)).as_str().len(), 63);
    // Who takes the name that another has stands nowhere.
    let own = offers::segment("Bot");
    assert!(mounted.offered(&ops, "Bot", Kind::Tools, &tools(&["wipe"])));
    assert!(!mounted.offered(&ops, own.as_str(), Kind::Tools, &tools(&["steal"])));
    let found = mounted.find(Kind::Tools, &format!("ops.{own}.wipe")).map(|(_, who, tool)| format!("{who} {tool}"));
    assert_eq!(found.as_deref(), Some("Bot wipe"));
    assert!(!mounted.offered(&ops, own.as_str(), Kind::Tools, &[]), "nor does the other go with it");
    assert!(mounted.offered(&ops, "Bot", Kind::Tools, &[]) && !mounted.offered(&ops, "Bot", Kind::Tools, &[]));
}

#[test]
fn mx_21_a_new_seat_outlives_the_one_before() {
    let mounted = RoomMount::default();
    let ops = topic("ops");
    let (before, _queue) = mounted.open(&ops);
    let (now, _queue) = mounted.open(&ops);
    mounted.offered(&ops, "bot", Kind::Tools, &tools(&["wipe"]));
    assert!(!mounted.close(&ops, &before) && mounted.find(Kind::Tools, "ops.bot.wipe").is_some());
    assert!(mounted.close(&ops, &now) && mounted.find(Kind::Tools, "ops.bot.wipe").is_none());
}

#[test]
fn mx_21_resources_of_participants_have_uris_of_their_own() {
    let mounted = RoomMount::default();
    let ops = topic("ops");
    let _queue = mounted.open(&ops);
    let resources =
        [&br#"{"uri":"file:///a.b/c","name":"c"}"#[..], br#"{"uri":"room:ops.bot/x"}"#, br#"{"name":"none"}"#].map(Bytes::from_static);
    assert!(mounted.offered(&ops, "Bot", Kind::Resources, &resources) && !mounted.offered(&ops, "Bot", Kind::Resources, &resources));
    let own = offers::segment("Bot");
    let list = mounted.list(Kind::Resources);
    assert_eq!(list.text(), format!(r#"{{"resources":[{{"uri":"room:ops.{own}/file:///a.b/c","name":"c"}}]}}"#).as_bytes());
    let found = |uri: &str| mounted.find(Kind::Resources, &format!("room:ops.{own}/{uri}")).map(|(_, who, uri)| format!("{who} {uri}"));
    assert_eq!((found("file:///a.b/c").as_deref(), found("file:///d")), (Some("Bot file:///a.b/c"), None));
    let templates = [Bytes::from_static(br#"{"uriTemplate":"file:///{x}"}"#)];
    assert!(mounted.offered(&ops, "Bot", Kind::Templates, &templates));
    assert_eq!(found("file:///d").as_deref(), Some("Bot file:///d"));
    assert_eq!(whose(&format!("room:ops.{own}/file:///a.b/c")), whose(&format!("ops.{own}.wipe")));
    assert!(mounted.offered(&ops, "Bot", Kind::Resources, &[]) && mounted.offered(&ops, "Bot", Kind::Templates, &[]));
    assert!(mounted.offered(&ops, own.as_str(), Kind::Tools, &tools(&["wipe"])), "the name is free again");
}
