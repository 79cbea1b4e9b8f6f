//! Rooms over real sockets: admission, delivery, and endings.

use config::{self, secret::SystemSources};
use rcgen::{KeyPair, PKCS_ED25519};
use room_proto::websocket::close;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::recorded::{read, recording};
use crate::tokens::{jwk, now, signed};
use crate::world::{Era, NotUpgraded, Socket, World, bounded, eventually, fixture, send, token};

/// Configures a participant with the token `secret-of-NAME`.
pub(crate) fn participant(name: &str, rooms: &[&str], capabilities: &[&str]) -> String {
    let digest: String = Sha256::digest(format!("secret-of-{name}")).iter().map(|b| format!("{b:02x}")).collect();
    format!("[participant.{name}]\nsha256 = \"{digest}\"\nrooms = {rooms:?}\ncapabilities = {capabilities:?}\n")
}

pub(crate) const FULL: &[&str] = &["mcp/*", "chat"];
/// Capabilities of the gate's owner.
const OWNER: &[&str] = &["mcp/*", "chat", "participant/pause", "participant/resume"];
pub(crate) const PROPOSES: &[&str] = &["mcp/proposal:*", "mcp/withdraw:*", "mcp/response:*", "chat"];

/// Configures the room `ops` with `ann`, who may do everything, and `bot`, who proposes.
fn ops(more: &str) -> String {
    format!("{}{}[room.ops]\nadmins = [\"ann\"]\n{more}", participant("ann", &["ops"], FULL), participant("bot", &["ops"], PROPOSES))
}

async fn ann(world: &World) -> Socket {
    Socket::join(world, "topic=ops", "secret-of-ann").await.0
}

async fn bot(world: &World) -> Socket {
    Socket::join(world, "topic=ops", "secret-of-bot").await.0
}

/// Joins both to the room; each has heard of the other.
async fn two(world: &World) -> (Socket, Socket) {
    let mut ann = ann(world).await;
    let bot = bot(world).await;
    assert_eq!(ann.next().await["payload"]["participant"]["id"], "bot");
    (ann, bot)
}

/// Makes an HTTP request, and gives status and body.
async fn answered(world: &World, request: http::Request<http_body_util::Full<bytes::Bytes>>) -> (u16, Value) {
    let mut answer = send(world.addr, None, request).await;
    (answer.status.as_u16(), answer.next().await.unwrap().value)
}

async fn refused(world: &World, query: &str, token: &str) -> NotUpgraded {
    Socket::open_with(world, query, token, "").await.err().expect("it is not let in")
}

#[tokio::test]
async fn mx_10_a_token_gives_identity_and_capabilities() {
    bounded(async {
        let world = World::start(&ops("")).await;
        let (_ann, welcome) = Socket::join(&world, "topic=ops", "secret-of-ann").await;
        assert_eq!(welcome["payload"]["you"], json!({"id": "ann", "capabilities": FULL}));
        assert_eq!((&welcome["from"], &welcome["to"]), (&json!("system:gateway"), &json!(["ann"])));
        let (_bot, welcome) = Socket::join(&world, "topic=ops", "secret-of-bot").await;
        assert_eq!(welcome["payload"]["participants"], json!([{"id": "ann", "capabilities": FULL}]));
        for (query, token, status, said) in [
            ("topic=ops", "", 401, "Authorization: Bearer"),
            ("topic=ops", "secret-of-nobody", 401, "not known"),
            ("topic=other", "secret-of-ann", 403, "ask for one that names it"),
            ("", "secret-of-ann", 400, "/ws?topic=NAME"),
            ("topic=ops&token=secret-of-ann", "", 401, "Authorization: Bearer"),
        ] {
            let refused = refused(&world, query, token).await;
            assert_eq!(refused.status, status, "{query} {refused:?}");
            assert!(refused.message.contains(said), "{refused:?}");
            assert_eq!(refused.head.contains("www-authenticate: Bearer"), status == 401, "{refused:?}");
        }
        let elsewhere = Socket::open_with(&world, "topic=ops", "secret-of-ann", "origin: https://evil.example\r\n").await.err().unwrap();
        assert_eq!(elsewhere.status, 403);
        Socket::open_with(&world, "topic=ops", "secret-of-ann", "origin: http://localhost:1\r\n").await.unwrap();
        let plain = http::Request::get("/ws?topic=ops").body(http_body_util::Full::<bytes::Bytes>::default()).unwrap();
        let plain = send(world.addr, None, plain).await;
        assert_eq!((plain.status.as_u16(), plain.header("upgrade")), (426, "websocket"));
    })
    .await;
}

