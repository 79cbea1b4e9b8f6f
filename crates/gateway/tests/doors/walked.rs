//! The one way: every request to a server is decided, has its room reserved, passes the gate and stands in the record, known method or not.

use banyan_model::Method;
use gateway::admin::shapes::AuditEntry;
use serde_json::{Value, json};

use crate::held::{Person, plain, reason};
use crate::recorded::{facts, read, recording};
use crate::world::{Client, Era, World, bounded, eventually, fixture, token};

/// A server with every feature that answers everything but `block`, and writes down each request: a line of JSON each.
const HAS_ALL: &str = r#"
import json, sys
heard, stateless = open(sys.argv[1], "a"), sys.argv[2] == "stateless"
def put(**message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
task = {"taskId": "t-1", "status": "working", "createdAt": "2025-11-25T00:00:00Z", "lastUpdatedAt": "2025-11-25T00:00:00Z", "ttl": None, "ttlMs": None}
offers = {"tools": {}, "prompts": {}, "resources": {"subscribe": True}, "completions": {}, "logging": {}}
tool = lambda name, reads: {"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": reads}}
lists = {"tools": [tool("read", True), tool("begin", False), tool("block", True)], "prompts": [{"name": "p"}],
         "resources": [{"uri": "all://r", "name": "r"}], "resourceTemplates": []}
