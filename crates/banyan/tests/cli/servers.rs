//! `banyan add` and `banyan rm` on configurations as people have them. What a gate does with a changed file is tested elsewhere.

use crate::home::Home;

const FILE: &str = "# mine\n\n[mount.web] # of the team\nurl = \"https://h.example/mcp\"\n";

#[test]
fn a_server_is_added_and_removed_to_the_byte() {
    let home = Home::new();
    home.write("banyan.toml", FILE);
    let added = home.run(&["add", "files", "--env", "A=b", "--cwd", ".", "--", "sh", "-c", "cat"]).exits(0);
    assert!(added.out.contains("added to banyan.toml") && added.err.contains("`banyan up` serves it"), "{added:?}");
    let here = std::fs::canonicalize(home.path()).unwrap().display().to_string();
    let section = format!("\n[mount.files]\ncommand = \"sh\"\nargs = [\"-c\", \"cat\"]\ncwd = \"{here}\"\nenv = {{ A = \"b\" }}\n");
    let written = home.read("banyan.toml");
    assert!(written.starts_with(FILE) && written.ends_with(&section), "{written}\n{section}");
    assert!(home.run(&["check"]).exits(0).out.contains("1 server to start, 1 to reach"));
    assert_eq!(home.run(&["rm", "files"]).exits(0).out, "removed from banyan.toml\n");
    assert_eq!(home.read("banyan.toml"), FILE);
}

#[test]
fn a_first_server_makes_the_configuration() {
    let home = Home::new();
    home.write(".cursor/mcp.json", r#"{"mcpServers": {"old": {"command": "cat"}}}"#);
    home.write("tool.sh", "#!/bin/sh\ncat\n");
    let added = home.run(&["add", "tool", "--", "./tool.sh"]).exits(0);
    assert!(
        added.err.contains("from now on `banyan up` serves what it names") && added.err.contains("banyan import --write"),
        "{}",
        added.err
    );
    let written = home.read(".config/banyan/banyan.toml");
    let here = std::fs::canonicalize(home.path()).unwrap();
    assert!(written.contains(&format!("command = \"{}\"", here.join("tool.sh").display())), "a gate elsewhere finds it too: {written}");
    home.run(&["import", "--write"]).exits(0);
    assert!(home.read(".config/banyan/banyan.toml").contains("[mount.old]") && !home.path().join("banyan.toml").exists());
    let report = home.run(&["rm", "tool", "--json"]).exits(0).json();
    assert_eq!(report["removed"], "tool");
}

#[test]
fn flaws_of_a_new_server_are_told_at_once() {
    let home = Home::new();
    home.write("banyan.toml", FILE);
    let added = home.run(&["add", "typo", "--json", "--", "npyx", "-y", "x"]).exits(0).json();
    assert!(added["flaws"][0].as_str().is_some_and(|flaw| flaw.contains("npyx")), "{added}");
    let nobody = home.run(&["add", "gone", "--url", "http://127.0.0.1:9/mcp", "--header", "X-Key=${env:KEY}"]).exits(0);
    assert!(nobody.err.contains("but:") && nobody.err.contains("127.0.0.1:9"), "{}", nobody.err);
    assert!(home.read("banyan.toml").contains("headers = { X-Key = \"${env:KEY}\" }"));
}

#[test]
fn a_tool_shows_its_arguments_and_slips_are_refused() {
    let home = Home::new();
    home.write("banyan.toml", "");
    home.run(&["add", "clock", "--", env!("CARGO_BIN_EXE_banyan"), "demo", "clock"]).exits(0);
    let shown = home.run(&["tools", "clock.now"]).exits(0).out;
    assert!(
        shown.contains("clock.now  (clock__now for clients")
            && shown.contains("  zone  string")
            && shown.contains("banyan call clock.now zone="),
        "{shown}"
    );
    assert_eq!(home.run(&["tools", "clock.now", "--json"]).exits(0).json()["tool"]["dotted"], "clock.now");
    let slip = home.run(&["call", "clock.now", "zonee=Europe/Vienna"]).exits(2);
    assert!(
        slip.out.is_empty() && slip.err.contains("`zonee` is no argument of `clock.now`") && slip.err.contains("did you mean `zone`?"),
        "{slip:?}"
    );
    home.run(&["call", "clock.now", "zone=Europe/Vienna"]).exits(0);
    let near = home.run(&["tools", "clock.nwo"]).exits(3).err;
    assert!(near.contains("did you mean") && near.contains("`clock.now`"), "{near}");
}

#[test]
fn a_name_is_taken_once_and_only_servers_are_removed() {
    let home = Home::new();
    home.write("banyan.toml", "[mount.web]\nurl = \"https://h.example/mcp\"\n[device.r1]\nbackend = \"frr\"\n");
    let before = home.read("banyan.toml");
    let taken = home.run(&["add", "web", "--", "cat"]).exits(4);
    assert!(taken.err.contains("there is a server `web` already") && taken.err.contains("banyan rm web"), "{}", taken.err);
    assert!(home.run(&["add", "r1", "--", "cat"]).exits(4).err.contains("there is a device `r1` already"));
    assert!(home.run(&["rm", "r1"]).exits(4).err.contains("`r1` is a device"));
    assert!(home.run(&["rm", "webb"]).exits(3).err.contains("did you mean `web`?"));
    let bad = home.run(&["add", "Not/Good", "--", "cat"]);
    assert!(bad.code != 0 && bad.err.contains("Not/Good"), "{bad:?}");
    for arguments in [&["add", "x"][..], &["add", "x", "--url", "https://h.example", "--", "cat"], &["add", "x", "--env", "A", "--", "cat"]]
    {
        home.run(arguments).exits(2);
    }
    assert_eq!(home.read("banyan.toml"), before);
}
