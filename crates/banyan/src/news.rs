//! News printed by `banyan up` while it runs, as text for people or a JSON object a line. Does not watch for events.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use gateway::{JoinStatus, MountStatus, ParentStatus};
use serde::Serialize;

use crate::command::status::look;
use crate::failure::Failure;
use crate::joined;
use crate::output::{Look, Output};
use crate::printable::printable;
use crate::table::{self, counted};

/// Time after which a starting server is announced: a first start may have to download it, and looks like nothing.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum News {
    /// A changed configuration is refused: the old one stays in force, without the credentials missing in the new one.
    Kept {
        error: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        revoked: Vec<String>,
    },
    Listening {
        url: String,
        pid: u32,
        serves: String,
        servers: usize,
        rooms: usize,
    },
    /// A parent's state changed.
    Parent {
        url: String,
        state: String,
        segment: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
    /// A changed configuration is in force.
    Reloaded {
        changes: Vec<String>,
    },
    /// A server's state changed, or the server is still starting.
    Server {
        name: String,
        state: String,
        tools: usize,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// No server is in its first start any more.
    Settled {
        ready: usize,
        servers: usize,
        tools: usize,
    },
    /// The gate is ending.
    Stopping,
}

impl News {
    /// Words the refusal of a changed configuration, and the parts that count all the same; empty for other news.
    pub(crate) fn refusal(&self) -> String {
        let Self::Kept { error, revoked } = self else { return String::new() };
        let head = (!revoked.is_empty()).then_some("\nthese are void all the same, because the file has them no more:".to_owned());
        let void = revoked.iter().map(|line| format!("\n  {line}"));
        std::iter::once(error.clone()).chain(head).chain(void).collect()
    }
}

/// Remembers printed news, so that nothing is printed twice.
#[derive(Default)]
pub(crate) struct Teller {
    told: BTreeMap<String, (String, Option<String>)>,
    settled: bool,
    parents: BTreeMap<String, (String, Option<String>)>,
}

impl Teller {
    /// Lists news about the parents. An attempt, or an unneeded parent, is no news.
    pub(crate) fn parents(&mut self, joined: Option<&JoinStatus>) -> Vec<News> {
        let mut news = Vec::new();
        let parents = joined.map(|joined| joined.parents.as_slice()).unwrap_or_default();
        self.parents.retain(|url, _| parents.iter().any(|parent| parent.url == *url));
        for parent in parents.iter().filter(|parent| !matches!(parent.state.as_str(), "idle" | "trying")) {
            let now = (parent.state.clone(), parent.error.clone());
            if self.parents.get(&parent.url) != Some(&now) {
                self.parents.insert(parent.url.clone(), now);
                let ParentStatus { url, state, error, hint, .. } = parent.clone();
                let segment = joined.map(|joined| joined.segment.clone()).unwrap_or_default();
                news.push(News::Parent { url, state, segment, error, hint });
            }
        }
        news
    }

    /// Lists news about the servers.
    pub(crate) fn news(&mut self, mounts: &[MountStatus], now: SystemTime) -> Vec<News> {
        let is_slow = |m: &MountStatus| {
            now.duration_since(SystemTime::UNIX_EPOCH).is_ok_and(|now| now >= Duration::from_secs(m.since).saturating_add(PATIENCE))
        };
        self.told.retain(|name, _| mounts.iter().any(|m| m.name == *name));
        let mut news = Vec::new();
        for mount in mounts.iter().filter(|m| m.state != "starting" || is_slow(m)) {
            let now = (mount.state.clone(), mount.error.as_deref().map(without_numbers));
            if self.told.get(&mount.name) != Some(&now) {
                self.told.insert(mount.name.clone(), now);
                let MountStatus { name, state, tools, error, .. } = mount.clone();
                news.push(News::Server { name, state, tools, error });
            }
        }
        let settled = mounts.iter().all(|m| m.state != "starting");
        let servers = || mounts.iter().filter(|m| m.transport != "rooms");
        if settled && !self.settled && servers().next().is_some() {
            let ready = servers().filter(|m| m.state == "ready").count();
            news.push(News::Settled { ready, servers: servers().count(), tools: mounts.iter().map(|m| m.tools).sum() });
        }
        self.settled = settled;
        news
    }
}

/// Digits from which on a word is a process id, a time or the name of a log, which differ from try to try and tell nothing new. An exit code
/// and the status of a response have fewer.
const LONG_NUMBER: usize = 4;

/// Leaves long numbers out.
fn without_numbers(text: &str) -> String {
    let words = text.split_inclusive(|c: char| !(c.is_alphanumeric() || ":.-".contains(c)));
    let told = words.map(|word| {
        let is_long = word.bytes().filter(u8::is_ascii_digit).count() >= LONG_NUMBER;
        word.chars().filter(|c| !(is_long && c.is_ascii_digit())).collect::<String>()
    });
    told.collect()
}

/// Prints one piece of news.
pub(crate) fn tell(news: &News, output: &Output) -> Result<(), Failure> {
    if output.wants_json() {
        let text = serde_json::to_string(news).map_err(|e| Failure::Failed(format!("news can't be written as JSON: {e}")))?;
        return output.line(&text);
    }
    text(news, output).iter().try_for_each(|line| output.line(line))
}

fn text(news: &News, output: &Output) -> Vec<String> {
    match news {
        News::Kept { .. } => {
            let head = output.paint(Look::Bad, "the changed configuration can't be used; the old one stays in force");
            std::iter::once(head).chain(news.refusal().lines().map(|l| format!("  {}", printable(l)))).collect()
        }
        News::Listening { url, serves, servers, rooms, .. } => listening(url, serves, (*servers, *rooms), output),
        News::Parent { url, state, segment, error, hint } => parent(url, state, segment, error.iter().chain(hint), output),
        News::Reloaded { changes } => {
            let head = output.paint(Look::Strong, "the changed configuration is in force");
            std::iter::once(head).chain(changes.iter().map(|c| format!("  {c}"))).collect()
        }
        News::Server { name, state, tools, error } => server(name, state, *tools, error.as_deref(), output),
        News::Settled { ready, servers, tools } => {
            let word = if ready == servers { output.paint(Look::Good, "ready") } else { output.paint(Look::Warn, "ready") };
            vec![format!("{word}: {ready} of {}, {}", counted(*servers, "server"), counted(*tools, "tool"))]
        }
        News::Stopping => vec!["stopping: calls in flight may finish".to_owned()],
    }
}

fn listening(url: &str, serves: &str, (servers, rooms): (usize, usize), output: &Output) -> Vec<String> {
    let mounted =
        if rooms == 0 { counted(servers, "server") } else { format!("{} and {}", counted(servers, "server"), counted(rooms, "room")) };
    let client = serde_json::json!({ "mcpServers": { "banyan": { "type": "http", "url": url } } });
    [
        format!("{}  {}", output.paint(Look::Strong, url), output.paint(Look::Dim, &format!("{mounted} from {}", printable(serves)))),
        String::new(),
        "Clients connect with".to_owned(),
        format!("  {client}"),
        "or `banyan connect CLIENT` writes that into a client's own file.".to_owned(),
        "`banyan console` opens the console in a browser.".to_owned(),
    ]
    .into_iter()
    .chain(elsewhere(url))
    .chain([String::new()])
    .collect()
}

/// A line for a gate that listens on all addresses, none of which a client can use as it stands.
fn elsewhere(url: &str) -> Option<String> {
    let rest = ["://0.0.0.0:", "://[::]:"].iter().find_map(|all| url.split_once(all))?;
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Some(format!(
        "Other machines reach the gate at {}://{machine}:{}, with `Authorization: Bearer TOKEN` or a certificate.",
        rest.0,
        printable(rest.1)
    ))
}

fn parent<'a>(url: &str, state: &str, segment: &str, why: impl Iterator<Item = &'a String>, output: &Output) -> Vec<String> {
    let state = output.paint(joined::look(state), state);
    let head = if state.contains("registered") { format!("{state} with {url} as {segment}") } else { format!("{state} parent {url}") };
    std::iter::once(head).chain(why.flat_map(|text| text.lines()).map(|line| format!("  {}", printable(line)))).collect()
}

