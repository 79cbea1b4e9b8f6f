//! A device over SNMP: requests over UDP with repetition, reads of objects and tables, and settings. Decides nothing about them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use equipment::{Backend, DeviceSecrets, DeviceSettings, SnmpAuth, SnmpPrivacy};
use net_proto::fault::{Code, Fault, SnmpRequest, Trouble};
use net_proto::snmp::{
    AuthProtocol, LARGEST, ObjectPath, Oid, Pdu, PduKind, PrivacyProtocol, SnmpAccess, SnmpHeard, SnmpSession, SnmpSetting, SnmpUser,
    SnmpValue, TableWalk, settable, settings_text,
};
use tokio::net::UdpSocket;
use tokio::sync::Mutex;

use crate::login::with_port;
use crate::{room, share};

/// Port of agents.
const PORT: u16 = 161;
/// Time until a request is sent again; twice as long each time.
const REPEAT: Duration = Duration::from_millis(700);
/// Longest time to wait for the turn.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest time of a walk: as long as a call of a group, and less than the silence after which a gate gives a call up.
const WALK: Duration = Duration::from_secs(240);
/// Objects in a request.
const AT_ONCE: usize = 40;
/// Times that an engine may tell its name or its time in the middle of a request.
const CORRECTIONS: u32 = 4;
/// Name of the device itself.
const DESCRIPTION: &[u32] = &[1, 3, 6, 1, 2, 1, 1, 1, 0];

/// A device behind SNMP.
#[derive(Clone, Debug)]
pub(crate) struct Snmp {
    reader: Agent,
    writer: Agent,
    /// Did the operator accept changes that the device can't take back by itself?
    pub(crate) accepts_no_rollback: bool,
}

/// An agent with one kind of credentials.
#[derive(Clone, Debug)]
struct Agent {
    address: String,
    timeout: Duration,
    access: SnmpAccess,
    kept: Arc<Mutex<Option<AgentSession>>>,
}

#[derive(Debug)]
struct AgentSession {
    socket: UdpSocket,
    session: SnmpSession,
    began: Instant,
}

impl Snmp {
    pub(crate) fn new(settings: &DeviceSettings, secrets: &DeviceSecrets) -> Self {
        let agent = |access| Agent {
            address: settings.address.clone().unwrap_or_default(),
            timeout: Duration::from_secs(settings.command_timeout),
            access,
            kept: Arc::default(),
        };
        let reader = agent(access(settings, secrets));
        let writer = write_access(settings, secrets).map_or_else(|| reader.clone(), agent);
        Self { reader, writer, accepts_no_rollback: settings.accept_no_rollback }
    }

    /// Description of the device, by itself.
    pub(crate) async fn description(&self) -> Result<String, Fault> {
        let values = self.get(&[Oid::new(DESCRIPTION)]).await?;
        Ok(values.into_values().next().map(|value| value.to_string()).unwrap_or_default())
    }

    /// Objects of a path, with their values.
    pub(crate) async fn data(&self, path: &str) -> Result<BTreeMap<Oid, SnmpValue>, Fault> {
        let read = ObjectPath::read(path)?;
        if let Some(exact) = read.exact() {
            let found = self.get(&exact).await.map_err(|fault| at(fault, path))?;
            if !found.is_empty() {
                return Ok(found);
            }
        }
        let columns = self.walk(read.roots()).await.map_err(|fault| at(fault, path))?;
        let all = columns.into_iter().flatten();
        let index = read.index();
        Ok(all.filter(|(oid, _)| index.is_none_or(|index| oid.numbers().last() == Some(&index))).collect())
    }

    /// Objects that may be set, a line each.
    pub(crate) async fn running(&self) -> Result<String, Fault> {
        Ok(settings_text(&self.walk(settable()).await?.into_iter().flatten().collect()))
    }

    /// Values of objects; those that the device does not have are left out.
    async fn get(&self, objects: &[Oid]) -> Result<BTreeMap<Oid, SnmpValue>, Fault> {
        let mut values = BTreeMap::new();
        for some in objects.chunks(AT_ONCE) {
            let answer = self.reader.ask(Pdu::asking(PduKind::Get, some.iter().cloned())).await?;
            let blamed = some.get((answer.index as usize).saturating_sub(1)).map(Oid::to_string).unwrap_or_default();
            if let Some(fault) = Fault::from_snmp(SnmpRequest::Get, answer.status, &blamed) {
                return Err(fault);
            }
            values.extend(answer.bindings.into_iter().filter(|(oid, value)| some.contains(oid) && !value.is_absent()));
        }
        Ok(values)
    }

