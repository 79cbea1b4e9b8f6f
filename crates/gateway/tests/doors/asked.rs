//! Servers that ask before they answer: every pair of eras, and refusals of parked calls.

use serde_json::{Value, json};

use crate::world::{Client, Era, World, bounded, fixture, token};

/// Plays the person or model behind the client.
pub(crate) fn said(method: &Value) -> Value {
    match method.as_str().unwrap() {
        "elicitation/create" => json!({"action": "accept", "content": {"name": "Ann", "color": "green", "response": "yes", "ok": true}}),
        "sampling/createMessage" => {
            json!({"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m", "stopReason": "endTurn"})
        }
        "roots/list" => json!({"roots": [{"uri": "file:///there", "name": "there"}]}),
        other => panic!("{other}"),
    }
}

/// Calls a tool as a stateless client and answers until there is a result. Gives the number of rounds, and the result.
pub(crate) async fn rounds(client: &Client, name: &str, arguments: Value) -> (usize, Value) {
    let mut params = json!({"name": name, "arguments": arguments});
    for round in 0.. {
        let told = client.call("tools/call", params.clone()).await;
        if told["result"]["resultType"] != "input_required" {
            return (round, told);
        }
        let asked = told["result"]["inputRequests"].as_object().unwrap_or_else(|| panic!("{told}"));
        params["inputResponses"] = asked.iter().map(|(k, q)| (k.clone(), said(&q["method"]))).collect();
        match told["result"].get("requestState") {
            Some(state) => params["requestState"] = state.clone(),
            None => drop(params.as_object_mut().unwrap().remove("requestState")),
        }
    }
    unreachable!()
}

pub(crate) fn text(told: &Value) -> &str {
    told["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{told}"))
}

