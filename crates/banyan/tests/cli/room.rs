//! `banyan room`: two terminals in a room of a running gate. What the gate lets through is tried elsewhere.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::home::{Home, Ran};
use crate::serving::Gate;

/// A terminal in a room.
pub(crate) struct Seat {
    child: Child,
    input: Option<ChildStdin>,
    shown: BufReader<ChildStdout>,
}

impl Seat {
    pub(crate) fn take(home: &Home, arguments: &[&str]) -> Self {
        Self::of(home.command(&[&["room", "join", "ops"], arguments].concat()))
    }

    fn of(mut command: std::process::Command) -> Self {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().expect("the binary runs");
        let (input, shown) = (child.stdin.take(), BufReader::new(child.stdout.take().expect("a pipe")));
        Self { child, input, shown }
    }

    fn types(&mut self, line: &str) {
        writeln!(self.input.as_mut().expect("it still listens"), "{line}").expect("it reads");
    }

    /// Reads until a line holds all the parts, and gives the line.
    fn until(&mut self, parts: &[&str]) -> String {
        let mut seen = String::new();
        loop {
            let mut line = String::new();
            if self.shown.read_line(&mut line).expect("a line") == 0 {
                drop(self.input.take());
                let mut err = String::new();
                std::io::Read::read_to_string(&mut self.child.stderr.take().expect("a pipe"), &mut err).expect("text");
                panic!("no line with {parts:?} in:\n{seen}\n{err}");
            }
            seen.push_str(&line);
            if parts.iter().all(|part| line.contains(part)) {
                return line;
            }
        }
    }

    /// Reads until a message of this kind, shown as JSON.
    pub(crate) fn message(&mut self, kind: &str) -> Value {
        serde_json::from_str(&self.until(&[&format!("\"kind\":\"{kind}")])).expect("JSON")
    }

    /// Nothing more is typed.
    pub(crate) fn ends(mut self) -> Ran {
        drop(self.input.take());
        self.waits()
    }

    /// Waits until the participant ends by itself.
    fn waits(mut self) -> Ran {
        let mut out = String::new();
        std::io::Read::read_to_string(&mut self.shown, &mut out).expect("text");
        let ran = Ran::of(self.child.wait_with_output().expect("it ends"));
        Ran { out, ..ran }
    }
}

