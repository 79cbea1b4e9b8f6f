//! The resources of a device: contents of URIs, read from the device at the moment of the call. Hides secrets; changes nothing.

use std::collections::BTreeMap;
use std::path::Path;

use net_proto::fault::{Code, Fault};
use net_proto::role::DeviceAction;
use serde_json::{Value, json};

use super::{capabilities, crash, machine, objects, routes, streams, switch};
use crate::clock::{now, written};
use crate::log;
use crate::site::Site;

const DATA: &str = "application/yang-data+json";
/// Type of the lines of a log.
pub(crate) const LOG: &str = "text/plain;charset=utf-8";
const JSON: &str = "application/json";
const CRASHINFO: &str = "/crashinfo";
const SCHEME: &str = "network:///";
const IPV4: &str = "routing/ipv4/route-table";
const IPV6: &str = "routing/ipv6/route-table";
const LAST: &str = "log/syslog/last";
const STREAM: &str = "stream/syslog";
/// Lines in a read of the stream.
const STREAM_LINES: usize = 200;
/// Most lines of the log in a read.
const LINES: usize = 10_000;

/// Resources with a fixed URI.
pub(crate) fn resources(site: &Site) -> Vec<Value> {
    let resource = |path: &str, name: &str, kind: &str, meta: Value| json!({ "uri": format!("network:///{path}"), "name": name, "mimeType": kind, "_meta": meta });
    let read_only = || json!({ "readOnly": true });
    let writable = || json!({ "readOnly": !can_write(site) });
    let and_read_only = |mut meta: Value| {
        meta["readOnly"] = true.into();
        meta
    };
    let is_machine = site.backend.is_local();
    let cpu = if is_machine { machine::cpu_meta() } else { objects::cpu_meta() };
    let memory = if is_machine { machine::memory_meta() } else { objects::memory_meta() };
    let mut all = vec![
        resource("interfaces", "interfaces", DATA, read_only()),
        resource("routing/ipv4/route-table", "ipv4-routes", DATA, read_only()),
        resource("routing/ipv6/route-table", "ipv6-routes", DATA, read_only()),
        resource("system/cpu-utilization", "cpu", "application/json", and_read_only(cpu)),
        resource("system/memory-summary", "memory", "application/json", and_read_only(memory)),
        resource("file/running-config", "running-config", "text/plain", read_only()),
        resource("file/startup-config", "startup-config", "text/plain", writable()),
        resource("file/candidate-config", "candidate-config", "text/plain", writable()),
        resource("stream/syslog", "syslog-stream", LOG, read_only()),
        resource("stream/netconf", "netconf-stream", JSON, read_only()),
        resource("stream/snmp-trap", "snmp-trap-stream", JSON, read_only()),
        resource("capabilities", "capabilities", "application/json", read_only()),
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
        template("file/{slot}/crashinfo", "crashinfo", "application/json"),
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
    if (site.backend.snmp().is_some() && begins(&["interface", "system/"])) || (site.backend.ovs().is_some() && begins(&["interface"])) {
        return true;
    }
    if begins(&["stream/", "log/"]) {
        let has_log = site.backend.is_local() || site.intake.syslog.is_some();
        return match uri {
            streams::TRAPS => site.intake.traps.is_some(),
            streams::EVENTS => streams::has_events(site),
            _ => has_log,
        };
    }
    match begins(&["interface", "routing/"]) {
        true => site.backend.has_command_line() && site.dialect.is_frr(),
        false if path == "file/candidate-config" => site.backend.check_undo().is_ok(),
        false => site.backend.is_local() || begins(&["file/running-config", "capabilities"]),
    }
}

/// Checks that `resources/write` makes a candidate on this device.
pub(crate) fn can_write(site: &Site) -> bool {
    site.backend.check_lines().is_ok() && site.backend.candidate_line().is_none() && !site.settings.read_only
}

/// Content of a resource at one moment.
pub(crate) struct ResourceContent {
    /// Result of a read.
    pub(crate) result: Value,
    /// All of the content, also where the result is the first of several pages, without time stamps of the read.
    pub(crate) whole: String,
}

/// Answers of a device, each asked for once: of one read, or of one round over many resources.
pub(crate) struct Answers<'a> {
    site: &'a Site,
    tables: BTreeMap<&'static str, Result<Value, Fault>>,
}

impl<'a> Answers<'a> {
    pub(crate) fn new(site: &'a Site) -> Self {
        Self { site, tables: BTreeMap::new() }
    }

    /// Reads a resource from its beginning; `None` for an unknown URI.
    pub(crate) async fn observe(&mut self, uri: &str) -> Result<Option<ResourceContent>, Fault> {
        let (path, _) = parts(uri);
        if path == IPV4 || path == IPV6 {
            self.site.may_show(routes_command(path))?;
            let (page, next, whole) = routes::look(&self.site.backend, path == IPV6).await?;
            return Ok(Some(ResourceContent { result: structured(self.site, uri, DATA, (page, json!({})), next), whole }));
        }
        let Some(result) = self.read(uri, None).await? else { return Ok(None) };
        let whole = result["contents"][0]["text"].as_str().unwrap_or_default().to_owned();
        Ok(Some(ResourceContent { result, whole }))
    }

