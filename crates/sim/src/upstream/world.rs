//! A history: callers, the pipe, the wire and the server, moved step by step by one seed. Does not know the rules; the reference does.

use banyan_model::Era;
use bytes::Bytes;
use mcp_proto::client::{AskKey, CallKey, Identity, Pipe};
use mcp_proto::envelope::Answer;

use super::reference::{Reference, params, spelled};
use super::said::ServerLine;
use super::server::{Kind, Server};
use super::wire::{Read, Wire};
use crate::random::Random;

/// The outcome of a history.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Every event, a line each.
    pub trace: Vec<String>,
    /// Number of calls begun.
    pub calls: usize,
    /// Number of calls ended: by an answer, as garbled, by cancel, by a dropped line, by the end of the pipe.
    pub ended: [usize; 5],
}

const ANSWERED: usize = 0;
const GARBLED: usize = 1;
const CANCELLED: usize = 2;
const THROWN_AWAY: usize = 3;
const WITH_THE_PIPE: usize = 4;

/// Everything taking part.
pub(super) struct World {
    random: Random,
    cut: u64,
    kind: Kind,
    events: bool,
    pipe: Pipe,
    wire: Wire,
    server: Server,
    reference: Reference,
    /// Every question seen, answered or not.
    asked: Vec<AskKey>,
    begun: Vec<u64>,
    over: bool,
    pub(super) outcome: Outcome,
}

impl World {
    pub(super) fn new(seed: u64, cut: u64) -> Self {
        let mut random = Random::new(seed);
        let kind = random.pick(&Kind::ALL).unwrap_or(Kind::Dual);
        let events = random.percent(40);
        let mut outcome = Outcome::default();
        outcome.trace.push(format!("a server that is {kind:?}, over {}", if events { "server-sent events" } else { "lines" }));
        Self {
            random,
            cut,
            kind,
            events,
            pipe: opened(None),
            wire: Wire::new(events, cut),
            server: Server::new(kind),
            reference: Reference::new(true),
            asked: Vec::new(),
            begun: Vec::new(),
            over: false,
            outcome,
        }
    }

    /// Lives to the end.
    ///
    /// # Errors
    /// When a rule is broken.
    pub(super) fn live(&mut self) -> Result<(), String> {
        self.drain(&[])?;
        let ends_early = self.random.percent(40);
        for _ in 0..40 + self.random.below(160) {
            self.step()?;
            if ends_early && self.reference.is_ready() && self.random.percent(1) {
                return self.end();
            }
        }
        for said in self.server.settle() {
            self.write(said);
        }
        while self.wire.len() > 0 || self.pipe.is_probing() {
            self.deliver()?;
            self.silence()?;
        }
        if !self.reference.is_ready() {
            return Err("the handshake never came to an end".into());
        }
        for said in self.server.settle() {
            self.write(said);
        }
        while self.wire.len() > 0 {
            self.deliver()?;
        }
        let unanswered = self.pipe.in_flight().next();
        match unanswered {
            Some(call) => Err(format!("the server has answered everything, and {call:?} is still in flight")),
            None => self.end(),
        }
    }

    fn step(&mut self) -> Result<(), String> {
        match self.random.below(100) {
            0..38 => self.deliver(),
            38..52 => self.begin(),
            52..58 => self.cancel(),
            58..84 => {
                let said = self.server.speak(&mut self.random, !self.wire.is_events());
                self.write(said);
                Ok(())
            }
            84..92 => self.reply(),
            _ => self.silence(),
        }
    }

    fn write(&mut self, said: ServerLine) {
        self.outcome.trace.push(format!("server writes {said:?}"));
        self.wire.write(said);
    }

    fn deliver(&mut self) -> Result<(), String> {
        let Some((said, read)) = self.wire.deliver()? else { return Ok(()) };
        self.outcome.trace.push(format!("arrives {}", said.text().chars().take(160).collect::<String>()));
        self.hear(&said, &read)
    }

    fn hear(&mut self, said: &ServerLine, read: &[Read]) -> Result<(), String> {
        match (said, read) {
            (ServerLine::Long { size }, [Read::TooLong(known)]) if size == known => self.throw_away(),
            (_, [Read::Message(text)]) if text[..] == *said.text().as_bytes() => {
                let due = self.reference.heard(said)?;
                self.pipe.handle_message(text);
                self.drain(&due)
            }
            _ => Err(format!("{:?} was read as {read:?}", said.text())),
        }
    }

    fn throw_away(&mut self) -> Result<(), String> {
        let (lost, due) = (self.pipe.handle_too_long(), self.reference.all_over());
        if !lost.iter().map(|call| call.0).eq(due.iter().copied()) {
            return Err(format!("{lost:?} were ended by a long line, due were {due:?}"));
        }
        self.outcome.ended[THROWN_AWAY] += due.len();
        self.drain(&[])
    }

    fn begin(&mut self) -> Result<(), String> {
        if !self.reference.is_ready() {
            return Ok(());
        }
        self.outcome.calls += 1;
        let number = self.outcome.calls as u64;
        // Few tokens for many callers, among them such as look like ids of calls.
        let token = self.random.pick(&[None, Some("1"), Some("2"), Some("3"), Some("\"mine\""), Some("\"3\""), Some("1e0")]).flatten();
        let call = self.pipe.handle_call("tools/call", &Bytes::from(params(number, token)).into());
        self.outcome.trace.push(format!("caller {number} begins call {} with token {token:?}", call.0));
        self.reference.call(call.0, number, token.map(str::to_owned));
        self.begun.push(call.0);
        self.drain(&[])
    }