    /// Values below identifiers, a column each.
    pub(crate) async fn walk(&self, roots: Vec<Oid>) -> Result<Vec<BTreeMap<Oid, SnmpValue>>, Fault> {
        let walk = TableWalk::new(roots).within(share::at_most(usize::MAX));
        Ok(walked(walk, WALK, |request| self.reader.ask(request)).await?.values())
    }

    /// Sets objects, all of them or none.
    pub(crate) async fn set(&self, settings: Vec<SnmpSetting>) -> Result<(), Fault> {
        if settings.is_empty() {
            return Ok(());
        }
        let bindings = settings.iter().map(|setting| (setting.oid.clone(), setting.value.clone())).collect();
        let answer = self.writer.ask(Pdu::new(PduKind::Set, bindings)).await?;
        let blamed = settings.get((answer.index as usize).saturating_sub(1)).map_or("", |setting| setting.path.as_str());
        Fault::from_snmp(SnmpRequest::Set, answer.status, blamed).map_or(Ok(()), Err)
    }
}

/// Walks to the end, for at most `time`, however steadily the device goes on.
async fn walked<F>(mut walk: TableWalk, time: Duration, mut ask: impl FnMut(Pdu) -> F) -> Result<TableWalk, Fault>
where
    F: Future<Output = Result<Pdu, Fault>>,
{
    let (began, mut bytes) = (Instant::now(), share::answer());
    while let Some(request) = walk.request() {
        let before = walk.bytes();
        let Ok(answer) = tokio::time::timeout(time.saturating_sub(began.elapsed()), ask(request)).await else {
            let (seconds, count) = (time.as_secs_f64(), walk.count());
            let detail =
                format!("the device was not at the end of its table within {seconds} s, after {count} values: ask for a part of it");
            return Err(Fault::new(Code::Timeout, detail));
        };
        walk.hear(answer?)?;
        bytes.count(walk.bytes() - before)?;
    }
    Ok(walk)
}

fn at(fault: Fault, path: &str) -> Fault {
    if fault.path.is_some() { fault } else { fault.at(path) }
}

/// Credentials for reads.
pub(crate) fn access(settings: &DeviceSettings, secrets: &DeviceSecrets) -> SnmpAccess {
    let secret = |key: &str| secrets.get(key).unwrap_or_default();
    // The user of other ways in is none of SNMP.
    match settings.user.as_ref().filter(|_| settings.backend == Backend::Snmp) {
        None => SnmpAccess::Community(secret("community").to_owned()),
        Some(user) => SnmpAccess::User(known_user(settings, user, secret("password"), secrets.get("privacy_password"))),
    }
}

/// Credentials for changes, where they are others.
fn write_access(settings: &DeviceSettings, secrets: &DeviceSecrets) -> Option<SnmpAccess> {
    if let Some(user) = &settings.snmp.write_user {
        let password = secrets.get("write_password").unwrap_or_default();
        return Some(SnmpAccess::User(known_user(settings, user, password, secrets.get("write_privacy_password"))));
    }
    let community = secrets.get("write_community").filter(|_| settings.user.is_none());
    community.map(|community| SnmpAccess::Community(community.to_owned()))
}

fn known_user(settings: &DeviceSettings, name: &str, password: &str, privacy: Option<&str>) -> SnmpUser {
    let auth = match settings.snmp.auth {
        SnmpAuth::Sha => AuthProtocol::Sha,
        SnmpAuth::Sha256 => AuthProtocol::Sha256,
        SnmpAuth::Sha384 => AuthProtocol::Sha384,
        SnmpAuth::Sha512 => AuthProtocol::Sha512,
    };
    let cipher = match settings.snmp.privacy {
        SnmpPrivacy::Aes128 => PrivacyProtocol::Aes128,
        SnmpPrivacy::Aes256 => PrivacyProtocol::Aes256,
    };
    SnmpUser::new(name, auth, password, privacy.map(|password| (cipher, password)))
}

