//! Servers seated in rooms: calls there go the way of every call, and a proposal waits both at the gate and in the room.

use gateway::admin::shapes::{ApprovalShown, AuditEntry};
use policy::approval::Standing;
use serde_json::{Value, json};

use crate::held::{GATED, Person};
use crate::recorded::{read, recording};
use crate::rooms::{FULL, PROPOSES, participant};
use crate::world::{Era, Socket, World, bounded, eventually, fixture, token};

/// Configures the room `ops` with seats for `fx` and, as `all`, for the whole tree; `ann` and `bob` may do everything, and `bot` proposes.
fn ops(more: &str) -> String {
    let people = [("ann", FULL), ("bob", FULL), ("bot", PROPOSES)].map(|(who, may)| participant(who, &["ops"], may)).concat();
    format!("{people}[room.ops]\nseats = [\"fx\"]\ntree = \"all\"\nadmins = [\"ann\"]\n{more}{}", fixture("fx", Era::Initialize))
}

/// Joins once all seats are taken.
async fn join(world: &World, who: &str) -> Socket {
    eventually(async || (world.gateway.rooms()[0].participants >= 3).then_some(())).await;
    Socket::join(world, "topic=ops&also=mcp/reject,mcp/withdraw", &format!("secret-of-{who}")).await.0
}

pub(crate) fn echo(text: &str) -> Value {
    json!({"name": "fx_echo", "arguments": {"text": text}})
}

/// Sends a request to the seated server, and gives the answer's payload.
async fn asked(socket: &mut Socket, method: &str, params: Value) -> Value {
    let request = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    let id = socket.send(&format!("mcp/request:{method}"), json!({"to": ["fx"]}), request).await;
    answer(socket, &id).await
}

pub(crate) async fn answer(socket: &mut Socket, id: &str) -> Value {
    let message = socket.next_where(|message| message["correlation_id"] == id && message["kind"] != "system/error").await;
    message["payload"].clone()
}

/// Has `bot` propose a call. Gives the id of the proposal, and the waiting approval.
async fn proposed(world: &World, bot: &mut Socket, person: &Person, text: &str) -> (String, ApprovalShown) {
    let payload = json!({"method": "tools/call", "params": echo(text)});
    let id = bot.send("mcp/proposal:tools/call:fx_echo", json!({"to": ["fx"]}), payload).await;
    (id, person.waiting(world).await)
}

/// Has `who` fulfil a proposal in the room.
async fn fulfils(who: &mut Socket, proposal: &str, text: &str) -> String {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": echo(text)});
    who.send("mcp/request:tools/call:fx_echo", json!({"to": ["fx"], "correlation_id": proposal}), request).await
}

pub(crate) async fn standing(world: &World, id: &str, wanted: Standing) -> ApprovalShown {
    eventually(async || world.gateway.approval(id).await.ok().filter(|approval| approval.standing == wanted)).await
}

pub(crate) fn said(payload: &Value) -> &str {
    payload["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{payload}"))
}

pub(crate) fn refused(payload: &Value) -> &str {
    payload["error"]["message"].as_str().unwrap_or_else(|| panic!("{payload}"))
}

