//! Commands that need neither a gate nor a configuration, and every command without one. No gate runs here.

use crate::home::Home;

#[test]
fn help_names_every_command_and_goes_to_standard_output() {
    let help = Home::new().run(&["--help"]).exits(0);
    let all = "auth call check completions connect disconnect doctor explain import logs man names policy reload schema secret status \
               stdio stop token tools trace tree up";
    for command in all.split_whitespace() {
        assert!(help.out.contains(&format!("\n  {command} ")), "{command}: {}", help.out);
    }
    assert_eq!(help.err, "");
}

#[test]
fn what_is_not_understood_ends_with_2_and_a_suggestion() {
    let home = Home::new();
    assert!(home.run(&["statsu"]).exits(2).err.contains("status"));
    assert!(home.run(&["call", "a.b", "notapair"]).exits(2).err.contains("key=value"));
    assert!(home.run(&["agent", "add", "agent.example"]).exits(2).err.contains("begins with https://"));
    home.run::<&str>(&[]).exits(2);
}

#[test]
fn without_a_gate_the_code_is_3_and_the_text_says_what_to_do() {
    let home = Home::new();
    for arguments in [&["status"][..], &["logs", "x"]] {
        let ran = home.run(arguments).exits(3);
        assert_eq!(ran.out, "");
        assert!(ran.err.contains("no gate is running") && ran.err.contains("banyan up"), "{}", ran.err);
    }
}

#[test]
fn a_file_that_is_no_toml_is_shown_without_what_may_be_secret() {
    let home = Home::new();
    home.write("banyan.toml", "[mount.a]\ncommand = \"x\"\nenv = { TOKEN = \"hunter2 }\n");
    for arguments in [&["token", "add", "ci"][..], &["token", "list"], &["join", "https://127.0.0.1:1"], &["leave"]] {
        let ran = home.run(arguments).exits(1);
        assert!(ran.err.contains("banyan.toml:3:") && !ran.err.contains("hunter2"), "{arguments:?}: {}", ran.err);
    }
    // As is one that is named by mistake.
    home.write("other.toml", "test = \"hunter2\"\n");
    let ran = home.run(&["policy", "test", "other.toml"]).exits(2);
    assert!(ran.err.contains("line 1 of other.toml") && ran.err.contains("[[test]]") && !ran.err.contains("hunter2"), "{}", ran.err);
    home.write("torn.toml", "x = 1\ntoken = \"hunter2\n");
    let ran = home.run(&["policy", "test", "torn.toml"]).exits(2);
    assert!(ran.err.contains("line 2 of torn.toml") && !ran.err.contains("hunter2"), "{}", ran.err);
}

#[test]
fn what_is_named_and_not_there_is_said_with_what_to_do() {
    let home = Home::new();
    home.write("banyan.toml", "[mount.a]\ncommand = \"x\"\n");
    for (arguments, code, advice) in [
        (&["policy", "check", "none.cedar"][..], 3, "banyan policy init none.cedar"),
        (&["policy", "test", "none"], 3, "see how its path is written"),
        (&["audit", "verify", "none"], 3, "--dir DIRECTORY"),
        (&["audit", "verify", "--key", "a+b"], 2, "key.pub"),
        (&["auth", "nobody"], 3, "servers are a"),
        (&["check", "."], 1, "it is a directory"),
        (&["token", "rm", "nobody"], 3, "banyan token list"),
        (&["join", "somewhere"], 1, "https://HOST:PORT"),
        (&["up", "--listen", "127.0.0.1:7411", "--config", "none.toml"], 3, "banyan import --write"),
    ] {
        let ran = home.run(arguments).exits(code);
        assert!(ran.err.contains(advice), "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn with_json_a_failure_is_json_too() {
    let ran = Home::new().run(&["status", "--json"]).exits(3);
    let failure = ran.failure();
    assert_eq!(failure["error"]["kind"], "not_found");
    assert!(failure["error"]["message"].as_str().is_some_and(|m| m.contains("banyan up")));
}

#[test]
fn with_json_a_wrong_command_line_is_json_too() {
    for words in [&["nope", "--json"][..], &["--json", "call"], &["status", "--json", "--nope"]] {
        let failure = Home::new().run(words).exits(2).failure();
        assert_eq!(failure["error"]["kind"], "usage", "{words:?}: {failure}");
    }
}

#[test]
fn help_begins_with_the_first_steps() {
    let help = Home::new().run(&["--help"]).exits(0).out;
    let at = |text: &str| help.find(text).unwrap_or_else(|| panic!("{text}: {help}"));
    assert!(at("Start here:") < at("\n  up ") && at("\n  up ") < at("\n  connect ") && at("\n  connect ") < at("Examples:"));
    let unknown = Home::new().run(&["foo"]).exits(2).err;
    assert!(unknown.contains("there is no command `foo`") && !unknown.contains("room"), "{unknown}");
}

#[test]
fn a_noun_alone_lists_what_there_is() {
    let home = Home::new();
    home.write("banyan.toml", "");
    assert!(home.run(&["token"]).exits(0).err.contains("banyan token add NAME"));
    home.run(&["token", "add", "ci"]).exits(0);
    assert_eq!(home.run(&["token"]).exits(0).out, "ci\n");
    home.run(&["token", "remove", "ci"]).exits(0);
}

#[test]
fn completions_exist_for_every_shell() {
    let home = Home::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = home.run(&["completions", shell]).exits(0).out;
        assert!(script.contains("banyan") && script.contains("completions"), "{shell}");
    }
}

#[test]
fn manual_pages_are_written_for_every_command() {
    let home = Home::new();
    home.run(&["man", "pages"]).exits(0);
    for page in ["banyan.1", "banyan-call.1", "banyan-token-add.1"] {
        assert!(home.read(&format!("pages/{page}")).contains(".TH"), "{page}");
    }
}

#[test]
fn no_colour_reaches_a_pipe() {
    let ran = Home::new().run(&["status"]);
    assert!(!ran.err.contains('\x1b') && !ran.out.contains('\x1b'), "{ran:?}");
}

#[test]
fn signing_in_is_for_servers_that_want_it() {
    let home = Home::new();
    home.write("banyan.toml", "[mount.program]\ncommand = 'sh'\n[mount.plain]\nurl = 'http://127.0.0.1:1/mcp'\n");
    assert!(home.run(&["auth", "program"]).exits(2).err.contains("its environment"));
    assert!(home.run(&["auth", "plain"]).exits(2).err.contains("`oauth = {}` makes it"));
    assert!(home.run(&["auth", "plan"]).exits(3).err.contains("did you mean `plain`?"));
    home.write("banyan.toml", "[mount.plain]\nurl = 'http://127.0.0.1:1/mcp'\noauth = {}\n");
    assert!(home.run(&["auth", "plain"]).exits(1).err.contains("plain"));
    assert_eq!(home.run(&["auth", "plain", "--out", "--json"]).exits(0).json()["signed_in"], false);
}