impl Agent {
    /// Answer to a request. A request that is not answered goes out again, until the time for a command is over.
    async fn ask(&self, pdu: Pdu) -> Result<Pdu, Fault> {
        // Whoever confirms or restores waits for no reader.
        let mut own = None;
        let mut turn = if room::is_settling() {
            self.kept.try_lock().ok()
        } else {
            Some(tokio::time::timeout(PATIENCE, self.kept.lock()).await.map_err(|_| Fault::from(Trouble::Busy))?)
        };
        let kept = turn.as_deref_mut().unwrap_or(&mut own);
        if kept.is_none() {
            *kept = Some(self.opened().await?);
        }
        let Some(open) = kept.as_mut() else { return Err(Trouble::Busy.into()) };
        open.session.begin();
        let asked = match tokio::time::timeout(self.timeout, open.exchange(&pdu)).await {
            Ok(asked) => asked,
            Err(_) => Err(self.silence(open.session.knows_engine())),
        };
        if asked.as_ref().is_err_and(|fault| matches!(fault.code, Code::Timeout | Code::Unreachable)) {
            // The next request looks the address up again, and asks for the engine.
            *kept = None;
        }
        asked
    }

    async fn opened(&self) -> Result<AgentSession, Fault> {
        let address = with_port(&self.address, PORT);
        let failed = |error: std::io::Error| Fault::from(Trouble::NoConnection { reason: format!("{address}: {error}") });
        let mut found = tokio::net::lookup_host(&address).await.map_err(failed)?;
        let peer = found.next().ok_or_else(|| failed(std::io::Error::other("the name has no address")))?;
        let any: std::net::IpAddr = if peer.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
        let socket = UdpSocket::bind((any, 0)).await.map_err(failed)?;
        socket.connect(peer).await.map_err(failed)?;
        let request = u32::from_be_bytes(runtime::random::bytes());
        let session = SnmpSession::new(self.access.clone(), request, u64::from_be_bytes(runtime::random::bytes()));
        Ok(AgentSession { socket, session, began: Instant::now() })
    }

    fn silence(&self, knows_engine: bool) -> Fault {
        let seconds = self.timeout.as_secs();
        let hint = match self.access {
            SnmpAccess::Community(_) => ": it is away, or keeps silent because it does not know the community",
            SnmpAccess::User(_) if knows_engine => {
                ": it can't decrypt what the user sends, where `privacy_password` is wrong, or went away"
            }
            SnmpAccess::User(_) => "",
        };
        Fault::new(Code::Timeout, format!("the device did not answer within {seconds} s{hint}")).retryable()
    }
}

impl AgentSession {
    async fn exchange(&mut self, pdu: &Pdu) -> Result<Pdu, Fault> {
        let failed = |error: std::io::Error| Fault::from(Trouble::NoConnection { reason: format!("no SNMP agent answers there: {error}") });
        let mut bytes = vec![0; LARGEST];
        let (mut pause, mut corrections) = (REPEAT, 0);
        loop {
            let message = self.session.message(pdu, self.now())?;
            self.socket.send(&message).await.map_err(failed)?;
            let sent = Instant::now();
            loop {
                let left = pause.saturating_sub(sent.elapsed());
                let Ok(received) = tokio::time::timeout(left, self.socket.recv(&mut bytes)).await else { break };
                let length = received.map_err(failed)?;
                match self.session.hear(&bytes[..length], self.now()) {
                    SnmpHeard::Response(answer) => return Ok(answer),
                    SnmpHeard::Failed(fault) => return Err(fault),
                    SnmpHeard::Again if corrections < CORRECTIONS => {
                        corrections += 1;
                        break;
                    }
                    SnmpHeard::Again | SnmpHeard::Foreign => {}
                }
            }
            pause *= if corrections == 0 { 2 } else { 1 };
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nm_08_a_walk_that_goes_on_ends_in_time() {
        let mut number = 0;
        let steady = |_| {
            number += 1;
            let answer = Pdu::new(PduKind::Response, vec![(Oid::new(&[1, 3, 1, number]), SnmpValue::Null)]);
            async move {
                tokio::time::sleep(Duration::from_millis(1)).await;
                Ok(answer)
            }
        };
        let walk = TableWalk::new([Oid::new(&[1, 3, 1])]);
        let walking = tokio::time::timeout(Duration::from_secs(20), walked(walk, Duration::from_millis(50), steady));
        let fault = walking.await.expect("the walk ends by itself").unwrap_err();
        assert!(fault.code == Code::Timeout && fault.detail.contains("0.05 s") && fault.detail.contains("ask for a part"), "{fault}");
    }
}