    /// Whole result of reading a URI; `None` for an unknown URI.
    pub(crate) async fn read(&mut self, uri: &str, cursor: Option<&str>) -> Result<Option<Value>, Fault> {
        streams::begin(self.site, uri).await?;
        if !is_known(self.site, uri) {
            return Ok(None);
        }
        let (path, query) = parts(uri);
        may_follow(self.site, matches!(uri, streams::TRAPS | streams::EVENTS))?;
        if let Some(snmp) = self.site.backend.snmp().filter(|_| objects::is_one(path)) {
            may_follow(self.site, true)?;
            let kind = if path.starts_with("system/") { JSON } else { DATA };
            let content = objects::content(snmp, path).await?;
            return Ok(content.map(|content| structured(self.site, uri, kind, content, None)));
        }
        if let Some(ovs) = self.site.backend.ovs().filter(|_| switch::is_one(path)) {
            self.site.may_show("show interface")?;
            return Ok(switch::content(ovs, path).await?.map(|content| structured(self.site, uri, DATA, content, None)));
        }
        let cursor = cursor.or_else(|| query.split('&').find_map(|part| part.strip_prefix("cursor=")));
        let (kind, data, next, meta) = match path {
            "capabilities" => {
                if let Ok(netconf) = self.site.backend.netconf() {
                    netconf.greeted().await?;
                }
                (JSON, capabilities::network(self.site), None, json!({}))
            }
            "interfaces" => {
                let all = self.table("show interface json").await?;
                let all: Vec<Value> = all.as_object().into_iter().flatten().map(|(name, facts)| interface(name, facts)).collect();
                (DATA, json!({ "openconfig-interfaces:interfaces": { "interface": all } }), None, interface_meta(&Value::Null))
            }
            IPV4 | IPV6 => {
                self.site.may_show(routes_command(path))?;
                let (page, next) = routes::read(&self.site.backend, path == IPV6, cursor).await?;
                (DATA, page, next, json!({}))
            }
            "system/cpu-utilization" => (JSON, machine::cpu().await?, None, machine::cpu_meta()),
            "system/memory-summary" => (JSON, machine::memory()?, None, machine::memory_meta()),
            _ => match path.split_once('/') {
                Some(("interface", name)) => {
                    let name = name.replace("%2F", "/").replace("%2f", "/");
                    let all = self.table("show interface json").await?;
                    let Some(facts) = all.get(&name) else { return Ok(None) };
                    (DATA, json!({ "openconfig-interfaces:interface": interface(&name, facts) }), None, interface_meta(facts))
                }
                Some(("file", name)) if name.ends_with(CRASHINFO) => {
                    let daemon = crashed(name).unwrap_or_default();
                    let reports = crash::reports(Path::new(crash::CRASHES), daemon);
                    let time = reports.first().map_or(Value::Null, |newest| newest["time"].clone());
                    (JSON, reports.into(), None, json!({ "hardware-slot": daemon, "sourceTime": time }))
                }
                Some(("file", name)) => {
                    let text = file(self.site, name).await?;
                    return Ok(Some(plain(uri, "text/plain", &text, json!({ "sourceTime": changed_at(self.site, name) }))));
                }
                Some(_) if matches!(uri, streams::TRAPS | streams::EVENTS) => {
                    let inbox = streams::inbox(self.site, uri);
                    return inbox.map(|inbox| streams::read(self.site, uri, inbox)).transpose();
                }
                Some(_) if log_count(uri).is_some() => return log(self.site, uri).await.map(Some),
                _ => return Ok(None),
            },
        };
        Ok(Some(structured(self.site, uri, kind, (data, meta), next)))
    }

    async fn table(&mut self, command: &'static str) -> Result<Value, Fault> {
        self.site.may_show(command)?;
        if let Some(known) = self.tables.get(command) {
            return known.clone();
        }
        let table = self.site.backend.exec(command).await.and_then(|text| parsed(&text));
        self.tables.insert(command, table.clone());
        table
    }
}

/// Holds a resource without a command or a path of its own against the rules. Messages of a device may tell of any path, so rules on paths
/// want a right to read the whole.
pub(super) fn may_follow(site: &Site, tells_of_all: bool) -> Result<(), Fault> {
    let role = site.present_role()?;
    if tells_of_all { role.permit(DeviceAction::ReadPath("/")) } else { Ok(()) }
}

/// Command behind a routing table.
fn routes_command(path: &str) -> &'static str {
    if path == IPV4 { "show ip route json" } else { "show ipv6 route json" }
}

/// Whole result of reading a URI; `None` for an unknown URI.
pub(crate) async fn read(site: &Site, uri: &str, cursor: Option<&str>) -> Result<Option<Value>, Fault> {
    Answers::new(site).read(uri, cursor).await
}

