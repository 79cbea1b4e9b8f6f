//! Routing to participants without a choice of their own, and tokens for programs.

use http_body_util::Full;
use serde_json::{Value, json};

use crate::rooms::{FULL, PROPOSES, participant};
use crate::world::{Socket, World, bounded, send};

/// Posts JSON, and gives status and body.
async fn post(world: &World, path: &str, fields: &[(&str, &str)], body: &Value) -> (u16, Value) {
    let request = http::Request::post(path).header("content-type", "application/json");
    let request = fields.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let mut answer = send(world.addr, None, request.body(Full::from(body.to_string())).unwrap()).await;
    (answer.status.as_u16(), answer.next().await.unwrap().value)
}

fn heard(welcome: &Value) -> (&Value, &Value) {
    (&welcome["payload"]["routing"], &welcome["payload"]["echo"])
}

#[tokio::test]
async fn mx_15_participant_and_room_say_who_hears_what() {
    bounded(async {
        let bot = participant("bot", &["ops", "loud"], PROPOSES);
        let rooms = "[room.ops]\nadmins = [\"ann\"]\necho = false\n[room.loud]\n";
        let world = World::start(&format!(
            "{bot}routing = \"directed\"\n{}{}{rooms}",
            participant("ann", &["*"], FULL),
            participant("zoe", &["*"], FULL)
        ))
        .await;
        for (query, token, routing, echo) in [
            ("topic=ops", "secret-of-bot", "directed", false),
            ("topic=loud", "secret-of-bot", "directed", true),
            ("topic=ops", "secret-of-zoe", "all", false),
            ("topic=ops&routing=all&echo=1", "secret-of-bot", "all", true),
        ] {
            let (_socket, welcome) = Socket::join(&world, query, token).await;
            assert_eq!(heard(&welcome), (&json!(routing), &json!(echo)), "{query} {token}");
        }
    })
    .await;
}

#[tokio::test]
async fn mx_15_routing_changes_during_a_session() {
    bounded(async {
        let people = [participant("bot", &["ops"], PROPOSES), participant("ann", &["*"], FULL), participant("zoe", &["*"], FULL)].concat();
        let world = World::start(&format!("{people}[room.ops]\nadmins = [\"ann\"]\n")).await;
        let (mut zoe, _) = Socket::join(&world, "topic=ops", "secret-of-zoe").await;
        let (mut bot, _) = Socket::join(&world, "topic=ops", "secret-of-bot").await;
        let change = async |who: &str, body: Value| {
            let bearer = format!("Bearer secret-of-{who}");
            post(&world, "/admin/participants/bot/hearing?topic=ops", &[("authorization", &bearer)], &body).await
        };
        let (status, told) = change("bot", json!({"routing": "directed"})).await;
        assert_eq!((status, &told["routing"], &told["echo"]), (200, &json!("directed"), &json!(true)), "{told}");
        assert_eq!(heard(&bot.next().await), (&json!("directed"), &json!(true)), "a welcome says from where on");
        zoe.send("chat", json!({"to": ["zoe"]}), json!({"text": "not for bot"})).await;
        let mine = zoe.send("chat", json!({"to": ["bot"]}), json!({"text": "for bot"})).await;
        assert_eq!(bot.next().await["id"], mine);
        assert_eq!(change("zoe", json!({"routing": "all"})).await.0, 403, "no admin changes others");
        assert_eq!(change("ann", json!({"routing": "some"})).await.0, 400);
        let (status, told) = change("ann", json!({"routing": "all", "echo": false})).await;
        assert_eq!((status, &told["modifiedBy"]), (200, &json!("ann")), "{told}");
        assert_eq!(heard(&bot.next().await), (&json!("all"), &json!(false)));
        let other = zoe.send("chat", json!({"to": ["zoe"]}), json!({"text": "for all to hear"})).await;
        assert_eq!(bot.next().await["id"], other);
    })
    .await;
}

#[tokio::test]
async fn mx_15_changes_of_hearing_count_in_a_records_share() {
    bounded(async {
        let state = tempfile::tempdir().unwrap();
        let path = state.path().join("record");
        let people = [participant("bot", &["ops"], PROPOSES), participant("zoe", &["ops"], PROPOSES)].concat();
        let limits = "[limits]\nshare = 5\n[rooms.limits]\nmessages_per_second = 100000\nmessages_at_once = 100000\n";
        let audit = format!("[audit]\npath = {path:?}\nkeep_size = \"1MiB\"\nfull_size = \"1MiB\"\nkeep_at_least = \"1h\"\n");
        let world = World::kept(state, &format!("{limits}{people}[room.ops]\n{audit}")).await;
        let (_bot, _) = Socket::join(&world, "topic=ops", "secret-of-bot").await;
        let (_zoe, _) = Socket::join(&world, "topic=ops", "secret-of-zoe").await;
        let change = async |who: &str, echo: bool| {
            let bearer = format!("Bearer secret-of-{who}");
            post(&world, &format!("/admin/participants/{who}/hearing?topic=ops"), &[("authorization", &bearer)], &json!({"echo": echo}))
                .await
        };
        let mut echo = true;
        let told = loop {
            echo = !echo;
            let (status, told) = change("bot", echo).await;
            if status != 200 {
                break (status, told);
            }
        };
        assert_eq!(told.0, 429, "{}", told.1);
        assert!(told.1["error"]["message"].as_str().unwrap().contains("record"), "{}", told.1);
        assert_eq!(world.gateway.audit().unwrap().over_share[0].principal, "bot");
        assert_eq!(change("zoe", false).await.0, 200, "others have their own share");
    })
    .await;
}

#[tokio::test]
async fn a_program_of_this_machine_is_handed_a_token() {
    bounded(async {
        let state = tempfile::tempdir().unwrap();
        let secret = state.path().join("secret");
        std::fs::write(&secret, "a secret of thirty-two bytes or more").unwrap();
        let rooms = |more: &str| format!("[rooms]\nsecret = \"${{file:{}}}\"\n{more}[room.ops]\n", secret.display());
        let world = World::start(&rooms("dev_tokens = true\n")).await;
        let asked = json!({"participantId": "echo-bot", "topic": "ops", "capabilities": ["chat"]});
        for path in ["/v0.1/auth/token", "/v0/auth/token"] {
            let (status, told) = post(&world, path, &[], &asked).await;
            assert_eq!(status, 200, "{told}");
            let (_socket, welcome) = Socket::join(&world, "topic=ops", told["token"].as_str().unwrap()).await;
            assert_eq!(welcome["payload"]["you"], json!({"id": "echo-bot", "capabilities": ["chat"]}));
        }
        let page = [("origin", "http://localhost:1")];
        assert_eq!(post(&world, "/v0.1/auth/token", &page, &asked).await.0, 403, "no page gets one");
        assert_eq!(post(&world, "/v0.1/auth/token", &[], &json!({"topic": "ops"})).await.0, 400);
        let shut = World::start(&rooms("")).await;
        let (status, told) = post(&shut, "/v0.1/auth/token", &[], &asked).await;
        assert_eq!(status, 404);
        assert!(told["error"]["message"].as_str().unwrap().contains("banyan room token"), "{told}");
    })
    .await;
}
