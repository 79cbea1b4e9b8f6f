//! Messages that devices send by themselves: SNMP notifications, and syslog over UDP and TCP. All processes of devices share one port: one of
//! them receives, and hands each message to the processes of the device that it came from. Events of NETCONF come over a session of the process.
//! Does not know MCP.

mod drops;
mod event;
mod hub;
mod inbox;
mod mailbox;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use equipment::{DeviceSecrets, DeviceSettings, ListenSettings};
use mcp_server::subject;
use net_proto::log::{Arrival, LONGEST, LogMessage};
use net_proto::redact::Redactor;
use net_proto::snmp::{SnmpAccess, TrapHeard, TrapReader};
use serde_json::Value;
use tokio::task::AbortHandle;

pub(crate) use self::event::EventIntake;
use self::hub::ReceivingTask;
pub(crate) use self::inbox::Inbox;
use self::mailbox::Mailbox;
use crate::clock::{now, written};
use crate::login::with_port;
use crate::snmp;
use crate::store::Store;

/// Notifications kept for readers, and lines of syslog.
const TRAPS: usize = 1_000;
const LINES: usize = 2_000;
const BYTES: usize = 1 << 20;
/// Messages of syslog that wait to be read.
const WAITING: usize = 2_000;

/// Inboxes of a device; each is there once its address is set.
#[derive(Debug)]
pub(crate) struct Intake {
    pub(crate) traps: Option<Arc<Inbox>>,
    pub(crate) syslog: Option<Arc<Inbox>>,
    /// Events over NETCONF.
    pub(crate) events: EventIntake,
    receiver: Receiver,
    begun: OnceLock<BegunTasks>,
}

/// Parts of a device that its messages need.
#[derive(Clone, Debug)]
struct Receiver {
    name: String,
    /// Host, where the device is reached over the network.
    address: Option<String>,
    listen: ListenSettings,
    access: Option<SnmpAccess>,
    redactor: Redactor,
    state: PathBuf,
    store: Store,
}

impl Intake {
    pub(crate) fn new(settings: &DeviceSettings, secrets: &DeviceSecrets, state: &Path, store: &Store) -> Self {
        let listen = settings.listen.clone();
        let inbox = |address: Option<SocketAddr>, most| address.map(|_| Arc::new(Inbox::new(most, BYTES)));
        let (traps, syslog) = (inbox(listen.traps, TRAPS), inbox(listen.syslog, LINES));
        let redactor = Redactor::default().knowing(&secrets.values());
        let receiver = Receiver {
            name: settings.name.clone(),
            address: settings.address.clone(),
            access: listen.traps.map(|_| snmp::access(settings, secrets)),
            redactor: redactor.clone(),
            listen,
            state: state.to_owned(),
            store: store.clone(),
        };
        Self { traps, syslog, events: EventIntake::new(redactor), receiver, begun: OnceLock::new() }
    }

    /// Begins to receive, once for all clones of a device, and until the last of them is gone.
    pub(crate) fn begin(&self) {
        self.begun.get_or_init(|| self.begun_tasks());
    }

    fn begun_tasks(&self) -> BegunTasks {
        let (mut tasks, mut receiving) = (Vec::new(), Vec::new());
        let receiver = &self.receiver;
        if let (Some(inbox), Some(address)) = (&self.traps, receiver.listen.traps) {
            let dir = receiver.directory("traps", address);
            tasks.push(subject::spawn(receiver.clone().traps(dir.clone(), Arc::clone(inbox))).abort_handle());
            receiving.push(hub::receive(&dir, address, false));
        }
        if let (Some(inbox), Some(address)) = (&self.syslog, receiver.listen.syslog) {
            let dir = receiver.directory("syslog", address);
            tasks.push(subject::spawn(receiver.clone().syslog(dir.clone(), Arc::clone(inbox))).abort_handle());
            receiving.push(hub::receive(&dir, address, true));
        }
        BegunTasks { own: tasks, _receiving: receiving }
    }
}

