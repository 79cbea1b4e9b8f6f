//! `clock`: the time in any zone, and a tool that takes its time. Sets no clock and no alarm.

use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use mcp_server::{About, Arguments, Refusal, Request, Server, failed, number_of, structured, text_of};
use serde_json::{Value, json};

/// Seconds of the longest wait.
const LONGEST: f64 = 600.0;
/// Most zones in an answer.
const ZONES: usize = 50;

pub(super) struct Clock;

impl Server for Clock {
    fn about(&self) -> About {
        let instructions = "Time in any zone of the world. Zones have names such as Europe/Berlin; `zones` finds them.";
        About::fixed("clock", "Clock", env!("CARGO_PKG_VERSION"), instructions)
    }

    fn tools(&self) -> Vec<Value> {
        let zone = |what: &str| json!({ "type": "string", "description": format!("{what}, such as Europe/Berlin or UTC") });
        let read_only = json!({ "readOnlyHint": true, "openWorldHint": false });
        let time = json!({
            "type": "object",
            "properties": {
                "time": { "type": "string" }, "zone": { "type": "string" }, "offset": { "type": "string" },
                "weekday": { "type": "string" }, "unix": { "type": "integer" },
            },
            "required": ["time", "zone", "offset", "weekday", "unix"],
        });
        vec![
            json!({
                "name": "now", "title": "Current time", "description": "Tells the current date and time in a time zone",
                "inputSchema": { "type": "object", "properties": { "zone": zone("The time zone; UTC when left out") } },
                "outputSchema": time, "annotations": read_only,
            }),
            json!({
                "name": "convert", "title": "Convert a time", "description": "Converts a date and time from one time zone to another",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "time": { "type": "string", "description": "The date and time, such as 2026-11-21T09:30" },
                        "from": zone("The zone the time is in"),
                        "to": zone("The zone it is wanted in"),
                    },
                    "required": ["time", "from", "to"],
                },
                "outputSchema": time, "annotations": read_only,
            }),
            json!({
                "name": "zones", "title": "Find time zones", "description": "Lists the names of time zones that contain a text",
                "inputSchema": {
                    "type": "object",
                    "properties": { "query": { "type": "string", "description": "A part of the name, such as a city or a continent" } },
                    "required": ["query"],
                },
                "annotations": read_only,
            }),
            json!({
                "name": "wait", "title": "Wait",
                "description": "Waits for a number of seconds and reports progress; can be cancelled. Shows how long work behaves.",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "seconds": { "type": "number", "minimum": 0, "maximum": LONGEST, "description": "How long" },
                        "steps": { "type": "integer", "minimum": 1, "maximum": 100, "default": 5, "description": "How often progress is reported" },
                    },
                    "required": ["seconds"],
                },
                "annotations": { "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false },
            }),
        ]
    }

    async fn call(&self, request: &Request, tool: &str, arguments: &Arguments) -> Result<Value, Refusal> {
        Ok(match tool {
            "now" => now(arguments),
            "convert" => convert(arguments),
            "zones" => zones(arguments),
            _ => wait(request, arguments).await,
        })
    }
}

fn now(arguments: &Arguments) -> Value {
    match zone(text_of(arguments, "zone").unwrap_or("UTC")) {
        Ok(zone) => zoned_values(&Timestamp::now().to_zoned(zone)),
        Err(why) => failed(why),
    }
}

fn convert(arguments: &Arguments) -> Value {
    let (Some(time), Some(from), Some(to)) = (text_of(arguments, "time"), text_of(arguments, "from"), text_of(arguments, "to")) else {
        return failed("`time`, `from` and `to` are needed, such as 2026-11-21T09:30, Europe/Berlin and Asia/Tokyo");
    };
    let Ok(civil) = time.trim_end_matches('Z').parse::<DateTime>() else {
        return failed(format!("`{time}` is no date and time: write it like 2026-11-21T09:30"));
    };
    let converted = zone(from).and_then(|from| {
        let moment = civil.to_zoned(from).map_err(|error| error.to_string())?;
        Ok(moment.with_time_zone(zone(to)?))
    });
    converted.map_or_else(failed, |moment| zoned_values(&moment))
}

fn zones(arguments: &Arguments) -> Value {
    let query = text_of(arguments, "query").unwrap_or_default().to_lowercase().replace(' ', "_");
    let mut found: Vec<String> = jiff::tz::db().available().map(|name| name.to_string()).collect();
    found.retain(|name| name.to_lowercase().contains(&query));
    found.sort();
    let all = found.len();
    found.truncate(ZONES);
    if found.is_empty() {
        return failed(format!("no time zone contains `{query}`: try a large city nearby, or a continent"));
    }
    structured(found.join("\n"), json!({ "zones": found, "matching": all }))
}

async fn wait(request: &Request, arguments: &Arguments) -> Value {
    let Some(seconds) = arguments.get("seconds").and_then(Value::as_f64).filter(|seconds| (0.0..=LONGEST).contains(seconds)) else {
        return failed(format!("`seconds` is a number from 0 to {LONGEST}"));
    };
    let steps = number_of(arguments, "steps").unwrap_or(5).clamp(1, 100);
    request.log("info", &format!("waiting for {seconds} s in {steps} steps")).await;
    for step in 1..=steps {
        tokio::time::sleep(Duration::from_secs_f64(seconds / steps as f64)).await;
        request.progress(step as f64, steps as f64, &format!("step {step} of {steps}")).await;
    }
    structured(format!("Waited for {seconds} seconds."), json!({ "seconds": seconds, "steps": steps }))
}

fn zone(name: &str) -> Result<TimeZone, String> {
    TimeZone::get(name).map_err(|_| format!("there is no time zone `{name}` on this machine: the tool `zones` finds names"))
}

fn zoned_values(moment: &Zoned) -> Value {
    let zone = moment.time_zone().iana_name().unwrap_or("UTC");
    let text = moment.strftime("%A, %-d %B %Y, %H:%M:%S").to_string();
    let value = json!({
        "time": moment.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        "zone": zone,
        "offset": moment.strftime("%:z").to_string(),
        "weekday": moment.strftime("%A").to_string(),
        "unix": moment.timestamp().as_second(),
    });
    structured(format!("{text} ({zone})"), value)
}
