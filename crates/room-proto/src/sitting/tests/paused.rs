//! A paused server.

use super::*;

impl Table {
    /// Sends a request to pause or to go on, from a permitted participant.
    fn control(&mut self, who: &str, kind: &str, payload: &Value) {
        let id = named(who);
        let place = WHO.iter().position(|(id, _)| *id == who).unwrap();
        let may = [crate::capability::Pattern::new("participant/*").unwrap()];
        self.company.room.handle_capabilities(self.company.now, &id, crate::room::Change { add: &may, remove: &[], by: "owner" }).unwrap();
        assert!(place > 1);
        self.say(who, kind, None, payload);
    }
}

#[test]
fn a_paused_server_refuses_calls_and_names_the_pauser() {
    let mut table = Table::new(|_| ());
    table.asks("ann", None);
    let Some(Output::Call(under_way)) = table.outputs.pop() else { panic!() };
    table.say("bot", "participant/pause", None, &json!({}));
    table.asks("ann", None);
    assert!(matches!(table.outputs.pop(), Some(Output::Call(_))), "without the capability the room passes nothing on");
    table.control("ann", "participant/pause", &json!({ "reason": "maintenance" }));
    table.asks("bob", None);
    assert_eq!(
        (table.outputs.len(), table.error().contains(r#""files" is paused by "ann" ("maintenance") and takes no new calls"#)),
        (0, true)
    );
    table.say("bob", "mcp/request:tools/list", None, &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
    assert!(table.outputs.is_empty() && table.error().starts_with("-32000"));
    table.say("bob", "mcp/request:ping", None, &json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }));
    assert!(matches!(table.outputs.pop(), Some(Output::Call(_))), "that it is there it says");
    // What was under way goes on.
    table.sitting.handle_answer(table.company.now, under_way.call, Answer::Result(b"{}"));
    assert!(matches!(table.sitting.poll_output(), Some(Output::Send(_))));
    table.control("bob", "participant/resume", &json!({}));
    table.asks("bob", None);
    assert!(matches!(table.outputs.pop(), Some(Output::Call(_))));
    table.control("ann", "participant/pause", &json!({ "timeout_seconds": 5 }));
    let (due, _) = table.sitting.poll_timeout().unwrap();
    table.company.now.instant = due;
    table.sitting.handle_timeout(table.company.now);
    table.asks("bob", None);
    assert!(matches!(table.outputs.pop(), Some(Output::Call(_))), "a pause ends by itself");
}

#[test]
fn approvals_during_a_pause_call_nothing() {
    let mut table = Table::new(|_| ());
    let (proposal, call) = table.proposes();
    table.control("ann", "participant/pause", &json!({}));
    table.sitting.handle_approval(table.company.now, call, BY);
    table.deliver();
    assert!(matches!(table.outputs.as_slice(), [Output::Cancel { call: ended, .. }] if *ended == call), "{:?}", table.outputs);
    let said = table.said.pop().unwrap();
    assert_eq!(
        (&said["kind"], &said["from"], &said["correlation_id"]),
        (&json!("mcp/reject:tools/call:rm"), &json!("gate"), &json!(proposal))
    );
    assert!(said["payload"]["reason"].as_str().unwrap().contains("paused by \"ann\""), "{said}");
    table.outputs.clear();
    // Fulfilled in the room, it is refused as any call.
    let (proposal, _) = table.proposes();
    table.asks("bob", Some(&proposal));
    assert!(table.error().contains("paused by \"ann\"") && !table.outputs.iter().any(|output| matches!(output, Output::Call(_))));
    // Agreed to and paused before the room has passed that on: neither is it called.
    table.control("ann", "participant/resume", &json!({}));
    table.outputs.clear();
    let (_, call) = table.proposes();
    table.sitting.handle_approval(table.company.now, call, BY);
    let Some(Output::SendAsGate(request)) = table.sitting.poll_output() else { panic!() };
    table.control("ann", "participant/pause", &json!({}));
    table.company.room.handle_message(table.company.now, ConnectionId(1), &request);
    table.deliver();
    assert!(matches!(table.outputs.as_slice(), [Output::Cancel { .. }]), "{:?}", table.outputs);
    assert!(table.error().contains("paused by"));
}