/// Tasks of a device, which end with it: a process of many devices outlives each of them.
#[derive(Debug)]
struct BegunTasks {
    own: Vec<AbortHandle>,
    _receiving: Vec<Arc<ReceivingTask>>,
}

impl Drop for BegunTasks {
    fn drop(&mut self) {
        self.own.iter().for_each(AbortHandle::abort);
    }
}

impl Receiver {
    /// Directory in which the processes of devices find each other.
    fn directory(&self, kind: &str, address: SocketAddr) -> PathBuf {
        self.state.join("intake").join(format!("{kind}-{address}"))
    }

    /// Addresses that the device sends from.
    async fn sources(&self) -> Vec<IpAddr> {
        if !self.listen.sources.is_empty() {
            return self.listen.sources.clone();
        }
        let Some(address) = &self.address else { return vec![IpAddr::from([127, 0, 0, 1])] };
        let address = with_port(address, 0);
        tokio::net::lookup_host(address).await.map(|all| all.map(|one| one.ip()).collect()).unwrap_or_default()
    }

    async fn mailbox(&self, dir: &Path, inbox: &Inbox) -> Mailbox {
        Mailbox::open(dir, &self.name, &self.sources().await, inbox).await
    }

    async fn traps(self, dir: PathBuf, inbox: Arc<Inbox>) {
        let Some(access) = self.access.clone() else { return };
        let mut mailbox = self.mailbox(&dir, &inbox).await;
        let (engine, boots) = self.store.engine();
        let mut reader = TrapReader::new(access, engine, boots, u64::from_be_bytes(runtime::random::bytes()));
        let began = Instant::now();
        while let Some((sender, bytes)) = mailbox.receive(&inbox).await {
            match reader.hear(&bytes, u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)) {
                TrapHeard::Notification(notification, reply) => {
                    let mut shown = notification.json();
                    shown["source"] = sender.ip().to_string().into();
                    shown["receivedAt"] = written(now().wall).into();
                    self.redactor.value(&mut shown);
                    inbox.push(arrived(), LogMessage::default(), shown.to_string());
                    mailbox.answer(sender, reply.as_deref()).await;
                }
                TrapHeard::Reply(reply) => mailbox.answer(sender, Some(&reply)).await,
                TrapHeard::Refused(error) => inbox.refuse(&error.to_string()),
            }
        }
    }

    async fn syslog(self, dir: PathBuf, inbox: Arc<Inbox>) {
        let mut mailbox = self.mailbox(&dir, &inbox).await;
        let (sender, mut messages) = tokio::sync::mpsc::channel::<Vec<u8>>(WAITING);
        let counted = Arc::clone(&inbox);
        // What the system holds for a socket is little: a burst waits here, while the messages before are read.
        subject::spawn(async move {
            loop {
                let received = tokio::select! {
                    // The device has other settings now, or is gone.
                    () = sender.closed() => return,
                    received = mailbox.receive(&counted) => received,
                };
                let Some((_, mut bytes)) = received else { return };
                bytes.truncate(LONGEST);
                if sender.try_send(bytes).is_err() {
                    counted.lose(1);
                }
            }
        });
        while let Some(bytes) = messages.recv().await {
            let text = String::from_utf8_lossy(&bytes);
            let line: String = text.trim_end().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            if line.is_empty() {
                continue;
            }
            let at = arrived();
            let zone = jiff::Timestamp::from_millisecond(at).map_or(0, |at| jiff::tz::TimeZone::system().to_offset(at).seconds());
            inbox.push(at, LogMessage::read(&bytes, Arrival { at, zone }), line);
        }
    }
}

fn arrived() -> i64 {
    i64::try_from(now().wall).unwrap_or(i64::MAX)
}

/// Notifications of lines as JSON.
pub(crate) fn parsed<'a>(lines: impl Iterator<Item = &'a str>) -> Value {
    lines.filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect()
}
