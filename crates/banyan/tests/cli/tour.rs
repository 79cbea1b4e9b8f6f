//! The tour of README.md, run: each command behind a prompt, and the shown output beside the printed output. Times, process ids, tokens and
//! names of hosts are masked. Remarks on standard error are no part of a shown output, unlike failures. Prose is not judged here.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::home::{Home, Ran};
use crate::serving::{Gate, home_with_server};

const README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MONTHS: [&str; 12] =
    ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
/// Time for a gate to reach the state that a page shows.
const PATIENCE: Duration = Duration::from_secs(60);

/// A command and its shown output.
struct Step {
    /// Name in front of the prompt; empty where the page has one machine.
    host: String,
    command: String,
    shown: Vec<String>,
}

/// Reads the steps of the page, by heading.
fn chapters() -> Vec<(String, Vec<Step>)> {
    let page = std::fs::read_to_string(README).expect("README.md");
    let mut chapters: Vec<(String, Vec<Step>)> = Vec::new();
    let mut fence = None;
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("### ") {
            chapters.push((title.to_owned(), Vec::new()));
        }
        let Some((_, steps)) = chapters.last_mut() else { continue };
        match (line.strip_prefix("```"), fence) {
            (Some(_), Some(_)) => fence = None,
            (Some(language), None) => fence = Some(language.is_empty()),
            (None, Some(true)) => read_line(line, steps),
            (None, _) => {}
        }
    }
    chapters.retain(|(_, steps)| !steps.is_empty());
    chapters
}

fn read_line(line: &str, steps: &mut Vec<Step>) {
    match line.split_once("$ ").filter(|(host, _)| host.chars().all(char::is_alphanumeric)) {
        Some((host, command)) => {
            let command = command.split(" #").next().unwrap_or_default().trim().to_owned();
            steps.push(Step { host: host.to_owned(), command, shown: Vec::new() });
        }
        None => steps.last_mut().expect("an output stands behind its command").shown.push(line.to_owned()),
    }
}

/// Masks a line: the parts that differ from run to run, and widths of columns.
fn masked(line: &str) -> String {
    let indent = line.len() - line.trim_start().len();
    let words: Vec<String> = line.trim_start().split(' ').filter(|word| !word.is_empty()).map(masked_word).collect();
    let day = |at: usize| words.get(at + 1).is_some_and(|next| next.starts_with("MONTH"));
    let words: Vec<&str> = words.iter().enumerate().map(|(at, word)| if day(at) { "DAY" } else { word.as_str() }).collect();
    format!("{}{}", " ".repeat(indent), words.join(" "))
}

fn masked_word(word: &str) -> String {
    let bare = word.trim_end_matches([',', ')']);
    let tail = &word[bare.len()..];
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_time = bare.matches(':').count() == 2 && bare.bytes().all(|b| b.is_ascii_digit() || b == b':');
    let masked = match bare {
        day if DAYS.contains(&day) => "WEEKDAY",
        month if MONTHS.contains(&month) => "MONTH",
        number if is_number(number) && number.len() > 3 => "NUMBER",
        seconds if seconds.strip_suffix('s').is_some_and(is_number) => "SECONDS",
        tries if tries.strip_suffix('x').is_some_and(is_number) => "TIMES",
        token if token.starts_with("banyan1.") => "TOKEN",
        host if host.starts_with("dns:") => "HOST",
        _ if is_time => "TIME",
        same => same,
    };
    format!("{masked}{tail}")
}

/// Tells if the shown lines are the printed lines. `...` stands for the rest of a line; alone, for any number of lines.
fn is_same(shown: &[String], printed: &[String]) -> bool {
    match (shown, printed) {
        ([], []) => true,
        ([], _) => false,
        ([gap, rest @ ..], _) if gap.trim_start_matches(['│', '├', '└', '─', ' ']) == "..." => {
            (0..=printed.len()).any(|at| is_same(rest, &printed[at..]))
        }
        (_, []) => false,
        ([line, shown @ ..], [other, printed @ ..]) => {
            let is_line = line.strip_suffix("...").map_or(line == other, |begin| other.starts_with(begin.trim_end()));
            is_line && is_same(shown, printed)
        }
    }
}

/// Machines and gates of a chapter, and texts of the page with their counterparts here.
#[derive(Default)]
struct Scene {
    homes: BTreeMap<String, Home>,
    gates: BTreeMap<String, Gate>,
    /// A gate whose output is shown.
    shown: Option<Child>,
    here: Vec<(String, String)>,
}

