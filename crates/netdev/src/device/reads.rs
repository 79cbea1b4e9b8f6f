//! The resources of a device: contents of URIs, read from the device at the moment of the call. Hides secrets; changes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use net_proto::fault::{Code, Fault};
use net_proto::interfaces::InterfaceTable;
use net_proto::role::DeviceAction;
use serde_json::{Value, json};

use super::{capabilities, interfaces, machine, objects, routes, streams};
use crate::clock::{now, written};
use crate::log;
use crate::site::Site;
use crate::way::DeviceWay;

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
    let is_machine = machine::find(site).is_some();
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
        template("interfaces{?cursor}", "interfaces-page", DATA),
        template("routing/ipv4/route-table{?cursor}", "ipv4-routes-page", DATA),
        template("routing/ipv6/route-table{?cursor}", "ipv6-routes-page", DATA),
    ];
    all.retain(|one| is_served(site, one["uriTemplate"].as_str().unwrap_or_default()));
    all
}

/// Does the device have this? Routes are read as FRR's JSON; load, logs and files of the start are those of a machine that can be asked.
fn is_served(site: &Site, uri: &str) -> bool {
    let path = uri.strip_prefix("network:///").unwrap_or(uri);
    let is_frr = matches!(site.backend, DeviceWay::Frr(_) | DeviceWay::Hosted(_));
    match path.split(['/', '{', '?']).next().unwrap_or_default() {
        "interface" | "interfaces" => interfaces::are_told(site),
        "routing" => site.backend.has_command_line() && site.dialect.is_frr(),
        "system" => machine::find(site).is_some() || site.backend.snmp().is_some(),
        "log" => is_frr || site.intake.syslog.is_some(),
        "stream" => match uri {
            streams::TRAPS => site.intake.traps.is_some(),
            streams::EVENTS => streams::has_events(site),
            _ => site.backend.is_local() || site.intake.syslog.is_some(),
        },
        "file" => match path {
            "file/candidate-config" => site.changes.check_undo().is_ok(),
            "file/startup-config" => machine::has_startup(site),
            "file/running-config" => true,
            _ => is_frr,
        },
        _ => path == "capabilities",
    }
}

/// Checks that `resources/write` makes a candidate on this device.
pub(crate) fn can_write(site: &Site) -> bool {
    site.changes.check_lines().is_ok() && site.changes.candidate_line().is_none() && !site.settings.read_only
}

/// Content of a resource at one moment.
pub(crate) struct ResourceContent {
    /// Result of a read.
    pub(crate) result: Value,
    /// All of the content, also where the result is the first of several pages, without time stamps of the read.
    pub(crate) whole: String,
    /// Counters of the content, which change all the time.
    pub(crate) counters: String,
}