#[tokio::test]
async fn mx_16_rooms_take_whom_they_are_for() {
    bounded(async {
        let rooms = "[room.square]\n[room.club]\naccess = \"restricted\"\nmembers = [\"ann\"]\n[room.vault]\naccess = \"private\"\n";
        let everywhere = participant("ann", &["*"], FULL);
        let named = participant("zoe", &["vault"], FULL);
        let world = World::start(&format!("{rooms}{everywhere}{named}{}", token("ci"))).await;
        Socket::join(&world, "topic=square", "secret-of-ann").await;
        Socket::join(&world, "topic=club", "secret-of-ann").await;
        Socket::join(&world, "topic=vault", "secret-of-zoe").await;
        // Whoever calls the gate is in public rooms by its name there, and proposes.
        let (_, welcome) = Socket::join(&world, "topic=square", "secret-of-ci").await;
        assert_eq!(welcome["payload"]["you"], json!({"id": "ci", "capabilities": PROPOSES}));
        let mut statuses = Vec::new();
        for (topic, token) in [("vault", "ann"), ("none", "ann"), ("square", "zoe"), ("club", "ci"), ("vault", "ci")] {
            statuses.push(refused(&world, &format!("topic={topic}"), &format!("secret-of-{token}")).await.status);
        }
        assert_eq!(statuses, [404, 404, 403, 403, 404]);
        world.apply(&format!("[rooms]\nopen = true\n{rooms}{everywhere}{named}"));
        Socket::join(&world, "topic=none", "secret-of-ann").await;
    })
    .await;
}

#[tokio::test]
async fn mx_05_messages_arrive_byte_for_byte_in_order() {
    bounded(async {
        let world = World::start(&ops("")).await;
        let (mut ann, mut bot) = two(&world).await;
        let odd = "{ \"kind\":\"chat\",\"payload\" : {\"text\":\"\\u00e9 \u{e9}\", \"n\": 1.00e2},\"from\":\"bot\", \"x-more\":[1 ,2],\n\
                   \"id\":\"1\",\"protocol\":\"mcpx/v0.1\"}";
        bot.send_text(odd).await;
        assert_eq!((ann.next_text().await.as_str(), bot.next_text().await.as_str()), (odd, odd));
        let ids: Vec<String> = {
            let mut ids = Vec::new();
            for number in 0..100 {
                ids.push(bot.chat(&number.to_string()).await);
            }
            ids
        };
        for id in ids {
            assert_eq!(ann.next().await["id"], id);
        }
    })
    .await;
}