/// Checks that a URI is one of this device's, without asking the device.
pub(crate) fn is_known(site: &Site, uri: &str) -> bool {
    let (path, _) = parts(uri);
    let is_path = match path.split_once('/') {
        None => matches!(path, "interfaces" | "capabilities"),
        Some(("interface", name)) => !name.is_empty(),
        Some(("file", name)) => matches!(name, "running-config" | "startup-config" | "candidate-config") || crashed(name).is_some(),
        Some(("log" | "stream", _)) => log_count(uri).is_some() || matches!(uri, streams::TRAPS | streams::EVENTS),
        Some(_) => matches!(path, IPV4 | IPV6 | "system/cpu-utilization" | "system/memory-summary"),
    };
    is_path && uri.starts_with(SCHEME) && is_served(site, uri)
}

/// Number of lines in the URI of a log.
pub(crate) fn log_count(uri: &str) -> Option<usize> {
    let path = parts(uri).0;
    if path == STREAM { Some(STREAM_LINES) } else { path.strip_prefix(LAST)?.parse().ok() }
}

/// Daemon in `{slot}/crashinfo`: the slots of FRR are its daemons.
fn crashed(name: &str) -> Option<&str> {
    let daemon = name.strip_suffix(CRASHINFO)?;
    let is_plain =
        (1..=32).contains(&daemon.len()) && daemon.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    is_plain.then_some(daemon)
}

/// Path and query of a URI.
fn parts(uri: &str) -> (&str, &str) {
    let path = uri.strip_prefix(SCHEME).unwrap_or_default();
    path.split_once('?').unwrap_or((path, ""))
}

/// A configuration without secrets.
pub(crate) async fn file(site: &Site, name: &str) -> Result<String, Fault> {
    site.may_read_whole()?;
    let text = match name {
        "running-config" => site.backend.running().await?,
        "startup-config" if site.backend.is_local() => startup(site)?,
        "candidate-config" if site.backend.check_undo().is_ok() => site.candidate().await?.change.candidate,
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

/// File of the configuration that FRR starts with.
fn startup_file(site: &Site) -> String {
    let below = site.settings.pathspace.as_deref().map(|name| format!("{name}/")).unwrap_or_default();
    format!("/etc/frr/{below}frr.conf")
}

/// Time of the last change of a configuration, where the device keeps one.
fn changed_at(site: &Site, name: &str) -> Option<String> {
    let changed = (name == "startup-config").then(|| std::fs::metadata(startup_file(site)).ok()?.modified().ok()).flatten()?;
    Some(written(u64::try_from(changed.duration_since(std::time::UNIX_EPOCH).ok()?.as_millis()).ok()?))
}

fn startup(site: &Site) -> Result<String, Fault> {
    let path = startup_file(site);
    std::fs::read_to_string(&path).map_err(|error| Fault::new(Code::ConfigIncompatible, format!("{path}: {error}")).at("startup-config"))
}

async fn log(site: &Site, uri: &str) -> Result<Value, Fault> {
    let count = log_count(uri).unwrap_or(0);
    if count == 0 || count > LINES {
        return Err(Fault::new(Code::ConfigIncompatible, format!("1 to {LINES} lines can be read")).at(uri));
    }
    if let Some(inbox) = streams::inbox(site, uri) {
        return streams::read(site, uri, inbox);
    }
    let lines = log::last(&log::path(site).await?, count)?;
    let time = lines.iter().rev().find_map(|(_, message)| u64::try_from(message.time?).ok()).map(written);
    // Line by line: no line hides others behind words that look like the begin of a key.
    let text: String = lines.iter().map(|(line, _)| format!("{}\n", site.redactor.text(line))).collect();
    Ok(plain(uri, LOG, &text, json!({ "sourceTime": time, "lines": lines.len() })))
}

/// Units, and attributes of the hardware of an interface.
fn interface_meta(facts: &Value) -> Value {
    let mut meta = json!({ "unit": { "mtu": "bytes" } });
    if let Some(address) = facts.get("hardwareAddress") {
        meta["hardware-address"] = address.clone();
        meta["hardware-type"] = facts["type"].clone();
    }
    meta
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

pub(crate) fn parsed(text: &str) -> Result<Value, Fault> {
    serde_json::from_str(text).map_err(|error| Fault::new(Code::Unreachable, format!("the device's JSON can't be read: {error}")))
}

fn plain(uri: &str, kind: &str, text: &str, mut meta: Value) -> Value {
    meta["readAt"] = written(now().wall).into();
    json!({ "contents": [{ "uri": uri, "mimeType": kind, "text": text, "data": text, "_meta": meta }] })
}

/// Contents as MCP has them (`text`) and as the draft has them (`data`).
fn structured(site: &Site, uri: &str, kind: &str, (mut data, mut meta): (Value, Value), next: Option<String>) -> Value {
    site.redactor.value(&mut data);
    meta["readAt"] = written(now().wall).into();
    let mut result = json!({ "contents": [{ "uri": uri, "mimeType": kind, "text": data.to_string(), "data": data, "_meta": meta }] });
    if let Some(next) = next {
        result["_meta"] = json!({ "nextCursor": next });
        result["nextCursor"] = next.into();
    }
    result
}
