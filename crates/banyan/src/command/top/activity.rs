//! The activity of a gate in one picture: calls, servers, waiting approvals. Asks nobody and knows no terminal.

use std::collections::HashMap;

use gateway::admin::shapes::{ApprovalsShown, MountStatus, Overview, Status, TrafficCall, TrafficName, TrafficStep};
use serde::Serialize;

use crate::command::status::{failed_below, look};
use crate::output::{Look, Output};
use crate::printable::printable;
use crate::table::{self, Align};

/// Rows of approvals, and of last calls, in a picture without a height.
const LISTED: usize = 10;
/// Heights of a bar, the lowest first.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// `banyan top --json`.
#[derive(Serialize)]
pub(super) struct Activity {
    url: String,
    version: String,
    pid: u32,
    uptime_seconds: u64,
    /// Open sessions of the initialize era.
    sessions: usize,
    rooms: usize,
    in_flight: usize,
    /// Calls a second, over the last whole step.
    per_second: f64,
    step_seconds: u64,
    lately_seconds: u64,
    /// Steps of the last hour, the oldest first.
    steps: Vec<TrafficStep>,
    /// The whole hour.
    whole: TrafficStep,
    /// Servers, those in trouble first, then the busiest.
    servers: Vec<ServerActivity>,
    /// Calls that wait for a person, the most urgent first.
    approvals: Vec<WaitingCall>,
    /// Last calls, the newest first.
    last: Vec<TrafficCall>,
}

/// A server and its calls.
#[derive(Serialize)]
struct ServerActivity {
    name: String,
    state: String,
    tools: usize,
    in_flight: usize,
    calls: u32,
    failed: u32,
    refused: u32,
    lately: u32,
    lately_failed: u32,
    p50_ms: Option<f64>,
    error: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failed_below: Vec<String>,
}

/// A call that waits for a person.
#[derive(Serialize)]
struct WaitingCall {
    id: String,
    tool: String,
    caller: String,
    expires: u64,
    /// Server that leads to the holding gate; absent of a call held here.
    #[serde(skip_serializing_if = "Option::is_none")]
    mount: Option<String>,
}

impl Activity {
    /// Puts the answers of a gate together.
    pub(super) fn new(status: Status, overview: Overview, waiting: &ApprovalsShown) -> Self {
        let traffic: HashMap<&str, &TrafficName> = overview.servers.iter().map(|server| (&*server.name, server)).collect();
        let mut servers: Vec<_> = status.mounts.into_iter().map(|mount| server(mount, &traffic)).collect();
        servers.sort_by_key(|server| {
            (server.state == "ready" && server.failed_below.is_empty(), std::cmp::Reverse((server.lately, server.calls)))
        });
        let full = overview.steps.len().checked_sub(2).and_then(|at| overview.steps.get(at));
        let per_second = full.map_or(0.0, |step| f64::from(step.calls)) / overview.step_seconds.max(1) as f64;
        Self {
            url: status.url,
            version: status.version,
            pid: status.pid,
            uptime_seconds: status.uptime_seconds,
            sessions: status.sessions,
            rooms: status.rooms.len(),
            in_flight: servers.iter().map(|server| server.in_flight).sum(),
            per_second,
            step_seconds: overview.step_seconds,
            lately_seconds: overview.lately_seconds,
            steps: overview.steps,
            whole: overview.whole,
            servers,
            approvals: approvals(waiting),
            last: overview.last,
        }
    }

    /// Draws lines of at most `width` characters; with a height, as many as there is room for.
    pub(super) fn picture(&self, now: u64, width: usize, height: Option<usize>, output: &Output) -> Vec<String> {
        let mut lines = self.head(width, output);
        let room = height.map(|height| height.saturating_sub(lines.len()));
        let approvals = self.waiting(now, output);
        let taken = section(&mut lines, approvals, room.map(|room| room / 3), LISTED);
        let room = room.map(|room| room.saturating_sub(taken));
        let taken = section(&mut lines, self.server_rows(output), room.map(|room| room - room / 3), usize::MAX);
        let room = room.map(|room| room.saturating_sub(taken));
        section(&mut lines, self.last_calls(output), room, LISTED);
        lines.into_iter().map(|line| table::cut(&line, width)).collect()
    }

