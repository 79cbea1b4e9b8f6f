//! The expected messages of each connection, by the plainest means. Never sees the room's own account.

use std::collections::{BTreeMap, BTreeSet};

use room_proto::room::CloseReason;

use super::message::{Fault, Message, PATTERNS};
use super::said::SentMessage;

/// Bounds in the simulation.
pub(super) const QUEUE: usize = 12;
pub(super) const PARTICIPANTS: usize = 5;
/// A message may be sent each so many milliseconds, and so many at once.
pub(super) const EACH_MS: u64 = 100;
pub(super) const BURST: u64 = 8;
/// The same of refusals.
pub(super) const REFUSED_EACH_MS: u64 = 1_000;
pub(super) const REFUSED_BURST: u64 = 6;

/// Fills up with time.
#[derive(Debug, Clone, Copy)]
struct Credit {
    ms: u64,
    at: u64,
    most: u64,
}

impl Credit {
    fn full(each: u64, burst: u64, now: u64) -> Self {
        Self { ms: each * burst, at: now, most: each * burst }
    }

    fn spend(&mut self, now: u64, cost: u64) -> bool {
        self.ms = (self.ms + now - self.at).min(self.most);
        self.at = now;
        let enough = self.ms >= cost;
        self.ms -= if enough { cost } else { 0 };
        enough
    }
}

#[derive(Debug)]
struct Member {
    name: String,
    capabilities: BTreeSet<String>,
    directed: bool,
    echo: bool,
    waiting: usize,
    messages: Credit,
    refusals: Credit,
}

#[derive(Debug, Default)]
pub(super) struct Reference {
    now: u64,
    members: BTreeMap<u64, Member>,
    /// Lasting changes by admins: added, removed.
    changed: BTreeMap<String, BTreeMap<String, bool>>,
    slow: Vec<u64>,
    /// Messages expected since the last look.
    pub(super) sent: BTreeMap<u64, Vec<SentMessage>>,
    pub(super) closed: BTreeMap<u64, CloseReason>,
}

impl Reference {
    pub(super) fn pass(&mut self, ms: u64) {
        self.now += ms;
    }

    /// Lists present connections and their names.
    pub(super) fn present(&self) -> Vec<(u64, String)> {
        self.members.iter().map(|(connection, member)| (*connection, member.name.clone())).collect()
    }

    /// Takes a seat; `false` without a free one.
    pub(super) fn join(&mut self, connection: u64, name: &str, given: &BTreeSet<String>, (directed, echo): (bool, bool)) -> bool {
        let old = self.connection(name);
        if old.is_none() && self.members.len() >= PARTICIPANTS {
            return false;
        }
        if let Some(old) = old {
            self.members.remove(&old);
            self.closed.insert(old, CloseReason::Replaced);
        }
        let mut capabilities = given.clone();
        for (pattern, added) in self.changed.get(name).into_iter().flatten() {
            change(&mut capabilities, pattern, *added);
        }
        let (messages, refusals) = (Credit::full(EACH_MS, BURST, self.now), Credit::full(REFUSED_EACH_MS, REFUSED_BURST, self.now));
        let member = Member { name: name.to_owned(), capabilities, directed, echo, waiting: 0, messages, refusals };
        let joined = SentMessage::Joined(name.to_owned(), member.capabilities.clone());
        self.members.insert(connection, member);
        self.welcome(connection);
        self.tell(&joined, |_, _| true);
        self.cut();
        true
    }

    pub(super) fn leave(&mut self, connection: u64, why: Option<CloseReason>) {
        let Some(member) = self.members.remove(&connection) else { return };
        self.closed.extend(why.map(|why| (connection, why)));
        self.tell(&SentMessage::Left(member.name), |_, _| true);
    }

    pub(super) fn change(&mut self, name: &str, pattern: &str, added: bool) -> bool {
        let Some(connection) = self.connection(name) else { return false };
        if let Some(member) = self.members.get_mut(&connection) {
            change(&mut member.capabilities, pattern, added);
        }
        self.changed.entry(name.to_owned()).or_default().insert(pattern.to_owned(), added);
        self.welcome(connection);
        self.cut();
        true
    }

