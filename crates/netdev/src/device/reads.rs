//! The resources of a device: contents of URIs, read from the device at the moment of the call. Hides secrets; changes nothing.

use equipment::CommandLine;
use net_proto::fault::{Code, Fault};
use serde_json::{Value, json};

use super::routes;
use crate::clock::{now, written};
use crate::command;
use crate::site::Site;

const DATA: &str = "application/yang-data+json";
/// Most lines of the log in a read.
const LINES: u32 = 10_000;

/// Resources with a fixed URI.
pub(crate) fn resources(site: &Site) -> Vec<Value> {
    let resource = |path: &str, name: &str, kind: &str, meta: Value| json!({ "uri": format!("network:///{path}"), "name": name, "mimeType": kind, "_meta": meta });
    let read_only = || json!({ "readOnly": true });
    let mut all = vec![
        resource("interfaces", "interfaces", DATA, read_only()),
        resource("routing/ipv4/route-table", "ipv4-routes", DATA, read_only()),
        resource("routing/ipv6/route-table", "ipv6-routes", DATA, read_only()),
        resource("system/cpu-utilization", "cpu", "application/json", json!({ "readOnly": true, "unit": "percent", "precision": 0.1 })),
        resource("system/memory-summary", "memory", "application/json", json!({ "readOnly": true, "unit": "bytes", "precision": 1024 })),
        resource("file/running-config", "running-config", "text/plain", read_only()),
        resource("file/startup-config", "startup-config", "text/plain", read_only()),
        resource("file/candidate-config", "candidate-config", "text/plain", read_only()),
    ];
    all.retain(|one| is_served(site, one["uri"].as_str().unwrap_or_default()));
    all
}

/// Resources with a part to fill in.
pub(crate) fn templates(site: &Site) -> Vec<Value> {
    let template =
        |path: &str, name: &str, kind: &str| json!({ "uriTemplate": format!("network:///{path}"), "name": name, "mimeType": kind });
    let mut all = vec![
        template("interface/{+name}", "interface", DATA),
        template("log/syslog/last{count}", "syslog", "text/plain;charset=utf-8"),
        template("routing/ipv4/route-table{?cursor}", "ipv4-routes-page", DATA),
        template("routing/ipv6/route-table{?cursor}", "ipv6-routes-page", DATA),
    ];
    all.retain(|one| is_served(site, one["uriTemplate"].as_str().unwrap_or_default()));
    all
}

/// Does the device have this? Interfaces and routes are read as FRR's JSON; load, logs and files of the start are those of this machine.
fn is_served(site: &Site, uri: &str) -> bool {
    let path = uri.strip_prefix("network:///").unwrap_or(uri);
    let begins = |beginnings: &[&str]| beginnings.iter().any(|begin| path.starts_with(begin));
    match begins(&["interface", "routing/"]) {
        true => site.backend.netconf().is_err() && site.settings.dialect == CommandLine::Frr,
        false => site.backend.is_local() || !begins(&["system/", "log/", "file/startup-config", "file/candidate-config"]),
    }
}

/// Whole result of reading a URI; `None` for an unknown URI.
pub(crate) async fn read(site: &Site, uri: &str, cursor: Option<&str>) -> Result<Option<Value>, Fault> {
    let Some(path) = uri.strip_prefix("network:///").filter(|path| is_served(site, path)) else { return Ok(None) };
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let cursor = cursor.or_else(|| query.split('&').find_map(|part| part.strip_prefix("cursor=")));
    let (kind, data, next) = match path {
        "interfaces" => (DATA, json!({ "openconfig-interfaces:interfaces": { "interface": interfaces(site).await? } }), None),
        "routing/ipv4/route-table" | "routing/ipv6/route-table" => {
            let command = if path.contains("ipv4") { "show ip route json" } else { "show ipv6 route json" };
            let (page, next) = routes::page(&parsed(&site.backend.exec(command).await?)?, cursor)?;
            (DATA, page, next)
        }
        "system/cpu-utilization" => ("application/json", cpu().await?, None),
        "system/memory-summary" => ("application/json", memory()?, None),
        _ => match path.split_once('/') {
            Some(("interface", name)) => match one_interface(site, &name.replace("%2F", "/")).await? {
                Some(interface) => (DATA, json!({ "openconfig-interfaces:interface": interface }), None),
                None => return Ok(None),
            },
            Some(("file", name @ ("running-config" | "startup-config" | "candidate-config"))) => {
                return Ok(Some(plain(uri, "text/plain", &file(site, name).await?)));
            }
            Some(("log", name)) => match name.strip_prefix("syslog/last").and_then(|count| count.parse().ok()) {
                Some(count) => return Ok(Some(plain(uri, "text/plain;charset=utf-8", &log(site, count).await?))),
                None => return Ok(None),
            },
            _ => return Ok(None),
        },
    };
    Ok(Some(structured(site, uri, kind, data, next)))
}

/// A configuration without secrets.
pub(crate) async fn file(site: &Site, name: &str) -> Result<String, Fault> {
    let text = match name {
        "running-config" => site.backend.running().await?,
        "startup-config" if site.backend.is_local() => startup(site)?,
        "candidate-config" if site.backend.is_local() => site.candidate().await?.change.candidate,
        _ => {
            return Err(Fault::new(
                Code::ConfigIncompatible,
                "there is no such file: running-config, candidate-config and startup-config are",
            )
            .at(name));
        }
    };
    Ok(site.redactor.text(&text))
}

