//! Previews of calls that wait: shown to people, signed, and compared before the call goes out. The server is a switch with lamps: the gate
//! knows nothing of it but the tool that its definitions name.

use std::time::{Duration, Instant};

use gateway::admin::shapes::ApprovalShown;
use policy::approval::Standing;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::asked::text;
use crate::held::{Person, plain, reason};
use crate::recorded::{facts, intents, read, recording};
use crate::world::{Client, Era, World, bounded};

/// A server of the stateless era. Each call is written down; what `look` answers stands in a file beside it.
pub(crate) const SWITCH: &str = r#"
import json, os, sys
at, more, calls = sys.argv[1], sys.argv[2], 0
def tool(name, preview=None, **hints):
    meta = {"_meta": {"io.banyan/preview": preview}} if preview is not None else {}
    return {"name": name, "inputSchema": {"type": "object"}, "annotations": hints, **meta}
TOOLS = [tool("set", {"tool": "look"}), tool("look", readOnlyHint=True), tool("wipe"), tool("wiping", {"tool": "wipe"}),
         tool("itself", {"tool": "itself"}), tool("odd", True), tool("stray", {"tool": "far"}), tool("nested", {"tool": "looks"}),
         tool("looks", {"tool": "set"}, readOnlyHint=True), tool("plain"), tool(more, readOnlyHint=True)]
def looked(said):
    kind = said["text"]
    return {"HUGE": "x" * (100 << 20), "COUNT": f"count {calls}"}.get(kind, kind)
for line in sys.stdin:
    asked = json.loads(line)
    method, params, result = asked["method"], asked.get("params", {}), {}
    if method == "server/discover":
        result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
    elif method == "tools/list":
        result = {"tools": TOOLS}
    elif method == "tools/call":
        calls += 1
        print(json.dumps([params["name"], params.get("arguments", {})]), file=open(at + "/heard", "a"), flush=True)
        result = {"content": [{"type": "text", "text": "done"}]}
        if params["name"] == "look":
            said = json.load(open(at + "/preview"))
            if said["text"] == "SILENT":
                continue
            result = {"content": [{"type": "text", "text": looked(said)}], "isError": said.get("fails", False)}
    if "id" in asked:
        result = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **result}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"#;

const GATED: &str = "[gate]\nmode = \"mutable\"\nexpires = \"30s\"\n";

/// A gate with two switches and somebody who may agree.
struct Room {
    world: World,
    person: Person,
    client: Client,
    lamps: tempfile::TempDir,
}

fn mount(name: &str, at: &tempfile::TempDir, tool: &str) -> String {
    format!("[mount.{name}]\ncommand = \"python3\"\nargs = [\"-c\", '''{SWITCH}''', {:?}, \"{tool}\"]\n", at.path())
}

