//! Callers without the owner's token hear of usable servers only, and of failures nothing that a server wrote for its operator.

use bytes::Bytes;
use http_body_util::Full;
use serde_json::{Value, json};

use crate::pinned::mount;
use crate::recorded::{read, recording};
use crate::world::registrant::{Registrant, reads};
use crate::world::{Client, Era, World, bounded, fixture, send, token};

/// A server that writes a secret on standard error and dies under a call, for good.
const TALKATIVE: &str = r#"
import json, os, sys
if os.path.exists(sys.argv[1]):
    sys.exit("hunter2: still down")
for line in sys.stdin:
    m = json.loads(line)
    if m["method"] == "initialize":
        r = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}}
    elif m["method"] == "tools/list":
        r = {"tools": [{"name": "die", "inputSchema": {"type": "object"}}]}
    elif m["method"] == "tools/call":
        open(sys.argv[1], "w").close()
        print("postgres://bob:hunter2@db", file=sys.stderr, flush=True)
        sys.exit(3)
    if "id" in m:
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"#;

/// Asks an endpoint as the holder of a token, or as the owner.
async fn get(world: &World, path: &str, token: &str) -> (u16, Value) {
    let request = http::Request::get(path).header("host", "localhost").header("authorization", format!("Bearer {token}"));
    let mut answer = send(world.addr, None, request.body(Full::<Bytes>::default()).unwrap()).await;
    (answer.status.as_u16(), answer.next().await.map_or(Value::Null, |event| event.value))
}

/// Gives the admin token of a published gate.
pub(crate) fn admin(world: &World) -> (String, impl Sized + use<>) {
    let dir = tempfile::tempdir().unwrap();
    let published = world.gateway.publish(dir.path(), world.addr, "a test".into()).unwrap();
    let file = std::fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path();
    let presence: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    (presence["token"].as_str().unwrap().to_owned(), (dir, published))
}

