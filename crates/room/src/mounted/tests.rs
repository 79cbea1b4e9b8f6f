use mcp_proto::json::Members;

use crate::mounted::*;

fn tools(names: &[&str]) -> Vec<Bytes> {
    names.iter().map(|name| Bytes::from(format!(r#"{{"name":{},"v":1.0}}"#, quote(name)))).collect()
}

fn listed(mounted: &RoomMount) -> Vec<String> {
    let list = mounted.list();
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
    assert!(mounted.offered(&ops, "bot", &tools(&["wipe", "Read File", "wipe", "room__ops__x", "a.b"])));
    assert!(!mounted.offered(&ops, "bot", &tools(&["wipe", "Read File", "a.b"])), "it is what was known");
    assert!(mounted.offered(&lab, "bot", &tools(&["wipe"])));
    assert_eq!(listed(&mounted), ["lab.bot.wipe", "ops.bot.wipe", "ops.bot.read_file", "ops.bot.a_b"]);
    let found = |path: &str| mounted.find(path).map(|(_, who, tool)| format!("{who} {tool}"));
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
    assert!(mounted.offered(&ops, "Bot", &tools(&["wipe"])));
    assert!(!mounted.offered(&ops, own.as_str(), &tools(&["steal"])));
    let found = mounted.find(&format!("ops.{own}.wipe")).map(|(_, who, tool)| format!("{who} {tool}"));
    assert_eq!(found.as_deref(), Some("Bot wipe"));
    assert!(!mounted.offered(&ops, own.as_str(), &[]), "nor does the other go with it");
    assert!(mounted.offered(&ops, "Bot", &[]) && !mounted.offered(&ops, "Bot", &[]));
}

#[test]
fn mx_21_a_new_seat_outlives_the_one_before() {
    let mounted = RoomMount::default();
    let ops = topic("ops");
    let (before, _queue) = mounted.open(&ops);
    let (now, _queue) = mounted.open(&ops);
    mounted.offered(&ops, "bot", &tools(&["wipe"]));
    assert!(!mounted.close(&ops, &before) && mounted.find("ops.bot.wipe").is_some());
    assert!(mounted.close(&ops, &now) && mounted.find("ops.bot.wipe").is_none());
}
