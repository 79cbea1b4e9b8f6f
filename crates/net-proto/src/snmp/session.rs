//! Requests to an agent and their answers, with a community or as a user: finds the engine, keeps its clock, and tells answers from all else.
//! Sends nothing.

use std::fmt;

use super::usm::report_number;
use super::{CommunityMessage, EngineClock, LocalUser, Pdu, PduKind, SecurityLevel, SnmpUser, UserMessage};
use crate::fault::{Code, Fault};

/// Lengths of an engine's name (RFC 3411, section 5).
const ENGINE: std::ops::RangeInclusive<usize> = 5..=32;
/// Report of an engine that was asked under another name.
const UNKNOWN_ENGINE: u32 = 4;
/// Report of an engine whose clock shows another time.
const NOT_IN_TIME: u32 = 2;

/// Credentials for an agent.
#[derive(Clone)]
pub enum SnmpAccess {
    Community(String),
    User(SnmpUser),
}

impl fmt::Debug for SnmpAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Community(_) => f.write_str("Community"),
            Self::User(user) => user.fmt(f),
        }
    }
}

/// Meaning of a datagram.
#[derive(Debug, PartialEq, Eq)]
pub enum SnmpHeard {
    /// The answer to the request.
    Response(Pdu),
    /// The engine told its name or its time: the request has to be sent again.
    Again,
    /// No answer to the request.
    Foreign,
    Failed(Fault),
}

/// Conversation with an agent, one request after another.
#[derive(Debug)]
pub struct SnmpSession {
    access: SnmpAccess,
    local: Option<LocalUser>,
    clock: EngineClock,
    /// Id of the present request.
    request: i32,
    /// Ids of the messages of the present request.
    messages: std::ops::RangeInclusive<i32>,
    salt: u64,
}

impl SnmpSession {
    /// A conversation whose ids and salts begin at random numbers.
    pub fn new(access: SnmpAccess, request: u32, salt: u64) -> Self {
        let request = (request >> 2) as i32;
        Self { access, local: None, clock: EngineClock::default(), request, messages: request..=request, salt }
    }

    /// Has the agent told its engine?
    pub const fn knows_engine(&self) -> bool {
        self.local.is_some()
    }

    /// Begins another request: answers to earlier ones do not count any more.
    pub fn begin(&mut self) {
        let next = self.messages.end().max(&self.request) + 1;
        let next = if next >= i32::MAX / 2 { 1 } else { next };
        self.request = next;
        self.messages = next..=next;
    }

    /// Message for the present request, at a moment in milliseconds; each message is another.
    ///
    /// # Errors
    /// The cipher does not take the key.
    pub fn message(&mut self, pdu: &Pdu, at: u64) -> Result<Vec<u8>, Fault> {
        let id = self.messages.end() + 1;
        self.messages = *self.messages.start()..=id;
        let pdu = Pdu { id: self.request, ..pdu.clone() };
        match (&self.access, &self.local) {
            (SnmpAccess::Community(community), _) => Ok(CommunityMessage { community: community.clone().into_bytes(), pdu }.write()),
            (SnmpAccess::User(_), None) => {
                let question = Pdu { id: self.request, ..Pdu::new(PduKind::Get, Vec::new()) };
                Ok(UserMessage::unsecured(&[], (0, 0), &question, id))
            }
            (SnmpAccess::User(_), Some(user)) => {
                self.salt = self.salt.wrapping_add(1);
                let sealed = user.seal(&pdu, id, self.clock.read(at), self.salt);
                sealed.map_err(|error| Fault::new(Code::Unreachable, error.to_string()))
            }
        }
    }

    /// Hears a datagram of the agent's address.
    pub fn hear(&mut self, bytes: &[u8], at: u64) -> SnmpHeard {
        match &self.access {
            SnmpAccess::Community(community) => match CommunityMessage::read(bytes) {
                Ok(Some(message)) if message.community == community.as_bytes() => self.response(message.pdu),
                Ok(_) | Err(_) => SnmpHeard::Foreign,
            },
            SnmpAccess::User(user) => {
                let user = user.clone();
                match UserMessage::read(bytes) {
                    Ok(message) if self.messages.contains(&message.id) => self.of_user(&user, &message, at),
                    Ok(_) | Err(_) => SnmpHeard::Foreign,
                }
            }
        }
    }

    fn response(&self, pdu: Pdu) -> SnmpHeard {
        if pdu.kind == PduKind::Response && pdu.id == self.request { SnmpHeard::Response(pdu) } else { SnmpHeard::Foreign }
    }

    fn of_user(&mut self, user: &SnmpUser, message: &UserMessage<'_>, at: u64) -> SnmpHeard {
        let Some(local) = self.local.as_ref().filter(|_| message.level > SecurityLevel::Plain) else {
            return self.unsigned_report(user, message, at);
        };
        let Ok(pdu) = local.open(message) else { return SnmpHeard::Foreign };
        let report = (pdu.kind == PduKind::Report).then(|| report_number(&pdu)).flatten();
        if self.clock.advance(message.clock, at).is_err() {
            return SnmpHeard::Foreign;
        }
        match report {
            Some(NOT_IN_TIME) => SnmpHeard::Again,
            Some(number) => SnmpHeard::Failed(Fault::from_snmp_report(number, &user.name)),
            None => self.response(pdu),
        }
    }

