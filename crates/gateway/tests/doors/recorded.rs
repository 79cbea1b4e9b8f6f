//! Approvals, operators, grants and rules in the record: read back from the files, as anybody could.

use std::path::Path;

use disk::journal::archive::Archive;
use disk::journal::examine::{Evidence, examine};
use disk::journal::index::Search;
use gateway::admin::audit::shown;
use gateway::admin::shapes::AuditEntry;
use serde_json::{Value, json};

use crate::asked::text;
use crate::held::{GATED, Person, plain};
use crate::world::{Era, World, bounded, eventually, fixture};

/// Starts a gate whose record lies in the state directory.
pub(crate) async fn recording(state: tempfile::TempDir, toml: &str) -> World {
    let path = state.path().join("record");
    World::kept(state, &format!("{toml}\n[audit]\npath = {path:?}\n")).await
}

/// Ends the gate and reads all entries, the oldest first.
pub(crate) async fn read(world: World) -> Vec<AuditEntry> {
    let dir = world.state.path().join("record");
    world.gateway.shutdown().await;
    entries_in(&dir)
}

/// Reads all entries of a sound record, the oldest first.
pub(crate) fn entries_in(dir: &Path) -> Vec<AuditEntry> {
    let report = examine(dir, &Evidence::default()).unwrap();
    assert!(report.sound, "{report:?}");
    let found = Archive::open(dir).unwrap().search(&Search { limit: 1000, ..Search::default() }).unwrap();
    found.iter().rev().map(shown).collect()
}

/// Lists the intents of calls that were made, in order. A long call is an entry when leaving, and another when ending.
pub(crate) fn intents(entries: &[AuditEntry]) -> Vec<Value> {
    let of = |entry: &AuditEntry| match entry.event.as_str() {
        "called" => Some(facts(entry)["intent"].clone()),
        "intended" => Some(facts(entry)),
        _ => None,
    };
    entries.iter().filter_map(of).collect()
}

pub(crate) fn facts(entry: &AuditEntry) -> Value {
    let line: Value = serde_json::from_str(entry.line.as_ref().unwrap().get()).unwrap();
    line["facts"].clone()
}

#[tokio::test]
async fn ax_46_question_and_approval_are_recorded_before_the_call() {
    bounded(async {
        let world = recording(tempfile::tempdir().unwrap(), &format!("{GATED}{}", fixture("fx", Era::Stateless))).await;
        let person = Person::at(&world, 1, "anna").await;
        let client = plain(&world, Era::Stateless).await;
        let echo = async |said: &str| client.tool("fx__fx_echo", json!({"text": said})).await;
        echo("x").await;
        let approval = person.waiting(&world).await;
        person.approve(&approval).await;
        assert_eq!(text(&echo("x").await), "x");
        echo("no").await;
        let denied = person.waiting(&world).await.id;
        person.admin.post(&format!("/-/approvals/{denied}/deny"), &json!({"reason": "not on a Friday"})).await.unwrap();
        let entries = read(world).await;
        let of = |id: &str| entries.iter().filter(|e| e.approval.as_deref() == Some(id)).collect::<Vec<_>>();
        let agreed = of(&approval.id);
        let told: Vec<_> = agreed.iter().map(|e| (e.event.as_str(), e.outcome.as_deref())).collect();
        let wanted = [("approval_asked", None), ("approval_decided", Some("released")), ("intended", None)];
        assert_eq!(told, wanted, "each by itself, in this order");
        let (asked, decided) = (facts(agreed[0]), facts(agreed[1]));
        assert_eq!((&asked["tool"], &asked["causes"], &asked["required"]), (&json!("fx.fx_echo"), &json!(["mode"]), &json!(1)));
        assert_eq!((decided["by"].as_str(), &decided["challenge"]), (Some("anna"), &asked["challenge"]));
        assert!(decided["key"].as_str().unwrap().starts_with("SHA256:") && decided["proof"].is_string(), "{decided}");
        assert!(entries.iter().any(|e| e.event == "ended" && e.call == agreed[2].call && e.outcome.as_deref() == Some("done")));
        let refused = facts(of(&denied)[1]);
        assert_eq!((&refused["decision"], &refused["reason"]), (&json!("denied"), &json!("not on a Friday")));
    })
    .await;
}