/// Makes a home with a room in which `files` proposes nothing and answers, and agents propose.
fn home() -> Home {
    let home = Home::new();
    let hash = |token: &str| {
        use sha2::{Digest, Sha256};
        Sha256::digest(token).iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let bot = format!(
        "[participant.bot]\nsha256 = '{}'\nrooms = ['ops']\ncapabilities = ['mcp/proposal:*', 'mcp/response:*', 'mcp/withdraw:*', 'chat']\n",
        hash("secret-of-bot")
    );
    home.write("banyan.toml", &format!("listen = '127.0.0.1:0'\n[room.ops]\naccess = 'private'\nmembers = ['alice']\n{bot}"));
    home
}

/// Starts the bot, with its own token, as if from elsewhere.
fn bot(home: &Home, gate: &Gate, arguments: &[&str]) -> Seat {
    let url = gate.first["url"].as_str().expect("an address").to_owned();
    let mut command = home.command(&[&["room", "join", "ops", "--url", &url], arguments].concat());
    command.env("BANYAN_ROOM_TOKEN", "secret-of-bot");
    Seat::of(command)
}

#[test]
fn mx_22_two_terminals_talk_and_what_one_proposes_the_other_rejects_or_approves() {
    let home = home();
    let gate = Gate::up(&home, &[]);
    let mut alice = Seat::take(&home, &["--as", "alice"]);
    alice.until(&["you are alice", "nobody else"]);
    let mut bot = bot(&home, &gate, &[]);
    bot.until(&["you are bot", "alice"]);
    alice.until(&["bot is here"]);
    bot.types("hello \u{1b}[2J");
    assert_eq!(alice.until(&["bot: "]), "bot: hello \\u{1b}[2J\n");
    for (n, tool) in ["rm", "ls"].iter().enumerate() {
        bot.types(&format!("/propose bot {tool} {{\"path\":\"/tmp/{n}\"}}"));
        alice.until(&[&format!("#{} bot proposes {tool} at bot", n + 1), &format!("/approve {}", n + 1)]);
    }
    alice.types("/reject 1 not today");
    bot.until(&["#1 rejected by alice: not today"]);
    alice.types("/approve 2");
    bot.until(&["#2 approved by alice: ls at bot"]);
    // A terminal has no tools, and says so in place of leaving whoever called it without an answer.
    alice.until(&["#2 failed by bot", "no tools"]);
    bot.types("/call alice rm");
    bot.types("/approve 99");
    bot.types("/nonsense");
    let err = bot.ends().exits(0).err;
    for said in ["you may not send `mcp/request:tools/call:rm`", "no such proposal", "there is no command `/nonsense`"] {
        assert!(err.contains(said), "{err}");
    }
    alice.until(&["bot has left"]);
    alice.types("/quit");
    alice.ends().exits(0);
    gate.end().exits(0);
}

#[test]
fn mx_24_what_became_of_a_proposal_is_exported_at_the_terminal() {
    let home = home();
    let gate = Gate::up(&home, &[]);
    let mut alice = Seat::take(&home, &["--as", "alice"]);
    alice.until(&["you are alice"]);
    let mut bot = bot(&home, &gate, &[]);
    alice.until(&["bot is here"]);
    for tool in ["rm", "ls"] {
        bot.types(&format!("/propose bot {tool}"));
        alice.until(&[&format!("bot proposes {tool}")]);
    }
    alice.types("/reject 1 no");
    alice.until(&["#1 rejected"]);
    alice.types("/approve 2");
    alice.until(&["#2 failed"]);
    alice.types("/export");
    let rejected: Value = serde_json::from_str(&alice.until(&["\"state\":\"rejected\""])).expect("JSON");
    let answered: Value = serde_json::from_str(&alice.until(&["\"state\":\"answered\""])).expect("JSON");
    assert_eq!((&rejected["end"]["from"], &rejected["reason"]), (&json!("alice"), &json!("no")));
    assert_eq!((&answered["proposal"]["from"], &answered["request"]["from"]), (&json!("bot"), &json!("alice")));
    assert_eq!((&answered["response"]["from"], &answered["outcome"]), (&json!("bot"), &json!("failed")));
    alice.ends().exits(0);
    bot.ends().exits(0);
    gate.end().exits(0);
}

#[test]
fn mx_23_a_person_at_a_terminal_accepts_a_rule_that_acts_is_kept_and_is_revoked() {
    let home = home();
    let gate = Gate::up(&home, &[]);
    let alice = |home: &Home| {
        let mut seat = Seat::take(home, &["--as", "alice", "--person", "alice", "--rules", "rules.json"]);
        seat.until(&["you are alice"]);
        seat
    };
    let mut person = alice(&home);
    // Answers what it is asked, written by hand: what it says is a result.
    let mut bot = bot(&home, &gate, &["--json"]);
    person.until(&["bot is here"]);
    for n in 1..=5 {
        bot.types(&format!("/propose bot ls {{\"path\":\"/srv/a{n}\"}}"));
        person.until(&[&format!("#{n} bot proposes")]);
        person.types(&format!("/approve {n}"));
        if n == 5 {
            person.until(&["a rule could do this", "/accept 1"]);
        }
        person.until(&[&format!("#{n} failed")]);
    }
    person.types("/offers");
    person.until(&["5 decisions for it and none against"]);
    person.types("/accept 1 20 10");
    person.until(&["rule-1 acts"]);
    person.ends().exits(0);
    bot.until(&["\"event\":\"leave\""]);
    // It is there again with the same rules, and acts by itself. What fails ends a rule.
    let mut person = alice(&home);
    bot.types("/propose bot ls {\"path\":\"/srv/a6\"}");
    let request = loop {
        let request = bot.message("mcp/request:tools/call:ls");
        if request["payload"]["params"]["arguments"]["path"] == "/srv/a6" {
            break request;
        }
    };
    assert_eq!(request["payload"]["params"]["_meta"], json!({"io.banyan/rule": {"id": "rule-1", "accepted_by": "alice"}}));
    person.until(&["approved by alice by rule-1"]);
    person.until(&["rule-1 has ended", "failed"]);
    person.types("/acts");
    person.until(&["rule-1", "failed"]);
    person.types("/revoke 1");
    assert!(person.ends().exits(0).err.contains("no rule of this number is active"));
    let kept: Value = serde_json::from_str(&home.read("rules.json")).expect("JSON");
    assert_eq!(kept["kept"]["rules"]["1"]["accepted_by"], "alice");
    bot.ends().exits(0);
    let elsewhere = home.run(&["room", "join", "dev", "--as", "alice", "--rules", "rules.json"]).exits(4).err;
    assert!(elsewhere.contains("the rules of the room \"ops\""), "{elsewhere}");
    // Who types is no person unless somebody says so.
    let mut nobody = Seat::take(&home, &["--as", "alice"]);
    nobody.types("/accept 1");
    assert!(nobody.ends().exits(0).err.contains("only a person makes and ends rules"));
    gate.end().exits(0);
}

#[test]
fn mx_10_rooms_are_listed_and_what_is_wrong_is_one_clear_error() {
    let home = home();
    home.run(&["room", "list"]).exits(3);
    home.run(&["room", "join", "ops", "--as", "alice"]).exits(3);
    let gate = Gate::up(&home, &[]);
    let mut alice = Seat::take(&home, &["--as", "alice", "--json"]);
    assert_eq!(alice.message("system/welcome")["payload"]["you"]["id"], "alice");
    let rooms = home.run(&["room", "ls", "--json"]).exits(0).json();
    assert_eq!((&rooms["rooms"][0]["name"], &rooms["rooms"][0]["participants"]), (&json!("ops"), &json!(1)));
    let present = home.run(&["room", "list", "ops", "--json"]).exits(0).json();
    let one = &present["participants"][0];
    assert_eq!(
        [&one["id"], &one["capabilities"], &one["routing"]],
        [&json!("alice"), &json!(["mcp/*", "chat", "participant/pause", "participant/resume"]), &json!("all")]
    );
    assert!(one["since"].as_u64().is_some_and(|since| since > 1_700_000_000), "{one}");
    assert!(home.run(&["room", "list"]).exits(0).out.contains("room ops  private  1 participant"));
    assert!(home.run(&["room", "list", "none"]).exits(3).err.contains("\"none\""));
    let url = gate.first["url"].as_str().expect("an address").to_owned();
    let joins = |arguments: &[&str]| home.run(&[&["room", "join"], arguments].concat());
    for (arguments, code, said) in [
        (&["", "--as", "x"][..], 2, "names no room"),
        (&["other", "--as", "x"], 3, "no such room"),
        (&["ops", "--as", "system:x"], 4, "participant"),
        (&["ops", "--url", &url], 4, "bearer token"),
        (&["ops", "--url", &url, "--token", "wrong"], 4, "not known"),
        (&["ops", "--url", "gopher://x"], 2, "no address of a gate"),
        (&["ops", "--url", "http://gate.example", "--token", "x"], 4, "plain text"),
        (&["ops", "--as", "x", "--person", "system"], 2, "names no participant"),
        (&["ops", "--as", "x", "--rules", "banyan.toml"], 1, "holds no rules"),
    ] {
        let err = joins(arguments).exits(code).err;
        assert!(err.contains(said) && err.starts_with("error: "), "{arguments:?}: {err}");
    }
    let refused = joins(&["ops", "--url", &url, "--json"]).exits(4).failure();
    assert_eq!(refused["error"]["kind"], "refused");
    // The same participant from elsewhere takes over, and the first is told why.
    let again = Seat::take(&home, &["--as", "alice"]);
    let ran = alice.waits();
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("4009") && ran.err.contains("connected again"), "{}", ran.err);
    again.ends().exits(0);
    gate.end().exits(0);
}

