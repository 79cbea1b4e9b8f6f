//! The model server, with habits of real servers, and worse. Keeps no promise but to speak in lines.

use std::collections::BTreeMap;

use serde_json::Value;

use super::said::ServerLine;
use crate::random::Random;

/// The server's reaction to the probe for the stateless era.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Answers with broken JSON, and speaks the older era.
    Breaks,
    Dies,
    /// Speaks both eras.
    Dual,
    /// Knows no such method.
    Legacy,
    /// Speaks the stateless era only.
    Modern,
    /// Never answers, and speaks the older era.
    Silent,
    /// Speaks both eras, and answers too late.
    SlowDual,
    /// Refuses too late.
    SlowLegacy,
    /// Speaks the stateless era only, and answers too late.
    SlowModern,
}

impl Kind {
    pub(super) const ALL: [Self; 9] = [
        Self::Breaks,
        Self::Dies,
        Self::Dual,
        Self::Legacy,
        Self::Modern,
        Self::Silent,
        Self::SlowDual,
        Self::SlowLegacy,
        Self::SlowModern,
    ];

    /// Tells if the probe stays unanswered until abandoned.
    pub(super) fn is_silent(self) -> bool {
        matches!(self, Self::Silent | Self::SlowDual | Self::SlowLegacy | Self::SlowModern)
    }
}

/// The server behind the pipe.
#[derive(Debug)]
pub(super) struct Server {
    kind: Kind,
    probes: usize,
    /// Every call received, by id: its caller's number, and the number of answers.
    calls: BTreeMap<u64, (u64, usize)>,
    asked: usize,
    said: usize,
}