impl Room {
    async fn start(gate: &str, more: &str) -> Self {
        let (lamps, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let toml = format!("{gate}{}{more}{}", mount("lamps", &lamps, "near"), mount("twin", &lamps, "far"));
        let world = recording(state, &toml).await;
        let room = Self { person: Person::at(&world, 1, "anna").await, client: plain(&world, Era::Stateless).await, world, lamps };
        room.say("- off\n+ on");
        room
    }

    async fn gated() -> Self {
        Self::start(GATED, "").await
    }

    /// Changes what the server's preview answers.
    fn say(&self, text: &str) {
        self.answer(&json!({"text": text}));
    }

    fn answer(&self, said: &Value) {
        std::fs::write(self.lamps.path().join("preview"), said.to_string()).unwrap();
    }

    async fn call(&self, tool: &str) -> Value {
        self.client.tool(&format!("lamps__{tool}"), json!({"lamp": 1})).await
    }

    /// Calls, and gives what people are shown.
    async fn shown(&self, tool: &str) -> ApprovalShown {
        let held = self.call(tool).await;
        assert!(text(&held).contains("was not called"), "{held}");
        self.person.waiting(&self.world).await
    }

    /// Names of the called tools, the server's own, in order.
    fn heard(&self) -> Vec<String> {
        let lines = std::fs::read_to_string(self.lamps.path().join("heard")).unwrap_or_default();
        lines.lines().map(|line| serde_json::from_str::<(String, Value)>(line).unwrap().0).collect()
    }

    async fn standing(&self, id: &str) -> ApprovalShown {
        let all = self.world.gateway.approvals(true).await.unwrap().approvals;
        all.into_iter().find(|approval| approval.id == id).unwrap()
    }
}

fn hash(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn a_preview_is_shown_signed_and_made_once_more() {
    bounded(async {
        let room = Room::gated().await;
        let shown = room.shown("set").await;
        assert_eq!((shown.preview.as_deref(), shown.preview_missing.as_deref()), (Some("- off\n+ on"), None));
        let signed: Value = serde_json::from_str(&shown.challenge).unwrap();
        assert_eq!((&signed["preview_sha256"], &signed["type"]), (&json!(hash("- off\n+ on")), &json!("banyan-approval-v3")));
        room.call("set").await;
        assert_eq!(room.heard(), ["look"], "a call that waits already is previewed once");
        room.person.approve(&shown).await;
        assert_eq!(text(&room.call("set").await), "done");
        assert_eq!(room.heard(), ["look", "look", "set"]);
        let again = room.shown("set").await;
        assert_ne!(again.id, shown.id, "it was good for one call");
        let entries = read(room.world).await;
        let looks = intents(&entries).iter().filter(|intent| intent["name"] == "look").count();
        assert_eq!(looks, 3, "each preview stands in the record");
    })
    .await;
}

#[tokio::test]
async fn a_changed_preview_voids_what_was_agreed_to() {
    bounded(async {
        let room = Room::gated().await;
        let shown = room.shown("set").await;
        room.person.approve(&shown).await;
        room.say("- off\n+ blinking");
        let refused = room.call("set").await;
        assert_eq!((reason(&refused), &refused["error"]["code"]), ("preview_changed", &json!(-32017)));
        assert!(refused["error"]["message"].as_str().unwrap().contains("Make the same call again"), "{refused}");
        assert_eq!(room.heard(), ["look", "look"], "the call was not made");
        let void = room.standing(&shown.id).await;
        assert_eq!((void.standing, void.reason.as_deref()), (Standing::Void, Some("the preview changed")));
        let anew = room.shown("set").await;
        assert_eq!(anew.preview.as_deref(), Some("- off\n+ blinking"));
        room.person.approve(&anew).await;
        assert_eq!(text(&room.call("set").await), "done");
        let entries = read(room.world).await;
        let told = |event: &str, word: &str| {
            entries.iter().filter(|entry| entry.event == event).map(facts).filter(|facts| facts.to_string().contains(word)).count()
        };
        assert_eq!((told("refused", "preview_changed"), told("approval_decided", "the preview changed")), (1, 1));
    })
    .await;
}

#[tokio::test]
async fn a_waiting_caller_hears_that_the_preview_changed() {
    bounded(async {
        let room = Room::start(&GATED.replace("expires = \"30s\"\n", "expires = \"30s\"\nwait = \"20s\"\n"), "").await;
        let decide = async {
            let shown = room.person.waiting(&room.world).await;
            assert!(shown.attended);
            room.say("- off");
            room.person.approve(&shown).await;
        };
        let (told, ()) = tokio::join!(room.call("set"), decide);
        assert_eq!(reason(&told), "preview_changed", "{told}");
        assert_eq!(room.heard(), ["look", "look"]);
    })
    .await;
}

#[tokio::test]
async fn an_ever_different_preview_lets_no_call_out() {
    bounded(async {
        let room = Room::gated().await;
        room.say("COUNT");
        for _ in 0..3 {
            let shown = room.shown("set").await;
            room.person.approve(&shown).await;
            assert_eq!(reason(&room.call("set").await), "preview_changed");
        }
        assert!(!room.heard().contains(&"set".to_owned()));
    })
    .await;
}

#[tokio::test]
async fn whoever_agrees_is_told_why_there_is_no_preview() {
    bounded(async {
        let room = Room::gated().await;
        for (tool, why) in [
            ("itself", "its tool names itself for previews"),
            ("odd", "its server lists no tool of the name that it gives for previews"),
            ("stray", "its server lists no tool of the name that it gives for previews"),
            ("wiping", "`wipe`, named for previews, is no tool that only reads by the rules of this gate"),
        ] {
            let shown = room.shown(tool).await;
            assert_eq!((shown.preview.as_deref(), shown.preview_missing.as_deref()), (None, Some(why)), "{tool}");
            assert!(shown.challenge.contains("banyan-approval-v1") && !shown.challenge.contains("preview"), "{}", shown.challenge);
            assert_eq!(room.heard(), Vec::<String>::new(), "{tool}: nothing was called");
            room.person.admin.post(&format!("/-/approvals/{}/deny", shown.id), &json!({"reason": ""})).await.unwrap();
        }
        let bare = room.shown("plain").await;
        assert_eq!((bare.preview, bare.preview_missing), (None, None));
        room.person.admin.post(&format!("/-/approvals/{}/deny", bare.id), &json!({"reason": ""})).await.unwrap();
        let nested = room.shown("nested").await;
        assert_eq!((nested.preview.as_deref(), room.heard()), (Some("done"), vec!["looks".to_owned()]), "no preview of a preview");
    })
    .await;
}

#[tokio::test]
async fn no_server_makes_a_writing_tool_a_preview() {
    bounded(async {
        for more in ["[mount.lamps.tools]\nlook = { mutable = true }\n", ""] {
            let gate = if more.is_empty() { GATED.replace("mutable", "unlisted") } else { GATED.to_owned() };
            let (lamps, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            std::fs::write(lamps.path().join("preview"), r#"{"text":"x"}"#).unwrap();
            let world = recording(state, &format!("{gate}{}{more}", mount("lamps", &lamps, "near"))).await;
            let (person, client) = (Person::at(&world, 1, "anna").await, plain(&world, Era::Stateless).await);
            client.tool("lamps__set", json!({})).await;
            let shown = person.waiting(&world).await;
            assert!(shown.preview_missing.as_deref().unwrap().contains("`look`, named for previews, is no tool that only reads"));
            assert!(!lamps.path().join("heard").exists(), "nothing was called");
        }
    })
    .await;
}

#[tokio::test]
async fn a_preview_beyond_its_bound_is_none() {
    bounded(async {
        let room = Room::gated().await;
        for (preview, why) in [("x".repeat((64 << 10) + 1), "longer than 65536 bytes"), ("HUGE".to_owned(), "longer than allowed")] {
            room.say(&preview);
            let shown = room.shown("set").await;
            let told = shown.preview_missing.clone().unwrap();
            assert!(shown.preview.is_none() && told.contains(why) && shown.challenge.len() < 2000, "{told}");
            room.person.admin.post(&format!("/-/approvals/{}/deny", shown.id), &json!({"reason": ""})).await.unwrap();
            room.call("set").await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_preview_that_never_comes_is_given_up() {
    bounded(async {
        let room = Room::start(GATED, "timeout = \"1s\"\n").await;
        room.say("SILENT");
        let began = Instant::now();
        let shown = room.shown("set").await;
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        assert!(shown.preview.is_none() && shown.preview_missing.is_some(), "{shown:?}");
        assert_eq!(room.heard(), ["look"]);
    })
    .await;
}

#[tokio::test]
async fn hidden_characters_in_a_preview_are_written_out() {
    bounded(async {
        let room = Room::gated().await;
        room.say("+ a\u{1b}[1A\u{1b}[2K\u{202e}b\u{9b}c\u{200b}\u{7}");
        let shown = room.shown("set").await;
        assert_eq!(shown.preview.as_deref(), Some("+ a⟨U+001B⟩[1A⟨U+001B⟩[2K⟨U+202E⟩b⟨U+009B⟩c⟨U+200B⟩⟨U+0007⟩"));
    })
    .await;
}

#[tokio::test]
async fn without_a_required_preview_nothing_goes_out() {
    bounded(async {
        let room = Room::start(&GATED.replace("mode", "previews = { lamps = \"required\" }\nmode"), "").await;
        for tool in ["plain", "wiping"] {
            let refused = room.call(tool).await;
            assert_eq!(reason(&refused), "no_preview", "{refused}");
        }
        room.answer(&json!({"text": "busy", "fails": true}));
        let refused = room.call("set").await;
        assert!(refused["error"]["message"].as_str().unwrap().contains("its server could not make it: busy"), "{refused}");
        assert!(room.world.gateway.approvals(true).await.unwrap().approvals.is_empty(), "nothing waits");
        room.say("+ on");
        let shown = room.shown("set").await;
        room.person.approve(&shown).await;
        room.answer(&json!({"text": "busy", "fails": true}));
        assert_eq!(reason(&room.call("set").await), "no_preview");
        assert_eq!(room.standing(&shown.id).await.standing, Standing::Released, "what was agreed to holds");
        room.say("+ on");
        assert_eq!(text(&room.call("set").await), "done");
        assert_eq!(room.heard().iter().filter(|tool| *tool == "set").count(), 1);
        assert!(text(&room.client.tool("twin__plain", json!({})).await).contains("was not called"), "another mount has its own demand");
    })
    .await;
}

#[tokio::test]
async fn no_preview_is_asked_for_where_none_is_wanted() {
    bounded(async {
        let room = Room::start(&GATED.replace("mode", "preview = \"off\"\nmode"), "").await;
        let shown = room.shown("set").await;
        assert_eq!((shown.preview, shown.preview_missing, room.heard()), (None, None, Vec::new()));
    })
    .await;
}

#[tokio::test]
async fn a_grant_lets_out_unseen_unless_previews_are_required() {
    bounded(async {
        for (demand, looks) in [("offered", 0), ("required", 1)] {
            let room = Room::start(&GATED.replace("mode", &format!("preview = \"{demand}\"\nmode")), "").await;
            let expires = room.world.gateway.approvals(false).await.unwrap().now + 60;
            let terms = json!({"tool": "lamps.*", "caller": "*", "any_other": true, "expires": expires});
            let asked = room.person.admin.post("/-/grants/statement", &json!({ "terms": terms })).await.unwrap();
            let asked: Value = serde_json::from_slice(&asked).unwrap();
            let proof = room.person.proof(asked["text"].as_str().unwrap());
            room.person.admin.post("/-/grants", &json!({"id": asked["id"], "terms": terms, "proofs": [proof]})).await.unwrap();
            assert_eq!(text(&room.call("set").await), "done", "{demand}");
            assert_eq!(room.heard().iter().filter(|tool| *tool == "look").count(), looks, "{demand}");
            let bare = room.call("plain").await;
            assert_eq!(bare["error"]["data"]["reason"] == "no_preview", demand == "required", "{bare}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_preview_is_found_behind_another_gate() {
    bounded(async {
        let (lamps, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(lamps.path().join("preview"), r#"{"text":"+ on"}"#).unwrap();
        let lower = World::start(&format!("{}{}", mount("lamps", &lamps, "near"), mount("twin", &lamps, "far"))).await;
        let root = recording(state, &format!("{GATED}[mount.low]\nurl = \"http://{}/mcp\"\ngate = true\n", lower.addr)).await;
        let (person, client) = (Person::at(&root, 1, "anna").await, plain(&root, Era::Stateless).await);
        client.tool("low__lamps__set", json!({"lamp": 1})).await;
        let shown = person.waiting(&root).await;
        assert_eq!((shown.preview.as_deref(), shown.preview_missing.as_deref()), (Some("+ on"), None));
        person.approve(&shown).await;
        assert_eq!(text(&client.tool("low__lamps__set", json!({"lamp": 1})).await), "done");
        client.tool("low__lamps__stray", json!({})).await;
        let stray = person.waiting(&root).await;
        assert!(stray.preview_missing.is_some(), "`far` is a tool of another server behind that gate");
    })
    .await;
}

#[tokio::test]
async fn a_rule_can_require_a_preview() {
    bounded(async {
        let rules = r#"
            permit (principal, action, resource);
            @id("look") @effect("gate") @preview("required") forbid (principal, action, resource == Tool::"lamps.plain");
            @id("hidden") forbid (principal, action, resource == Tool::"lamps.look");
            @id("ask") @effect("gate") forbid (principal, action, resource == Tool::"lamps.set");
        "#;
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), rules).unwrap();
        let room = Room::start(&format!("[policy]\nfile = {:?}\n", file.path()), "").await;
        assert_eq!(reason(&room.call("plain").await), "no_preview");
        let shown = room.shown("set").await;
        assert!(shown.preview.is_none() && room.heard().is_empty(), "whoever may not look gets no preview");
        assert_eq!(shown.preview_missing.as_deref(), Some("unknown tool: lamps__look"));
    })
    .await;
}