#[tokio::test]
async fn m4_standard_error_is_told_to_the_owner_alone() {
    bounded(async {
        let state = tempfile::tempdir().unwrap();
        let down = state.path().join("down");
        let mount = format!("[mount.t]\ncommand = \"python3\"\nargs = {}\nera = \"initialize\"\n", json!(["-c", TALKATIVE, down]));
        let world = recording(state, &format!("{}{mount}", token("ann"))).await;
        let (owner, _published) = admin(&world);
        let client = Client::new(&world, Era::Stateless).with("authorization", "Bearer secret-of-ann").open().await;
        let mut calls = Vec::new();
        for reason in ["outcome_unknown", "subserver_unreachable"] {
            let told = client.tool("t__die", json!({})).await;
            let data = &told["error"]["data"];
            assert_eq!((&data["reason"], data.get("stderr")), (&json!(reason), None), "{told}");
            assert!(data["hint"].as_str().unwrap().contains("`banyan logs t`"), "{told}");
            assert!(!told.to_string().contains("hunter2"), "{told}");
            calls.push(data["call"].as_str().unwrap().to_owned());
            world.until("t", |mount| mount.error.as_ref().is_some_and(|error| error.contains("still down"))).await;
        }
        let (_, status) = get(&world, "/-/status", "secret-of-ann").await;
        assert!(!status.to_string().contains("hunter2"), "{status}");
        // Whoever runs the gate is told in every way.
        let (_, status) = get(&world, "/-/status", &owner).await;
        assert!(status["mounts"][0]["error"].as_str().unwrap().contains("hunter2"), "{status}");
        let told = world.gateway.call(&serde_json::from_str(r#"{"tool":"t.die","arguments":{}}"#).unwrap()).await;
        assert!(told.is_err_and(|error| String::from_utf8_lossy(&error).contains("postgres://bob:hunter2@db")));
        let (code, _) = get(&world, "/-/logs/t", "secret-of-ann").await;
        assert_eq!(code, 401);
        // What a caller reports is found in the record.
        let entries = read(world).await;
        for call in calls {
            assert!(entries.iter().any(|entry| entry.call.as_ref() == Some(&call) && entry.principal.as_deref() == Some("ann")), "{call}");
        }
    })
    .await;
}

/// Starts a gate with rules: `bob` may call a single tool, `eve` nothing, and `watch` may read the metrics.
async fn ruled() -> World {
    let state = tempfile::tempdir().unwrap();
    let file = state.path().join("policy.cedar");
    let rules = r#"
        permit (principal == Principal::"ann", action, resource);
        permit (principal == Principal::"bob", action, resource == Tool::"fx.fx_echo");
    "#;
    std::fs::write(&file, rules).unwrap();
    let callers = ["ann", "bob", "eve", "watch"].map(token).concat();
    let budget = "[budget.few]\nprincipals = [\"*\"]\nmax_calls_per_minute = 100\n";
    let toml = format!("{callers}metrics = true\n[policy]\nfile = {file:?}\n{budget}{}", fixture("fx", Era::Stateless));
    let world = World::start_in(state, &toml).await;
    world.gateway.settled(std::time::Duration::from_secs(60)).await;
    world
}

#[tokio::test]
async fn m9_reading_endpoints_show_what_whoever_reads_may_call() {
    bounded(async {
        let world = ruled().await;
        let (owner, _published) = admin(&world);
        let names = async |token: &str| {
            let (status, listed) = get(&world, "/-/tools", token).await;
            assert_eq!(status, 200);
            listed["tools"].as_array().unwrap().iter().map(|row| row["dotted"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let all = names(&owner).await;
        assert!(all.len() > 5 && names("secret-of-ann").await == all);
        assert_eq!((names("secret-of-bob").await, names("secret-of-eve").await), (vec!["fx.fx_echo".to_owned()], vec![]));
        for (who, name, wanted) in [
            (&*owner, "fx.fx_big", 200),
            ("secret-of-bob", "fx.fx_echo", 200),
            ("secret-of-bob", "fx__fx_echo", 200),
            ("secret-of-bob", "fx.fx_big", 404),
            ("secret-of-eve", "fx.fx_echo", 404),
        ] {
            assert_eq!(get(&world, &format!("/-/tools/{name}"), who).await.0, wanted, "{who} {name}");
        }
    })
    .await;
}

#[tokio::test]
async fn m9_a_guests_status_is_its_own() {
    bounded(async {
        let world = ruled().await;
        let (owner, _published) = admin(&world);
        for who in ["ann", "bob"] {
            let client = Client::new(&world, Era::Stateless).with("authorization", &format!("Bearer secret-of-{who}")).open().await;
            assert!(client.tool("fx__fx_echo", json!({"text": "x"})).await.get("result").is_some());
        }
        let (_, whole) = get(&world, "/-/status", &owner).await;
        assert_eq!((whole["budgets"].as_array().unwrap().len(), whole.get("you")), (2, None));
        let (_, bobs) = get(&world, "/-/status", "secret-of-bob").await;
        let spent: Vec<&Value> = bobs["budgets"].as_array().unwrap().iter().map(|budget| &budget["principal"]).collect();
        assert_eq!((&bobs["you"], spent), (&json!("bob"), vec![&json!("bob")]));
        let mount = &bobs["mounts"][0];
        assert_eq!((&mount["name"], &mount["state"], &mount["tools"]), (&json!("fx"), &json!("ready"), &json!(1)));
        for (member, blank) in [("origin", json!("")), ("notes", json!([])), ("error", Value::Null)] {
            assert_eq!(mount[member], blank);
        }
        assert_eq!((bobs.get("audit"), &bobs["pid"], &bobs["serves"]), (None, &json!(0), &json!("")));
        let (_, eves) = get(&world, "/-/status", "secret-of-eve").await;
        assert_eq!((&eves["mounts"], eves.get("budgets")), (&json!([]), None));
    })
    .await;
}

#[tokio::test]
async fn m9_a_guests_events_are_its_own() {
    bounded(async {
        let world = ruled().await;
        let asks = http::Request::get("/-/events").header("host", "localhost").header("authorization", "Bearer secret-of-eve");
        let mut events = send(world.addr, None, asks.body(Full::default()).unwrap()).await;
        let first = events.next().await.unwrap().value;
        assert_eq!((&first["you"], &first["mounts"]), (&json!("eve"), &json!([])));
        let asks = http::Request::get("/-/events").header("host", "localhost").header("authorization", "Bearer secret-of-bob");
        let mut events = send(world.addr, None, asks.body(Full::default()).unwrap()).await;
        assert_eq!(events.next().await.unwrap().value["mounts"][0]["tools"], 1);
        // What is permitted later is told later.
        let rules = r#"permit (principal, action, resource);"#;
        std::fs::write(world.state.path().join("policy.cedar"), rules).unwrap();
        world.apply(&format!(
            "{}[policy]\nfile = {:?}\n{}",
            token("bob"),
            world.state.path().join("policy.cedar"),
            fixture("fx", Era::Stateless)
        ));
        let more = loop {
            let change = events.next().await.unwrap().value;
            if let Some(tools) = change["mounts"][0]["tools"].as_u64().filter(|tools| *tools > 1) {
                break tools;
            }
        };
        assert!(more > 5);
    })
    .await;
}

#[tokio::test]
async fn m9_metrics_are_for_owner_and_permitted_tokens() {
    bounded(async {
        let world = ruled().await;
        let (owner, _published) = admin(&world);
        let status = async |token: &str| {
            let asks = http::Request::get("/metrics").header("host", "localhost").header("authorization", format!("Bearer {token}"));
            send(world.addr, None, asks.body(Full::<Bytes>::default()).unwrap()).await.status.as_u16()
        };
        assert_eq!([status(&owner).await, status("secret-of-watch").await], [200, 200]);
        assert_eq!([status("secret-of-ann").await, status("").await], [401, 401]);
        // Where nothing is asked of anybody and no rule keeps anything from anybody, whoever reaches the gate reads them.
        let open = World::start(&fixture("fx", Era::Stateless)).await;
        let asks = http::Request::get("/metrics").header("host", "localhost").body(Full::<Bytes>::default()).unwrap();
        assert_eq!(send(open.addr, None, asks).await.status, 200);
    })
    .await;
}

#[tokio::test]
async fn m9_strangers_hear_no_names_of_starting_servers() {
    bounded(async {
        let slow = "[mount.secret]\ncommand = \"python3\"\nargs = [\"-c\", \"import sys; sys.stdin.read()\"]\n";
        let world = World::start(&token("ann")).await;
        world.apply(&format!("{}{slow}", token("ann")));
        let (owner, _published) = admin(&world);
        let ready = async |token: &str| {
            let asks = http::Request::get("/readyz").header("host", "localhost").header("authorization", format!("Bearer {token}"));
            send(world.addr, None, asks.body(Full::<Bytes>::default()).unwrap()).await.text().await
        };
        assert_eq!((ready("").await, ready(&owner).await), ("starting: 1\n".into(), "starting: secret\n".into()));
    })
    .await;
}

/// Collects everything told to a client at the beginning, meta-tools included.
async fn begins(world: &World, who: &str, era: Era) -> String {
    let client = Client::new(world, era).with("authorization", &format!("Bearer secret-of-{who}"));
    let greeted = match era {
        Era::Initialize => client.greet().await.finish().await.1.value,
        Era::Stateless => client.call("server/discover", json!({})).await,
    };
    assert!(greeted.get("result").is_some(), "{greeted}");
    let tools = client.open().await.call("tools/list", json!({})).await;
    assert!(tools.to_string().contains("search_tools"), "{tools}");
    format!("{greeted}{tools}")
}

#[tokio::test]
async fn m9_a_client_hears_nothing_of_unusable_servers() {
    bounded(async {
        let offer = |name: &str, more: &str| {
            let capabilities = json!({"experimental": {format!("vendor/of-{name}"): {}}, more: {}});
            json!({"tools": [reads("look")], "instructions": format!("About {name}."), "capabilities": capabilities})
        };
        let alpha = Registrant::offering(Era::Stateless, offer("alpha", "completions")).await;
        let omega = Registrant::offering(Era::Stateless, offer("omega", "logging")).await;
        let state = tempfile::tempdir().unwrap();
        let file = state.path().join("policy.cedar");
        let rules = r#"
            permit (principal == Principal::"ann", action, resource);
            permit (principal == Principal::"bob", action, resource == Tool::"alpha.look");
            permit (principal == Principal::"sue", action == Action::"send", resource);
            permit (principal == Principal::"tim", action, resource);
            forbid (principal == Principal::"tim", action, resource in Mount::"omega");
        "#;
        std::fs::write(&file, rules).unwrap();
        let callers = ["ann", "bob", "eve", "sue", "tim"].map(token).concat();
        let profile = "[profile.p]\nclients = [\"doors\"]\nsearch = \"always\"\n";
        let servers = [mount("alpha", &alpha), mount("omega", &omega)].concat();
        let world = World::start_in(state, &format!("{callers}{profile}[policy]\nfile = {file:?}\n{servers}")).await;
        world.gateway.settled(std::time::Duration::from_secs(60)).await;
        for era in [Era::Initialize, Era::Stateless] {
            for (who, of_alpha, of_omega) in
                [("ann", true, true), ("bob", true, false), ("eve", false, false), ("sue", true, true), ("tim", true, false)]
            {
                let told = begins(&world, who, era).await;
                for (wanted, texts) in [
                    (of_alpha, ["About alpha.", "vendor/of-alpha", "completions"]),
                    (of_omega, ["About omega.", "vendor/of-omega", "logging"]),
                ] {
                    assert!(texts.iter().all(|text| told.contains(text) == wanted), "{era:?} {who}: {told}");
                }
                // Of tools to search, those are told who may call any.
                let seen = if who == "sue" { [false; 2] } else { [of_alpha, of_omega] };
                assert_eq!(
                    ["alpha", "omega"].map(|name| told.split("search_tools").nth(1).unwrap().contains(name)),
                    seen,
                    "{era:?} {who}: {told}"
                );
            }
        }
    })
    .await;
}

#[tokio::test]
async fn m9_an_absent_servers_refusal_suggests_no_hidden_names() {
    bounded(async {
        let told = async |world: &World| {
            let asks = http::Request::get("/mcp/nothing").header("host", "localhost").header("authorization", "Bearer secret-of-eve");
            let answer = send(world.addr, None, asks.body(Full::<Bytes>::default()).unwrap()).await;
            (answer.status.as_u16(), answer.text().await)
        };
        let (status, text) = told(&ruled().await).await;
        assert!(status == 404 && text.contains("`nothing`") && !text.contains("fx"), "{text}");
        let (status, text) = told(&World::start(&format!("{}{}", token("eve"), fixture("fx", Era::Stateless))).await).await;
        assert!(status == 404 && text.contains("there are: fx"), "{text}");
    })
    .await;
}