#[test]
fn mx_10_no_token_is_made_for_names_already_given() {
    let home = Home::new();
    let secret = home.write("secret", "a secret of thirty-two bytes or more");
    let hash = "0".repeat(64);
    home.write(
        "banyan.toml",
        &format!(
            "[rooms]\nsecret = '${{file:{}}}'\n[room.ops]\nseats = ['files']\n[room.dev]\n[mount.files]\ncommand = 'cat'\n\
             [participant.bot]\nsha256 = '{hash}'\nrooms = ['ops']\n[[token]]\nname = 'ci'\nsha256 = '{hash}'\n",
            secret.display()
        ),
    );
    let token = |arguments: &[&str]| home.run(&[&["room", "token"], arguments].concat());
    for (arguments, said) in [
        (&["bot", "--room", "ops"][..], "[participant.bot] has a token of its own"),
        (&["ci", "--room", "ops"], "a [[token]] has the name"),
        (&["files", "--room", "dev", "--room", "ops"], "sits in `ops`"),
        (&["gate", "--room", "ops"], "are those of others"),
    ] {
        let err = token(arguments).exits(4).err;
        assert!(err.contains(said) && err.contains("choose another name"), "{arguments:?}: {err}");
    }
    for arguments in [&["files", "--room", "dev"][..], &["files", "--room", "*"], &["files", "--room", "later"], &["ann", "--room", "ops"]]
    {
        assert_eq!(token(arguments).exits(0).out.split('.').count(), 3, "{arguments:?}");
    }
}