    /// Hears a report that nobody signed. An engine tells its name so, and refuses users; a clock is never taken from one.
    fn unsigned_report(&mut self, user: &SnmpUser, message: &UserMessage<'_>, at: u64) -> SnmpHeard {
        let report = message.plain().ok().filter(|pdu| pdu.kind == PduKind::Report);
        match report.as_ref().and_then(report_number) {
            Some(UNKNOWN_ENGINE) if ENGINE.contains(&message.engine.len()) => {
                self.local = Some(user.at(message.engine));
                self.clock = EngineClock::unknown(at);
                SnmpHeard::Again
            }
            Some(number) => SnmpHeard::Failed(Fault::from_snmp_report(number, &user.name)),
            None => SnmpHeard::Foreign,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{AuthProtocol, Oid, PrivacyProtocol, SnmpValue};
    use super::*;

    const ENGINE: &[u8] = b"\x80\x00\x1f\x88\x04abc";

    fn user(password: &str) -> SnmpUser {
        SnmpUser::new("ro", AuthProtocol::Sha256, password, Some((PrivacyProtocol::Aes128, "privpass12")))
    }

    fn report(number: u32) -> Pdu {
        Pdu::new(PduKind::Report, vec![(Oid::new(&[1, 3, 6, 1, 6, 3, 15, 1, 1, number, 0]), SnmpValue::Counter(1))])
    }

    fn asked() -> Pdu {
        Pdu::asking(PduKind::Get, [Oid::new(&[1, 3, 6, 1, 2, 1, 1, 5, 0])])
    }

    /// An agent that answers each message of a session, with its clock at 1000 s of boot 3.
    fn agent(bytes: &[u8], password: &str) -> Vec<u8> {
        let message = UserMessage::read(bytes).unwrap();
        let local = user(password).at(ENGINE);
        if message.engine.is_empty() {
            return UserMessage::unsecured(ENGINE, (3, 1000), &report(UNKNOWN_ENGINE), message.id);
        }
        match local.open(&message) {
            Err(_) => UserMessage::unsecured(ENGINE, (3, 1000), &report(5), message.id),
            Ok(_) if message.clock != (3, 1000) => local.seal(&report(NOT_IN_TIME), message.id, (3, 1000), 5).unwrap(),
            Ok(pdu) => local.seal(&Pdu { kind: PduKind::Response, ..pdu }, message.id, (3, 1000), 6).unwrap(),
        }
    }

    #[test]
    fn nm_08_a_user_finds_the_engine_and_its_time() {
        let mut session = SnmpSession::new(SnmpAccess::User(user("authpass12")), 77, 1);
        let mut heard = Vec::new();
        for _ in 0..3 {
            let message = session.message(&asked(), 0).unwrap();
            heard.push(session.hear(&agent(&message, "authpass12"), 0));
        }
        assert_eq!(heard[..2], [SnmpHeard::Again, SnmpHeard::Again]);
        assert!(matches!(&heard[2], SnmpHeard::Response(pdu) if pdu.bindings.len() == 1), "{heard:?}");
        session.begin();
        let message = session.message(&asked(), 0).unwrap();
        assert!(matches!(session.hear(&agent(&message, "authpass12"), 0), SnmpHeard::Response(_)));
        session.begin();
        assert_eq!(session.hear(&agent(&message, "authpass12"), 0), SnmpHeard::Foreign, "an answer to an earlier request");
    }

    #[test]
    fn nm_08_a_wrong_password_is_told() {
        let mut session = SnmpSession::new(SnmpAccess::User(user("authpass12")), 77, 1);
        let first = session.message(&asked(), 0).unwrap();
        assert_eq!(session.hear(&agent(&first, "another-one"), 0), SnmpHeard::Again);
        let second = session.message(&asked(), 0).unwrap();
        let SnmpHeard::Failed(fault) = session.hear(&agent(&second, "another-one"), 0) else { panic!("no fault") };
        assert!(fault.code == Code::Unreachable && fault.detail.contains("`ro`"), "{fault}");
    }

    #[test]
    fn an_answer_of_another_community_is_none() {
        let mut session = SnmpSession::new(SnmpAccess::Community("public".to_owned()), 4, 1);
        let message = CommunityMessage::read(&session.message(&asked(), 0).unwrap()).unwrap().unwrap();
        let pdu = Pdu { kind: PduKind::Response, ..message.pdu };
        let other = CommunityMessage { community: b"private".to_vec(), pdu: pdu.clone() };
        assert_eq!(session.hear(&other.write(), 0), SnmpHeard::Foreign);
        let same = CommunityMessage { community: b"public".to_vec(), pdu };
        assert!(matches!(session.hear(&same.write(), 0), SnmpHeard::Response(_)));
    }
}