    /// Changes the choices of a participant; `false`: absent, or too fast.
    pub(super) fn choose(&mut self, name: &str, directed: bool, echo: bool) -> bool {
        let Some(connection) = self.connection(name) else { return false };
        let Some(member) = self.members.get_mut(&connection) else { return false };
        if !member.messages.spend(self.now, EACH_MS) {
            return false;
        }
        let before = (member.directed, member.echo);
        (member.directed, member.echo) = (directed, echo);
        if before != (directed, echo) {
            self.welcome(connection);
            self.cut();
        }
        true
    }

    pub(super) fn written(&mut self, connection: u64, messages: usize) {
        if let Some(member) = self.members.get_mut(&connection) {
            member.waiting -= messages;
        }
    }

    pub(super) fn message(&mut self, connection: u64, message: &Message) {
        let Some(member) = self.members.get_mut(&connection) else { return };
        let code = if member.messages.spend(self.now, EACH_MS) { wrong(member, message) } else { Some("rate_limited") };
        let Some(code) = code else {
            let targets: Vec<u64> = message.to.iter().filter_map(|name| self.connection(name)).collect();
            let all = message.to.is_empty();
            self.tell(&SentMessage::Relayed(message.bytes()), |to, member| {
                let own = to == connection;
                targets.contains(&to) || ((!member.directed || all) && (!own || member.echo))
            });
            return self.cut();
        };
        if member.refusals.spend(self.now, REFUSED_EACH_MS) {
            let error = SentMessage::Error(code.to_owned(), Some(message.id.clone()));
            self.tell(&error, |to, _| to == connection);
        } else {
            self.leave(connection, Some(CloseReason::Misbehaved));
        }
        self.cut();
    }

    /// Cuts off connections without room, first come first; the news of that may be too much for another.
    pub(super) fn cut(&mut self) {
        while !self.slow.is_empty() {
            let connection = self.slow.remove(0);
            self.leave(connection, Some(CloseReason::SlowReader));
        }
    }

    fn connection(&self, name: &str) -> Option<u64> {
        self.members.iter().find(|(_, member)| member.name == name).map(|(connection, _)| *connection)
    }

    fn welcome(&mut self, connection: u64) {
        let Some(you) = self.members.get(&connection) else { return };
        let others = self.members.iter().filter(|(other, _)| **other != connection);
        let others = others.map(|(_, member)| (member.name.clone(), member.capabilities.clone())).collect();
        let welcome = SentMessage::Welcome(you.name.clone(), you.capabilities.clone(), others);
        self.tell(&welcome, |to, _| to == connection);
    }

    fn tell(&mut self, said: &SentMessage, gets: impl Fn(u64, &Member) -> bool) {
        for (connection, member) in &mut self.members {
            if !gets(*connection, member) || self.slow.contains(connection) {
                continue;
            }
            if member.waiting == QUEUE {
                self.slow.push(*connection);
            } else {
                member.waiting += 1;
                self.sent.entry(*connection).or_default().push(said.clone());
            }
        }
    }
}

fn change(capabilities: &mut BTreeSet<String>, pattern: &str, added: bool) {
    if added {
        capabilities.insert(pattern.to_owned());
    } else {
        capabilities.remove(pattern);
    }
}

/// Gives the error code for a message that came in time, if any.
fn wrong(member: &Member, message: &Message) -> Option<&'static str> {
    let covers = |pattern: &String| {
        let known = PATTERNS.iter().find(|(text, _)| text == pattern);
        known.is_some_and(|(_, kinds)| kinds.get(message.kind).copied().unwrap_or_default())
    };
    let may = member.capabilities.iter().any(covers);
    match message.fault {
        Fault::Bare | Fault::Twice => Some("invalid_envelope"),
        Fault::Protocol => Some("unsupported_protocol"),
        // What is the gateway's own comes before the question whose name it bears.
        Fault::Spoofed if message.kind != 5 => Some("auth_violation"),
        Fault::None | Fault::Spoofed => (!may).then_some("capability_violation"),
    }
}
