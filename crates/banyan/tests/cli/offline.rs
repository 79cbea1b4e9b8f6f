//! Commands that need neither a gate nor a configuration, and what every command does without one.

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
fn with_json_a_failure_is_json_too() {
    let ran = Home::new().run(&["status", "--json"]).exits(3);
    let failure = ran.failure();
    assert_eq!(failure["error"]["kind"], "not_found");
    assert!(failure["error"]["message"].as_str().is_some_and(|m| m.contains("banyan up")));
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
