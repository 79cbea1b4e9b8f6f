//! Admins and stewards of a room, and pauses among participants. The effects of a pause are tested elsewhere.

use super::*;
use crate::participant::PAUSE;

const PAUSES: &[&str] = &["mcp/*", "chat", "participant/*"];

fn asking(to: &[&str], from: &str) -> String {
    message("m", from, to, PAUSE)
}

/// Two stewards, and two agents allowed to pause others.
fn table() -> Table {
    let mut table = Table::new(Settings::default());
    let mut also = Also::NONE;
    assert!(also.ask(PAUSE) && also.ask("participant/resume"));
    for (connection, id, is_steward) in [(1, "ann", true), (2, "bob", true), (3, "bot", false), (4, "rover", false)] {
        let capabilities = Capabilities::read(PAUSES.iter().copied()).unwrap();
        let preferences = Preferences { also, ..Preferences::default() };
        let newcomer = Newcomer { id: named(id), capabilities, preferences, expires: None, is_own: false, is_steward };
        table.room.handle_join(table.now, ConnectionId(connection), newcomer).unwrap();
    }
    table.drain(true);
    table.forget();
    table
}

#[test]
fn only_stewards_pause_a_steward() {
    let mut table = table();
    for to in [&["ann"][..], &["rover", "ann"], &["ann", "ann"]] {
        table.send(3, &asking(to, "bot"));
        let told = table.news(3);
        assert_eq!(kinds(&told), ["system/error"], "{to:?}");
        assert_eq!(
            (&told[0]["payload"]["error"], &told[0]["payload"]["attempted_kind"]),
            (&json!("capability_violation"), &json!("participant/pause"))
        );
        assert!(told[0]["payload"]["message"].as_str().unwrap().starts_with("\"ann\" looks after this room"), "{told:?}");
        assert!([1, 2, 4].iter().all(|other| table.news(*other).is_empty()), "nobody hears of it");
    }
    for (connection, from, to) in
        [(3, "bot", "rover"), (3, "bot", "bot"), (3, "bot", "nobody"), (1, "ann", "bob"), (1, "ann", "ann"), (2, "bob", "bot")]
    {
        table.send(connection, &asking(&[to], from));
        assert_eq!(kinds(&table.news(4)), ["participant/pause"], "{from} {to}");
        table.forget();
    }
    table.send(3, &message("m", "bot", &["rover"], "participant/resume"));
    assert_eq!(kinds(&table.news(3)), ["participant/resume"], "no steward has paused it");
}

#[test]
fn only_stewards_end_a_stewards_pause() {
    let mut table = table();
    let says = |table: &mut Table, connection: u64, from: &str, kind: &str, to: &[&str], payload: Value| {
        let mut message: Value = serde_json::from_str(&message("m", from, to, kind)).unwrap();
        message["payload"] = payload;
        table.send(connection, &message.to_string());
        let refused = table.news(connection).into_iter().find(|told| told["kind"] == "system/error");
        table.forget();
        refused.map(|told| (told["payload"]["error"].clone(), told["payload"]["message"].as_str().unwrap().to_owned()))
    };
    assert_eq!(says(&mut table, 1, "ann", PAUSE, &["rover"], json!({})), None);
    // Neither by ending it, nor by one that ends sooner; and not by whoever is paused.
    for (connection, from) in [(3, "bot"), (4, "rover")] {
        for (kind, to) in [("participant/resume", &["rover"][..]), (PAUSE, &["rover"]), ("participant/resume", &["bot", "rover"])] {
            let (error, message) = says(&mut table, connection, from, kind, to, json!({ "timeout_seconds": 1 })).unwrap();
            assert_eq!(error, json!("capability_violation"));
            assert!(message.starts_with("\"rover\" was paused by \"ann\""), "{message}");
        }
    }
    assert_eq!(says(&mut table, 3, "bot", "participant/resume", &["bot"], json!({})), None, "it is for others");
    assert_eq!(says(&mut table, 2, "bob", "participant/resume", &["rover"], json!({})), None, "another steward");
    assert_eq!(says(&mut table, 3, "bot", PAUSE, &["rover"], json!({})), None);
    assert_eq!(says(&mut table, 4, "rover", "participant/resume", &["rover"], json!({})), None, "no steward has paused it now");
    // It ends with its time, and with the connection.
    assert_eq!(says(&mut table, 1, "ann", PAUSE, &["rover"], json!({ "timeout_seconds": 60 })), None);
    assert!(says(&mut table, 3, "bot", "participant/resume", &["rover"], json!({})).is_some());
    table.now.instant += Duration::from_secs(60);
    assert_eq!(says(&mut table, 3, "bot", "participant/resume", &["rover"], json!({})), None);
    assert_eq!(says(&mut table, 1, "ann", PAUSE, &["rover"], json!({})), None);
    table.join(6, "rover", PAUSES);
    table.forget();
    assert_eq!(says(&mut table, 3, "bot", "participant/resume", &["rover"], json!({})), None, "it is not paused any more");
}

