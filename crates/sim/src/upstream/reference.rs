//! The reference model: expected events for each line of the server, and expected outgoing messages. Knows no bytes of the wire.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use mcp_proto::client::Event;
use mcp_proto::envelope::Answer;

use super::said::{ServerLine, progress};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Probing,
    Initializing,
    /// Refused `initialize`, naming the stateless revision, and is probed again.
    Insisting,
    Over,
}

#[derive(Debug)]
struct Caller {
    number: u64,
    token: Option<String>,
}

/// The present state.
#[derive(Debug)]
pub(super) struct Reference {
    phase: Phase,
    open: BTreeMap<u64, Caller>,
    asks: BTreeSet<String>,
    /// Outgoing messages due, in order, without the handshake.
    owed: VecDeque<String>,
}

impl Reference {
    pub(super) fn new(probes: bool) -> Self {
        let phase = if probes { Phase::Probing } else { Phase::Initializing };
        Self { phase, open: BTreeMap::new(), asks: BTreeSet::new(), owed: VecDeque::new() }
    }

    pub(super) fn is_probing(&self) -> bool {
        matches!(self.phase, Phase::Probing | Phase::Insisting)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.phase == Phase::Over
    }

    pub(super) fn open(&self) -> Vec<u64> {
        self.open.keys().copied().collect()
    }