impl Scene {
    fn of(title: &str) -> Self {
        match title {
            "The first run" => Self::with(Home::new()),
            "Your own servers" => {
                let home = Home::new();
                home.write("banyan.toml", "[mount.files]\ncomand = \"npx\"\n");
                Self::with(home)
            }
            "Your clients" => Self::with(Home::new()).served(&["--listen", "127.0.0.1:0"]),
            "When something is broken" => Self::broken(),
            "Before something is done for good" => Self::asking(),
            "Gates below gates" => Self::two_gates(),
            new => panic!("README.md has commands below `{new}`: give the chapter a scene here"),
        }
    }

    fn with(home: Home) -> Self {
        let mut scene = Self::default();
        scene.homes.insert(String::new(), home);
        scene
    }

    fn served(mut self, arguments: &[&str]) -> Self {
        let mut gate = Gate::up(&self.homes[""], arguments);
        gate.until("settled");
        self.gates.insert(String::new(), gate);
        self
    }

    /// Makes a gate with a server whose program is nowhere.
    fn broken() -> Self {
        let (mut home, port) = (Home::new(), free_port());
        let clock = demonstration("clock");
        let time = "[mount.time]\ncommand = 'uvx'\nargs = ['mcp-server-time']\n";
        home.write("banyan.toml", &format!("listen = '127.0.0.1:{port}'\n{clock}{time}"));
        home.env.push(("PATH", home.path().to_owned()));
        let mut scene = Self::with(home).served(&[]);
        let begin = Instant::now();
        loop {
            let status = scene.homes[""].run(&["status", "--json"]).exits(0).json();
            let time = status["mounts"].as_array().and_then(|all| all.iter().find(|mount| mount["name"] == "time")).cloned();
            let time = time.expect("the server stands in the status");
            if time["state"] == "failed" && time["restarts"].as_u64() > Some(0) && !time["next_try"].is_null() {
                break;
            }
            assert!(begin.elapsed() < PATIENCE, "{time}");
        }
        scene.here.push(("127.0.0.1:7411".into(), format!("127.0.0.1:{port}")));
        scene
    }

    /// Makes a gate that asks before a change, and an approver's key.
    fn asking() -> Self {
        let home = home_with_server();
        home.write("banyan.toml", &format!("{}[approvals]\nmode = \"irreversible\"\n", home.read("banyan.toml")));
        let key = home.write(".ssh/id_ed25519", "");
        std::fs::remove_file(&key).expect("the empty file");
        let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key).status();
        assert!(made.expect("ssh-keygen runs").success());
        let place = home.path().display().to_string();
        let mut scene = Self::with(home).served(&[]);
        scene.here.push(("~".to_owned(), place));
        scene
    }

    fn two_gates() -> Self {
        let (root, edge, port) = (Home::new(), Home::new(), free_port());
        root.write("banyan.toml", &format!("listen = '127.0.0.1:{port}'\n{}", demonstration("clock").replace("mount.clock", "mount.demo")));
        edge.write("banyan.toml", &format!("listen = '127.0.0.1:0'\n{}", demonstration("clock")));
        let here = [("root.example.com:7411", format!("localhost:{port}")), ("root.example.com", "localhost".into())];
        let here = here.into_iter().chain([("127.0.0.1:7411", format!("127.0.0.1:{port}"))]);
        let mut scene = Self::default();
        scene.here = here.map(|(page, text)| (page.to_owned(), text)).collect();
        scene.homes = [("root".to_owned(), root), ("edge".to_owned(), edge)].into();
        scene
    }

    /// Runs a step and compares the outputs.
    fn run(&mut self, step: &Step) {
        self.prepare(step);
        let command = self.here.iter().fold(step.command.clone(), |text, (page, here)| text.replace(page, here));
        let words: Vec<&str> = command.split_whitespace().collect();
        assert_eq!(words.first(), Some(&"banyan"), "{command}");
        let printed = if words == ["banyan", "up"] { self.serve(step.shown.len()) } else { self.print(step, &words[1..]) };
        let printed = self.here.iter().fold(printed, |text, (page, here)| text.replace(here, page));
        let [shown, printed] = [step.shown.join("\n"), printed].map(|text| sorted(text.lines().map(masked).collect()));
        assert!(shown.is_empty() || is_same(&shown, &printed), "`{}` is shown as\n{shown:#?}\nand prints\n{printed:#?}", step.command);
    }

    /// Runs a command to its end.
    fn print(&mut self, step: &Step, words: &[&str]) -> String {
        let yes: &[&str] = if words[0] == "approve" { &["--yes"] } else { &[] };
        let ran: Ran = self.homes[&step.host].run(&[words, yes].concat());
        let is_failure = step.shown.iter().any(|line| line.starts_with("error:"));
        assert_eq!(ran.code != 0, is_failure, "`{}`: {ran:#?}", step.command);
        if words.starts_with(&["ca", "init"]) {
            let token = ran.out.split_whitespace().find(|word| word.starts_with("banyan1.")).expect("a token").to_owned();
            let shown = step.shown[0].split_whitespace().last().expect("a token is shown").to_owned();
            self.here.push((shown, token));
            self.begin("root");
        }
        if is_failure { ran.out + &ran.err } else { ran.out }
    }

    /// Starts a gate and gives its first lines.
    fn serve(&mut self, lines: usize) -> String {
        let mut command = self.homes[""].command(&["up", "--listen", "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary runs");
        let news = BufReader::new(child.stdout.take().expect("a pipe"));
        self.shown = Some(child);
        let printed: Vec<String> = news.lines().take(lines).map(|line| line.expect("a line")).collect();
        let address = printed[0].split('/').nth(2).expect("an address").to_owned();
        self.here.push(("127.0.0.1:7411".into(), address));
        printed.join("\n")
    }

    /// Brings about the state that a step shows.
    fn prepare(&mut self, step: &Step) {
        match step.command.as_str() {
            "banyan approvals" => {
                let home = &self.homes[&step.host];
                home.run(&["call", "shell.say_hello"]).exits(4);
                let waiting = home.run(&["approvals", "--json"]).exits(0).json();
                let id: String = waiting["approvals"][0]["id"].as_str().expect("a call waits").chars().take(8).collect();
                self.here.push(("c8641f96".into(), id));
            }
            "banyan tree" if step.host == "root" => {
                self.begin("edge");
                let root = self.gates.get_mut("root").expect("the root runs");
                let is_ready = |news: &Value| news["name"] == "edge" && news["state"] == "ready";
                while !is_ready(&root.until("server")) {}
            }
            _ => {}
        }
    }

    fn begin(&mut self, host: &str) {
        let mut gate = Gate::up(&self.homes[host], &[]);
        gate.until("settled");
        self.gates.insert(host.to_owned(), gate);
    }

    fn end(mut self) {
        for (_, gate) in std::mem::take(&mut self.gates) {
            gate.end().exits(0);
        }
        if self.shown.is_some() {
            self.homes[""].run(&["stop"]).exits(0);
        }
    }
}