/// Answers of a device, each asked for once: of one read, or of one round over many resources.
pub(crate) struct Answers<'a> {
    site: &'a Site,
    tables: BTreeMap<String, Result<Option<Arc<InterfaceTable>>, Fault>>,
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
            let result = structured(self.site, uri, DATA, (page, json!({})), next);
            return Ok(Some(ResourceContent { result, whole, counters: String::new() }));
        }
        if interfaces::is_one(path) {
            let Some(result) = self.read(uri, None).await? else { return Ok(None) };
            let table = self.table(path).await?;
            let marks = table.map(|table| table.marks(interfaces::named(path).as_deref()));
            return Ok(marks.map(|marks| ResourceContent { result, whole: marks.states, counters: marks.counters }));
        }
        let Some(result) = self.read(uri, None).await? else { return Ok(None) };
        let whole = result["contents"][0]["text"].as_str().unwrap_or_default().to_owned();
        Ok(Some(ResourceContent { result, whole, counters: String::new() }))
    }

    /// Whole result of reading a URI; `None` for an unknown URI.
    pub(crate) async fn read(&mut self, uri: &str, cursor: Option<&str>) -> Result<Option<Value>, Fault> {
        streams::begin(self.site, uri).await?;
        if !is_known(self.site, uri) {
            return Ok(None);
        }
        let (path, query) = parts(uri);
        let cursor = cursor.or_else(|| query.split('&').find_map(|part| part.strip_prefix("cursor=")));
        may_follow(self.site, matches!(uri, streams::TRAPS | streams::EVENTS))?;
        if let Some(snmp) = self.site.backend.snmp().filter(|_| objects::is_one(path)) {
            may_follow(self.site, true)?;
            let kind = if path.starts_with("system/") { JSON } else { DATA };
            let content = objects::content(snmp, path).await?;
            return Ok(content.map(|content| structured(self.site, uri, kind, content, None)));
        }
        if interfaces::is_one(path) {
            return self.interfaces(uri, cursor).await;
        }
        let (kind, data, next, meta) = match path {
            "capabilities" => {
                if let Ok(netconf) = self.site.backend.netconf() {
                    netconf.greeted().await?;
                }
                (JSON, capabilities::network(self.site), None, json!({}))
            }
            IPV4 | IPV6 => {
                self.site.may_show(routes_command(path))?;
                let (page, next) = routes::read(&self.site.backend, path == IPV6, cursor).await?;
                (DATA, page, next, json!({}))
            }
            "system/cpu-utilization" => {
                let Some(machine) = machine::find(self.site) else { return Ok(None) };
                let (load, meta) = machine.cpu().await?;
                (JSON, load, None, meta)
            }
            "system/memory-summary" => {
                let Some(machine) = machine::find(self.site) else { return Ok(None) };
                (JSON, machine.memory().await?, None, machine::memory_meta())
            }
            _ => match path.split_once('/') {
                Some(("file", name)) if name.ends_with(CRASHINFO) => {
                    let (daemon, Some(machine)) = (crashed(name).unwrap_or_default(), machine::find(self.site)) else { return Ok(None) };
                    let reports = machine.crashes(daemon).await?;
                    let time = reports.first().map_or(Value::Null, |newest| newest["time"].clone());
                    (JSON, reports.into(), None, json!({ "hardware-slot": daemon, "sourceTime": time }))
                }
                Some(("file", name)) => {
                    let text = file(self.site, name).await?;
                    return Ok(Some(plain(uri, "text/plain", &text, json!({ "sourceTime": written_at(self.site, name) }))));
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

    async fn interfaces(&mut self, uri: &str, cursor: Option<&str>) -> Result<Option<Value>, Fault> {
        let (path, _) = parts(uri);
        let Some(table) = self.table(path).await? else { return Ok(None) };
        let (data, meta, next) = match interfaces::named(path) {
            None => table.page(cursor)?,
            Some(name) => {
                let Some((data, meta)) = table.find(&name) else { return Ok(None) };
                (data, meta, None)
            }
        };
        Ok(Some(structured(self.site, uri, DATA, (data, meta), next)))
    }

    /// Interfaces behind a path: over NETCONF the named one, elsewhere all.
    async fn table(&mut self, path: &str) -> Result<Option<Arc<InterfaceTable>>, Fault> {
        let place = if self.site.backend.netconf().is_ok() { path } else { "interfaces" };
        if let Some(known) = self.tables.get(place) {
            return known.clone();
        }
        let table = interfaces::table(self.site, place).await.map(|table| table.map(Arc::new));
        self.tables.insert(place.to_owned(), table.clone());
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

/// Does a resource depend on the hello of a device?
pub(super) fn needs_hello(uri: &str) -> bool {
    interfaces::is_one(parts(uri).0)
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
        "startup-config" if machine::has_startup(site) => startup(site).await?,
        "candidate-config" if site.changes.check_undo().is_ok() => site.candidate().await?.change.candidate,
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

/// Time of the last write to a configuration, where the device keeps one.
fn written_at(site: &Site, name: &str) -> Option<String> {
    machine::find(site).filter(|_| name == "startup-config")?.startup_written()
}

/// Configuration that the device starts with.
async fn startup(site: &Site) -> Result<String, Fault> {
    let machine = machine::find(site).filter(|_| machine::has_startup(site));
    machine.ok_or_else(|| Fault::new(Code::ConfigIncompatible, "this device shows no startup configuration here"))?.startup().await
}

async fn log(site: &Site, uri: &str) -> Result<Value, Fault> {
    let count = log_count(uri).unwrap_or(0);
    if count == 0 || count > LINES {
        return Err(Fault::new(Code::ConfigIncompatible, format!("1 to {LINES} lines can be read")).at(uri));
    }
    if let Some(inbox) = streams::inbox(site, uri) {
        return streams::read(site, uri, inbox);
    }
    let Some(machine) = machine::find(site) else {
        return Err(Fault::new(Code::ConfigIncompatible, "this device shows no log here").at(uri));
    };
    let lines = machine.log(&log::path(site).await?, count).await?;
    let time = lines.iter().rev().find_map(|line| u64::try_from(log::message(line).time?).ok()).map(written);
    // Line by line: no line hides others behind words that look like the begin of a key.
    let text: String = lines.iter().map(|line| format!("{}\n", site.redactor.text(line))).collect();
    Ok(plain(uri, LOG, &text, json!({ "sourceTime": time, "lines": lines.len() })))
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