    fn head(&self, width: usize, output: &Output) -> Vec<String> {
        let Self { whole, .. } = self;
        let url = if self.url.is_empty() { "banyan" } else { &self.url };
        let up = table::duration(self.uptime_seconds);
        let paint = |count: u32, look: Look, word: &str| {
            let text = format!("{count} {word}");
            if count == 0 { text } else { output.paint(look, &text) }
        };
        let time = |of: Option<f64>| of.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1} ms"));
        let bars = bars(&self.steps, width.min(60));
        let mut head = vec![
            format!("{}  up {up}, process {}, version {}", output.paint(Look::Strong, url), self.pid, self.version),
            format!(
                "{:.1} calls a second, {} in flight, {} in the last hour: {}, {}",
                self.per_second,
                self.in_flight,
                whole.calls,
                paint(whole.failed, Look::Bad, "failed"),
                paint(whole.refused, Look::Warn, "refused")
            ),
            format!(
                "p50 {}, p95 {}; {}, {}",
                time(whole.p50_ms),
                time(whole.p95_ms),
                table::counted(self.sessions, "session"),
                table::counted(self.rooms, "room")
            ),
        ];
        head.extend((whole.calls > 0).then(|| output.paint(Look::Good, &bars)));
        head
    }

    fn waiting(&self, now: u64, output: &Output) -> Vec<String> {
        if self.approvals.is_empty() {
            return Vec::new();
        }
        let mut rows = vec![["WAITS FOR APPROVAL", "TOOL", "CALLER", "LEFT"].map(str::to_owned).to_vec()];
        rows.extend(self.approvals.iter().map(|call| {
            let caller = call.mount.as_ref().map_or_else(|| call.caller.clone(), |mount| format!("behind {mount}"));
            let id: String = call.id.chars().take(8).collect();
            let left = table::duration(call.expires.saturating_sub(now));
            vec![output.paint(Look::Warn, &printable(&id)), printable(&call.tool), printable(&caller), left]
        }));
        table::lines(&[Align::Left, Align::Left, Align::Left, Align::Right], &rows)
    }

    fn server_rows(&self, output: &Output) -> Vec<String> {
        let lately = format!("LAST {}", table::duration(self.lately_seconds));
        let titles = ["SERVER", "STATE", "TOOLS", "NOW", "HOUR", &lately, "FAILED", "P50"];
        let mut rows = vec![titles.map(str::to_owned).to_vec()];
        rows.extend(self.servers.iter().map(|server| row(server, output)));
        let (left, right) = (Align::Left, Align::Right);
        table::lines(&[left, left, right, right, right, right, right, right, left], &rows)
    }

    fn last_calls(&self, output: &Output) -> Vec<String> {
        if self.last.is_empty() {
            return Vec::new();
        }
        let mut rows = vec![["LAST CALLS", "CALLER", "END", "TOOK"].map(str::to_owned).to_vec()];
        rows.extend(self.last.iter().map(|call| {
            let look = if call.failed {
                Look::Bad
            } else if call.refused {
                Look::Warn
            } else {
                Look::Good
            };
            let took = if call.refused { String::new() } else { format!("{:.1} ms", call.took_us as f64 / 1000.0) };
            vec![printable(&call.route), printable(&call.caller), output.paint(look, &printable(&call.outcome)), took]
        }));
        table::lines(&[Align::Left, Align::Left, Align::Left, Align::Right], &rows)
    }
}

fn server(mount: MountStatus, traffic: &HashMap<&str, &TrafficName>) -> ServerActivity {
    // The names of servers below a gate begin with the gate's.
    let below = format!("{}.", mount.name);
    let own = traffic.iter().filter(|(name, _)| **name == mount.name || name.starts_with(&below)).map(|(_, counts)| *counts);
    let sum = |count: fn(&TrafficName) -> u32| own.clone().map(count).fold(0, u32::saturating_add);
    ServerActivity {
        calls: sum(|name| name.calls),
        failed: sum(|name| name.failed),
        refused: sum(|name| name.refused),
        lately: sum(|name| name.lately),
        lately_failed: sum(|name| name.lately_failed),
        tools: mount.tools,
        in_flight: mount.in_flight,
        p50_ms: mount.p50_ms,
        error: mount.error.clone().filter(|_| mount.state != "ready").or_else(|| failed_below(&mount)),
        name: mount.name,
        state: mount.state,
        failed_below: mount.failed_below,
    }
}

fn approvals(shown: &ApprovalsShown) -> Vec<WaitingCall> {
    let own = shown.approvals.iter().filter(|approval| approval.standing.is_held()).map(|approval| WaitingCall {
        id: approval.id.clone(),
        tool: approval.tool.clone(),
        caller: approval.caller.clone(),
        expires: approval.expires,
        mount: None,
    });
    let below = shown.below.iter().map(|below| {
        let data: serde_json::Value = serde_json::from_str(below.data.get()).unwrap_or_default();
        let text = |member: &str| data[member].as_str().unwrap_or_default().to_owned();
        let expires = data["expires"].as_u64().unwrap_or_default();
        WaitingCall { id: below.id.clone(), tool: text("tool"), caller: text("caller"), expires, mount: Some(below.mount.clone()) }
    });
    let mut waiting: Vec<WaitingCall> = own.chain(below).collect();
    waiting.sort_by_key(|call| call.expires);
    waiting
}