#[tokio::test]
async fn mx_21_others_call_tools_of_a_seated_mount() {
    bounded(async {
        let others = ["fx", "gate"].map(token).concat();
        let world = World::start(&format!("{others}{}", ops(""))).await;
        world.gateway.settled(std::time::Duration::from_secs(60)).await;
        let mut ann = join(&world, "ann").await;
        let mut bot = Socket::join(&world, "topic=ops", "secret-of-bot").await;
        let who: Vec<&Value> = bot.1["payload"]["participants"].as_array().unwrap().iter().map(|one| &one["id"]).collect();
        assert!(["all", "fx", "gate"].iter().all(|id| who.contains(&&json!(id))), "{who:?}");
        let listed = asked(&mut ann, "tools/list", json!({})).await;
        let names: Vec<&Value> = listed["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
        assert!(names.contains(&&json!("fx_echo")), "{names:?}");
        assert_eq!(said(&asked(&mut ann, "tools/call", echo("hello")).await), "hello");
        assert_eq!(asked(&mut ann, "ping", json!({})).await, json!({"jsonrpc": "2.0", "id": 7, "result": {}}));
        // The response is for whoever asked, in its words, and everybody sees it.
        let response = bot.0.next_where(|message| message["kind"] == "mcp/response:tools/call").await;
        assert_eq!((&response["from"], &response["to"]), (&json!("fx"), &json!(["ann"])));
        // What its owner says meanwhile comes to whoever asked.
        let slow = json!({"name": "fx_sleep", "arguments": {"ms": 300}, "_meta": {"progressToken": "p"}});
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": slow});
        ann.send("mcp/request:tools/call:fx_sleep", json!({"to": ["fx"]}), request).await;
        let progress = ann.next_where(|message| message["kind"] == "mcp/request:notifications/progress").await;
        assert_eq!((&progress["to"], &progress["payload"]["params"]["progressToken"]), (&json!(["ann"]), &json!("p")));
        // The whole tree, with the names that clients see.
        let request =
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "fx__fx_echo", "arguments": {"text": "x"}}});
        let id = ann.send("mcp/request:tools/call:fx__fx_echo", json!({"to": ["all"]}), request).await;
        assert_eq!(said(&answer(&mut ann, &id).await), "x");
        // Nobody else comes in under their names.
        for name in ["fx", "gate"] {
            let refused = Socket::open_with(&world, "topic=ops", &format!("secret-of-{name}"), "").await.err().unwrap();
            assert!(refused.status == 403 && refused.message.contains("sits in this room"), "{refused:?}");
        }
        assert!(world.apply(&format!("{others}{}", ops("").replace("tree = \"all\"\n", ""))).contains(&"~ room ops: seats".to_owned()));
        ann.next_where(|message| message["payload"] == json!({"event": "leave", "participant": {"id": "all"}})).await;
    })
    .await;
}

#[tokio::test]
async fn mx_21_a_call_from_a_room_goes_the_usual_way() {
    bounded(async {
        let state = tempfile::tempdir().unwrap();
        let rules = r#"
            permit (principal, action, resource);
            @id("no-echo") forbid (principal == Principal::"bob", action, resource == Tool::"fx.fx_echo");
            @id("rooms") forbid (principal, action, resource == Tool::"fx.fx_big") when { principal.kind == "participant" };
        "#;
        let file = state.path().join("policy.cedar");
        std::fs::write(&file, rules).unwrap();
        let more = format!("[policy]\nfile = {file:?}\n[budget.few]\nprincipals = [\"ann\"]\nmax_calls_per_minute = 1\n");
        let world = recording(state, &ops(&more)).await;
        world.gateway.settled(std::time::Duration::from_secs(60)).await;
        let (mut ann, mut bob) = (join(&world, "ann").await, join(&world, "bob").await);
        let told = asked(&mut bob, "tools/call", echo("x")).await;
        assert!(refused(&told).contains("unknown tool: fx_echo (decision ") && refused(&told).contains("banyan explain"), "{told}");
        let other = asked(&mut bob, "tools/call", json!({"name": "fx_big", "arguments": {"n": 1}})).await;
        let decisions = [&told, &other].map(|told| told["error"]["data"]["decision"].as_str().unwrap().to_owned());
        let rules = decisions.map(|id| world.gateway.decisions(Some(&id))[0].rules[0].id.clone());
        assert_eq!(rules, ["no-echo", "rooms"]);
        assert_eq!(said(&asked(&mut ann, "tools/call", echo("one")).await), "one");
        let over = asked(&mut ann, "tools/call", echo("two")).await;
        assert!(refused(&over).contains("by the budget `few`"), "{over}");
        let entries = read(world).await;
        let of = |who: &str, event: &str| entries.iter().filter(|e| e.principal.as_deref() == Some(who) && e.event == event).count();
        assert_eq!((of("ann", "called"), of("ann", "refused"), of("bob", "refused")), (1, 1, 2), "{entries:?}");
    })
    .await;
}

