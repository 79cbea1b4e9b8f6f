//! Proposals to a seated server, with the tool named in the kind or only in the payload: either way a call is made once.

use policy::approval::Standing;
use serde_json::json;

use crate::seated::{answer, echo, gated, refused, said, standing};
use crate::world::bounded;

/// Both kinds of the same call, with and without the tool.
const SPELT: [&str; 2] = ["tools/call", "tools/call:fx_echo"];

#[tokio::test]
async fn a4_approvals_are_carried_out_for_either_kind() {
    bounded(async {
        let (world, person, mut ann, mut bot) = gated().await;
        for kind in SPELT {
            let payload = json!({"method": "tools/call", "params": echo(kind)});
            let proposal = bot.send(&format!("mcp/proposal:{kind}"), json!({"to": ["fx"]}), payload).await;
            let approval = person.waiting(&world).await;
            person.approve(&approval).await;
            let request = ann.next_where(|message| message["correlation_id"] == proposal.as_str()).await;
            assert_eq!((&request["from"], &request["payload"]["params"]["arguments"]), (&json!("gate"), &json!({"text": kind})));
            let response = bot.next_where(|message| message["correlation_id"] == request["id"]).await;
            assert_eq!((&response["to"], said(&response["payload"])), (&json!(["gate", "bot"]), kind));
            standing(&world, &approval.id, Standing::Done).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a4_a_proposal_is_fulfilled_once_for_either_kind() {
    bounded(async {
        let (world, person, mut ann, mut bot) = gated().await;
        for (proposed, asked) in SPELT.iter().flat_map(|one| SPELT.map(|other| (*one, other))) {
            let payload = json!({"method": "tools/call", "params": echo("x")});
            let proposal = bot.send(&format!("mcp/proposal:{proposed}"), json!({"to": ["fx"]}), payload).await;
            let approval = person.waiting(&world).await;
            let about = json!({"to": ["fx"], "correlation_id": proposal});
            let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": echo("x")});
            let first = ann.send(&format!("mcp/request:{asked}"), about.clone(), request.clone()).await;
            assert_eq!(said(&answer(&mut ann, &first).await), "x", "{proposed} {asked}");
            standing(&world, &approval.id, Standing::Withdrawn).await;
            for again in SPELT {
                let late = ann.send(&format!("mcp/request:{again}"), about.clone(), request.clone()).await;
                let told = answer(&mut ann, &late).await;
                assert!(refused(&told).contains("does not wait any more"), "{proposed} {asked} {again}: {told}");
            }
        }
        let stats = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "fx_stats", "arguments": {}}});
        let id = ann.send("mcp/request:tools/call", json!({"to": ["fx"]}), stats).await;
        assert_eq!(answer(&mut ann, &id).await["result"]["structuredContent"]["calls"], 4);
    })
    .await;
}
