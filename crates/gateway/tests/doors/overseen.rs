//! Calls of the last hour and offers of servers, as the first pages of the console show them.

use serde_json::json;

use crate::world::{Client, Era, World, bounded, fixture, token};

#[tokio::test]
async fn an_overview_counts_calls_by_caller_and_fate() {
    bounded(async {
        let state = tempfile::tempdir().unwrap();
        let file = state.path().join("policy.cedar");
        let rules = "@id(\"all\") permit (principal, action, resource);\n\
             @id(\"no-bob\") forbid (principal == Principal::\"bob\", action, resource == Tool::\"fx.fx_echo\");";
        std::fs::write(&file, rules).unwrap();
        let toml = format!("{}{}[policy]\nfile = {file:?}\n{}", token("ann"), token("bob"), fixture("fx", Era::Stateless));
        let world = World::kept(state, &toml).await;
        let client =
            async |name: &str| Client::new(&world, Era::Stateless).with("authorization", &format!("Bearer secret-of-{name}")).open().await;
        let (ann, bob) = (client("ann").await, client("bob").await);
        for _ in 0..2 {
            ann.tool("fx__fx_echo", json!({"text": "x"})).await;
        }
        bob.tool("fx__fx_echo", json!({"text": "x"})).await;
        ann.tool("nobody__has_this", json!({})).await;
        let seen = world.gateway.overview();
        assert_eq!((seen.whole.calls, seen.whole.failed, seen.whole.refused), (4, 0, 2), "{seen:?}");
        let callers: Vec<_> = seen.callers.iter().map(|one| (&*one.name, one.calls, one.refused)).collect();
        assert_eq!(callers, [("ann", 3, 1), ("bob", 1, 1)]);
        let tools: Vec<_> = seen.tools.iter().map(|one| (&*one.name, one.calls)).collect();
        assert_eq!(tools, [("fx.fx_echo", 2)], "a name that only a caller says has no counts");
        assert_eq!(seen.steps.iter().map(|step| step.calls).sum::<u32>(), 4);
        let last: Vec<_> = seen.last.iter().map(|one| (&*one.caller, one.refused, one.route.contains("fx_echo"))).collect();
        assert_eq!(last, [("ann", true, false), ("bob", true, true), ("ann", false, true), ("ann", false, true)]);
        assert!(seen.whole.p50_ms.is_some_and(|took| took > 0.0));
    })
    .await;
}

#[tokio::test]
async fn a_call_of_a_dead_server_is_its_error() {
    bounded(async {
        let world = World::start("[mount.gone]\ncommand = \"there-is-no-such-program\"\n").await;
        let client = Client::new(&world, Era::Stateless).open().await;
        client.tool("gone__add", json!({})).await;
        let seen = world.gateway.overview();
        assert_eq!((seen.whole.calls, seen.whole.failed, seen.whole.refused), (1, 1, 0), "{seen:?}");
        let servers: Vec<_> = seen.servers.iter().map(|one| (&*one.name, one.lately, one.lately_failed)).collect();
        assert_eq!(servers, [("gone", 1, 1)]);
        let last: Vec<_> = seen.last.iter().map(|one| (&*one.route, &*one.outcome, one.failed)).collect();
        assert_eq!(last, [("gone.add", "unreachable", true)]);
    })
    .await;
}

#[tokio::test]
async fn offers_list_prompts_and_resources_as_written() {
    bounded(async {
        let world = World::start(&fixture("fx", Era::Stateless)).await;
        let offers = world.gateway.offers();
        assert!(offers.prompts.iter().all(|one| one.server == "fx" && one.name.starts_with("fx.")), "{offers:?}");
        let status = world.gateway.status();
        let counted: (usize, usize) = status.iter().fold((0, 0), |sum, one| (sum.0 + one.prompts, sum.1 + one.resources));
        assert_eq!((offers.prompts.len(), offers.resources.len()), counted);
        assert!(counted.0 > 0 && counted.1 > 0, "the fixture offers both");
        assert!(offers.prompts.iter().all(|one| one.definition.as_ref().is_some_and(|raw| raw.get().contains("\"name\""))));
    })
    .await;
}