#[tokio::test]
async fn what_expires_stands_in_the_record_as_nobodys_decision() {
    bounded(async {
        let toml = format!("[gate]\nmode = \"mutable\"\nexpires = \"1s\"\n{}", fixture("fx", Era::Stateless));
        let world = recording(tempfile::tempdir().unwrap(), &toml).await;
        let person = Person::at(&world, 1, "anna").await;
        plain(&world, Era::Stateless).await.tool("fx__fx_echo", json!({"text": "x"})).await;
        let id = person.waiting(&world).await.id;
        eventually(async || world.gateway.approval(&id).await.unwrap().standing.is_over().then_some(())).await;
        let entries = read(world).await;
        let last = entries.iter().rfind(|e| e.approval.as_deref() == Some(&id)).unwrap();
        assert_eq!((last.outcome.as_deref(), &facts(last)["by"]), (Some("expired"), &Value::Null));
    })
    .await;
}

#[tokio::test]
async fn changes_of_operators_grants_and_rules_are_recorded() {
    bounded(async {
        let state = tempfile::tempdir().unwrap();
        let rules = state.path().join("rules.cedar");
        let put = |text: &str| std::fs::write(&rules, text).unwrap();
        put("@id(\"all\") permit (principal, action, resource);");
        let toml = format!("[policy]\nfile = {rules:?}\n{GATED}{}", fixture("fx", Era::Stateless));
        let world = recording(state, &toml).await;
        let person = Person::at(&world, 1, "anna").await;
        let terms = json!({"tool": "fx.*", "caller": "local", "arguments": {}, "any_other": true, "expires": 4_000_000_000_u64});
        let told = person.admin.post("/-/grants/statement", &json!({"terms": terms})).await.unwrap();
        let told: Value = serde_json::from_slice(&told).unwrap();
        let proof = person.proof(told["text"].as_str().unwrap());
        let given = json!({"id": told["id"], "terms": terms, "proofs": [proof]});
        person.admin.post("/-/grants", &given).await.unwrap();
        assert_eq!(text(&plain(&world, Era::Stateless).await.tool("fx__fx_echo", json!({"text": "x"})).await), "x");
        let grant = told["id"].as_str().unwrap().to_owned();
        person.admin.post(&format!("/-/grants/{grant}/revoke"), &json!({})).await.unwrap();
        let key = person.enroll("anna", &[]).await.id;
        person.admin.post("/-/operators/remove", &json!({"id": key})).await.unwrap();
        put("@id(\"all\") permit (principal, action, resource) when { 1 == 1 }; @id(\"more\") forbid (principal == Principal::\"x\", action, resource);");
        let path = world.state.path().join("record");
        world.apply(&format!("{toml}\n[audit]\npath = {path:?}\n"));
        let entries = read(world).await;
        let by_grant = entries.iter().find(|e| e.event == "intended").unwrap();
        assert_eq!(by_grant.approval.as_deref(), Some(&*grant), "a call says by which grant it went out");
        let lines = entries.iter().filter(|e| e.event == "changed" && e.outcome.as_deref() != Some("configuration"));
        let lines: Vec<_> = lines.map(|e| (e.outcome.as_deref().unwrap(), e.changed.join("; "))).collect();
        let rest = [
            ("grants", format!("given: {grant} by anna: fx.* for local")),
            ("grants", format!("revoked: {grant} by anna: fx.* for local")),
            ("operators", format!("enrolled: key {key} of anna")),
            ("operators", format!("removed: key {key} of anna")),
            ("policy", "~ all; + more".to_owned()),
        ];
        assert_eq!((&lines[0], &lines[1].0, &lines[2..]), (&("policy", "+ all".to_owned()), &"operators", &rest[..]));
        let versions = entries.iter().filter(|e| e.outcome.as_deref() == Some("policy"));
        let versions: Vec<Value> = versions.map(|e| facts(e)["version"].clone()).collect();
        assert!(versions.len() == 2 && versions[0] != versions[1], "{versions:?}");
    })
    .await;
}
