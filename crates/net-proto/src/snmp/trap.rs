//! Notifications of devices: traps and informs of v2c and v3 (RFC 3416, RFC 3414), taken with one community or from one user only, and the
//! answers that informs and questions for the engine get. Receives and sends nothing.

use std::collections::BTreeMap;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use serde_json::{Value, json};

use super::table::named;
use super::{
    CommunityMessage, EngineClock, LocalUser, Oid, Pdu, PduKind, SecurityLevel, SnmpAccess, SnmpError, SnmpUser, SnmpValue, UserMessage,
};

/// Engines of a device whose clock is remembered.
const MOST_ENGINES: usize = 8;
/// Seconds by which the clock of an inform may differ.
const WINDOW: u32 = 150;
const UPTIME: &[u32] = &[1, 3, 6, 1, 2, 1, 1, 3, 0];
const KIND: &[u32] = &[1, 3, 6, 1, 6, 3, 1, 1, 4, 1, 0];
/// Notifications with names (SNMPv2-MIB, IF-MIB), by the last number behind snmpTraps.
const NAMES: [&str; 5] =
    ["SNMPv2-MIB:coldStart", "SNMPv2-MIB:warmStart", "IF-MIB:linkDown", "IF-MIB:linkUp", "SNMPv2-MIB:authenticationFailure"];
const TRAPS: &[u32] = &[1, 3, 6, 1, 6, 3, 1, 1, 5];

/// A notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnmpNotification {
    pub kind: Oid,
    /// Hundredths of a second since the device started.
    pub uptime: Option<i64>,
    pub objects: BTreeMap<Oid, SnmpValue>,
    /// Was an answer asked for?
    pub is_inform: bool,
}

impl SnmpNotification {
    fn read(pdu: &Pdu) -> Result<Self, SnmpError> {
        let find = |numbers: &[u32]| pdu.bindings.iter().find(|(oid, _)| oid.numbers() == numbers).map(|(_, value)| value);
        let Some(SnmpValue::Object(kind)) = find(KIND) else {
            return Err(SnmpError::Malformed("a notification that does not say its kind"));
        };
        let objects = pdu.bindings.iter().filter(|(oid, _)| ![UPTIME, KIND].contains(&oid.numbers()));
        Ok(Self {
            kind: kind.clone(),
            uptime: find(UPTIME).and_then(SnmpValue::number),
            objects: objects.cloned().collect(),
            is_inform: pdu.kind == PduKind::Inform,
        })
    }

    /// The notification as the draft's streams carry it.
    pub fn json(&self) -> Value {
        let name = match self.kind.below(&Oid::new(TRAPS)) {
            Some([number @ 1..=5]) => NAMES.get(*number as usize - 1).copied(),
            _ => None,
        };
        json!({ "notification": name, "oid": self.kind.to_string(), "uptime": self.uptime, "inform": self.is_inform, "objects": named(&self.objects) })
    }
}

/// Meaning of a datagram at the port for notifications.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrapHeard {
    /// A notification, and the answer to it.
    Notification(SnmpNotification, Option<Vec<u8>>),
    /// A question for the engine, or a message with another clock, and the answer to it.
    Reply(Vec<u8>),
    Refused(SnmpError),
}

/// Receiver of the notifications of one device.
#[derive(Debug)]
pub struct TrapReader {
    access: SnmpAccess,
    /// This receiver as an engine, for informs.
    own: Option<LocalUser>,
    engine: Vec<u8>,
    boots: u32,
    engines: BTreeMap<Vec<u8>, (LocalUser, EngineClock)>,
    salt: u64,
    unknown: u32,
}

impl TrapReader {
    /// A receiver that is an engine with this name, at the present number of its starts.
    pub fn new(access: SnmpAccess, engine: Vec<u8>, boots: u32, salt: u64) -> Self {
        let own = if let SnmpAccess::User(user) = &access { Some(user.at(&engine)) } else { None };
        Self { access, own, engine, boots, engines: BTreeMap::new(), salt, unknown: 0 }
    }

    /// Hears a datagram of the device at a moment in milliseconds since this receiver started.
    pub fn hear(&mut self, bytes: &[u8], at: u64) -> TrapHeard {
        let heard = match CommunityMessage::read(bytes) {
            Ok(Some(message)) => self.of_community(message),
            Ok(None) => UserMessage::read(bytes).and_then(|message| self.of_user(&message, at)),
            Err(error) => Err(error),
        };
        heard.unwrap_or_else(TrapHeard::Refused)
    }

