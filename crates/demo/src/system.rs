//! `system`: load, memory, disks and processes of this machine. Reads only; command lines and environments
//! are never shown, because they may hold secrets.
//!
//! All figures come from `/proc`, which only Linux has: elsewhere each tool says so.

use std::path::Path;

use mcp_server::{About, Arguments, Era, Refusal, Request, Server, failed, number_of, structured, text_of};
use serde_json::{Map, Value, json};

use super::processes;

/// Kinds of file systems without a disk.
const IN_MEMORY: [&str; 5] = ["devtmpfs", "efivarfs", "ramfs", "squashfs", "tmpfs"];

/// The resource that holds everything.
const SUMMARY: &str = "system://summary";

pub(super) struct System;

impl Server for System {
    fn about(&self) -> About {
        let instructions = "How this machine is: load, memory, disks, processes. Nothing can be changed here.";
        About::fixed("system", "System", env!("CARGO_PKG_VERSION"), instructions)
    }

    fn capabilities(&self, _era: Era) -> Value {
        json!({ "resources": {} })
    }

    fn tools(&self) -> Vec<Value> {
        let read_only = json!({ "readOnlyHint": true, "openWorldHint": false });
        let tool = |name: &str, title: &str, description: &str| {
            json!({
                "name": name, "title": title, "description": description,
                "inputSchema": { "type": "object", "properties": {} }, "annotations": read_only,
            })
        };
        vec![
            tool("load", "Load", "Tells the load averages, the number of processors and how long the machine has been up"),
            tool("memory", "Memory", "Tells how much memory and swap there is and how much is free"),
            tool("disks", "Disks", "Lists file systems with their size and free space"),
            json!({
                "name": "processes", "title": "Processes", "description": "Lists the processes that use the most memory or processor time",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "sort": { "type": "string", "enum": ["memory", "cpu"], "default": "memory", "description": "What to sort by" },
                        "limit": { "type": "integer", "minimum": 1, "maximum": 100, "default": 10, "description": "How many" },
                    },
                },
                "annotations": read_only,
            }),
        ]
    }

    async fn call(&self, _request: &Request, tool: &str, arguments: &Arguments) -> Result<Value, Refusal> {
        let (tool, sort) = (tool.to_owned(), text_of(arguments, "sort").unwrap_or("memory").to_owned());
        let limit = number_of(arguments, "limit").unwrap_or(10).clamp(1, 100) as usize;
        // Files below /proc are made as they are read: that may take a while and must not hold up other requests.
        let read = tokio::task::spawn_blocking(move || match tool.as_str() {
            "load" => load(),
            "memory" => memory(),
            "disks" => disks(),
            _ => processes::top(&sort, limit),
        });
        let done = read.await.unwrap_or_else(|_| Err("the answer could not be put together".into()));
        Ok(done.map_or_else(failed, |(text, value)| structured(text, value)))
    }

    fn resources(&self) -> Vec<Value> {
        vec![json!({ "uri": SUMMARY, "name": "summary", "title": "Summary", "mimeType": "application/json" })]
    }

    async fn read(&self, _request: &Request, uri: &str, _params: &Map<String, Value>) -> Result<Option<Value>, Refusal> {
        let part = |read: SystemReading| read.map_or_else(|why| json!({ "error": why }), |(_, value)| value);
        let summary = || json!({ "load": part(load()), "memory": part(memory()), "disks": part(disks()) });
        let contents = || json!({ "contents": [{ "uri": uri, "mimeType": "application/json", "text": summary().to_string() }] });
        Ok((uri == SUMMARY).then(contents))
    }
}

/// A text for people and the same as values, or the reason for having none.
pub(super) type SystemReading = Result<(String, Value), String>;

/// The text of a file below `/proc`.
pub(super) fn proc_file(name: &str) -> Result<String, String> {
    if !cfg!(target_os = "linux") {
        return Err(format!("this is read from /proc, which only Linux has; this machine runs {}", std::env::consts::OS));
    }
    std::fs::read_to_string(Path::new("/proc").join(name)).map_err(|error| format!("/proc/{name} can't be read: {error}"))
}