impl Server {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, probes: 0, calls: BTreeMap::new(), asked: 0, said: 0 }
    }

    /// Takes a message; answers at once only what belongs to the handshake. `None`: the server has died of it.
    ///
    /// # Errors
    /// When a call comes a second time under the same id.
    pub(super) fn hear(&mut self, text: &[u8], random: &mut Random) -> Result<Option<Vec<ServerLine>>, String> {
        let message: Value = serde_json::from_slice(text).map_err(|e| format!("what was sent is not JSON: {e}"))?;
        match message.get("method").and_then(Value::as_str) {
            Some("server/discover") => Ok(self.probed()),
            Some("initialize") => Ok(Some(self.initialize(random))),
            Some("tools/call") => {
                let number = |at: &str| message.pointer(at).and_then(Value::as_u64);
                let (id, caller) = number("/id").zip(number("/params/caller")).ok_or("a call without id or caller")?;
                match self.calls.insert(id, (caller, 0)) {
                    Some(_) => Err(format!("id {id} was used for two calls")),
                    None => Ok(Some(Vec::new())),
                }
            }
            _ => Ok(Some(Vec::new())),
        }
    }

    fn probed(&mut self) -> Option<Vec<ServerLine>> {
        self.probes += 1;
        let said = match self.kind {
            Kind::Breaks => vec![ServerLine::BrokenAnswer { id: 0, text: r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32601,}}"#.into() }],
            Kind::Dies => return None,
            Kind::Dual | Kind::Modern => vec![ServerLine::Discovered],
            Kind::Legacy => vec![ServerLine::Refused { id: 0 }],
            Kind::SlowModern if self.probes > 1 => vec![ServerLine::Discovered],
            Kind::Silent | Kind::SlowDual | Kind::SlowLegacy | Kind::SlowModern => Vec::new(),
        };
        Some(said)
    }

    fn initialize(&self, random: &mut Random) -> Vec<ServerLine> {
        let mut said = match self.kind {
            Kind::Breaks | Kind::Dies | Kind::Dual | Kind::Legacy | Kind::Silent => vec![ServerLine::Initialized],
            Kind::Modern => vec![ServerLine::RefusedForStateless],
            Kind::SlowDual => vec![ServerLine::Discovered, ServerLine::Initialized],
            Kind::SlowLegacy => vec![ServerLine::Refused { id: 0 }, ServerLine::Initialized],
            Kind::SlowModern => vec![ServerLine::Discovered, ServerLine::RefusedForStateless],
        };
        if random.percent(50) {
            said.reverse();
        }
        said
    }

    /// Sends a line that nobody waits for, or answers any call ever heard of.
    pub(super) fn speak(&mut self, random: &mut Random, long: bool) -> ServerLine {
        self.said += 1;
        let ids: Vec<u64> = self.calls.keys().copied().collect();
        let unknown = 1_000_000 + self.said as u64;
        let id = if random.percent(5) { unknown } else { random.pick(&ids).unwrap_or(unknown) };
        match random.below(100) {
            0..30 => self.answer(id, random.percent(20)),
            30..50 => ServerLine::Progress { id, number: self.said },
            50..58 => self.asks(random),
            58..64 => ServerLine::Withdraws { id: self.any_question(random) },
            64..67 => ServerLine::Ping { id: format!("\"p{}\"", self.said) },
            67..74 => ServerLine::Log { number: self.said },
            74..83 => broken(id, random.pick(&ids).unwrap_or(unknown), random),
            83..86 if long => ServerLine::Long { size: super::wire::LIMIT + 1 + random.below(900) },
            _ => nonsense(random),
        }
    }

    /// Answers every unanswered call.
    pub(super) fn settle(&mut self) -> Vec<ServerLine> {
        let open: Vec<u64> = self.calls.iter().filter(|(_, (_, answers))| *answers == 0).map(|(id, _)| *id).collect();
        open.into_iter().rev().map(|id| self.answer(id, false)).collect()
    }

    /// Answers a call with a body unlike any other.
    fn answer(&mut self, id: u64, is_error: bool) -> ServerLine {
        self.said += 1;
        let said = self.said;
        let (caller, answers) = self.calls.entry(id).or_insert((0, 0));
        *answers += 1;
        let body = if is_error {
            format!(r#"{{ "code":-32000, "message":"no \u00e9" ,"data":{{"caller":{caller},"id":{said}}}}}"#)
        } else {
            format!(r#"{{"z":1.0,"caller":{caller},"a":12345678901234567890123,  "id":{said},"method":"m"}}"#)
        };
        ServerLine::Answer { id, body, is_error }
    }

    /// Asks under ids that collide with our calls' ids, and now and then with the server's own.
    fn asks(&mut self, random: &mut Random) -> ServerLine {
        if !random.percent(15) {
            self.asked += 1;
        }
        let method = random.pick(&["sampling/createMessage", "roots/list", "elicitation/create"]).unwrap_or("roots/list");
        ServerLine::Asks { id: question(self.asked), method }
    }

    fn any_question(&self, random: &mut Random) -> String {
        question(random.below(self.asked + 2))
    }
}

fn question(number: usize) -> String {
    if number.is_multiple_of(3) { format!("\"q{number}\"") } else { number.to_string() }
}

/// Makes unreadable lines that mean, or seem to mean, the call `id`; `other` is unrelated.
fn broken(id: u64, other: u64, random: &mut Random) -> ServerLine {
    match random.below(6) {
        0 => ServerLine::BrokenAnswer { id, text: format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"a":[1,2"#) },
        1 => ServerLine::BrokenAnswer { id, text: format!(r#"{{"jsonrpc":"2.0","result":{{"id":{other},"x":1,"x":2}},"id":{id}}}"#) },
        2 => ServerLine::BrokenAnswer { id, text: format!(r#"{{"id":{id},"result":{{"content":[]}}}}"#) },
        3 => ServerLine::BrokenNameless { text: format!(r#"{{"jsonrpc":"2.0","result":{{"id":{other},"text":"unended"#) },
        4 => {
            ServerLine::BrokenQuestion { text: format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"roots/list","params":{{"x":1,"x":2}}}}"#) }
        }
        _ => ServerLine::BrokenQuestion { text: format!(r#"{{"level":"info","id":{id},"msg":"request \"result\": done"}}"#) },
    }
}

fn nonsense(random: &mut Random) -> ServerLine {
    let garbage = [
        "Server listening on stdio",
        "{",
        "[]",
        r#"[{"jsonrpc":"2.0","method":"notifications/message"}]"#,
        "\u{feff}{}",
        "\"id\":3",
        r#"{"jsonrpc":"2.0","id":{},"method":"roots/list"}"#,
    ];
    let ignored = [
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#,
        r#"{"jsonrpc":"2.0","id":"nobody's","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":-3,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":99999999999999999999999,"result":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"mine","progress":1}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#,
    ];
    if random.percent(50) {
        ServerLine::Garbage { text: random.pick(&garbage).unwrap_or("?") }
    } else {
        ServerLine::Ignored { text: random.pick(&ignored).unwrap_or("?") }
    }
}