#[tokio::test]
async fn mx_12_a_forbidden_message_is_refused_to_its_sender_alone() {
    bounded(async {
        let world = World::start(&ops("")).await;
        let (mut ann, mut bot) = two(&world).await;
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x", "arguments": {}}});
        let id = bot.send("mcp/request:tools/call:x", json!({"to": ["ann"]}), call).await;
        let error = bot.next().await;
        assert_eq!((&error["kind"], &error["to"], &error["correlation_id"]), (&json!("system/error"), &json!(["bot"]), &json!(id)));
        assert_eq!(error["payload"]["error"], "capability_violation");
        assert_eq!(error["payload"]["attempted_kind"], "mcp/request:tools/call:x");
        assert_eq!(error["payload"]["your_capabilities"], json!(PROPOSES));
        // In another's name, as the gateway, twice the same key, no envelope.
        bot.send("chat", json!({"from": "ann"}), json!({"text": "x"})).await;
        bot.send("system/presence", json!({}), json!({})).await;
        bot.send_text(r#"{"protocol":"mcpx/v0.1","id":"2","from":"bot","kind":"chat","kind":"mcp/request:a","payload":{}}"#).await;
        bot.send_text("[]").await;
        bot.send_text(r#"{"protocol":"mcpx/v0.2"}"#).await;
        let mut codes = Vec::new();
        for _ in 0..5 {
            codes.push(bot.next().await["payload"]["error"].as_str().unwrap().to_owned());
        }
        assert_eq!(codes, ["auth_violation", "capability_violation", "invalid_envelope", "invalid_envelope", "unsupported_protocol"]);
        let id = bot.chat("after all that").await;
        assert_eq!(ann.next().await["id"], id, "nothing of it reached anybody");
    })
    .await;
}

#[tokio::test]
async fn mx_17_capabilities_change_at_once_and_are_told() {
    bounded(async {
        let world = recording(tempfile::tempdir().unwrap(), &ops("")).await;
        let (mut ann, mut bot) = two(&world).await;
        let change = async |who: &str, token: &str, body: Value| {
            let request = http::Request::post(format!("/admin/participants/{who}/capabilities?topic=ops"))
                .header("authorization", format!("Bearer {token}"))
                .body(http_body_util::Full::from(body.to_string()))
                .unwrap();
            answered(&world, request).await
        };
        let body = json!({"add": ["mcp/request:tools/*"], "remove": ["chat"]});
        let (status, changed) = change("bot", "secret-of-ann", body.clone()).await;
        assert_eq!(status, 200, "{changed}");
        assert_eq!((&changed["participantId"], &changed["oldCapabilities"]), (&json!("bot"), &json!(PROPOSES)));
        let new = json!(["mcp/proposal:*", "mcp/withdraw:*", "mcp/response:*", "mcp/request:tools/*"]);
        assert_eq!((&changed["newCapabilities"], &changed["modifiedBy"]), (&new, &json!("ann")));
        assert!(changed["modifiedAt"].as_str().unwrap().contains('T'));
        let welcome = bot.next().await;
        assert_eq!((&welcome["kind"], &welcome["payload"]["you"]["capabilities"]), (&json!("system/welcome"), &new));
        bot.chat("no more").await;
        assert_eq!(bot.next().await["payload"]["attempted_kind"], "chat");
        let id =
            bot.send("mcp/request:tools/list", json!({"to": ["ann"]}), json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).await;
        assert_eq!(ann.next().await["id"], id);
        // It outlives the connection.
        bot.leave().await;
        let (_bot, welcome) = Socket::join(&world, "topic=ops", "secret-of-bot").await;
        assert_eq!(welcome["payload"]["you"]["capabilities"], new);
        // Only admins, only what can be, only who is there.
        assert_eq!(change("ann", "secret-of-bot", body.clone()).await.0, 403);
        assert_eq!(change("ann", "", body.clone()).await.0, 401);
        assert_eq!(change("bot", "secret-of-ann", json!({"add": ["system/*"]})).await.0, 400);
        assert_eq!(change("bot", "secret-of-ann", json!({"ad": []})).await.0, 400);
        assert_eq!(change("zoe", "secret-of-ann", body).await.0, 404);
        let entries = read(world).await;
        let changed: Vec<_> = entries.iter().filter(|entry| entry.outcome.as_deref() == Some("room")).map(|entry| &entry.changed).collect();
        assert_eq!(changed, [&["room ops: participant bot: + mcp/request:tools/*, - chat (by ann)"]]);
    })
    .await;
}

#[tokio::test]
async fn mx_18_a_slow_reader_is_cut_off_alone() {
    bounded(async {
        let limits = "[room.ops.limits]\nqueue_messages = 16\nmessages_at_once = 1000000\nbytes_at_once = \"4GiB\"\n";
        let world = World::start(&ops(limits)).await;
        let (mut ann, mut bot) = two(&world).await;
        let text = "x".repeat(256 << 10);
        // What the system takes in between is not known: at some time it is full.
        let left = loop {
            let id = ann.chat(&text).await;
            let came = ann.next().await;
            if came["kind"] == "system/presence" {
                break came;
            }
            assert_eq!(came["id"], id);
        };
        assert_eq!(left["payload"], json!({"event": "leave", "participant": {"id": "bot"}}));
        let (code, why) = bot.closed().await;
        assert_eq!(code, Some(1013));
        assert!(why.contains("more slowly"), "{why}");
        assert_eq!(world.gateway.rooms()[0].cut, 1);
    })
    .await;
}

#[tokio::test]
async fn a_reconnecting_participant_goes_on() {
    bounded(async {
        let world = World::start(&ops("")).await;
        let (mut ann, mut old) = two(&world).await;
        let mut new = bot(&world).await;
        assert_eq!(old.closed().await.0, Some(4009));
        assert_eq!(ann.next().await["payload"]["event"], "join");
        let id = ann.chat("who is there?").await;
        assert_eq!(ann.next().await["id"], id, "nobody left");
        assert_eq!(new.next().await["id"], id);
    })
    .await;
}

#[tokio::test]
async fn mx_15_the_address_says_what_somebody_gets() {
    bounded(async {
        let world = World::start(&ops("")).await;
        let mut ann = ann(&world).await;
        let (mut bot, welcome) = Socket::join(&world, "topic=ops&routing=directed&echo=0", "secret-of-bot").await;
        assert_eq!((&welcome["payload"]["routing"], &welcome["payload"]["echo"]), (&json!("directed"), &json!(false)));
        assert_eq!(ann.next().await["kind"], "system/presence");
        ann.send("chat", json!({"to": ["zoe"]}), json!({"text": "not for bot"})).await;
        let broadcast = ann.chat("for all").await;
        assert_eq!(bot.next().await["id"], broadcast);
        bot.chat("mine").await;
        let mine = ann.send("chat", json!({"to": ["bot"]}), json!({"text": "for bot"})).await;
        assert_eq!(bot.next().await["id"], mine, "no echo");
    })
    .await;
}

#[tokio::test]
async fn a_breach_of_protocol_closes_its_own_connection() {
    bounded(async {
        let world = World::start(&ops("[room.ops.limits]\nmessage_size = \"1KiB\"\n")).await;
        let (mut ann, mut bot) = two(&world).await;
        assert_eq!(bot.pong(b"there?").await, b"there?");
        bot.send_text(&"x".repeat(1500)).await;
        assert_eq!(bot.next().await["payload"]["error"], "payload_too_large");
        for (bytes, code) in [
            (&[0x81, 0x01, b'x'][..], 1002),
            (&[0x82, 0x80, 0, 0, 0, 0], 1003),
            (&[0x81, 0x81, 0, 0, 0, 0, 0xff], 1007),
            (&[0x81, 0xfe, 0xff, 0xff, 0, 0, 0, 0], 1009),
        ] {
            let (mut wrong, _) = Socket::join(&world, "topic=ops", "secret-of-bot").await;
            wrong.raw(bytes).await;
            assert_eq!(wrong.closed().await.0, Some(code));
        }
        let id = ann.chat("still here").await;
        ann.next_where(|message| message["id"] == id.as_str()).await;
    })
    .await;
}

#[tokio::test]
async fn pending_messages_go_out_before_a_close() {
    bounded(async {
        let world = World::start(&ops("")).await;
        let (_ann, mut bot) = two(&world).await;
        let id = bot.chat("goodbye").await;
        bot.raw(&close(1000, "", Some([1, 2, 3, 4]))).await;
        assert_eq!(bot.next().await["id"], id);
        assert_eq!(bot.closed().await.0, Some(1000));
    })
    .await;
}

#[tokio::test]
async fn who_ends_tells_everybody() {
    bounded(async {
        let world = World::start(&ops("")).await;
        let (mut ann, mut bot) = two(&world).await;
        world.shut();
        assert_eq!((ann.closed().await.0, bot.closed().await.0), (Some(1001), Some(1001)));
    })
    .await;
}

#[tokio::test]
async fn a_participant_no_longer_admitted_is_evicted() {
    bounded(async {
        let world = World::start(&ops("")).await;
        let (mut ann, mut bot) = two(&world).await;
        let changes = world.apply(&format!("{}[room.ops]\nadmins = [\"ann\"]\n", participant("ann", &["ops"], FULL)));
        assert_eq!(changes, ["- participant bot"]);
        assert_eq!(bot.closed().await.0, Some(1008));
        assert_eq!(ann.next().await["payload"]["event"], "leave");
        let id = ann.chat("I stay").await;
        assert_eq!(ann.next().await["id"], id);
        assert_eq!(world.apply(""), ["- room ops", "- participant ann"]);
        assert_eq!(ann.closed().await.0, Some(1008));
        eventually(async || world.gateway.rooms().is_empty().then_some(())).await;
        assert_eq!(refused(&world, "topic=ops", "secret-of-ann").await.status, 404);
    })
    .await;
}

#[tokio::test]
async fn mx_10_signed_tokens_say_who_where_and_what() {
    bounded(async {
        let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        let state = tempfile::tempdir().unwrap();
        let (keys, secret) = (state.path().join("keys.json"), state.path().join("secret"));
        std::fs::write(&keys, json!({"keys": [jwk(&key, "1")]}).to_string()).unwrap();
        std::fs::write(&secret, "a secret of thirty-two bytes or more\n").unwrap();
        let toml = format!(
            "resource = \"https://gate.example.com/mcp\"\n[issuer.login]\nissuer = \"https://login.example.com\"\nkeys = {keys:?}\n\
             [issuer.other]\nissuer = \"https://other.example.com\"\nkeys = {keys:?}\n\
             [rooms]\nissuers = [\"login\"]\nquery_token = true\nsecret = \"${{file:{}}}\"\n{}",
            secret.display(),
            ops("")
        );
        let world = World::start_in(state, &toml).await;
        let claims = |more: Value| {
            let mut claims =
                json!({"iss": "https://login.example.com", "aud": "https://gate.example.com/mcp", "sub": "s", "exp": now() + 600});
            claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            signed(&key, "1", &claims)
        };
        let good = json!({"participantId": "zoe", "topic": ["ops", "x"], "capabilities": ["chat"]});
        let (_, welcome) = Socket::join(&world, "topic=ops", &claims(good.clone())).await;
        assert_eq!(welcome["payload"]["you"], json!({"id": "zoe", "capabilities": ["chat"]}));
        let (_, welcome) = Socket::join(&world, &format!("topic=ops&token={}", shared(&good)), "").await;
        assert_eq!(welcome["payload"]["you"]["id"], "zoe");
        // Another issuer's claims are not asked: its holder is who it is at the gate.
        let (_, welcome) =
            Socket::join(&world, "topic=ops", &claims(json!({"iss": "https://other.example.com", "participantId": "zoe"}))).await;
        assert_eq!(welcome["payload"]["you"]["id"], "s@other");
        for (token, status) in [
            (claims(json!({"participantId": "ann", "topic": "ops"})), 403),
            (claims(json!({"participantId": "zoe", "topic": "other"})), 403),
            (claims(json!({"participantId": "zoe"})), 401),
            (claims(json!({"participantId": "zoe", "topic": "ops", "capabilities": "system/*"})), 401),
            (claims(json!({"participantId": "system:gateway", "topic": "ops"})), 403),
            (claims(json!({"participantId": "zoe", "topic": "ops", "exp": 1})), 401),
            (shared(&json!({"participantId": "bot", "topic": "ops"})), 403),
            (shared(&json!({"participantId": "zoe", "topic": "ops", "exp": 1})), 401),
            (format!("{}x", shared(&good)), 401),
        ] {
            let refused = refused(&world, "topic=ops", &token).await;
            assert_eq!(refused.status, status, "{refused:?}");
            assert!(!refused.message.contains(&token));
        }
    })
    .await;
}

/// Makes a token of HS256, as the reference implementation does.
pub(crate) fn shared(claims: &Value) -> String {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let mut all = json!({"exp": now() + 600});
    all.as_object_mut().unwrap().extend(claims.as_object().unwrap().clone());
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", part(&json!({"alg": "HS256", "typ": "JWT"})), part(&all));
    let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, b"a secret of thirty-two bytes or more");
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(aws_lc_rs::hmac::sign(&key, text.as_bytes())))
}

