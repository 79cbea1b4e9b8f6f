//! Kinds beyond MCPx v0.1: for participants who asked, and for nobody else.

use super::*;

const WIDE: &[&str] = &["mcp/*", "chat", "chat/*", "participant/*", "stream/*", "streams/*"];

fn asking(classes: &[&str]) -> Preferences {
    let mut also = Also::NONE;
    assert!(classes.iter().all(|class| also.ask(class)), "{classes:?}");
    Preferences { also, ..Preferences::default() }
}

#[test]
fn kinds_beyond_v0_1_go_to_askers_only() {
    let mut table = Table::new(Settings::default());
    table.join(1, "plain", WIDE);
    table.join_with(2, "both", FULL, asking(&["mcp/withdraw", "mcp/reject"])).unwrap();
    table.join_with(3, "rejects", FULL, asking(&["mcp/reject"])).unwrap();
    assert_eq!(table.news(1)[0]["payload"].get("also"), None);
    assert_eq!(table.news(2)[0]["payload"]["also"], json!(["mcp/reject", "mcp/withdraw"]));
    table.forget();
    let cases: [(&str, &[&str], &[u64]); 5] = [
        ("mcp/reject:tools/call:x", &[], &[2, 3]),
        ("mcp/reject", &["plain"], &[2, 3]),
        ("mcp/withdraw:tools/call", &[], &[2]),
        ("mcp/rejected:x", &[], &[1, 2, 3]),
        ("chat/acknowledge", &["both"], &[]),
    ];
    for (kind, to, receivers) in cases {
        table.send(1, &fulfils("m", "plain", to, kind, "p"));
        assert_eq!(table.got.keys().copied().collect::<Vec<_>>(), receivers, "{kind}");
        table.forget();
    }
}

#[test]
fn every_class_can_be_asked_for_and_no_other() {
    let mut also = Also::NONE;
    for class in ["chat", "mcp/request", "stream/data", "participant/status", ""] {
        assert!(!also.ask(class), "{class}");
    }
    assert!(Also::CLASSES.into_iter().all(|class| also.ask(class)));
    assert_eq!(also.classes().collect::<Vec<_>>(), Also::CLASSES);
    assert_eq!(Also::ALL.classes().collect::<Vec<_>>(), Also::CLASSES[..6]);
}

#[test]
fn a_stream_goes_to_addressees_who_asked_for_streams() {
    let mut table = Table::new(Settings { history: 10, ..Settings::default() });
    table.join(1, "sensor", WIDE);
    table.join_with(2, "plot", WIDE, asking(&["stream"])).unwrap();
    table.join_with(3, "log", WIDE, asking(&["stream"])).unwrap();
    table.join(4, "agent", WIDE);
    table.forget();
    let cases: [(&[&str], &[u64]); 3] = [(&["plot"], &[2]), (&["plot", "agent"], &[2]), (&["plot", "log"], &[2, 3])];
    for (to, receivers) in cases {
        table.send(1, &message("m", "sensor", to, "stream/data"));
        assert_eq!(table.got.keys().copied().collect::<Vec<_>>(), receivers, "{to:?}");
        table.forget();
    }
    table.send(1, &message("m", "sensor", &[], "stream/data"));
    let told = table.news(1);
    assert_eq!(told[0]["payload"]["error"], "invalid_envelope");
    assert!(told[0]["payload"]["message"].as_str().unwrap().contains("to those it names"), "{told:?}");
    table.send(1, &message("m", "sensor", &["plot"], "streams/data"));
    assert_eq!(table.got.len(), 4, "another class that begins alike is for all of the room");
    table.join_with(5, "late", WIDE, Preferences { history: 10, ..asking(&["stream"]) }).unwrap();
    assert_eq!(kinds_told(&table.news(5)), ["streams/data"]);
}

#[test]
fn a_history_holds_what_the_newcomer_would_have_got() {
    let mut table = Table::new(Settings { history: 4, ..Settings::default() });
    table.join(1, "ann", WIDE);
    let odd = r#"{ "kind":"chat","id" : "odd","from":"ann","protocol":"mcpx/v0.1","payload":{"n":1.50e0,"x":"\u00e4"} }"#;
    table.send(1, &message("gone", "ann", &[], "chat"));
    table.send(1, odd);
    table.send(1, &message("to-bob", "ann", &["bob"], "chat"));
    table.send(1, &message("reject", "ann", &[], "mcp/reject"));
    table.send(1, &message("refused", "bob", &[], "chat"));
    table.send(1, &fulfils("r", "ann", &["bob"], "mcp/reject:tools/call", "p"));
    table.forget();

    let asked = |history, preferences: Preferences| Preferences { history, ..preferences };
    table.join_with(2, "bob", FULL, asked(10, asking(&["mcp/reject"]))).unwrap();
    let got = table.got[&2][1].clone();
    assert!(String::from_utf8_lossy(&got).contains(odd), "byte for byte");
    let told = table.news(2);
    assert_eq!(kinds(&told), ["system/welcome", "system/history", "system/presence"]);
    assert_eq!(told[1]["to"], json!(["bob"]));
    assert_eq!(told[1]["payload"]["messages"][0]["at"], "1970-01-01T00:00:00Z");
    assert_eq!(
        (kinds_told(&told), &told[1]["payload"]["more"]),
        (vec!["chat", "chat", "mcp/reject", "mcp/reject:tools/call"], &json!(false))
    );

    table.join_with(3, "eve", FULL, asked(10, DIRECTED)).unwrap();
    assert_eq!(kinds_told(&table.news(3)), ["chat"], "nothing that was for others, nothing it did not ask for");
    table.join_with(4, "dan", FULL, asked(1, Preferences::default())).unwrap();
    let told = table.news(4);
    assert_eq!((kinds_told(&told), &told[1]["payload"]["more"]), (vec!["chat"], &json!(true)));
    table.join(5, "plain", FULL);
    assert_eq!(kinds(&table.news(5)), ["system/welcome", "system/presence"]);
}

#[test]
fn a_history_is_bounded_and_outlasts_an_empty_room() {
    let mut table = Table::new(Settings { history: 3, message_bytes: 400, ..Settings::default() });
    table.join(1, "ann", WIDE);
    let long = |id: &str| message(id, "ann", &[], "chat").replace("{}", &format!("{{\"text\":\"{}\"}}", "x".repeat(200)));
    (0..9).for_each(|n| table.send(1, &message(&format!("short-{n}"), "ann", &[], "chat")));
    let seen = |table: &mut Table, connection| {
        table.join_with(connection, "bob", FULL, Preferences { history: 9, ..Preferences::default() }).unwrap();
        let told = table.news(connection);
        let messages = told[1]["payload"]["messages"].as_array().unwrap();
        messages.iter().map(|past| past["envelope"]["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(seen(&mut table, 2), ["short-6", "short-7", "short-8"]);
    table.send(1, &long("long-1"));
    table.send(1, &long("long-2"));
    assert_eq!(seen(&mut table, 3), ["long-2"]);
    table.room.handle_leave(table.now, ConnectionId(1));
    table.room.handle_leave(table.now, ConnectionId(3));
    assert!(!table.room.is_idle());
    table.room.handle_settings(Settings::default());
    assert!(table.room.is_idle(), "a room that keeps nothing any more");
}

/// The kinds of the messages in a history.
fn kinds_told(news: &[Value]) -> Vec<&str> {
    let messages = news[1]["payload"]["messages"].as_array().unwrap();
    messages.iter().map(|past| past["envelope"]["kind"].as_str().unwrap()).collect()
}