fn startup(site: &Site) -> Result<String, Fault> {
    let below = site.settings.pathspace.as_deref().map(|name| format!("{name}/")).unwrap_or_default();
    let path = format!("/etc/frr/{below}frr.conf");
    std::fs::read_to_string(&path).map_err(|error| Fault::new(Code::ConfigIncompatible, format!("{path}: {error}")).at("startup-config"))
}

async fn log(site: &Site, count: u32) -> Result<String, Fault> {
    if count == 0 || count > LINES {
        return Err(Fault::new(Code::ConfigIncompatible, format!("1 to {LINES} lines can be read")).at(format!("log/syslog/last{count}")));
    }
    let running = site.backend.running().await?;
    let named = running.lines().find_map(|line| line.strip_prefix("log file ")?.split(' ').next());
    let path = named.ok_or_else(|| Fault::new(Code::ConfigIncompatible, "the device logs to no file: configure `log file PATH`"))?;
    let output = command::run(&["tail", "-n", &count.to_string(), path], std::time::Duration::from_secs(10), None).await?;
    Ok(site.redactor.text(&output.stdout))
}

async fn interfaces(site: &Site) -> Result<Vec<Value>, Fault> {
    let all = parsed(&site.backend.exec("show interface json").await?)?;
    Ok(all.as_object().into_iter().flatten().map(|(name, facts)| interface(name, facts)).collect())
}

async fn one_interface(site: &Site, name: &str) -> Result<Option<Value>, Fault> {
    let all = parsed(&site.backend.exec("show interface json").await?)?;
    Ok(all.get(name).map(|facts| interface(name, facts)))
}

fn interface(name: &str, facts: &Value) -> Value {
    let status = |key: &str| facts[key].as_str().map(str::to_uppercase);
    let admin = status("administrativeStatus");
    // FRR says nothing of the link of an interface that is shut down.
    let oper = status("operationalStatus").or_else(|| admin.clone().filter(|admin| admin == "DOWN"));
    let addresses = facts["ipAddresses"].as_array().into_iter().flatten().filter_map(|one| one["address"].as_str()).map(|address| {
        let (ip, length) = address.split_once('/').unwrap_or((address, ""));
        json!({ "ip": ip, "prefix-length": length.parse::<u8>().ok() })
    });
    json!({
        "name": name,
        "state": {
            "admin-status": admin.as_deref().unwrap_or("UNKNOWN"),
            "oper-status": oper.as_deref().unwrap_or("UNKNOWN"),
            "ifindex": facts["index"],
            "mtu": facts["mtu"],
            "description": facts.get("description"),
        },
        "addresses": addresses.collect::<Vec<_>>(),
    })
}

/// Load of the processors of this machine over a fifth of a second, in percent.
async fn cpu() -> Result<Value, Fault> {
    let before = ticks()?;
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    let after = ticks()?;
    let (all, idle) = (after.0.saturating_sub(before.0), after.1.saturating_sub(before.1));
    let percent = if all == 0 { 0.0 } else { (1000.0 * (all - idle.min(all)) as f64 / all as f64).round() / 10.0 };
    Ok(json!({ "utilization": percent }))
}

fn ticks() -> Result<(u64, u64), Fault> {
    let text = from_proc("stat")?;
    let numbers: Vec<u64> = text.lines().next().unwrap_or_default().split_whitespace().filter_map(|word| word.parse().ok()).collect();
    Ok((numbers.iter().take(8).sum(), numbers.iter().skip(3).take(2).sum()))
}

fn memory() -> Result<Value, Fault> {
    let text = from_proc("meminfo")?;
    let bytes = |name: &str| {
        let rest = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        rest.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).map(|kib| kib * 1024)
    };
    Ok(json!({ "total": bytes("MemTotal"), "available": bytes("MemAvailable"), "free": bytes("MemFree") }))
}

fn from_proc(name: &str) -> Result<String, Fault> {
    std::fs::read_to_string(format!("/proc/{name}")).map_err(|error| Fault::new(Code::ConfigIncompatible, format!("/proc/{name}: {error}")))
}

pub(crate) fn parsed(text: &str) -> Result<Value, Fault> {
    serde_json::from_str(text).map_err(|error| Fault::new(Code::Unreachable, format!("the device's JSON can't be read: {error}")))
}

fn plain(uri: &str, kind: &str, text: &str) -> Value {
    json!({ "contents": [{ "uri": uri, "mimeType": kind, "text": text, "_meta": { "readAt": written(now().wall) } }] })
}

/// Contents as MCP has them (`text`) and as the draft has them (`data`).
fn structured(site: &Site, uri: &str, kind: &str, mut data: Value, next: Option<String>) -> Value {
    site.redactor.value(&mut data);
    let meta = json!({ "readAt": written(now().wall) });
    let mut result = json!({ "contents": [{ "uri": uri, "mimeType": kind, "text": data.to_string(), "data": data, "_meta": meta }] });
    if let Some(next) = next {
        result["_meta"] = json!({ "nextCursor": next });
        result["nextCursor"] = next.into();
    }
    result
}