#[tokio::test]
async fn the_owner_joins_as_anybody_and_sees_all_rooms() {
    bounded(async {
        let world = World::start(&ops("[room.quiet]\naccess = \"private\"\n")).await;
        let dir = tempfile::tempdir().unwrap();
        let (_published, _commands) = world.gateway.publish(dir.path(), world.addr, "".into()).unwrap();
        let file = std::fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path();
        let presence: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let admin = presence["token"].as_str().unwrap();
        assert_eq!(refused(&world, "topic=quiet", admin).await.status, 400);
        let (mut me, welcome) = Socket::join(&world, "topic=quiet&participant=me", admin).await;
        assert_eq!(welcome["payload"]["you"], json!({"id": "me", "capabilities": OWNER}));
        let asked = async |method: &str, path: &str, token: &str| {
            let request = http::Request::builder().method(method).uri(path).header("authorization", format!("Bearer {token}"));
            answered(&world, request.body(http_body_util::Full::default()).unwrap()).await
        };
        let (_, rooms) = asked("GET", "/-/rooms", admin).await;
        assert_eq!(rooms["rooms"][1]["name"], "quiet");
        assert_eq!((&rooms["rooms"][1]["access"], &rooms["rooms"][1]["participants"]), (&json!("private"), &json!(1)));
        let (_, room) = asked("GET", "/-/rooms/quiet", admin).await;
        let since = room["participants"][0]["since"].as_u64().unwrap();
        assert!(since > 1_700_000_000);
        assert_eq!(
            room["participants"],
            json!([{"id": "me", "capabilities": OWNER, "routing": "all", "since": since, "refused": 0, "mismatched": 0}])
        );
        assert_eq!(asked("GET", "/-/rooms", "secret-of-ann").await.0, 403);
        assert_eq!(asked("GET", "/-/rooms/none", admin).await.0, 404);
        assert_eq!(asked("GET", "/-/status", admin).await.1["rooms"], rooms["rooms"]);
        assert_eq!(asked("GET", "/-/status", "").await.1.get("rooms"), None);
        assert_eq!(asked("DELETE", "/admin/participants/me", admin).await.0, 200);
        assert_eq!(me.closed().await.0, Some(4003));
        assert_eq!(asked("DELETE", "/admin/participants/me", admin).await.0, 404);
        let out = refused(&world, "topic=quiet&participant=me", admin).await;
        assert!(out.status == 403 && out.message.contains("put \"me\" out"), "{} {}", out.status, out.message);
    })
    .await;
}