for line in sys.stdin:
    asked = json.loads(line)
    method, params = asked["method"], asked.get("params", {})
    print(json.dumps({"method": method, "params": params}), file=heard, flush=True)
    if "id" not in asked: continue
    result = {}
    if method == "initialize" and not stateless:
        offers["tasks"] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
        result = {"protocolVersion": "2025-11-25", "serverInfo": {"name": "s", "version": "1"}, "capabilities": offers}
    elif method == "server/discover" and stateless:
        offers["extensions"] = {"io.modelcontextprotocol/tasks": {}}
        result = {"supportedVersions": ["2026-07-28"], "capabilities": offers}
    elif method in ("initialize", "server/discover"):
        put(id=asked["id"], error={"code": -32601, "message": "not this era"})
        continue
    elif method.endswith("/list"):
        name = {"resources/templates/list": "resourceTemplates"}.get(method, method.split("/")[0])
        result = {name: lists.get(name, [task, {**task, "taskId": "of-somebody-else"}])}
    elif method == "resources/read":
        result = {"contents": [{"uri": params["uri"], "text": "x"}]}
    elif method == "completion/complete":
        result = {"completion": {"values": []}}
    elif method == "subscriptions/listen":
        tag = {"io.modelcontextprotocol/subscriptionId": asked["id"]}
        put(method="notifications/subscriptions/acknowledged", params={"notifications": params["notifications"], "_meta": tag})
        continue
    elif method.startswith("tasks/"):
        result = task
    elif params.get("name") == "block" or method == "vendor/block" or (method == "logging/setLevel" and sys.argv[2] == "deaf"):
        continue
    elif params.get("name") == "begin":
        result = {**task, "resultType": "task"} if stateless else {"task": task}
    elif method == "prompts/get":
        result = {"messages": []}
    elif method == "tools/call":
        result = {"content": []}
    put(id=asked["id"], result={"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **result} if stateless else result)
"#;

/// Directory of the server's notes.
struct ServerNotes(tempfile::TempDir);

impl ServerNotes {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Writes the table of a mount; `kind`: `initialize`, `stateless`, or `deaf`: of sessions, with log levels unanswered.
    fn mount(&self, name: &str, kind: &str) -> String {
        let path = self.0.path().join(name);
        let era = if kind == "stateless" { kind } else { "initialize" };
        format!(
            "[mount.{name}]\ncommand = \"python3\"\nera = \"{era}\"\nsharing = \"always\"\nargs = [\"-c\", '''{HAS_ALL}''', {path:?}, \"{kind}\"]\n"
        )
    }

    /// Counts the server's requests of a method and name.
    fn count(&self, name: &str, method: &str) -> usize {
        self.all(name).iter().filter(|asked| asked["method"] == method).count()
    }

    fn all(&self, name: &str) -> Vec<Value> {
        let lines = std::fs::read_to_string(self.0.path().join(name)).unwrap_or_default();
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// A request, and the server's part of the work.
struct Example {
    era: Era,
    method: &'static str,
    params: Value,
    asks: &'static str,
}

/// Requests of every kind that can reach a server. Traces are tried by themselves; a confirmation goes to a gate that holds a call, and to
/// no server.
fn examples(of: Method) -> Vec<Example> {
    let in_era = |era, method: &'static str, params: Value| Example { era, method, params, asks: method };
    let both = |method, params: Value| Era::PAIRS[1..3].iter().map(|(era, _)| in_era(*era, method, params.clone())).collect::<Vec<_>>();
    match of {
        Method::Complete => {
            both("completion/complete", json!({"ref": {"type": "ref/prompt", "name": "s__p"}, "argument": {"name": "a", "value": ""}}))
        }
        Method::Confirm | Method::Trace => Vec::new(),
        Method::LogLevel => vec![in_era(Era::Initialize, "logging/setLevel", json!({"level": "debug"}))],
        Method::PromptGet => both("prompts/get", json!({"name": "s__p"})),
        Method::ResourceRead => both("resources/read", json!({"uri": "all://r"})),
        Method::Subscribe => vec![
            in_era(Era::Initialize, "resources/subscribe", json!({"uri": "all://r"})),
            in_era(Era::Initialize, "resources/unsubscribe", json!({"uri": "all://r"})),
            Example {
                asks: "resources/subscribe",
                ..in_era(Era::Stateless, "subscriptions/listen", json!({"notifications": {"resourceSubscriptions": ["all://r"]}}))
            },
        ],
        Method::Task => {
            let mut all = both("tasks/get", json!({"taskId": "t-1"}));
            all.extend(both("tasks/cancel", json!({"taskId": "t-1"})));
            all.push(in_era(Era::Initialize, "tasks/result", json!({"taskId": "t-1"})));
            all.push(in_era(Era::Stateless, "tasks/update", json!({"taskId": "t-1", "inputResponses": {}})));
            all
        }
        Method::TaskList => vec![in_era(Era::Initialize, "tasks/list", json!({}))],
        Method::ToolCall => both("tools/call", json!({"name": "s__read", "arguments": {}})),
        Method::Unknown => both("vendor/erase", json!({"all": true})),
    }
}

/// Sends a request. Gives the answer, or the first message of an open stream.
async fn sent(clients: &[Client; 2], example: &Example) -> (Value, Option<crate::world::Reply>) {
    let client = &clients[usize::from(example.era == Era::Stateless)];
    let mut reply = client.begin(example.method, example.params.clone()).await;
    if example.method != "subscriptions/listen" {
        return (reply.finish().await.1.value, None);
    }
    (reply.next().await.unwrap().value, Some(reply))
}

async fn clients(world: &World) -> [Client; 2] {
    [plain(world, Era::Initialize).await, plain(world, Era::Stateless).await]
}

/// Begins the task of the examples.
async fn begun(clients: &[Client; 2]) {
    let made = clients[0].call("tools/call", json!({"name": "s__begin", "arguments": {}, "task": {}})).await;
    assert_eq!(made["result"]["task"]["taskId"], "t-1", "{made}");
}

/// Lists the entries about requests that have left for their servers.
fn made(entries: &[AuditEntry]) -> Vec<Value> {
    let of = |entry: &AuditEntry| match &*entry.event {
        "called" => Some(facts(entry)["intent"].clone()),
        "intended" => Some(facts(entry)),
        _ => None,
    };
    entries.iter().filter_map(of).collect()
}

const ALLOWED: &str = "@id(\"all\") permit (principal, action, resource);";

#[tokio::test]
async fn m3_whatever_reaches_a_server_is_decided_and_recorded() {
    bounded(async {
        let (heard, state) = (ServerNotes::new(), tempfile::tempdir().unwrap());
        let rules = state.path().join("rules.cedar");
        std::fs::write(&rules, ALLOWED).unwrap();
        let world = recording(state, &format!("[policy]\nfile = {rules:?}\n{}", heard.mount("s", "initialize"))).await;
        let clients = clients(&world).await;
        begun(&clients).await;
        let mut wanted = Vec::new();
        for example in Method::ALL.into_iter().flat_map(examples) {
            let before = heard.count("s", example.asks);
            let (told, stream) = sent(&clients, &example).await;
            assert!(told.get("error").is_none(), "{}: {told}", example.method);
            eventually(async || (heard.count("s", example.asks) > before).then_some(())).await;
            wanted.push(example.method);
            drop(stream);
        }
        let made = made(&read(world).await);
        for method in wanted {
            let of = made.iter().filter(|facts| facts["method"] == method).collect::<Vec<_>>();
            let is_decided = |facts: &&&Value| facts["decision"].as_str().is_some_and(|id| id.starts_with("d-"));
            assert!(!of.is_empty() && of.iter().all(|facts| is_decided(&facts) && facts["principal"] == "local"), "{method}: {of:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn m3_whatever_reaches_a_server_takes_a_place_there() {
    bounded(async {
        let heard = ServerNotes::new();
        let world = World::start(&format!("[limits]\ncalls_per_mount = 1\n{}", heard.mount("s", "initialize"))).await;
        let clients = clients(&world).await;
        begun(&clients).await;
        assert!(clients[0].call("resources/subscribe", json!({"uri": "all://r"})).await.get("result").is_some());
        let _blocked = clients[0].begin("tools/call", json!({"name": "s__block", "arguments": {}, "_meta": {"progressToken": 1}})).await;
        eventually(async || heard.all("s").iter().any(|asked| asked["params"]["name"] == "block").then_some(())).await;
        let before = heard.all("s").len();
        for example in Method::ALL.into_iter().flat_map(examples) {
            let (told, _stream) = sent(&clients, &example).await;
            match example.method {
                // Kept for the session, whoever else is told.
                "logging/setLevel" => assert_eq!(told["result"], json!({}), "{told}"),
                "subscriptions/listen" => assert_eq!(told["params"]["notifications"], json!({}), "{told}"),
                method => assert_eq!((method, told["error"]["code"].as_i64()), (method, Some(-32009)), "{told}"),
            }
        }
        assert_eq!(heard.all("s").len(), before, "{:?}", &heard.all("s")[before..]);
    })
    .await;
}

#[tokio::test]
async fn m3_a_trace_is_decided_recorded_and_takes_a_place() {
    bounded(async {
        let (heard, state) = (ServerNotes::new(), tempfile::tempdir().unwrap());
        let rules = state.path().join("rules.cedar");
        std::fs::write(&rules, ALLOWED).unwrap();
        let toml = format!("[limits]\ncalls_per_mount = 1\n[policy]\nfile = {rules:?}\n{}", heard.mount("s", "initialize"));
        let world = recording(state, &toml).await;
        let mut gate = Client::new(&world, Era::Stateless);
        gate.capabilities = json!({"extensions": {"io.banyan/mcpax": {"aggregator_id": "above"}}});
        let trace = async || gate.call("mcpax/trace", json!({"name": "s.read"})).await;
        let told = trace().await;
        assert_eq!((&told["result"]["hops"][0]["mount"], heard.count("s", "ping")), (&json!("s"), 1), "{told}");
        let blocked = gate.begin("tools/call", json!({"name": "s.block", "arguments": {}, "_meta": {"progressToken": 1}}));
        let refused = async {
            eventually(async || heard.all("s").iter().any(|asked| asked["params"]["name"] == "block").then_some(())).await;
            trace().await
        };
        let refused = tokio::select! {
            refused = refused => refused,
            _ = blocked => panic!("it never answers"),
        };
        assert_eq!((&refused["error"]["code"], heard.count("s", "ping")), (&json!(-32009), 1), "{refused}");
        let made = made(&read(world).await);
        let of: Vec<&Value> = made.iter().filter(|facts| facts["method"] == "mcpax/trace").collect();
        assert!(of.len() == 1 && of[0]["decision"].as_str().is_some_and(|id| id.starts_with("d-")), "{of:?}");
    })
    .await;
}

#[tokio::test]
async fn m3_reading_passes_every_mode_and_unknown_methods_wait() {
    bounded(async {
        let heard = ServerNotes::new();
        let world =
            World::start(&format!("[gate]\nmode = \"mutable\"\nmounts = {{ s = \"off\" }}\n{}", heard.mount("s", "initialize"))).await;
        let person = Person::at(&world, 1, "anna").await;
        let clients = clients(&world).await;
        begun(&clients).await;
        world.apply(&format!("[gate]\nmode = \"mutable\"\n{}", heard.mount("s", "initialize")));
        for example in Method::ALL.into_iter().flat_map(examples) {
            let before = heard.count("s", example.asks);
            let (told, _stream) = sent(&clients, &example).await;
            if !matches!(example.method, "vendor/erase" | "tasks/cancel" | "tasks/update") {
                assert!(told.get("error").is_none() && told["result"]["isError"] != true, "{}: {told}", example.method);
                continue;
            }
            assert!(told["result"]["isError"] == true, "{}: {told}", example.method);
            assert_eq!(heard.count("s", example.asks), before, "{}", example.method);
            let waiting = person.waiting(&world).await;
            let named =
                if example.method == "vendor/erase" { "s: vendor/erase".to_owned() } else { format!("s.begin: {}", example.method) };
            assert_eq!((waiting.tool, serde_json::from_str::<Value>(&waiting.arguments).unwrap()), (named, example.params.clone()));
            person.approve(&person.waiting(&world).await).await;
            let (told, _) = sent(&clients, &example).await;
            assert!(told.get("error").is_none() && told["result"]["isError"] != true, "{}: {told}", example.method);
            assert_eq!(heard.count("s", example.asks), before + 1, "{}", example.method);
        }
    })
    .await;
}

#[tokio::test]
async fn m3_a_caller_that_may_do_nothing_reaches_no_server() {
    bounded(async {
        let (heard, state) = (ServerNotes::new(), tempfile::tempdir().unwrap());
        let rules = state.path().join("rules.cedar");
        let toml = format!("[policy]\nfile = {rules:?}\n{}", heard.mount("s", "initialize"));
        std::fs::write(&rules, ALLOWED).unwrap();
        let world = World::start_in(state, &toml).await;
        let clients = clients(&world).await;
        begun(&clients).await;
        std::fs::write(&rules, "@id(\"none\") forbid (principal, action, resource);").unwrap();
        world.apply(&toml);
        let before = heard.all("s").len();
        for example in Method::ALL.into_iter().flat_map(examples) {
            let (told, _stream) = sent(&clients, &example).await;
            let is_local = matches!(example.method, "logging/setLevel" | "subscriptions/listen");
            assert_eq!(told.get("error").is_none(), is_local, "{}: {told}", example.method);
        }
        assert_eq!(heard.all("s").len(), before, "{:?}", &heard.all("s")[before..]);
    })
    .await;
}

#[tokio::test]
async fn m3_streams_of_statuses_and_updates_are_recorded_too() {
    bounded(async {
        let heard = ServerNotes::new();
        let world = recording(tempfile::tempdir().unwrap(), &heard.mount("s", "stateless")).await;
        let mut client = Client::new(&world, Era::Stateless);
        client.capabilities = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
        let begun = client.tool("s__begin", json!({})).await;
        assert_eq!(begun["result"]["taskId"], "t-1", "{begun}");
        let filter = json!({"taskIds": ["t-1"], "resourceSubscriptions": ["all://r"]});
        let mut stream = client.begin("subscriptions/listen", json!({"notifications": filter})).await;
        assert_eq!(stream.next().await.unwrap().value["params"]["notifications"], filter);
        let made = made(&read(world).await);
        let of = made.iter().filter(|facts| facts["method"] == "subscriptions/listen");
        let mut names: Vec<String> = of.map(|facts| facts["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        assert_eq!(names, ["all://r", "t-1"]);
    })
    .await;
}

#[tokio::test]
async fn m3_changed_rules_end_listening_once_allowed() {
    bounded(async {
        let (heard, state) = (ServerNotes::new(), tempfile::tempdir().unwrap());
        let rules = state.path().join("rules.cedar");
        let toml = format!("[policy]\nfile = {rules:?}\n{}", heard.mount("s", "initialize"));
        std::fs::write(&rules, ALLOWED).unwrap();
        let world = World::start_in(state, &toml).await;
        let clients = clients(&world).await;
        let uri = json!({"uri": "all://r"});
        assert!(clients[0].call("resources/subscribe", uri.clone()).await.get("result").is_some());
        let listens = async |filter: Value| {
            let mut stream = clients[1].begin("subscriptions/listen", json!({"notifications": filter})).await;
            assert_eq!(stream.next().await.unwrap().value["params"]["notifications"], filter);
            stream
        };
        let mut follows = listens(json!({"resourceSubscriptions": ["all://r"]})).await;
        let mut hears = listens(json!({"toolsListChanged": true})).await;
        std::fs::write(&rules, "@id(\"none\") forbid (principal, action, resource);").unwrap();
        world.apply(&toml);
        assert_eq!(follows.finish().await.1.value["result"]["resultType"], "complete");
        eventually(async || (heard.count("s", "resources/unsubscribe") > 0).then_some(())).await;
        // Nobody decided about lists, and each is shown its own.
        hears.next_of("notifications/tools/list_changed").await;
    })
    .await;
}

#[tokio::test]
async fn m3_what_is_cut_short_is_cancelled_at_its_server() {
    bounded(async {
        let heard = ServerNotes::new();
        let world = World::start(&format!("{}timeout = \"300ms\"\n", heard.mount("s", "initialize"))).await;
        for era in [Era::Initialize, Era::Stateless] {
            let client = plain(&world, era).await;
            let before = heard.count("s", "notifications/cancelled");
            assert_eq!(reason(&client.call("vendor/block", json!({})).await), "upstream_timeout");
            eventually(async || (heard.count("s", "notifications/cancelled") > before).then_some(())).await;
        }
    })
    .await;
}

#[tokio::test]
async fn m7_a_server_deaf_to_log_levels_delays_no_client() {
    bounded(async {
        let heard = ServerNotes::new();
        let world = World::start(&format!("{}timeout = \"4s\"\n", heard.mount("s", "deaf"))).await;
        let client = plain(&world, Era::Initialize).await;
        assert_eq!(client.call("logging/setLevel", json!({"level": "debug"})).await["result"], json!({}));
        assert_eq!(heard.count("s", "notifications/cancelled"), 0, "the server has still time to answer");
        eventually(async || (heard.count("s", "notifications/cancelled") == 1).then_some(())).await;
    })
    .await;
}

#[tokio::test]
async fn m7_endless_progress_ends_at_the_mounts_longest() {
    bounded(async {
        for era in [Era::Initialize, Era::Stateless] {
            let world = World::start(&format!("{}timeout = \"1s\"\nlongest = \"3s\"\n", fixture("fx", era))).await;
            let client = Client::ready(&world, Era::Stateless).await;
            let endless = json!({"name": "fx__fx_sleep", "arguments": {"ms": 60_000, "steps": 600}, "_meta": {"progressToken": "p"}});
            let told = client.call("tools/call", endless).await;
            assert!(reason(&told) == "upstream_timeout" && told["error"]["data"]["hint"].as_str().unwrap().contains("`longest`"), "{told}");
            let cancelled = async || client.tool("fx__fx_stats", json!({})).await["result"]["structuredContent"]["cancelled"] == 1;
            eventually(async || cancelled().await.then_some(())).await;
        }
    })
    .await;
}

#[tokio::test]
async fn h3_nobody_sees_reads_or_ends_a_strangers_task() {
    bounded(async {
        let heard = ServerNotes::new();
        let toml = format!("{}{}{}", token("ann"), token("bob"), heard.mount("s", "initialize"));
        let world = World::kept(tempfile::tempdir().unwrap(), &toml).await;
        let session = async |world: &World, name: &str, path: &str| {
            Client::new(world, Era::Initialize).at(path).with("authorization", &format!("Bearer secret-of-{name}")).open().await
        };
        let (ann, bob) = (session(&world, "ann", "/mcp").await, session(&world, "bob", "/mcp/s").await);
        begun(&[ann, session(&world, "ann", "/mcp").await]).await;
        let ann = session(&world, "ann", "/mcp").await;
        let ids = |told: &Value| told["result"]["tasks"].as_array().unwrap().iter().map(|task| task["taskId"].clone()).collect::<Vec<_>>();
        assert_eq!(ids(&ann.call("tasks/list", json!({})).await), ["t-1"]);
        assert_eq!(ids(&bob.call("tasks/list", json!({})).await), [""; 0]);
        let world = World::kept(world.end_keeping().await, &toml).await;
        for name in ["ann", "bob"] {
            let client = session(&world, name, "/mcp/s").await;
            let before = heard.all("s").len();
            for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
                let told = client.call(method, json!({"taskId": "t-1"})).await;
                assert_eq!(reason(&told), "unknown_task", "nobody knows any more whose it is: {told}");
            }
            assert_eq!(heard.all("s").len(), before);
        }
    })
    .await;
}

#[tokio::test]
async fn h3_a_sole_caller_finds_its_tasks_after_restart() {
    bounded(async {
        let heard = ServerNotes::new();
        let world = World::start(&heard.mount("s", "initialize")).await;
        let told = plain(&world, Era::Initialize).await.call("tasks/result", json!({"taskId": "t-1"})).await;
        assert_eq!(told["result"]["taskId"], "t-1", "{told}");
    })
    .await;
}

#[tokio::test]
async fn h3_a_later_token_of_a_name_gets_no_task() {
    bounded(async {
        let heard = ServerNotes::new();
        // One principal alone: elsewhere nobody else would see the task either.
        let people = [token("ann"), token("ann2").replace("name = \"ann2\"", "name = \"ann\"")];
        let [before, after] = people.map(|ann| format!("{ann}{}", heard.mount("s", "initialize")));
        let world = World::start(&before).await;
        let session = async |secret: &str| {
            Client::new(&world, Era::Initialize).with("authorization", &format!("Bearer secret-of-{secret}")).open().await
        };
        begun(&[session("ann").await, session("ann").await]).await;
        assert_eq!(session("ann").await.call("tasks/get", json!({"taskId": "t-1"})).await["result"]["taskId"], "t-1");
        world.apply(&after);
        let later = session("ann2").await;
        assert_eq!(reason(&later.call("tasks/get", json!({"taskId": "t-1"})).await), "unknown_task");
        assert_eq!(later.call("tasks/list", json!({})).await["result"]["tasks"], json!([]));
    })
    .await;
}
