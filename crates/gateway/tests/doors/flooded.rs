//! Floods of refused calls: they push nothing out of the record, fill it for nobody, and are counted to the last.

use gateway::admin::shapes::AuditEntry;
use serde_json::{Value, json};

use crate::asked::text;
use crate::held::reason;
use crate::recorded::{entries_in, facts, intents, read};
use crate::world::{Client, Era, World, bounded, eventually, fixture, token};

const ECHO: &str = "fx__fx_echo";
/// Calls of a flood, each with a name that takes 12 KB in an entry.
const FLOOD: usize = 400;

/// Starts a gate where `ann` may do everything and `bob` nothing, with these settings of the record.
async fn ruled(audit: &str, more: &str) -> World {
    ruled_in(tempfile::tempdir().unwrap(), audit, more).await
}

async fn ruled_in(state: tempfile::TempDir, audit: &str, more: &str) -> World {
    let (rules, path) = (state.path().join("policy.cedar"), state.path().join("record"));
    std::fs::write(&rules, "permit (principal == Principal::\"ann\", action, resource);").unwrap();
    let people = ["ann", "bob"].map(token).concat();
    let toml = format!("{people}[policy]\nfile = {rules:?}\n{more}[audit]\npath = {path:?}\n{audit}{}", fixture("fx", Era::Stateless));
    World::kept(state, &toml).await
}

async fn client(world: &World, name: &str) -> Client {
    Client::new(world, Era::Initialize).with("authorization", &format!("Bearer secret-of-{name}")).open().await
}

/// Calls an existing and a made-up tool in turns, as a caller without any right.
async fn flood(client: &Client, calls: usize) {
    let long = "\u{1}".repeat(2048);
    for number in 0..calls {
        let name = if number % 2 == 0 { ECHO } else { &long };
        assert!(client.tool(name, json!({"text": "x"})).await["error"].is_object());
    }
}

/// Sums up somebody's refusals for a reason: their number, and the number of entries.
fn refusals(entries: &[AuditEntry], whose: &str, wanted: &str) -> (u64, usize) {
    let of = |entry: &&AuditEntry| entry.event == "refused" && entry.principal.as_deref() == Some(whose);
    let refused: Vec<Value> = entries.iter().filter(of).map(facts).filter(|facts| facts["reason"] == wanted).collect();
    (refused.iter().map(|facts| facts["count"].as_u64().unwrap_or(1)).sum(), refused.len())
}

fn calls_of(entries: &[AuditEntry], whose: &str) -> usize {
    intents(entries).iter().filter(|intent| intent["principal"] == whose).count()
}

#[tokio::test]
async fn h6_a_flood_of_refusals_leaves_others_entries_and_calls() {
    bounded(async {
        let world = ruled("keep_size = \"1MiB\"\nfull_size = \"1MiB\"\n", "").await;
        let (ann, bob) = (client(&world, "ann").await, client(&world, "bob").await);
        assert_eq!(text(&ann.tool(ECHO, json!({"text": "before"})).await), "before");
        flood(&bob, FLOOD).await;
        assert_eq!(text(&ann.tool(ECHO, json!({"text": "after"})).await), "after");
        assert!(!world.gateway.audit().unwrap().full);
        let entries = read(world).await;
        assert_eq!(calls_of(&entries, "ann"), 2, "what was there before the flood is there");
        let [denied, unknown] = ["not_permitted", "unknown"].map(|reason| refusals(&entries, "bob", reason));
        assert_eq!((denied.0, unknown.0), (FLOOD as u64 / 2, FLOOD as u64 / 2), "none is forgotten");
        assert!(denied.1 + unknown.1 < 40, "{denied:?} {unknown:?}");
    })
    .await;
}

#[tokio::test]
async fn h6_refusals_beyond_the_first_are_summed_up() {
    bounded(async {
        let world = ruled("", "").await;
        let bob = client(&world, "bob").await;
        for _ in 0..50 {
            bob.tool(ECHO, json!({"text": "x"})).await;
        }
        let entries = read(world).await;
        let counted: Vec<&AuditEntry> = entries.iter().filter(|entry| entry.count.is_some()).collect();
        assert_eq!(refusals(&entries, "bob", "not_permitted"), (50, 31));
        assert_eq!((counted.len(), counted[0].count, counted[0].outcome.as_deref()), (1, Some(20), Some("refused: not_permitted")));
        let facts = facts(counted[0]);
        assert_eq!((&facts["intent"]["name"], &facts["intent"]["mount"]), (&json!("fx_echo"), &json!("fx")));
    })
    .await;
}