#[tokio::test]
async fn mx_20_admins_see_whose_messages_are_faulty() {
    bounded(async {
        let world = World::start(&format!("{}seats = [\"fx\"]\n{}", ops(""), fixture("fx", Era::Stateless))).await;
        eventually(async || (world.gateway.rooms()[0].participants >= 2).then_some(())).await;
        let mut bot = bot(&world).await;
        bot.send("mcp/request:tools/call:rm", json!({}), json!({"method": "tools/call"})).await;
        let false_one = json!({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "rm"}});
        bot.send("mcp/proposal:tools/call:ls", json!({"to": ["ann"]}), false_one).await;
        let seen = async |who: &str| {
            let request = http::Request::get("/-/rooms/ops").header("authorization", format!("Bearer secret-of-{who}"));
            answered(&world, request.body(http_body_util::Full::default()).unwrap()).await
        };
        eventually(async || {
            let (_, room) = seen("ann").await;
            let bot = room["participants"].as_array()?.iter().find(|one| one["id"] == "bot")?.clone();
            ((&bot["refused"], &bot["mismatched"]) == (&json!(1), &json!(1))).then_some(())
        })
        .await;
        assert_eq!(seen("bot").await.0, 403, "admins alone see who is there, and how they behave");
    })
    .await;
}

