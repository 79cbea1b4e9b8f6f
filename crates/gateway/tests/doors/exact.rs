//! The approved call goes out exactly: every member that was shown and no other, to the server that was shown, once.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::asked::text;
use crate::held::{Person, plain};
use crate::world::tap::Tap;
use crate::world::{Client, Era, World, bounded, token};

/// A server of the stateless era whose only tool `pay` asks for an account before paying. Writes down the params of each call.
const PAYS: &str = r#"
import json, sys
heard, calls = open(sys.argv[1], "a"), 0
for line in sys.stdin:
    asked = json.loads(line)
    method, params, result = asked["method"], asked.get("params", {}), {}
    if method == "server/discover":
        result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
    elif method == "tools/list":
        result = {"tools": [{"name": "pay", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        print(json.dumps(params), file=heard, flush=True)
        calls, result = calls + 1, {"content": [{"type": "text", "text": "paid"}]}
        if "inputResponses" not in params:
            question = {"method": "elicitation/create", "params": {"mode": "form", "message": "which?", "requestedSchema": {"type": "object"}}}
            result = {"resultType": "input_required", "inputRequests": {"account": question}, "requestState": f"s-{calls}"}
    if "id" in asked:
        result = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **result}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"#;

const GATED: &str = "[gate]\nmode = \"irreversible\"\nexpires = \"30s\"\n";

struct Bank {
    world: World,
    person: Person,
    client: Client,
    heard: tempfile::TempDir,
}

impl Bank {
    async fn start() -> Self {
        let heard = tempfile::tempdir().unwrap();
        let world = World::start(&format!("{GATED}{}", Self::mount(&heard, "1"))).await;
        Self { person: Person::at(&world, 1, "anna").await, client: plain(&world, Era::Stateless).await, world, heard }
    }

    /// Writes the table of the mount, with a further argument for the server.
    fn mount(heard: &tempfile::TempDir, more: &str) -> String {
        let path = heard.path().join("heard");
        format!("[mount.bank]\ncommand = \"python3\"\nargs = [\"-c\", '''{PAYS}''', {path:?}, \"{more}\"]\n")
    }

    /// Calls with more members than arguments.
    async fn pay(&self, more: Value) -> Value {
        let mut params = json!({"name": "bank__pay", "arguments": {"amount": 1}});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.client.call("tools/call", params).await
    }

    /// Pays with an account.
    async fn pay_from(&self, account: &str, state: &Value) -> Value {
        self.pay(json!({"inputResponses": {"account": {"action": "accept", "content": {"iban": account}}}, "requestState": state})).await
    }

    async fn agree(&self) {
        self.person.approve(&self.person.waiting(&self.world).await).await;
    }

    /// Reads the params of all calls to the server.
    fn heard(&self) -> Vec<Value> {
        let lines = std::fs::read_to_string(self.heard.path().join("heard")).unwrap_or_default();
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn is_held(told: &Value) -> bool {
    told["result"]["isError"] == true && text(told).contains("was not called")
}

#[tokio::test]
async fn h4_inputs_never_shown_go_out_by_no_approval() {
    bounded(async {
        let bank = Bank::start().await;
        assert!(is_held(&bank.pay(json!({})).await));
        bank.agree().await;
        let told = bank.pay_from("ATTACKER", &json!("s-9")).await;
        assert!(is_held(&told) && bank.heard().is_empty(), "{told}");
        let shown = bank.person.waiting(&bank.world).await;
        let others: Value = serde_json::from_str(&shown.others).unwrap();
        assert_eq!(others["inputResponses"]["account"]["content"]["iban"], "ATTACKER");
    })
    .await;
}

#[tokio::test]
async fn h4_after_a_question_only_the_matching_state_goes_on() {
    bounded(async {
        let bank = Bank::start().await;
        bank.pay(json!({})).await;
        bank.agree().await;
        let asked = bank.pay(json!({})).await;
        let state = asked["result"]["requestState"].clone();
        assert_eq!(state, "s-1", "{asked}");
        assert!(is_held(&bank.pay(json!({})).await), "it was good for one call");
        assert!(is_held(&bank.pay_from("mine", &json!("s-2")).await));
        let both = tokio::join!(bank.pay_from("mine", &state), bank.pay_from("ATTACKER", &state));
        let paid = [&both.0, &both.1].iter().filter(|told| !is_held(told) && text(told) == "paid").count();
        assert_eq!((paid, bank.heard().len()), (1, 2), "{both:?}");
        assert!(is_held(&bank.pay_from("mine", &state).await));
        assert_eq!(bank.heard().len(), 2);
    })
    .await;
}

#[tokio::test]
async fn h4_members_beside_arguments_are_shown_signed_and_sent() {
    bounded(async {
        let bank = Bank::start().await;
        let more = json!({"task": {"ttl": 1}, "_meta": {"vendor/target": "live"}});
        assert!(is_held(&bank.pay(more.clone()).await));
        let shown = bank.person.waiting(&bank.world).await;
        assert_eq!(serde_json::from_str::<Value>(&shown.others).unwrap(), more);
        assert!(
            shown.challenge.contains("\"type\":\"banyan-approval-v2\"") && shown.challenge.contains("others_sha256"),
            "{}",
            shown.challenge
        );
        bank.agree().await;
        assert!(is_held(&bank.pay(json!({"task": {"ttl": 2}})).await) && is_held(&bank.pay(json!({})).await) && bank.heard().is_empty());
        bank.pay(more.clone()).await;
        let sent = bank.heard().pop().unwrap();
        assert_eq!((&sent["task"], &sent["_meta"]["vendor/target"]), (&more["task"], &json!("live")));
    })
    .await;
}

#[tokio::test]
async fn h4_the_client_of_a_request_is_shown_and_signed() {
    bounded(async {
        let bank = Bank::start().await;
        let held = bank.pay(json!({})).await;
        let shown = bank.person.waiting(&bank.world).await;
        let client: Value = serde_json::from_str(&shown.client).unwrap();
        assert!(client["io.modelcontextprotocol/clientInfo"]["name"].is_string(), "{client}");
        let digest: String = Sha256::digest(&shown.client).iter().map(|byte| format!("{byte:02x}")).collect();
        let signed: Value = serde_json::from_str(&shown.challenge).unwrap();
        assert_eq!(signed["client_sha256"], json!(digest));
        // Gates above show it to their people.
        assert!(held.to_string().contains(&shown.client), "{held}");
    })
    .await;
}

#[tokio::test]
async fn e2_an_approved_call_goes_out_to_the_letter() {
    bounded(async {
        let bank = Bank::start().await;
        let shown = json!({"task": {"ttl": 1}, "_meta": {"vendor/limit": 100}});
        assert!(is_held(&bank.pay(shown).await));
        bank.agree().await;
        let free = json!({"IBAN": "ATTACKER"});
        let meta = json!({"vendor/limit": 1e2, "traceparent": free, "tracestate": free, "progressToken": free});
        bank.pay(json!({"arguments": {"amount": 1.0}, "task": {"ttl": 1.0}, "_meta": meta})).await;
        let sent = bank.heard().pop().unwrap();
        assert_eq!((sent["arguments"].to_string(), sent["task"].to_string()), ("{\"amount\":1}".into(), "{\"ttl\":1}".into()));
        assert_eq!(sent["_meta"]["vendor/limit"].to_string(), "100");
        assert!(!sent.to_string().contains("ATTACKER"), "{sent}");
    })
    .await;
}

#[tokio::test]
async fn l2_an_approved_call_reaches_no_other_server_so_named() {
    bounded(async {
        let bank = Bank::start().await;
        bank.pay(json!({})).await;
        bank.agree().await;
        bank.world.apply(&format!("{GATED}{}", Bank::mount(&bank.heard, "2")));
        bank.world.until("bank", |mount| mount.state == "ready" && mount.tools == 1).await;
        let told = bank.pay(json!({})).await;
        assert!(is_held(&told) && bank.heard().is_empty(), "{told}");
    })
    .await;
}

#[tokio::test]
async fn l1_an_approved_call_leaves_once_even_if_repeatable() {
    bounded(async {
        let twice = "[mount.up.tools.run]\nidempotent = true\ntrust = true\n";
        let mut sent = Vec::new();
        for gate in ["", GATED] {
            let tap = Tap::start(Era::Stateless).await;
            let world = World::start(&format!("{gate}{}{}{twice}", token("ann"), tap.table())).await;
            let client = plain_as(&world, "ann").await;
            let run = async || client.tool("up__run", json!({"size": 1000, "cut": 5})).await;
            if !gate.is_empty() {
                let person = Person::at(&world, 1, "anna").await;
                assert!(is_held(&run().await));
                person.approve(&person.waiting(&world).await).await;
            }
            let told = run().await;
            assert_eq!(told["error"]["data"]["reason"], "outcome_unknown", "{told}");
            sent.push(tap.sent());
        }
        assert_eq!(sent[0], 2 * sent[1], "where nobody has to agree, it is tried once more");
    })
    .await;
}

async fn plain_as(world: &World, name: &str) -> Client {
    let mut client = Client::new(world, Era::Stateless).with("authorization", &format!("Bearer secret-of-{name}"));
    client.capabilities = json!({});
    client.open().await
}