fn row(server: &ServerActivity, output: &Output) -> Vec<String> {
    let count = |count: u32| if count == 0 { "-".to_owned() } else { table::short(usize::try_from(count).unwrap_or(usize::MAX)) };
    let failed = if server.failed == 0 { count(0) } else { output.paint(Look::Bad, &count(server.failed)) };
    let why = server.error.as_deref().unwrap_or_default();
    vec![
        printable(&server.name),
        output.paint(look(&server.state), &server.state),
        server.tools.to_string(),
        count(u32::try_from(server.in_flight).unwrap_or(u32::MAX)),
        count(server.calls),
        count(server.lately),
        failed,
        server.p50_ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1} ms")),
        printable(&table::first_line(why, 200)),
    ]
}

/// Adds a section with a heading, behind an empty line, and gives the number of added lines. Rows without room are counted in the last line.
fn section(lines: &mut Vec<String>, mut rows: Vec<String>, room: Option<usize>, listed: usize) -> usize {
    let most = room.map_or(listed.saturating_add(1), |room| room.saturating_sub(1));
    // A heading alone says nothing.
    if rows.len() < 2 || most < 2 {
        return 0;
    }
    if rows.len() > most {
        let left = rows.len() + 1 - most;
        rows.truncate(most - 1);
        rows.push(format!("... {left} more"));
    }
    let count = rows.len() + 1;
    lines.push(String::new());
    lines.extend(rows);
    count
}

/// Draws calls of the last steps as bars, the newest at the right.
fn bars(steps: &[TrafficStep], width: usize) -> String {
    let shown = &steps[steps.len().saturating_sub(width)..];
    let most = shown.iter().map(|step| step.calls).max().unwrap_or(0).max(1);
    let bar = |step: &TrafficStep| match step.calls {
        0 => ' ',
        calls => BARS.get((f64::from(calls) / f64::from(most) * 7.0).ceil() as usize).copied().unwrap_or('█'),
    };
    shown.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn mount(name: &str, state: &str, error: Option<&str>) -> Value {
        json!({"name": name, "origin": "banyan.toml", "state": state, "since": 0, "next_try": null, "error": error, "era": null,
            "version": null, "transport": "stdio", "tools": 3, "prompts": 0, "resources": 0, "restarts": 0, "in_flight": 1, "notes": []})
    }

    fn activity(servers: usize) -> Activity {
        let ready = (0..servers).map(|number| mount(&format!("server-{number}"), "ready", None));
        let mounts: Vec<Value> = ready.chain([mount("kafka", "failed", Some("down\u{1b}[2J"))]).collect();
        let status = json!({"version": "1", "pid": 7, "url": "http://127.0.0.1:7411/mcp", "serves": "", "uptime_seconds": 70, "sessions": 1,
            "mounts": mounts});
        let step = |calls: u32| json!({"calls": calls, "failed": 0, "refused": 0});
        let name =
            |name: &str, calls: u32| json!({"name": name, "calls": calls, "failed": 1, "refused": 0, "lately": calls, "lately_failed": 0});
        let call = json!({"call": "1", "began": 0, "caller": "ci", "server": "server-1", "route": "server-1.say", "outcome": "done",
            "failed": false, "refused": false, "took_us": 1500});
        let overview = json!({"step_seconds": 10, "lately_seconds": 300, "steps": [step(0), step(25), step(3)], "whole": step(28),
            "callers": [], "servers": [name("server-1", 20), name("server-1.deep", 8)], "tools": [], "last": vec![call; 100]});
        let waiting = json!({"now": 5, "approvals": [], "below": []});
        let read = "the shape of an answer";
        Activity::new(
            serde_json::from_value(status).expect(read),
            serde_json::from_value(overview).expect(read),
            &serde_json::from_value(waiting).expect(read),
        )
    }

    #[test]
    fn a_picture_fits_its_screen_with_trouble_first() {
        for (servers, width, height) in [(1, 80, 24), (300, 80, 24), (300, 40, 10), (3, 20, 3), (3, 5, 1)] {
            let activity = activity(servers);
            let lines = activity.picture(5, width, Some(height), &Output::new(false));
            assert!(lines.len() <= height.max(4) && lines.iter().all(|line| line.chars().count() <= width), "{lines:#?}");
        }
        let lines = activity(300).picture(5, 80, Some(24), &Output::new(false));
        let at = lines.iter().position(|line| line.starts_with("SERVER")).expect("a heading");
        assert!(lines[at + 1].starts_with("kafka") && lines[at + 2].starts_with("server-1 "), "{lines:#?}");
        assert!(lines[at + 1].contains("down\\u{1b}[2J") && lines.iter().any(|line| line.ends_with(" more")), "{lines:#?}");
        assert!(lines.iter().any(|line| line.starts_with("LAST CALLS")), "{lines:#?}");
    }

    #[test]
    fn rates_and_sums_are_those_of_whole_steps() {
        let activity = activity(3);
        assert_eq!((activity.per_second, activity.in_flight), (2.5, 4));
        assert_eq!((activity.servers[1].calls, activity.servers[1].failed), (28, 2), "servers below a gate count for the gate");
        assert_eq!(bars(&activity.steps, 2), "█▂");
    }
}