/// Leaves no process behind, where a comparison failed too.
impl Drop for Scene {
    fn drop(&mut self) {
        for home in self.homes.values().filter(|_| !self.gates.is_empty() || self.shown.is_some()) {
            drop(home.command(&["stop"]).output());
        }
        if let Some(mut child) = self.shown.take() {
            drop(child.wait());
        }
    }
}

/// Sorts the lines of servers that became ready, whose order is theirs.
fn sorted(lines: Vec<String>) -> Vec<String> {
    let is_news = |line: &String| line.starts_with("ready ");
    let mut news: Vec<String> = lines.iter().filter(|line| is_news(line)).cloned().collect();
    news.sort();
    let mut news = news.into_iter();
    lines.into_iter().map(|line| if is_news(&line) { news.next().unwrap_or(line) } else { line }).collect()
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port()
}

/// Gives the section of a server of the demonstration.
fn demonstration(name: &str) -> String {
    format!("[mount.{name}]\ncommand = '{}'\nargs = ['demo', '{name}']\n", env!("CARGO_BIN_EXE_banyan"))
}

#[test]
fn the_tour_shows_what_its_commands_print() {
    let chapters = chapters();
    let steps: usize = chapters.iter().map(|(_, steps)| steps.len()).sum();
    assert!(steps >= 14, "only {steps} commands were found");
    for (title, steps) in &chapters {
        let mut scene = Scene::of(title);
        steps.iter().for_each(|step| scene.run(step));
        scene.end();
    }
}

#[test]
fn a_mask_hides_times_and_keeps_numbers() {
    assert_eq!(masked("Friday, 2 May 2026, 05:17:08 (Europe/Vienna)"), "WEEKDAY, DAY MONTH NUMBER, TIME (Europe/Vienna)");
    assert_eq!(masked("  clock   ready, 4 tools  2s, tried again 3x"), "  clock ready, 4 tools SECONDS, tried again TIMES");
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(is_same(&lines("a\n│   └── ...\nz b ..."), &lines("a\nb\nc\nz b c d")) && is_same(&lines("a\n..."), &lines("a")));
    assert!(!is_same(&lines("a\n...\nz"), &lines("a\nb")) && !is_same(&lines("a"), &lines("a\nb")) && !is_same(&lines("a"), &[]));
}