#[test]
fn a_paused_steward_is_still_heard() {
    let mut table = table();
    table.send(2, &asking(&["ann"], "bob"));
    table.forget();
    for kind in ["chat", "mcp/reject:tools/call", "participant/pause", "participant/resume"] {
        table.send(1, &message("m", "ann", &["bot"], kind));
        assert_eq!(table.news(1).iter().filter(|told| told["kind"] == "system/error").count(), 0, "{kind}");
        assert!(matches!(table.events.last(), Some(Event::Relayed { id, .. }) if id.as_str() == "ann"), "{kind}");
        table.forget();
    }
}

#[test]
fn the_last_connection_decides_who_is_a_steward() {
    let mut table = table();
    table.join(5, "ann", PAUSES);
    table.forget();
    table.send(3, &asking(&["ann"], "bot"));
    assert_eq!(kinds(&table.news(3)), ["participant/pause"], "it came back as somebody else");
}

#[test]
fn mx_15_only_real_changes_of_hearing_are_welcomed_by_rate() {
    let settings = Settings { messages: Rate { per_second: 1, burst: 3 }, ..Settings::default() };
    let mut table = Table::new(settings);
    table.join(1, "a", FULL);
    table.forget();
    let mut change = |echo| {
        let done = table.room.handle_hearing(table.now, &named("a"), Hearing { routing: None, echo });
        table.drain(true);
        (done.map(|done| done.is_changed), table.news(1).len())
    };
    assert_eq!(change(None), (Ok(false), 0), "an empty change");
    assert_eq!(change(Some(true)), (Ok(false), 0), "the choice as before");
    assert_eq!(change(Some(false)), (Ok(true), 1));
    let too_fast = Err(RoomError::RateLimited { retry_after: Duration::from_secs(1) });
    assert_eq!(change(Some(true)), (too_fast, 0));
}

#[test]
fn admins_put_out_rooms_are_full_and_end() {
    let mut table = Table::new(Settings { participants: 2, rulings: 1, ..Settings::default() });
    table.join(1, "a", FULL);
    table.join(2, "b", FULL);
    assert_eq!(table.join_with(3, "c", FULL, Preferences::default()), Err(RoomError::Full { most: 2 }));
    table.join(4, "b", FULL);
    table.forget();
    table.room.handle_dismissal(table.now, &named("a")).unwrap();
    table.drain(true);
    assert_eq!(table.closed[&1], CloseReason::Dismissed);
    assert_eq!(table.news(4)[0]["payload"]["event"], "leave");
    let nothing = Change { add: &[], remove: &[], by: "admin" };
    table.join(5, "d", FULL);
    table.room.handle_capabilities(table.now, &named("b"), nothing).unwrap();
    assert_eq!(table.room.handle_capabilities(table.now, &named("d"), nothing), Err(RoomError::Rulings { most: 1 }));
    table.drain(true);
    table.forget();
    table.room.handle_end();
    table.drain(true);
    assert_eq!((table.closed[&4], table.closed[&5], table.got.len()), (CloseReason::RoomEnds, CloseReason::RoomEnds, 0));
    let all = [
        CloseReason::Dismissed,
        CloseReason::Expired,
        CloseReason::Misbehaved,
        CloseReason::Replaced,
        CloseReason::RoomEnds,
        CloseReason::SlowReader,
    ];
    assert!(all.iter().all(|why| why.reason().len() <= 123));
}
