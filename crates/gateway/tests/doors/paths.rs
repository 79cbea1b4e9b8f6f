//! The documented rule on arguments, tried to the letter.

use serde_json::json;

use crate::asked::text;
use crate::world::{Client, Era, World, bounded, fixture, token};

/// Reads the first example of the section on arguments.
fn documented() -> &'static str {
    let policy = include_str!("../../../../docs/policy.md");
    let section = policy.split("### Arguments").nth(1).unwrap();
    section.split("```cedar\n").nth(1).unwrap().split("```").next().unwrap()
}

#[tokio::test]
async fn m18_the_documented_rule_permits_a_single_spelling() {
    bounded(async {
        let state = tempfile::tempdir().unwrap();
        let file = state.path().join("policy.cedar");
        std::fs::write(&file, documented()).unwrap();
        let toml = format!("{}[policy]\nfile = {file:?}\n{}", token("ann"), fixture("files", Era::Stateless));
        let world = World::start_in(state, &toml).await;
        let ann = Client::new(&world, Era::Stateless).with("authorization", "Bearer secret-of-ann").open().await;
        let call = async |path: serde_json::Value| ann.tool("files__fx_echo", json!({"text": "made", "path": path})).await;
        assert_eq!(text(&call(json!("/srv/documents/a.txt")).await), "made");
        for path in [
            "/srv/../etc/passwd",
            "//etc/passwd",
            "/etc%2fpasswd",
            "/ETC/passwd",
            "/srv/documents/../../etc/passwd",
            "/srv/documents/%2e%2e/%2e%2e/etc/passwd",
            "/SRV/documents/a.txt",
            "//srv/documents/a.txt",
        ] {
            let told = call(json!(path)).await;
            assert_eq!(told["error"]["data"]["reason"], "unknown_tool", "{path}: {told}");
        }
        let listed = call(json!(["/srv/documents/a.txt"])).await;
        assert_eq!(listed["error"]["data"]["reason"], "policy_error", "{listed}");
        assert_eq!(ann.tool("files__fx_echo", json!({"text": "made"})).await["error"]["data"]["reason"], "unknown_tool");
    })
    .await;
}