#[tokio::test]
async fn ax_06_questions_reach_the_caller_in_every_pair_of_eras() {
    let tools = [
        ("test_elicitation", json!({"message": "m"}), "action=accept"),
        ("test_sampling", json!({"prompt": "p"}), "LLM response: Paris"),
        ("fx_roots", json!({}), "roots: file:///there"),
        ("fx_elicit_url", json!({}), "url elicitation: accept"),
    ];
    bounded(async {
        for (down, up) in Era::PAIRS {
            let world = World::start(&fixture("fx", up)).await;
            let client = Client::ready(&world, down).await;
            for (tool, arguments, expected) in &tools {
                let name = format!("fx__{tool}");
                let (asked, told) = match down {
                    Era::Initialize => {
                        let (questions, told) = client.dialogue(&name, arguments.clone(), |q| said(&q["method"])).await;
                        (questions.len(), told)
                    }
                    Era::Stateless => rounds(&client, &name, arguments.clone()).await,
                };
                assert!(text(&told).contains(expected), "{down:?} {up:?} {tool}: {told}");
                assert_eq!(asked, 1, "{down:?} {up:?} {tool}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn ax_06_stateless_rounds_reach_callers_of_both_eras() {
    let tools = [
        ("elicitation", 1, "Hello, Ann!"),
        ("sampling", 1, "Paris"),
        ("list_roots", 1, "roots: file:///there"),
        ("request_state", 1, "state-ok"),
        ("multiple_inputs", 3, "all inputs received"),
        ("multi_round", 2, "Ann likes green"),
    ];
    bounded(async {
        let world = World::start(&fixture("fx", Era::Stateless)).await;
        let session = Client::ready(&world, Era::Initialize).await;
        let stateless = Client::ready(&world, Era::Stateless).await;
        for (tool, questions, expected) in tools {
            let name = format!("fx__test_input_required_result_{tool}");
            let (asked, told) = session.dialogue(&name, json!({}), |q| said(&q["method"])).await;
            assert_eq!((asked.len(), text(&told)), (questions, expected));
            let (_, told) = rounds(&stateless, &name, json!({})).await;
            assert_eq!(text(&told), expected);
        }
    })
    .await;
}

#[tokio::test]
async fn a_question_of_one_server_stops_no_other_clock() {
    bounded(async {
        let world = World::start(&format!("{}{}timeout = \"300ms\"\n", fixture("a", Era::Initialize), fixture("b", Era::Initialize))).await;
        let client = Client::ready(&world, Era::Initialize).await;
        let mut asking = client.begin("tools/call", json!({"name": "a__test_elicitation", "arguments": {"message": "m"}})).await;
        asking.next_of("elicitation/create").await;
        // Nobody answers the question, and no call to the server that asks is under way.
        let told = client.tool("b__fx_sleep", json!({"ms": 600_000, "steps": 1})).await;
        assert!(told["error"]["message"].as_str().is_some_and(|said| said.contains("no sign of life for 300ms")), "{told}");
    })
    .await;
}

#[tokio::test]
async fn a_question_stops_the_clock_of_its_own_call() {
    bounded(async {
        for sharing in ["", "sharing = \"never\"\n"] {
            let world = World::start(&format!("{}timeout = \"3s\"\n{sharing}", fixture("a", Era::Initialize))).await;
            let client = Client::ready(&world, Era::Initialize).await;
            let mut asking = client.begin("tools/call", json!({"name": "a__test_elicitation", "arguments": {"message": "m"}})).await;
            let asked = asking.next_of("elicitation/create").await;
            // The time of another client's call begins later, and is over before the question is answered.
            let other = Client::ready(&world, Era::Initialize).await.tool("a__fx_sleep", json!({"ms": 600_000, "steps": 1})).await;
            assert!(other["error"]["message"].as_str().is_some_and(|said| said.contains("no sign of life")), "{other}");
            let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": said(&asked["method"])});
            assert_eq!(client.post(&answer.to_string(), &[]).await.status, 202);
            assert!(text(&asking.finish().await.1.value).contains("action=accept"), "{sharing}");
        }
    })
    .await;
}

/// Parks a call of `ann` that waits for input, and gives the params with the answers.
pub(crate) async fn parked(client: &Client, tool: &str) -> Value {
    let mut params = json!({"name": tool, "arguments": {"message": "m"}});
    let told = client.call("tools/call", params.clone()).await;
    let asked = told["result"]["inputRequests"].as_object().unwrap_or_else(|| panic!("{told}"));
    params["inputResponses"] = asked.iter().map(|(k, q)| (k.clone(), said(&q["method"]))).collect();
    params["requestState"] = told["result"]["requestState"].clone();
    params
}

#[tokio::test]
async fn a_parked_call_resumes_once_for_principal_and_tool() {
    bounded(async {
        let world = World::start(&format!("{}{}{}", token("ann"), token("bob"), fixture("fx", Era::Initialize))).await;
        let client = |name: &str| Client::new(&world, Era::Stateless).with("authorization", &format!("Bearer secret-of-{name}"));
        let (ann, bob) = (client("ann"), client("bob"));
        let refused = async |client: &Client, params: &Value| {
            let told = client.call("tools/call", params.clone()).await;
            assert_eq!((&told["error"]["code"], &told["error"]["data"]["reason"]), (&json!(-32602), &json!("state_unknown")), "{told}");
        };
        let params = parked(&ann, "fx__test_elicitation").await;
        refused(&bob, &params).await;
        let mut other = params.clone();
        other["name"] = json!("fx__test_streaming_elicitation");
        refused(&ann, &other).await;
        let mut edited = params.clone();
        edited["requestState"] = json!(format!("{}0", params["requestState"].as_str().unwrap()));
        refused(&ann, &edited).await;

        let told = ann.call("tools/call", params.clone()).await;
        assert!(text(&told).contains("action=accept"), "{told}");
        refused(&ann, &params).await;
    })
    .await;
}

#[tokio::test]
async fn a_missing_answer_is_asked_for_again() {
    bounded(async {
        let world = World::start(&fixture("fx", Era::Initialize)).await;
        let client = Client::ready(&world, Era::Stateless).await;
        let mut params = parked(&client, "fx__test_elicitation").await;
        let answers = params["inputResponses"].take();
        params["inputResponses"] = json!({});
        let told = client.call("tools/call", params.clone()).await;
        assert_eq!(told["result"]["resultType"], "input_required", "{told}");
        params["requestState"] = told["result"]["requestState"].clone();
        params["inputResponses"] = answers;
        assert!(text(&client.call("tools/call", params).await).contains("action=accept"));
    })
    .await;
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_is_not_asked() {
    bounded(async {
        for (down, up) in Era::PAIRS {
            let world = World::start(&fixture("fx", up)).await;
            let mut client = Client::new(&world, down);
            client.capabilities = json!({});
            let params = json!({"name": "fx__test_sampling", "arguments": {"prompt": "p"}});
            let mut reply = client.open().await.begin("tools/call", params).await;
            let error = &reply.finish().await.1.value["error"];
            assert!(error["code"].is_i64(), "{down:?} {up:?}: {error}");
            // Also where the server, of the other era, does not know that code.
            if down == Era::Stateless {
                assert_eq!((reply.status.as_u16(), &error["code"]), (400, &json!(-32021)), "{up:?}: {error}");
                assert_eq!(error["data"]["requiredCapabilities"], json!({"sampling": {}}), "{up:?}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn an_unshared_server_hears_each_clients_capabilities() {
    bounded(async {
        let world = World::start(&format!("{}sharing = \"never\"\n", fixture("fx", Era::Initialize))).await;
        for down in [Era::Initialize, Era::Stateless] {
            for capabilities in [json!({}), json!({"sampling": {}})] {
                let mut client = Client::new(&world, down);
                client.capabilities = capabilities.clone();
                let client = client.open().await;
                let told = client.tool("fx__fx_caps", json!({})).await;
                assert_eq!(told["result"]["structuredContent"]["capabilities"], capabilities, "{down:?}: {told}");
                client.tool("fx__fx_echo", json!({"text": "x"})).await;
                let told = client.tool("fx__fx_stats", json!({})).await;
                assert_eq!(told["result"]["structuredContent"]["calls"], 1, "{down:?}: its own process, and always the same: {told}");
            }
            let mut client = Client::new(&world, down);
            client.capabilities = json!({});
            let told = client.open().await.tool("fx__test_missing_capability", json!({})).await;
            assert_eq!(told["error"]["data"]["requiredCapabilities"], json!({"sampling": {}}), "{down:?}: {told}");
        }
    })
    .await;
}