    fn of_community(&self, message: CommunityMessage) -> Result<TrapHeard, SnmpError> {
        let SnmpAccess::Community(community) = &self.access else { return Err(SnmpError::Level) };
        verify_slices_are_equal(&message.community, community.as_bytes()).map_err(|_| SnmpError::User)?;
        let notification = notified(&message.pdu)?;
        let reply = notification.is_inform.then(|| CommunityMessage { pdu: answer(message.pdu), community: message.community }.write());
        Ok(TrapHeard::Notification(notification, reply))
    }

    fn of_user(&mut self, message: &UserMessage<'_>, at: u64) -> Result<TrapHeard, SnmpError> {
        let SnmpAccess::User(user) = &self.access else { return Err(SnmpError::Level) };
        let clock = (self.boots, u32::try_from(at / 1000).unwrap_or(u32::MAX));
        if message.engine.is_empty() && message.wants_report && message.level == SecurityLevel::Plain {
            self.unknown = self.unknown.wrapping_add(1);
            let report = report(4, self.unknown, 0);
            return Ok(TrapHeard::Reply(UserMessage::unsecured(&self.engine, clock, &report, message.id)));
        }
        let user = user.clone();
        if message.engine == self.engine { self.inform(message, clock) } else { self.trap(&user, message, at) }
    }

    /// A message to this engine.
    fn inform(&mut self, message: &UserMessage<'_>, clock: (u32, u32)) -> Result<TrapHeard, SnmpError> {
        let own = self.own.as_ref().ok_or(SnmpError::Level)?;
        let (context, pdu) = own.open_within(message)?;
        self.salt = self.salt.wrapping_add(1);
        if message.clock.0 != clock.0 || message.clock.1.abs_diff(clock.1) > WINDOW {
            return Ok(TrapHeard::Reply(own.seal(&report(2, 1, pdu.id), message.id, clock, self.salt)?));
        }
        let notification = notified(&pdu)?;
        let reply = notification.is_inform.then(|| own.seal_within(&context, &answer(pdu), message.id, clock, self.salt)).transpose()?;
        Ok(TrapHeard::Notification(notification, reply))
    }

    /// A message that the device sent as an engine of its own.
    fn trap(&mut self, user: &SnmpUser, message: &UserMessage<'_>, at: u64) -> Result<TrapHeard, SnmpError> {
        let known = self.engines.get(message.engine).cloned();
        let is_new = known.is_none();
        let (local, mut clock) = known.unwrap_or_else(|| (user.at(message.engine), EngineClock::unknown(at)));
        let pdu = local.open(message)?;
        // Whoever listens in could send a copy later.
        clock.advance(message.clock, at)?;
        if pdu.kind != PduKind::Trap {
            return Err(SnmpError::Malformed("an inform to another engine"));
        }
        let notification = notified(&pdu)?;
        if is_new && self.engines.len() >= MOST_ENGINES {
            self.engines.pop_first();
        }
        self.engines.insert(message.engine.to_vec(), (local, clock));
        Ok(TrapHeard::Notification(notification, None))
    }
}

fn notified(pdu: &Pdu) -> Result<SnmpNotification, SnmpError> {
    match pdu.kind {
        PduKind::Trap | PduKind::Inform => SnmpNotification::read(pdu),
        PduKind::Get | PduKind::GetNext | PduKind::Response | PduKind::Set | PduKind::GetBulk | PduKind::Report => {
            Err(SnmpError::Malformed("no notification"))
        }
    }
}

fn answer(pdu: Pdu) -> Pdu {
    Pdu { kind: PduKind::Response, status: 0, index: 0, ..pdu }
}

fn report(number: u32, count: u32, id: i32) -> Pdu {
    let oid = Oid::new(&[1, 3, 6, 1, 6, 3, 15, 1, 1, number, 0]);
    Pdu { id, ..Pdu::new(PduKind::Report, vec![(oid, SnmpValue::Counter(count))]) }
}

#[cfg(test)]
mod tests {
    use super::super::{AuthProtocol, PrivacyProtocol, SnmpHeard, SnmpSession};
    use super::*;

    const OWN: &[u8] = b"\x80\x00\x00\x00\x05banyan";
    const DEVICE: &[u8] = b"\x80\x00\x1f\x88\x04device";

    fn user(password: &str) -> SnmpUser {
        SnmpUser::new("ro", AuthProtocol::Sha256, password, Some((PrivacyProtocol::Aes128, "privpass12")))
    }

    fn link_down(kind: PduKind) -> Pdu {
        let bindings = vec![
            (Oid::new(UPTIME), SnmpValue::Ticks(4200)),
            (Oid::new(KIND), SnmpValue::Object(Oid::new(&[1, 3, 6, 1, 6, 3, 1, 1, 5, 3]))),
            (Oid::new(&[1, 3, 6, 1, 2, 1, 2, 2, 1, 8, 2]), SnmpValue::Integer(2)),
        ];
        Pdu { id: 5, ..Pdu::new(kind, bindings) }
    }