#[tokio::test]
async fn h6_a_full_record_refuses_calls_and_keeps_its_entries() {
    bounded(async {
        let audit = "arguments = \"full\"\nkeep_size = \"1MiB\"\nfull_size = \"1MiB\"\nkeep_at_least = ";
        // One may have all of it here.
        let world = ruled(&format!("{audit}\"1h\"\n"), "[limits]\nshare = 100\n").await;
        let ann = client(&world, "ann").await;
        let long = "l".repeat(2500);
        let count = std::cell::Cell::new(0);
        let refused = eventually(async || {
            let told = ann.tool(ECHO, json!({"text": long})).await;
            count.set(count.get() + u64::from(told["error"].is_object()));
            // What is written during a look counts twice until the next one: a call may be refused a little early, and others go on.
            (told["error"].is_object() && size_of(&world) >= 1 << 20).then_some(told)
        });
        let refused = refused.await;
        assert_eq!((reason(&refused), &refused["error"]["code"]), ("record_full", &json!(-32013)));
        assert!(refused["error"]["data"]["hint"].as_str().unwrap().contains("full_size"), "{refused}");
        assert!(world.gateway.audit().unwrap().full && world.gateway.metrics().contains("banyan_audit_full 1"));
        let size = size_of(&world);
        assert!(size < (1 << 20) + 8000, "the entry that took the last of the room, and no other: {size}");
        for _ in 0..200 {
            assert_eq!(reason(&ann.tool(ECHO, json!({"text": long})).await), "record_full");
        }
        let state = world.end_keeping().await;
        let entries = entries_in(&state.path().join("record"));
        assert!(calls_of(&entries, "ann") > 20 && entries[0].event == "started", "the oldest is there");
        let (refused, written) = refusals(&entries, "ann", "record_full");
        assert!(refused == count.get() + 200 && written <= 2, "who is refused for this fills nothing: {refused} in {written}");
        let world = ruled_in(state, &format!("{audit}\"1ms\"\n"), "").await;
        let ann = client(&world, "ann").await;
        eventually(async || ann.tool(ECHO, json!({"text": "again"})).await["result"].is_object().then_some(())).await;
        assert!(world.gateway.audit().unwrap().removed > 0 && !world.gateway.audit().unwrap().full);
    })
    .await;
}

/// Files of lines of the record, with their sizes.
fn files(world: &World) -> Vec<(std::path::PathBuf, u64)> {
    let entries = std::fs::read_dir(world.state.path().join("record/chain-0001/entries")).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.path(), entry.metadata().unwrap().len())).collect()
}

fn size_of(world: &World) -> u64 {
    files(world).iter().map(|(_, bytes)| bytes).sum()
}

#[tokio::test]
async fn h6_a_clock_set_forward_takes_no_young_entry_away() {
    bounded(async {
        let world = ruled("arguments = \"full\"\nkeep_size = \"1MiB\"\nfull_size = \"64MiB\"\nkeep_at_least = \"1h\"\n", "").await;
        let ann = client(&world, "ann").await;
        let long = "l".repeat(6000);
        let fill = async |wanted: usize| {
            while files(&world).len() < wanted {
                assert_eq!(text(&ann.tool(ECHO, json!({"text": long})).await), long);
            }
        };
        fill(2).await;
        // As if the clock had been set forward by a day since these lines were written.
        let before = std::time::SystemTime::now() - std::time::Duration::from_secs(86_400);
        for (path, _) in files(&world) {
            std::fs::File::open(path).unwrap().set_modified(before).unwrap();
        }
        fill(4).await;
        let told = world.gateway.audit().unwrap();
        assert!(size_of(&world) > 2 << 20 && (told.removed, told.full) == (0, false), "{} {}", told.removed, told.full);
    })
    .await;
}

#[tokio::test]
async fn h6_refused_calls_are_charged_to_their_callers_budget() {
    bounded(async {
        let budget = "[budget.few]\nprincipals = [\"*\"]\nmax_calls_per_minute = 3\n";
        let world = ruled("", budget).await;
        let (ann, bob) = (client(&world, "ann").await, client(&world, "bob").await);
        let mut told = Vec::new();
        for name in [ECHO, "fx__none", ECHO, ECHO, "fx__none"] {
            told.push(reason(&bob.tool(name, json!({"text": "x"})).await).to_owned());
        }
        assert_eq!(told, ["unknown_tool", "unknown_tool", "unknown_tool", "budget_exceeded", "budget_exceeded"]);
        assert_eq!(text(&ann.tool(ECHO, json!({"text": "hers"})).await), "hers");
    })
    .await;
}