#[tokio::test]
async fn mx_21_a_slow_server_stops_no_other_participant() {
    bounded(async {
        let world = World::start(&ops("")).await;
        world.gateway.settled(std::time::Duration::from_secs(60)).await;
        let (mut ann, mut bob) = (join(&world, "ann").await, join(&world, "bob").await);
        let sleep =
            json!({"jsonrpc": "2.0", "id": "s", "method": "tools/call", "params": {"name": "fx_sleep", "arguments": {"ms": 600_000}}});
        for _ in 0..17 {
            ann.send("mcp/request:tools/call:fx_sleep", json!({"to": ["fx"]}), sleep.clone()).await;
        }
        let full = ann.next_where(|message| message["kind"] == "mcp/response:tools/call:fx_sleep").await;
        assert!(refused(&full["payload"]).contains("16 calls of yours are under way"), "{full}");
        assert_eq!(said(&asked(&mut bob, "tools/call", echo("meanwhile")).await), "meanwhile");
        let stats = async |bob: &mut Socket| said(&asked(bob, "tools/call", json!({"name": "fx_stats", "arguments": {}})).await).to_owned();
        assert!(!stats(&mut bob).await.contains("\"cancelled\": 16"));
        ann.leave().await;
        while !stats(&mut bob).await.contains("\"cancelled\": 16") {}
    })
    .await;
}

/// Starts a gate at which people approve, and the room.
pub(crate) async fn gated() -> (World, Person, Socket, Socket) {
    let world = recording(tempfile::tempdir().unwrap(), &ops(&GATED.replace("irreversible", "off"))).await;
    world.gateway.settled(std::time::Duration::from_secs(60)).await;
    let person = Person::at(&world, 1, "anna").await;
    let (ann, bot) = (join(&world, "ann").await, join(&world, "bot").await);
    (world, person, ann, bot)
}

