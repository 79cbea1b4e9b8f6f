//! Streams of a device: notifications of SNMP, events of NETCONF and lines of syslog that were received, as resources and as updates. Receives nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mcp_server::{Connection, UpdateExtras};
use net_proto::fault::{Code, Fault};
use net_proto::log::LogTail;
use net_proto::netconf::NOTIFICATION;
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

use super::Compat;
use super::reads::{self, LOG};
use crate::clock::{now, written};
use crate::intake::{Inbox, parsed};
use crate::netconf::Netconf;
use crate::site::Site;

/// Stream of events over NETCONF.
pub(super) const EVENTS: &str = "network:///stream/netconf";
/// Stream of notifications.
pub(super) const TRAPS: &str = "network:///stream/snmp-trap";
const JSON: &str = "application/json";
/// Bytes of an update.
const LARGEST: usize = 64 << 10;
/// Lines of an update, and of a read of a stream.
const MOST_LINES: usize = 200;
/// Pause after an update, in which others gather, and the longest pause between two looks.
const GATHER: Duration = Duration::from_millis(200);
const LOOK: Duration = Duration::from_secs(1);

/// Inbox behind a URI.
pub(super) fn inbox<'a>(site: &'a Site, uri: &str) -> Option<&'a Arc<Inbox>> {
    if uri == TRAPS {
        return site.intake.traps.as_ref();
    }
    if uri == EVENTS {
        return has_events(site).then_some(&site.intake.events.inbox);
    }
    site.intake.syslog.as_ref().filter(|_| !site.backend.is_local() && reads::log_count(uri).is_some())
}

/// Names of the streams that the device has.
pub(super) fn names(site: &Site) -> Vec<&'static str> {
    let syslog = (site.backend.is_local() || site.intake.syslog.is_some()).then_some("syslog");
    let events = has_events(site).then_some("netconf-stream");
    let traps = site.intake.traps.is_some().then_some("snmp-trap");
    syslog.into_iter().chain(events).chain(traps).collect()
}

/// Does the hello of the device announce events?
pub(super) fn has_events(site: &Site) -> bool {
    site.backend.netconf().ok().and_then(Netconf::hello).is_some_and(|hello| hello.has(NOTIFICATION))
}

/// Asks for what has to be known before a URI is read: the hello of a device over NETCONF. Begins to receive the stream of a URI where nothing is
/// received before the first reader.
///
/// # Errors
/// The device has never said hello, and can't be asked.
pub(super) async fn begin(site: &Site, uri: &str) -> Result<(), Fault> {
    let Ok(netconf) = site.backend.netconf() else { return Ok(()) };
    if uri == EVENTS || reads::needs_hello(uri) {
        netconf.greeted().await?;
    }
    if uri == EVENTS && has_events(site) {
        site.intake.events.begin(netconf).await;
    }
    Ok(())
}

/// Last messages of an inbox.
pub(super) fn read(site: &Site, uri: &str, inbox: &Inbox) -> Result<Value, Fault> {
    let content = inbox.content();
    // The last events before a session broke off are worth a read.
    if let Some(failure) = content.failure.as_ref().filter(|_| uri != EVENTS || content.tail.next_number() == 0) {
        return Err(Fault::new(Code::Unreachable, format!("nothing is received: {}", site.redactor.text(failure))).at(uri).retryable());
    }
    let count = reads::log_count(uri).unwrap_or(MOST_LINES);
    let lines: Vec<_> = content.tail.last(count).collect();
    let mut meta = content.counts();
    // A device may quote a secret in its refusal.
    site.redactor.value(&mut meta);
    meta["lines"] = lines.len().into();
    meta["sourceTime"] = lines.iter().rev().find_map(|line| u64::try_from(line.message.time?).ok()).map(written).into();
    meta["readAt"] = written(now().wall).into();
    let item = contents(site, uri, lines.iter().map(|line| line.line.as_str()), &meta);
    Ok(json!({ "contents": [item] }))
}

/// Contents as MCP has them (`text`) and as the draft has them (`data`).
fn contents<'a>(site: &Site, uri: &str, lines: impl Iterator<Item = &'a str>, meta: &Value) -> Value {
    if uri == TRAPS || uri == EVENTS {
        let data = parsed(lines);
        return json!({ "uri": uri, "mimeType": JSON, "text": data.to_string(), "data": data, "_meta": meta });
    }
    // Line by line: whoever can put a line there, with a name at a login, hides no others.
    let text: String = lines.map(|line| format!("{}\n", site.redactor.text(line))).collect();
    json!({ "uri": uri, "mimeType": LOG, "text": text, "data": text, "_meta": meta })
}