#[test]
fn mx_10_a_terminal_comes_back_until_it_is_refused() {
    let home = home();
    let first = Gate::up(&home, &[]);
    let mut alice = Seat::take(&home, &["--as", "alice"]);
    alice.until(&["you are alice"]);
    first.end().exits(0);
    let second = Gate::up(&home, &[]);
    alice.until(&["you are alice"]);
    let mut bot = bot(&home, &second, &["--json"]);
    alice.until(&["bot is here"]);
    alice.types("here again");
    assert_eq!(bot.message("chat")["payload"]["text"], "here again");
    bot.ends().exits(0);
    second.end().exits(0);
    home.write("banyan.toml", "listen = '127.0.0.1:0'\n[room.other]\n");
    let third = Gate::up(&home, &[]);
    let ran = alice.waits().exits(3);
    assert!(ran.err.contains("next try in 1 s") && ran.err.contains("back in the room"), "{}", ran.err);
    assert!(ran.err.contains("no such room"), "{}", ran.err);
    third.end().exits(0);
}

#[test]
fn mx_10_who_leaves_waits_for_no_gate() {
    let home = home();
    let gate = Gate::up(&home, &[]);
    let mut alice = Seat::take(&home, &["--as", "alice"]);
    alice.until(&["you are alice"]);
    gate.end().exits(0);
    alice.types("nobody hears it");
    let ran = alice.ends().exits(0);
    assert!(ran.err.is_empty() || ran.err.contains("away from the room"), "{}", ran.err);
}

#[test]
fn a4_what_is_approved_twice_at_a_terminal_is_called_once() {
    let home = home();
    let gate = Gate::up(&home, &[]);
    let mut alice = Seat::take(&home, &["--as", "alice"]);
    alice.until(&["you are alice"]);
    let mut bot = bot(&home, &gate, &["--json"]);
    alice.until(&["bot is here"]);
    bot.types("/propose bot ls");
    alice.until(&["#1 bot proposes ls"]);
    alice.types("/approve 1\n/approve 1\nthat was all");
    let mut requests = 0;
    loop {
        let message: Value = serde_json::from_str(&bot.until(&["\"kind\":"])).expect("JSON");
        match message["kind"].as_str() {
            Some("mcp/request:tools/call:ls") => requests += 1,
            Some("chat") => break,
            _ => {}
        }
    }
    assert_eq!(requests, 1);
    let ran = alice.ends().exits(0);
    assert!(ran.err.contains("you have approved this already") || ran.err.contains("does not wait any more"), "{}", ran.err);
    bot.ends().exits(0);
    gate.end().exits(0);
}