fn load() -> SystemReading {
    let averages: Vec<f64> = proc_file("loadavg")?.split(' ').take(3).filter_map(|number| number.parse().ok()).collect();
    let [one, five, fifteen] = averages[..] else { return Err("/proc/loadavg is not as expected".into()) };
    let up: f64 = proc_file("uptime")?.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or_default();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let text = format!("Load {one} (1 min), {five} (5 min), {fifteen} (15 min) on {processors} processors; up {}.", duration(up as u64));
    Ok((text, json!({ "load1": one, "load5": five, "load15": fifteen, "processors": processors, "uptimeSeconds": up as u64 })))
}

fn memory() -> SystemReading {
    let info = proc_file("meminfo")?;
    let bytes = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|rest| rest.trim().split(' ').next()?.parse::<u64>().ok()).unwrap_or_default() * 1024
    };
    let (total, available) = (bytes("MemTotal"), bytes("MemAvailable"));
    let (swap, swap_free) = (bytes("SwapTotal"), bytes("SwapFree"));
    let text = format!("{} of {} memory available; {} of {} swap free.", size(available), size(total), size(swap_free), size(swap));
    Ok((text, json!({ "totalBytes": total, "availableBytes": available, "swapTotalBytes": swap, "swapFreeBytes": swap_free })))
}

fn disks() -> SystemReading {
    let mut seen = Vec::new();
    let mut disks = Vec::new();
    let mut lines = Vec::new();
    for line in proc_file("mounts")?.lines() {
        let mut fields = line.split(' ');
        let (Some(device), Some(place), Some(kind)) = (fields.next(), fields.next(), fields.next()) else { continue };
        if IN_MEMORY.contains(&kind) {
            continue;
        }
        let Some((total, free)) = space(place).filter(|(total, _)| *total > 0) else { continue };
        // The same file system may be mounted at many places: the first is enough.
        if seen.contains(&(device.to_owned(), total)) {
            continue;
        }
        seen.push((device.to_owned(), total));
        lines.push(format!("{place}: {} of {} free ({kind})", size(free), size(total)));
        disks.push(json!({ "place": place, "kind": kind, "totalBytes": total, "freeBytes": free }));
    }
    Ok((lines.join("\n"), json!({ "disks": disks })))
}

#[cfg(unix)]
fn space(place: &str) -> Option<(u64, u64)> {
    let numbers = rustix::fs::statvfs(place).ok()?;
    Some((numbers.f_blocks * numbers.f_frsize, numbers.f_bavail * numbers.f_frsize))
}

#[cfg(not(unix))]
fn space(_place: &str) -> Option<(u64, u64)> {
    None
}

/// Bytes as people say them.
pub(super) fn size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let step = (bytes.max(1).ilog2() / 10).min(4);
    let scaled = bytes as f64 / f64::from(1 << (10 * step.min(3))) / if step == 4 { 1024.0 } else { 1.0 };
    if step == 0 { format!("{bytes} B") } else { format!("{scaled:.1} {}", units[step as usize]) }
}

fn duration(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    if days > 0 { format!("{days} d {hours} h") } else { format!("{hours} h {minutes} min") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_said_in_the_unit_that_fits() {
        assert_eq!(
            [0, 1023, 1024, 1536 << 20, 3 << 40, 2048 << 40].map(size),
            ["0 B", "1023 B", "1.0 KiB", "1.5 GiB", "3.0 TiB", "2048.0 TiB"]
        );
        assert_eq!([59, 3660, 90_000].map(duration), ["0 h 0 min", "1 h 1 min", "1 d 1 h"]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_numbers_of_this_machine_are_plausible() {
        let (_, memory) = memory().unwrap();
        let (total, available) = (memory["totalBytes"].as_u64().unwrap(), memory["availableBytes"].as_u64().unwrap());
        assert!(available > 0 && available <= total);
        assert!(load().unwrap().1["processors"].as_u64().unwrap() >= 1);
        for disk in disks().unwrap().1["disks"].as_array().unwrap() {
            assert!(disk["freeBytes"].as_u64() <= disk["totalBytes"].as_u64(), "{disk}");
        }
    }

    #[test]
    #[cfg(not(target_os = "linux"))]
    fn where_there_is_no_proc_the_tools_say_so() {
        assert!(memory().unwrap_err().contains("only Linux"));
    }
}
