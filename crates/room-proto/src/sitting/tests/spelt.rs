//! Proposals and requests with and without a CONTEXT in their kinds: the same call (3.2).

use super::*;

const SPELT: [(&str, &str); 4] = [("", ""), ("", ":rm"), (":rm", ""), (":rm", ":rm")];

/// Lets `bot` propose, with or without the tool in the kind; gives the proposal, and the waiting call.
fn proposes(table: &mut Table, context: &str) -> (String, CallId) {
    let payload = json!({ "method": "tools/call", "params": remove("/tmp") });
    let id = table.say("bot", &format!("mcp/proposal:tools/call{context}"), None, &payload);
    match table.outputs.pop() {
        Some(Output::Propose(asked)) => (id, asked.call),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a4_any_spelling_of_kinds_fulfils_once() {
    for (proposed, asked) in SPELT {
        let mut table = Table::new(|_| ());
        let (proposal, over) = proposes(&mut table, proposed);
        let kind = format!("mcp/request:tools/call{asked}");
        table.say("ann", &kind, Some(&proposal), &call("1", &remove("/tmp")));
        let [Output::Cancel { call: ended, .. }, Output::Call(made)] = &table.outputs[..] else { panic!("{:?}", table.outputs) };
        assert_eq!((*ended, made.by.as_str()), (over, "ann"));
        for kind in ["mcp/request:tools/call", "mcp/request:tools/call:rm"] {
            table.say("bob", kind, Some(&proposal), &call("2", &remove("/tmp")));
            assert!(table.error().contains("does not wait any more"), "{proposed} {asked}");
        }
        assert_eq!(table.outputs.len(), 2);
    }
}

#[test]
fn a4_the_gate_fulfils_proposals_of_any_spelling() {
    for proposed in ["", ":rm"] {
        let mut table = Table::new(|_| ());
        let (_, call) = proposes(&mut table, proposed);
        table.sitting.handle_approval(table.company.now, call, BY);
        table.deliver();
        assert_eq!(table.outputs, [Output::Approved(call)], "{proposed}");
    }
}

#[test]
fn a4_a_request_unlike_its_approval_calls_nothing() {
    for params in [remove("/"), json!({ "name": "rm", "arguments": { "path": "/tmp" }, "task": {} })] {
        let mut table = Table::new(|_| ());
        let (proposal, waits) = proposes(&mut table, "");
        table.say("gate", "mcp/request:tools/call:rm", Some(&proposal), &call("1", &params));
        assert!(table.error().contains("something else than what was agreed to"));
        assert!(matches!(&table.outputs[..], [Output::Cancel { call, .. }] if *call == waits), "{:?}", table.outputs);
    }
}

#[test]
fn a4_the_proposer_hears_of_an_unsayable_approval() {
    let mut table = Table::new(|bounds| bounds.message_bytes = 500);
    let payload = json!({ "method": "tools/call", "params": remove(&"x".repeat(200)) });
    let proposal = table.say("bot", "mcp/proposal:tools/call", None, &payload);
    let Some(Output::Propose(asked)) = table.outputs.pop() else { panic!() };
    table.sitting.handle_approval(table.company.now, asked.call, BY);
    table.deliver();
    assert!(matches!(&table.outputs[..], [Output::Cancel { call, .. }] if *call == asked.call), "{:?}", table.outputs);
    let said = table.said.pop().unwrap();
    assert_eq!((&said["kind"], &said["to"], &said["correlation_id"]), (&json!("chat"), &json!(["bot"]), &json!(proposal)));
    assert!(said["payload"]["text"].as_str().unwrap().contains("a message of this room at most 500"), "{said}");
}