#[tokio::test]
async fn mx_22_a_proposal_approved_at_the_gate_goes_out_once() {
    bounded(async {
        let (world, person, mut ann, mut bot) = gated().await;
        let (proposal, approval) = proposed(&world, &mut bot, &person, "x").await;
        assert_eq!((approval.tool.as_str(), approval.arguments.as_str()), ("fx.fx_echo", r#"{"text":"x"}"#));
        assert_eq!((approval.caller.as_str(), approval.room.as_deref()), ("bot", Some("ops")));
        assert_eq!(serde_json::to_value(&approval.causes).unwrap(), json!(["proposal"]));
        person.approve(&approval).await;
        let request = ann.next_where(|message| message["kind"] == "mcp/request:tools/call:fx_echo").await;
        assert_eq!((&request["from"], &request["to"], &request["correlation_id"]), (&json!("gate"), &json!(["fx"]), &json!(proposal)));
        let mut params = echo("x");
        params["_meta"] = json!({"io.banyan/approval": {"id": approval.id, "by": ["anna"]}});
        assert_eq!(request["payload"]["params"], params);
        let response = bot.next_where(|message| message["kind"] == "mcp/response:tools/call:fx_echo").await;
        assert_eq!((&response["to"], &response["correlation_id"]), (&json!(["gate", "bot"]), &request["id"]));
        assert_eq!(said(&response["payload"]), "x");
        standing(&world, &approval.id, Standing::Done).await;
        // Whoever fulfils it in the room now comes too late.
        let late = fulfils(&mut ann, &proposal, "x").await;
        assert!(refused(&answer(&mut ann, &late).await).contains("nothing was called"));
        let entries = read(world).await;
        let made = |e: &&AuditEntry| matches!(e.event.as_str(), "called" | "intended");
        assert_eq!(entries.iter().filter(made).count(), 1, "{entries:?}");
        let of = entries.iter().filter(|e| e.approval.as_deref() == Some(&approval.id)).map(|e| e.event.as_str()).collect::<Vec<_>>();
        assert_eq!(of, ["approval_asked", "approval_decided", "intended"]);
    })
    .await;
}

#[tokio::test]
async fn mx_22_denial_at_the_gate_and_rejection_match() {
    bounded(async {
        let (world, person, mut ann, mut bot) = gated().await;
        let (proposal, approval) = proposed(&world, &mut bot, &person, "no").await;
        person.admin.post(&format!("/-/approvals/{}/deny", approval.id), &json!({"reason": "not today"})).await.unwrap();
        let rejected = ann.next_where(|message| message["kind"] == "mcp/reject:tools/call:fx_echo").await;
        assert_eq!((&rejected["from"], &rejected["correlation_id"]), (&json!("gate"), &json!(proposal)));
        assert_eq!(rejected["payload"]["reason"], "denied at the gate: not today");
        let (proposal, approval) = proposed(&world, &mut bot, &person, "rejected").await;
        ann.send("mcp/reject:tools/call:fx_echo", json!({"correlation_id": proposal}), json!({"reason": "no"})).await;
        let over = standing(&world, &approval.id, Standing::Withdrawn).await;
        assert_eq!(over.reason.as_deref(), Some("rejected by \"ann\" in the room \"ops\""));
        let (proposal, approval) = proposed(&world, &mut bot, &person, "withdrawn").await;
        bot.send("mcp/withdraw:tools/call:fx_echo", json!({"correlation_id": proposal}), json!({})).await;
        let over = standing(&world, &approval.id, Standing::Withdrawn).await;
        assert_eq!(over.reason.as_deref(), Some("withdrawn by \"bot\" in the room \"ops\""));
        // What can't wait at the gate is left to the room, and its proposer hears why.
        let nothing = json!({"method": "tools/call", "params": {"name": "nope", "arguments": {}}});
        let proposal = bot.send("mcp/proposal:tools/call:nope", json!({"to": ["fx"]}), nothing).await;
        let chat = bot.next_where(|message| message["kind"] == "chat" && message["correlation_id"] == proposal.as_str()).await;
        assert!(chat["payload"]["text"].as_str().unwrap().contains("unknown tool: nope"), "{chat}");
    })
    .await;
}

#[tokio::test]
async fn mx_22_fulfilling_in_the_room_closes_the_inbox_entry() {
    bounded(async {
        let (world, person, mut ann, mut bot) = gated().await;
        let (proposal, approval) = proposed(&world, &mut bot, &person, "x").await;
        let request = fulfils(&mut ann, &proposal, "x").await;
        assert_eq!(said(&answer(&mut ann, &request).await), "x");
        let over = standing(&world, &approval.id, Standing::Withdrawn).await;
        assert_eq!(over.reason.as_deref(), Some("fulfilled by \"ann\" in the room \"ops\""));
        // Where the rules want a signature, the one who fulfils waits for it like anybody.
        world.apply(&ops(GATED));
        let (proposal, approval) = proposed(&world, &mut bot, &person, "y").await;
        let request = fulfils(&mut ann, &proposal, "y").await;
        standing(&world, &approval.id, Standing::Withdrawn).await;
        let hers = person.waiting(&world).await;
        assert_eq!((hers.caller.as_str(), hers.room.as_deref()), ("ann", Some("ops")));
        person.approve(&hers).await;
        assert_eq!(said(&answer(&mut ann, &request).await), "y");
        standing(&world, &hers.id, Standing::Done).await;
        let entries = read(world).await;
        let closed: Vec<_> = entries.iter().filter(|e| e.approval.as_deref() == Some(&approval.id)).collect();
        assert_eq!(closed[1].outcome.as_deref(), Some("withdrawn"), "{closed:?}");
        let made = |e: &&AuditEntry| matches!(e.event.as_str(), "called" | "intended");
        let by: Vec<_> = entries.iter().filter(made).map(|e| (e.event.as_str(), e.principal.as_deref())).collect();
        assert_eq!(by, [("called", Some("ann")), ("intended", Some("ann"))], "as the one who fulfils");
    })
    .await;
}

#[tokio::test]
async fn mx_21_a_room_hears_reasons_for_waiting_and_refusal() {
    bounded(async {
        let world = recording(tempfile::tempdir().unwrap(), &ops(GATED)).await;
        let person = Person::at(&world, 1, "anna").await;
        let mut ann = join(&world, "ann").await;
        let request = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": echo("x")});
        let id = ann.send("mcp/request:tools/call", json!({"to": ["fx"]}), request).await;
        let told = ann.next_where(|message| message["kind"] == "mcp/request:notifications/message").await;
        let approval = person.waiting(&world).await;
        let (params, data) = (&told["payload"]["params"], &told["payload"]["params"]["data"]);
        assert_eq!((&told["from"], &told["to"], &params["level"]), (&json!("fx"), &json!(["ann"]), &json!("notice")));
        assert_eq!((&data["reason"], &data["id"]), (&json!("confirmation_required"), &json!(approval.id)));
        assert_eq!((&data["tool"], &data["url"]), (&json!("fx.fx_echo"), &json!(approval.url)));
        assert!(data["text"].as_str().unwrap().contains(&format!("banyan approve {}", approval.id)), "{told}");
        person.admin.post(&format!("/-/approvals/{}/deny", approval.id), &json!({"reason": "not today"})).await.unwrap();
        assert!(refused(&answer(&mut ann, &id).await).ends_with(": not today"));
    })
    .await;
}

#[tokio::test]
async fn mx_21_everybody_hears_of_a_seats_changed_list() {
    bounded(async {
        let world = World::start(&ops("")).await;
        world.gateway.settled(std::time::Duration::from_secs(60)).await;
        let (mut ann, mut bot) = (join(&world, "ann").await, join(&world, "bot").await);
        let listed = asked(&mut ann, "tools/list", json!({})).await["result"]["tools"].as_array().unwrap().len();
        let triggered = asked(&mut ann, "tools/call", json!({"name": "test_trigger_tool_change", "arguments": {}})).await;
        assert!(triggered.get("result").is_some(), "{triggered}");
        let mut told = Vec::new();
        for _ in 0..2 {
            let message = bot.next_where(|message| message["kind"] == "mcp/request:notifications/tools/list_changed").await;
            assert_eq!((message.get("to"), &message["payload"]["method"]), (None, &json!("notifications/tools/list_changed")));
            told.push(message["from"].clone());
        }
        told.sort_by_key(ToString::to_string);
        assert_eq!(told, ["all", "fx"], "each in its own words");
        let now = asked(&mut ann, "tools/list", json!({})).await["result"]["tools"].as_array().unwrap().len();
        assert_eq!(now.abs_diff(listed), 1, "it is there when it is told");
    })
    .await;
}

#[tokio::test]
async fn mx_22_racing_inbox_and_room_make_a_proposal_once() {
    bounded(async {
        let (world, person, mut ann, mut bot) = gated().await;
        for round in 0..20 {
            let text = format!("round {round}");
            let (proposal, approval) = proposed(&world, &mut bot, &person, &text).await;
            let body = json!({"proof": person.proof(&approval.challenge)});
            let path = format!("/-/approvals/{}/confirm", approval.id);
            // Whoever loses is told so; who that is, nobody knows.
            let (_confirmed, request) = tokio::join!(person.admin.post(&path, &body), fulfils(&mut ann, &proposal, &text));
            let told = answer(&mut ann, &request).await;
            let by_room = told.get("result").is_some();
            let over = standing(&world, &approval.id, if by_room { Standing::Withdrawn } else { Standing::Done }).await;
            assert_eq!(over.reason.is_some(), by_room, "{over:?}");
        }
        let stats = asked(&mut ann, "tools/call", json!({"name": "fx_stats", "arguments": {}})).await;
        assert_eq!(stats["result"]["structuredContent"]["calls"], 20, "{stats}");
    })
    .await;
}

#[tokio::test]
async fn waiting_proposals_to_a_seat_are_bounded() {
    bounded(async {
        let other = participant("bit", &["ops"], PROPOSES);
        let world = recording(tempfile::tempdir().unwrap(), &format!("{other}{}", ops(&GATED.replace("irreversible", "off")))).await;
        world.gateway.settled(std::time::Duration::from_secs(60)).await;
        let _person = Person::at(&world, 1, "anna").await;
        let mut ann = join(&world, "ann").await;
        for who in ["bot", "bit"] {
            let mut who = join(&world, who).await;
            for number in 0..60 {
                let payload = json!({"method": "tools/call", "params": echo(&number.to_string())});
                who.send("mcp/proposal:tools/call:fx_echo", json!({"to": ["fx"]}), payload).await;
                ann.next_where(|message| message["kind"] == "mcp/proposal:tools/call:fx_echo").await;
            }
        }
        // Whoever is answered after all of them sees what became of them.
        asked(&mut ann, "ping", json!({})).await;
        eventually(async || (world.gateway.approvals(false).await.unwrap().approvals.len() == 100).then_some(())).await;
    })
    .await;
}