    fn cancel(&mut self) -> Result<(), String> {
        let Some(id) = self.random.pick(&self.begun) else { return Ok(()) };
        self.outcome.trace.push(format!("call {id} is cancelled"));
        let (was_open, due) = (self.pipe.handle_cancel(CallKey(id), "enough"), self.reference.cancel(id));
        if was_open != due {
            return Err(format!("cancel of call {id} says {was_open}"));
        }
        self.outcome.ended[CANCELLED] += usize::from(due);
        self.drain(&[])
    }

    /// Answers any question ever seen; only an open question may be answered on the wire.
    fn reply(&mut self) -> Result<(), String> {
        if self.asked.is_empty() {
            return Ok(());
        }
        let ask = self.asked[self.random.below(self.asked.len())].clone();
        let (id, body) = (String::from_utf8_lossy(&ask.0).into_owned(), format!(r#"{{"n":{}.0}}"#, self.random.below(1000)));
        self.outcome.trace.push(format!("question {id} is answered with {body}"));
        self.reference.reply(&id, &body);
        self.pipe.handle_reply(&ask, &Answer::Result(Bytes::from(body).into()));
        self.drain(&[])
    }

    /// Lets time pass until the probe is abandoned, for a server that leaves it unanswered.
    fn silence(&mut self) -> Result<(), String> {
        if !(self.kind.is_silent() && self.reference.is_probing()) {
            return Ok(());
        }
        self.outcome.trace.push("the probe is given up".into());
        self.reference.silence();
        self.pipe.handle_silence();
        self.drain(&[])
    }

    /// Ends the server, within a line if there is one.
    fn end(&mut self) -> Result<(), String> {
        let part = self.random.below(1001);
        self.outcome.trace.push(format!("the server ends, {part} of 1000 into its last line"));
        match self.wire.end(part)? {
            Some((said, read)) if matches!(&read[..], [Read::Message(text)] if text[..] == *said.text().as_bytes()) => {
                self.hear(&said, &read)?;
            }
            Some((said, read)) => self.hear_part(&said, &read)?,
            None => {}
        }
        self.outcome.ended[WITH_THE_PIPE] += self.reference.all_over().len();
        let (calls, ended) = (self.outcome.calls, self.outcome.ended.iter().sum::<usize>());
        if calls == ended { Ok(()) } else { Err(format!("{calls} calls were begun, and {ended} ended")) }
    }

    fn hear_part(&mut self, said: &ServerLine, read: &[Read]) -> Result<(), String> {
        match read {
            [] if self.wire.is_events() => Ok(()),
            [Read::TooLong(_)] => self.throw_away(),
            [Read::Message(text)] if said.text().as_bytes().starts_with(text) => {
                self.pipe.handle_message(text);
                let seen = self.seen();
                self.reference.heard_part(said, &seen)?;
                self.drain(&[])
            }
            _ => Err(format!("the beginning of {:?} was read as {read:?}", said.text())),
        }
    }

    /// Takes all events of the pipe, and compares them.
    fn drain(&mut self, due: &[String]) -> Result<(), String> {
        let seen = self.seen();
        if seen != due {
            return Err(format!("came out: {seen:#?}\ndue was: {due:#?}"));
        }
        while let Some(message) = self.pipe.poll_transmit() {
            self.send(&message)?;
            if self.over {
                return self.reopen();
            }
        }
        if !self.reference.is_even() {
            return Err(format!("this should have gone out: {:?}", self.reference));
        }
        let (flying, open) = (self.pipe.in_flight().map(|call| call.0).collect::<Vec<_>>(), self.reference.open());
        if flying != open || self.pipe.is_probing() != self.reference.is_probing() || self.pipe.is_ready() != self.reference.is_ready() {
            return Err(format!("in flight are {flying:?}, open are {open:?}; {:?}", self.reference));
        }
        Ok(())
    }

    fn seen(&mut self) -> Vec<String> {
        let mut seen = Vec::new();
        while let Some(event) = self.pipe.poll_event() {
            if let mcp_proto::client::Event::Asked(ask, _) = &event {
                self.asked.push(ask.clone());
            }
            let words = spelled(&event);
            let has = |word: &str| words.starts_with("call ") && words.split(' ').nth(2) == Some(word);
            self.outcome.ended[ANSWERED] += usize::from(has("result") || has("error"));
            self.outcome.ended[GARBLED] += usize::from(has("garbled"));
            self.outcome.trace.push(format!("  comes out: {words}"));
            seen.push(words);
        }
        seen
    }

    fn send(&mut self, message: &Bytes) -> Result<(), String> {
        let text = String::from_utf8_lossy(message).into_owned();
        self.outcome.trace.push(format!("  goes out: {text}"));
        let of_the_handshake = ["\"server/discover\"", "\"initialize\"", "\"notifications/initialized\""];
        if !of_the_handshake.iter().any(|method| text.contains(&format!("\"method\":{method}"))) {
            self.reference.sent(&text)?;
        }
        match self.server.hear(message, &mut self.random)? {
            Some(answers) => answers.into_iter().for_each(|said| self.write(said)),
            None => self.over = true,
        }
        Ok(())
    }

    /// The server has died of the probe: it is started again, and not probed.
    fn reopen(&mut self) -> Result<(), String> {
        if !self.pipe.is_probing() {
            return Err("the server died of the probe, and the pipe does not say that it was probing".into());
        }
        self.outcome.trace.push("the server dies, and is started again".into());
        self.over = false;
        self.kind = Kind::Legacy;
        self.pipe = opened(Some(Era::Initialize));
        self.wire = Wire::new(self.events, self.cut);
        self.server = Server::new(Kind::Legacy);
        self.reference = Reference::new(false);
        self.drain(&[])
    }
}

fn opened(choice: Option<Era>) -> Pipe {
    Pipe::new(choice, Identity { info: Bytes::from_static(br#"{"name":"b"}"#), capabilities: Bytes::from_static(b"{}") })
}
