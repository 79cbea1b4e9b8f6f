//! A store that fails for a moment: an unwritten step has not happened, and all goes on as soon as writing works again.

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::asked::text;
use crate::held::{GATED, Person, plain, reason};
use crate::world::{Client, Era, World, bounded, eventually, fixture};

/// A gate with a store that can be made to fail.
struct FailingStore {
    world: World,
    person: Person,
    client: Client,
}

impl FailingStore {
    async fn start() -> Self {
        let world = World::start(&format!("{GATED}{}", fixture("fx", Era::Stateless))).await;
        let person = Person::at(&world, 1, "anna").await;
        let client = plain(&world, Era::Stateless).await;
        Self { world, person, client }
    }

    fn store(&self, sql: &str) {
        let store = Connection::open(self.world.state.path().join("banyan.db")).unwrap();
        store.busy_timeout(std::time::Duration::from_secs(30)).unwrap();
        store.execute_batch(sql).unwrap();
    }

    /// Lets every write with this standing fail from now on.
    fn fails(&self, standing: &str) {
        self.store(&format!(
            "CREATE TRIGGER full BEFORE INSERT ON approvals WHEN NEW.body LIKE '%\"standing\":\"{standing}\"%' \
             BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
        ));
    }

    fn mend(&self) {
        self.store("DROP TRIGGER full");
    }

    async fn echo(&self) -> Value {
        self.client.tool("fx__fx_echo", json!({"text": "x"})).await
    }

    /// Asks for the call, and has it approved.
    async fn agreed(&self) {
        assert_eq!(self.echo().await["result"]["isError"], true);
        self.person.approve(&self.person.waiting(&self.world).await).await;
    }

    /// Lists the standing of all approvals, in memory and on the disk.
    async fn standings(&self) -> (Vec<String>, Vec<String>) {
        let standing = |approval: &Value| approval["standing"].as_str().unwrap().to_owned();
        let all: Value = self.person.admin.get("/-/approvals", &[("all", "true")]).await.unwrap();
        let store = Connection::open(self.world.state.path().join("banyan.db")).unwrap();
        let mut rows = store.prepare("SELECT body FROM approvals WHERE kind = 'approval'").unwrap();
        let rows = rows.query_map([], |row| row.get::<_, String>(0)).unwrap();
        let kept = rows.map(|body| standing(&serde_json::from_str(&body.unwrap()).unwrap())).collect();
        (all["approvals"].as_array().unwrap().iter().map(standing).collect(), kept)
    }
}

fn both(standing: &str) -> (Vec<String>, Vec<String>) {
    (vec![standing.to_owned()], vec![standing.to_owned()])
}

#[tokio::test]
async fn ax_46_an_unwritten_release_frees_nothing_later() {
    bounded(async {
        let gate = FailingStore::start().await;
        assert_eq!(gate.echo().await["result"]["isError"], true);
        let approval = gate.person.waiting(&gate.world).await;
        gate.fails("released");
        let body = json!({"proof": gate.person.proof(&approval.challenge)});
        let told = gate.person.admin.post(&format!("/-/approvals/{}/confirm", approval.id), &body).await.unwrap_err();
        assert!(told.to_string().contains("ask again"), "{told}");
        gate.mend();
        assert_eq!(gate.echo().await["result"]["isError"], true, "nobody was told that it is free");
        assert_eq!(gate.standings().await, both("pending"));
        gate.person.approve(&gate.person.waiting(&gate.world).await).await;
        assert_eq!(text(&gate.echo().await), "x");
        assert_eq!(gate.standings().await, both("done"));
    })
    .await;
}

#[tokio::test]
async fn ax_46_an_unwritable_dispatch_keeps_the_call_approved() {
    bounded(async {
        for waits in [false, true] {
            let gate = FailingStore::start().await;
            gate.fails("dispatched");
            let told = if waits {
                let params = json!({"name": "fx__fx_echo", "arguments": {"text": "x"}, "_meta": {"progressToken": "mine"}});
                let agree = async { gate.person.approve(&gate.person.waiting(&gate.world).await).await };
                tokio::join!(gate.client.call("tools/call", params), agree).0
            } else {
                gate.agreed().await;
                gate.echo().await
            };
            assert_eq!(reason(&told), "policy_error", "{told}");
            assert!(told["error"]["message"].as_str().unwrap().contains("ask again"), "{told}");
            gate.mend();
            assert_eq!(gate.standings().await, both("released"));
            assert_eq!(text(&gate.echo().await), "x", "whoever waited: {waits}");
            assert_eq!(gate.echo().await["result"]["isError"], true, "it was good for one call");
        }
    })
    .await;
}

#[tokio::test]
async fn ax_46_an_outcome_is_written_once_writing_works() {
    bounded(async {
        let gate = FailingStore::start().await;
        gate.agreed().await;
        gate.fails("done");
        assert_eq!(text(&gate.echo().await), "x");
        assert!(gate.person.admin.get::<Value>("/-/approvals", &[]).await.is_err(), "nothing is said that is not on the disk");
        gate.mend();
        eventually(async || (gate.standings().await == both("done")).then_some(())).await;
        assert_eq!(gate.echo().await["result"]["isError"], true, "it was good for one call");
    })
    .await;
}