fn server(name: &str, state: &str, tools: usize, error: Option<&str>, output: &Output) -> Vec<String> {
    let what = if state == "starting" {
        format!("a first start may have to download it; `banyan logs {name}` shows what it says")
    } else {
        counted(tools, "tool")
    };
    let state = format!("{}{}", output.paint(look(state), state), " ".repeat(9_usize.saturating_sub(state.len())));
    let Some(error) = error else { return vec![format!("{state} {name}  {what}")] };
    let mut lines = error.lines().map(printable);
    let first = lines.next().unwrap_or_default();
    let last = lines.next_back().map(|l| format!(" | {}", table::first_line(&l, 160))).unwrap_or_default();
    vec![format!("{state} {name}  {first}{last}")]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(name: &str, state: &str, error: Option<&str>) -> MountStatus {
        MountStatus {
            failed_below: Vec::new(),
            name: name.into(),
            origin: "banyan.toml".into(),
            state: state.into(),
            since: 0,
            next_try: None,
            error: error.map(str::to_owned),
            era: None,
            version: None,
            transport: "stdio".into(),
            tools: 3,
            prompts: 0,
            resources: 0,
            restarts: 0,
            in_flight: 0,
            notes: Vec::new(),
            console: None,
            asks: None,
            gate: false,
            p50_ms: None,
            registered: None,
        }
    }

    fn names(news: &[News]) -> Vec<&str> {
        news.iter().map(name).collect()
    }

    fn name(news: &News) -> &str {
        match news {
            News::Server { state, .. } => state,
            News::Settled { .. } => "settled",
            News::Kept { .. } | News::Listening { .. } | News::Parent { .. } | News::Reloaded { .. } | News::Stopping => "other",
        }
    }

    #[test]
    fn each_change_is_told_once() {
        let (mut teller, now) = (Teller::default(), SystemTime::UNIX_EPOCH);
        let starting = [mount("a", "starting", None), mount("b", "ready", None)];
        assert_eq!(names(&teller.news(&starting, now)), ["ready"]);
        assert_eq!(names(&teller.news(&starting, now)), [""; 0]);
        let failed = [mount("a", "failed", Some("why")), mount("b", "ready", None)];
        assert_eq!(names(&teller.news(&failed, now)), ["failed", "settled"]);
        assert_eq!(names(&teller.news(&failed, now)), [""; 0]);
        let numbered = |text: &str| [mount("a", "failed", Some(text)), mount("b", "ready", None)];
        assert_eq!(names(&teller.news(&numbered("log 2026-1"), now)), ["failed"]);
        assert_eq!(names(&teller.news(&numbered("log 2026-27"), now)), [""; 0]);
        let ready = [mount("a", "ready", None), mount("b", "ready", None)];
        assert_eq!(names(&teller.news(&ready, now)), ["ready"]);
    }

    #[test]
    fn a_server_that_is_long_in_starting_is_told_of_once() {
        let mut teller = Teller::default();
        let starting = [mount("a", "starting", None)];
        let after = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!(names(&teller.news(&starting, after(4))), [""; 0]);
        assert_eq!(names(&teller.news(&starting, after(5))), ["starting"]);
        assert_eq!(names(&teller.news(&starting, after(9))), [""; 0]);
        assert_eq!(names(&teller.news(&[mount("a", "ready", None)], after(9))), ["ready", "settled"]);
        let lines = server("a", "starting", 0, None, &Output::new(false));
        assert_eq!(lines, ["starting  a  a first start may have to download it; `banyan logs a` shows what it says"]);
    }

    #[test]
    fn a_failure_is_one_line_with_its_reason_and_the_last_words() {
        let lines = server("git", "failed", 0, Some("it ended with 1\nTraceback\nImportError: no mcp"), &Output::new(false));
        assert_eq!(lines, ["failed    git  it ended with 1 | ImportError: no mcp"]);
    }
}