    fn reader(access: SnmpAccess) -> TrapReader {
        TrapReader::new(access, OWN.to_vec(), 3, 1)
    }

    #[test]
    fn nm_10_traps_of_a_community_are_taken_and_informs_answered() {
        let mut reader = reader(SnmpAccess::Community("public".to_owned()));
        let message = |community: &str, kind| CommunityMessage { community: community.as_bytes().to_vec(), pdu: link_down(kind) }.write();
        let TrapHeard::Notification(trap, None) = reader.hear(&message("public", PduKind::Trap), 0) else { panic!("no trap") };
        let shown = trap.json();
        assert_eq!((&shown["notification"], &shown["uptime"]), (&json!("IF-MIB:linkDown"), &json!(4200)));
        assert_eq!(shown["objects"]["IF-MIB:IF-MIB"]["ifTable"]["ifEntry"][0]["ifOperStatus"], "down");
        let TrapHeard::Notification(inform, Some(reply)) = reader.hear(&message("public", PduKind::Inform), 0) else { panic!("no inform") };
        assert!(inform.is_inform);
        assert_eq!(CommunityMessage::read(&reply).unwrap().unwrap().pdu.kind, PduKind::Response);
        assert_eq!(reader.hear(&message("private", PduKind::Trap), 0), TrapHeard::Refused(SnmpError::User));
        assert!(matches!(reader.hear(&message("public", PduKind::Set), 0), TrapHeard::Refused(_)));
    }

    #[test]
    fn nm_10_traps_of_a_user_are_signed_and_in_time() {
        let mut reader = reader(SnmpAccess::User(user("authpass12")));
        let sealed = |password: &str, clock| user(password).at(DEVICE).seal(&link_down(PduKind::Trap), 1, clock, 7).unwrap();
        assert!(matches!(reader.hear(&sealed("authpass12", (2, 500)), 0), TrapHeard::Notification(_, None)));
        assert_eq!(reader.hear(&sealed("authpass12", (2, 500)), 200_000), TrapHeard::Refused(SnmpError::Time), "a copy, sent later");
        assert_eq!(reader.hear(&sealed("authpass12", (1, 900)), 0), TrapHeard::Refused(SnmpError::Time));
        assert_eq!(reader.hear(&sealed("authpass13", (3, 0)), 0), TrapHeard::Refused(SnmpError::Signature));
        let plain = CommunityMessage { community: b"public".to_vec(), pdu: link_down(PduKind::Trap) }.write();
        assert_eq!(reader.hear(&plain, 0), TrapHeard::Refused(SnmpError::Level), "v2c where v3 is asked for");
    }

    #[test]
    fn nm_10_informs_of_a_user_find_engine_and_clock() {
        let access = || SnmpAccess::User(user("authpass12"));
        let (mut reader, mut sender) = (reader(access()), SnmpSession::new(access(), 9, 1));
        sender.begin();
        let mut told = 0;
        let mut heard = Vec::new();
        for _ in 0..3 {
            let message = sender.message(&link_down(PduKind::Inform), 0).unwrap();
            let reply = match reader.hear(&message, 1_000_000) {
                TrapHeard::Reply(reply) => reply,
                TrapHeard::Notification(_, Some(reply)) => {
                    told += 1;
                    reply
                }
                other @ (TrapHeard::Notification(_, None) | TrapHeard::Refused(_)) => panic!("{other:?}"),
            };
            heard.push(sender.hear(&reply, 0));
        }
        assert_eq!(heard[..2], [SnmpHeard::Again, SnmpHeard::Again]);
        assert!(matches!(heard[2], SnmpHeard::Response(_)) && told == 1, "{heard:?}");
    }

    #[test]
    fn engines_are_bounded_and_strangers_are_not_kept() {
        let mut reader = reader(SnmpAccess::User(user("authpass12")));
        for number in 0..20_u8 {
            let engine = [DEVICE, &[number]].concat();
            let stranger = user("stranger-1").at(&engine).seal(&link_down(PduKind::Trap), 1, (1, 1), 7).unwrap();
            assert!(matches!(reader.hear(&stranger, 0), TrapHeard::Refused(_)));
            assert_eq!(reader.engines.len(), 0);
        }
        for number in 0..20_u8 {
            let engine = [DEVICE, &[number]].concat();
            reader.hear(&user("authpass12").at(&engine).seal(&link_down(PduKind::Trap), 1, (1, 1), 7).unwrap(), 0);
        }
        assert_eq!(reader.engines.len(), MOST_ENGINES);
    }
}