/// Members of an update with the lines from `next` on, together in one update however many they are.
pub(super) fn update(site: &Site, uri: &str, tail: &LogTail, next: &mut u64) -> Option<Map<String, Value>> {
    let (mut dropped, lines) = tail.since(*next);
    *next = tail.next_number();
    let mut lines: Vec<_> = lines.collect();
    let most = reads::log_count(uri).unwrap_or(MOST_LINES).min(MOST_LINES);
    let surplus = lines.len().saturating_sub(most);
    dropped += surplus as u64;
    lines.drain(..surplus);
    let (mut bytes, mut kept) = (0, lines.len());
    while kept > 0 && bytes + lines[kept - 1].line.len() < LARGEST {
        kept -= 1;
        bytes += lines[kept].line.len() + 1;
    }
    dropped += kept as u64;
    lines.drain(..kept);
    if lines.is_empty() && dropped == 0 {
        return None;
    }
    // An update goes to whoever follows. Where callers differ in rights, or nobody here has this one, a read tells them apart.
    if site.rules.has_roles() || reads::may_follow(site, matches!(uri, TRAPS | EVENTS)).is_err() {
        return Some(Map::from_iter([("dropped".to_owned(), dropped.into())]));
    }
    let time = lines.iter().rev().find_map(|line| u64::try_from(line.message.time?).ok()).map(written);
    let item = contents(site, uri, lines.iter().map(|line| line.line.as_str()), &json!({ "dropped": dropped, "sourceTime": time }));
    Some(Map::from_iter([("contents".to_owned(), json!([item])), ("dropped".to_owned(), dropped.into())]))
}

/// Followers of streams: tells of messages as they come, while the poller is still at work on the device.
#[derive(Debug)]
pub(super) struct StreamWatch {
    site: Arc<Site>,
    compat: Compat,
    /// Number of the next message for each stream that is followed.
    next: Mutex<BTreeMap<String, u64>>,
}

impl StreamWatch {
    pub(super) fn new(site: Arc<Site>, compat: Compat) -> Self {
        Self { site, compat, next: Mutex::default() }
    }

    /// Begins at the present end of a stream, unless the stream is followed already. False: the URI is no stream.
    pub(super) async fn follow(&self, uri: &str) -> bool {
        let Some(inbox) = inbox(&self.site, uri) else { return false };
        let end = inbox.content().tail.next_number();
        self.next.lock().await.entry(uri.to_owned()).or_insert(end);
        true
    }

    /// Tells a client of messages until the client is gone.
    pub(super) async fn run(self: Arc<Self>, connection: Connection) {
        let intake = &self.site.intake;
        let events = self.site.backend.netconf().ok().map(|_| &intake.events.inbox);
        while !connection.is_closed() && (intake.traps.is_some() || intake.syslog.is_some() || events.is_some()) {
            let updates = self.updates(&connection).await;
            if updates.is_empty() {
                tokio::select! {
                    () = news(intake.traps.as_ref()) => {}
                    () = news(intake.syslog.as_ref()) => {}
                    () = news(events) => {}
                    () = tokio::time::sleep(LOOK) => {}
                }
                continue;
            }
            for (uri, extras) in updates {
                connection.updated(&uri, &extras).await;
            }
            tokio::time::sleep(GATHER).await;
        }
    }

    async fn updates(&self, connection: &Connection) -> Vec<(String, UpdateExtras)> {
        let mut next = self.next.lock().await;
        let followed = connection.followed();
        next.retain(|uri, _| followed.contains(uri));
        let capabilities = connection.session_capabilities().unwrap_or_default();
        let second_method = self.compat.is_draft(&capabilities).then_some("resources/updated");
        let mut updates = Vec::new();
        for uri in followed {
            let Some(inbox) = inbox(&self.site, &uri) else { continue };
            let content = inbox.content();
            let place = next.entry(uri.clone()).or_insert_with(|| content.tail.next_number());
            let members = update(&self.site, &uri, &content.tail, place);
            drop(content);
            updates.extend(members.map(|members| (uri, UpdateExtras { members, second_method })));
        }
        updates
    }
}

async fn news(inbox: Option<&Arc<Inbox>>) {
    match inbox {
        Some(inbox) => inbox.news.notified().await,
        None => std::future::pending().await,
    }
}