#[tokio::test]
async fn a_rooms_admin_is_paused_by_admins_only() {
    bounded(async {
        const PAUSES: &[&str] = &["chat", "participant/pause"];
        let world = World::start(&ops("").replace(&format!("{PROPOSES:?}"), &format!("{PAUSES:?}"))).await;
        let dir = tempfile::tempdir().unwrap();
        let (_published, _commands) = world.gateway.publish(dir.path(), world.addr, "".into()).unwrap();
        let file = std::fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path();
        let presence: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let (mut ann, mut bot) = two(&world).await;
        let (mut me, _) =
            Socket::join(&world, "topic=ops&participant=me&also=participant/pause", presence["token"].as_str().unwrap()).await;
        for to in ["ann", "me"] {
            let said = bot.send("participant/pause", json!({"to": [to]}), json!({})).await;
            let refused = bot.next_where(|message| message["kind"] == "system/error").await;
            assert_eq!(
                (&refused["correlation_id"], &refused["payload"]["error"]),
                (&json!(said), &json!("capability_violation")),
                "{refused}"
            );
        }
        // One admin is paused by whoever runs the gate, and is heard all the same.
        let paused = me.send("participant/pause", json!({"to": ["ann"]}), json!({})).await;
        assert_eq!(me.next_where(|message| message["kind"] == "participant/pause").await["id"], paused, "it passed on none before");
        let said = ann.chat("stop").await;
        assert_eq!(bot.next_where(|message| message["kind"] == "chat").await["id"], said);
    })
    .await;
}

#[test]
fn a_printed_configuration_holds_no_token() {
    let toml = "[room.ops]\n[participant.ann]\ntoken = \"hunter2\"\nrooms = [\"ops\"]\n";
    let error = config::parse(toml, std::path::Path::new("banyan.toml"), &SystemSources).unwrap_err().to_string();
    assert!(error.contains("${env:NAME}") && !error.contains("hunter2"), "{error}");
}