    /// Ends all calls, and lists those that were open.
    pub(super) fn all_over(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.open).into_keys().collect()
    }

    pub(super) fn silence(&mut self) {
        self.phase = Phase::Initializing;
    }

    pub(super) fn call(&mut self, id: u64, number: u64, token: Option<String>) {
        let own = token.as_ref().map(|_| id.to_string());
        self.owed.push_back(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{}}}"#, params(number, own.as_deref())));
        self.open.insert(id, Caller { number, token });
    }

    /// Cancels a call; tells if it was open.
    pub(super) fn cancel(&mut self, id: u64) -> bool {
        let was_open = self.open.remove(&id).is_some();
        if was_open {
            let params = format!(r#"{{"requestId":{id},"reason":"enough"}}"#);
            self.owed.push_back(format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#));
        }
        was_open
    }

    pub(super) fn reply(&mut self, ask: &str, body: &str) {
        if self.asks.remove(ask) {
            self.owed.push_back(format!(r#"{{"jsonrpc":"2.0","id":{ask},"result":{body}}}"#));
        }
    }

    /// Takes an outgoing message outside the handshake.
    ///
    /// # Errors
    /// When another message is due.
    pub(super) fn sent(&mut self, text: &str) -> Result<(), String> {
        match self.owed.pop_front() {
            Some(due) if due == text => Ok(()),
            due => Err(format!("sent {text}, due was {due:?}")),
        }
    }

    /// Tells if nothing is due.
    pub(super) fn is_even(&self) -> bool {
        self.owed.is_empty()
    }

    /// Takes a whole line and gives the expected events, spelled by [`spelled`].
    ///
    /// # Errors
    /// When the answer was made for another caller.
    pub(super) fn heard(&mut self, said: &ServerLine) -> Result<Vec<String>, String> {
        let events = match said {
            ServerLine::Answer { id, body, is_error } => return self.answered(*id, body, *is_error),
            ServerLine::Asks { id, method } => {
                let fresh = self.asks.insert(id.clone());
                vec![if fresh { format!("asked {id} {method} {{\"q\":1.50}}") } else { "noise".into() }]
            }
            ServerLine::BrokenAnswer { id: 0, .. } if self.phase == Phase::Probing => {
                self.phase = Phase::Initializing;
                vec!["noise".into()]
            }
            ServerLine::BrokenAnswer { id, .. } => vec![self.garbled(Some(*id))],
            ServerLine::BrokenNameless { .. } => {
                let only = self.open.keys().next().copied().filter(|_| self.open.len() == 1);
                vec![self.garbled(only)]
            }
            ServerLine::BrokenQuestion { .. } | ServerLine::Garbage { .. } => vec!["noise".into()],
            ServerLine::Discovered => self.settled("Stateless", self.phase != Phase::Over),
            ServerLine::Initialized => self.settled("Initialize", self.phase == Phase::Initializing),
            ServerLine::Log { .. } => vec![format!("told {}", said.text())],
            ServerLine::Ping { id } => {
                self.owed.push_back(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
                Vec::new()
            }
            ServerLine::Progress { id, number } => {
                let token = self.open.get(id).and_then(|caller| caller.token.as_ref());
                token.map(|token| format!("call {id} told {}", progress(token, *number))).into_iter().collect()
            }
            ServerLine::Refused { .. } => {
                if self.phase == Phase::Probing {
                    self.phase = Phase::Initializing;
                }
                Vec::new()
            }
            ServerLine::RefusedForStateless => {
                if self.phase == Phase::Initializing {
                    self.phase = Phase::Insisting;
                }
                Vec::new()
            }
            ServerLine::Withdraws { id } => self.asks.remove(id).then(|| format!("withdrawn {id}")).into_iter().collect(),
            ServerLine::Ignored { .. } | ServerLine::Long { .. } => Vec::new(),
        };
        Ok(events)
    }

    /// Takes a line without its end. The line may end its own call, and no other.
    ///
    /// # Errors
    /// When it led to anything else.
    pub(super) fn heard_part(&mut self, said: &ServerLine, seen: &[String]) -> Result<(), String> {
        let own = if let ServerLine::Answer { id, .. } | ServerLine::BrokenAnswer { id, .. } = said { Some(*id) } else { None };
        let meant = own.filter(|id| self.open.contains_key(id));
        let nameless = own.is_some() || matches!(said, ServerLine::BrokenNameless { .. });
        // Where the id did not come any more, the only call may have been meant.
        let only = self.open.keys().next().copied().filter(|_| nameless && self.open.len() == 1);
        for id in [meant, only].into_iter().flatten() {
            if seen == [format!("call {id} garbled")] {
                self.open.remove(&id);
                return Ok(());
            }
        }
        if seen == ["noise"] { Ok(()) } else { Err(format!("half of {said:?} led to {seen:?}")) }
    }

    fn answered(&mut self, id: u64, body: &str, is_error: bool) -> Result<Vec<String>, String> {
        let Some(caller) = self.open.remove(&id) else { return Ok(Vec::new()) };
        if !body.contains(&format!("\"caller\":{},", caller.number)) {
            return Err(format!("call {id} of caller {} gets {body}", caller.number));
        }
        Ok(vec![format!("call {id} {} {body}", if is_error { "error" } else { "result" })])
    }

    fn garbled(&mut self, id: Option<u64>) -> String {
        match id.filter(|id| self.open.remove(id).is_some()) {
            Some(id) => format!("call {id} garbled"),
            None => "noise".into(),
        }
    }

    fn settled(&mut self, era: &str, now: bool) -> Vec<String> {
        if !now {
            return Vec::new();
        }
        self.phase = Phase::Over;
        vec![format!("ready {era}")]
    }
}

/// The params of a caller's call.
pub(super) fn params(number: u64, token: Option<&str>) -> String {
    match token {
        Some(token) => format!(r#"{{ "caller":{number},"_meta":{{"k":1.0, "progressToken" :{token}}} ,"x":[1E2]}}"#),
        None => format!(r#"{{"caller":{number},"_meta":{{}}}}"#),
    }
}

/// An event in words.
pub(super) fn spelled(event: &Event) -> String {
    let text = |raw: &[u8]| String::from_utf8_lossy(raw).into_owned();
    match event {
        Event::Answered(call, Answer::Error(raw)) => format!("call {} error {}", call.0, text(raw)),
        Event::Answered(call, Answer::Result(raw)) => format!("call {} result {}", call.0, text(raw)),
        Event::AskWithdrawn(ask) => format!("withdrawn {}", text(&ask.0)),
        Event::Asked(ask, request) => format!("asked {} {} {}", text(&ask.0), request.method, text(&request.params)),
        Event::Failed(why) => format!("failed: {why}"),
        Event::Garbled(call, _) => format!("call {} garbled", call.0),
        Event::Noise(_) => "noise".into(),
        Event::Notified(Some(call), told) => format!("call {} told {}", call.0, text(&told.whole)),
        Event::Notified(None, told) => format!("told {}", text(&told.whole)),
        Event::Ready(negotiated) => format!("ready {:?}", negotiated.era),
    }
}
