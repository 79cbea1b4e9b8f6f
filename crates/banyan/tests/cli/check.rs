//! `banyan check` and `banyan schema`. The exact refusals are the gateway's business and tested there, not here.

use crate::home::Home;

#[test]
fn a_bad_file_is_shown_with_a_caret_and_a_suggestion() {
    let home = Home::new();
    home.write("banyan.toml", "[mount.files]\nagrs = []\n");
    let ran = home.run(&["check"]).exits(1);
    assert_eq!(ran.out, "");
    for part in ["1 problem in", "banyan.toml:2:1", "\n  | ^^^^\n", "did you mean `args`?"] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
}

#[test]
fn problems_are_listed_as_json_with_their_places() {
    let home = Home::new();
    let file = home.write("other.toml", "[mount.files]\nagrs = []\n");
    let ran = home.run(&["check", "other.toml", "--json"]).exits(1);
    let report = ran.json();
    assert_eq!((&report["ok"], &report["file"]), (&false.into(), &"other.toml".into()));
    assert_eq!((&report["problems"][0]["line"], &report["problems"][0]["column"]), (&2.into(), &1.into()));
    assert_eq!(report["problems"][0]["help"], "did you mean `args`?");
    assert!(file.exists());
}

#[test]
fn a_good_file_is_fine_and_a_missing_one_is_not_found() {
    let home = Home::new();
    assert!(home.run(&["check"]).exits(3).err.contains("banyan import --write"));
    home.write(".config/banyan/banyan.toml", "[mount.files]\ncommand = \"npx\"\n");
    assert!(home.run(&["check"]).exits(0).out.contains("1 server to start"));
    let report = home.run(&["check", "--json"]).exits(0).json();
    assert_eq!((&report["ok"], &report["mounts"]), (&true.into(), &serde_json::json!(["files"])));
    home.run(&["check", "nowhere.toml"]).exits(3);
}

#[test]
fn the_schema_is_printed_for_editors() {
    let schema = Home::new().run(&["schema"]).exits(0).json();
    assert_eq!(schema["title"], "banyan.toml");
    assert!(schema["properties"]["mount"].is_object());
}

#[test]
fn a_file_that_no_gate_would_start_with_is_not_fine() {
    let home = Home::new();
    home.write("banyan.toml", "[tls]\ncertificate = 'no.pem'\nkey = 'no.pem'\n");
    let ran = home.run(&["check"]).exits(1);
    assert!(ran.out.is_empty() && ran.err.contains("no.pem"), "{ran:?}");
    home.run(&["up", "--listen", "127.0.0.1:0"]).exits(4);
}

#[test]
fn programs_and_variables_that_are_missing_are_warnings() {
    let home = Home::new();
    home.write("banyan.toml", "[mount.a]\ncommand = 'npx -y server'\nenv = { A = '${env:NO_SUCH_VARIABLE}' }\n[mount.b]\ncommand = 'sh'\n");
    let ran = home.run(&["check"]).exits(0);
    assert!(ran.out.contains("NO_SUCH_VARIABLE") && ran.out.contains("behind the program into `args`"), "{}", ran.out);
    assert!(!ran.out.contains("server b"), "{}", ran.out);
    assert_eq!(home.run(&["check", "--strict", "--json"]).exits(1).json()["warnings"].as_array().map(Vec::len), Some(2));
}
