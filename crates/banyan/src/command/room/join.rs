//! `banyan room join`: a participant at the terminal. Messages of the room are shown, typed lines are said or done, and rules accepted by a
//! person
//! act meanwhile. Proposals are decided by the person, not here.

use std::collections::BTreeSet;
use std::io::BufRead;
use std::path::PathBuf;
use std::time::{Instant, SystemTime};

use bytes::Bytes;
use clap::Args;
use gateway::rooms::{AttendError, Attendance, Entrance, LONGEST, Token};
use room_proto::automation::{Limits, OfferId, Person, RuleId};
use room_proto::chain::{Bounds, ChainId};
use room_proto::name::{ParticipantId, Topic};
use room_proto::orchestrator::Orchestrator;
use room_proto::participant::{Event, Participant};
use room_proto::room::Now;
use room_proto::voice::{Answer, Call, Ending, Spoken, Unsaid};
use serde_json::json;
use tokio::sync::mpsc;

use super::asked::{HELP, ToolRequest, TypedCommand, read};
use super::rules::Shelf;
use super::{rules, shown};
use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::Output;
use crate::printable::printable;
use crate::{gate, terminal, threads};

/// The answer to a call of a terminal's tool.
const NO_TOOLS: &[u8] = br#"{"code":-32601,"message":"this participant is a terminal and has no tools: ask it in words"}"#;
/// Greatest number of typed lines waiting for the room.
const TYPED: usize = 64;

/// Comes into a room.
#[derive(Args)]
#[command(after_help = super::asked::HELP)]
pub(crate) struct Join {
    /// The room
    room: String,
    /// As whom to come into a room of the running gate [default: the user's name]; elsewhere the token says it
    #[arg(long = "as", value_name = "NAME", env = "USER", hide_env_values = true)]
    name: Option<String>,
    /// A gate elsewhere, like `https://root.example.com` [default: the running gate, as its owner]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// What to show at a gate elsewhere
    #[arg(long, env = "BANYAN_ROOM_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Show the token over plain http on a network: whoever listens in can come in by it
    #[arg(long)]
    insecure: bool,
    /// A participant that is a person, whose decisions rules are learnt from; several times [default: whoever sits at a terminal here]
    #[arg(long, value_name = "NAME")]
    person: Vec<String>,
    /// Keep the rules of this room, and what they are learnt from, in this file
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Only show what happens: read nothing from standard input
    #[arg(long)]
    watch: bool,
}

impl Join {
    pub(super) fn run(self, place: &Place, output: &Output) -> Result<(), Failure> {
        let (shelf, automation) = Shelf::open(&self.room, self.rules.as_deref())?;
        let mut people = BTreeSet::new();
        for name in &self.person {
            people.insert(ParticipantId::new(name).map_err(|why| Failure::Usage(format!("{name:?} names no participant: {why}")))?);
        }
        let entrance = self.entrance(place)?;
        let participant = Participant::new(Bounds::default(), LONGEST, seed()?);
        let orchestrator = Orchestrator::new(participant, automation, people);
        let typed = if self.watch { None } else { Some(typed()) };
        let mut table = Table { orchestrator, shelf, output, is_person: terminal::somebody_is_there() };
        threads::wait(async {
            let attendance = Attendance::open(&entrance).await?;
            table.serve(attendance, typed).await
        })?
    }

    fn entrance(&self, place: &Place) -> Result<Entrance, Failure> {
        let topic = Topic::new(&self.room).map_err(|why| Failure::Usage(format!("{:?} names no room: {why}", self.room)))?;
        let (url, token, certificate, participant) = match &self.url {
            Some(url) => (url.clone(), self.token.clone(), None, None),
            None => {
                let gate = gate::presence(place)?;
                let name = self.name.clone().ok_or_else(|| Failure::Usage("say as whom to come in, with --as NAME".to_owned()))?;
                (gate.url, Some(gate.token), gate.certificate, Some(name))
            }
        };
        Ok(Entrance { url, certificate, token: token.map(Token), topic, participant, insecure: self.insecure })
    }
}

/// Reads lines of standard input as they are typed. The thread ends with the process: nothing else can wake it.
fn typed() -> mpsc::Receiver<String> {
    let (lines, typed) = mpsc::channel(TYPED);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if lines.blocking_send(line).is_err() {
                return;
            }
        }
    });
    typed
}

fn seed() -> Result<u128, Failure> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|e| Failure::Failed(format!("the system gives no random numbers: {e}")))?;
    Ok(u128::from_be_bytes(bytes))
}

fn now() -> Now {
    Now { instant: Instant::now(), wall: SystemTime::now() }
}

/// The person at the terminal, in the room.
struct Table<'a> {
    orchestrator: Orchestrator,
    shelf: Shelf,
    output: &'a Output,
    is_person: bool,
}

enum Next {
    Message(Bytes),
    Over(AttendError),
    Passed,
    Typed(Option<String>),
}

impl Table<'_> {
    async fn serve(&mut self, mut attendance: Attendance, mut typed: Option<mpsc::Receiver<String>>) -> Result<(), Failure> {
        let mut is_leaving = false;
        loop {
            // Nothing that is typed is done before it is known as whom.
            let reads = self.orchestrator.participant.me().is_some() && !is_leaving;
            let next = match &mut typed {
                Some(lines) if reads => tokio::select! {
                    line = lines.recv() => Next::Typed(line),
                    next = self.hear(&mut attendance) => next,
                },
                _ => self.hear(&mut attendance).await,
            };
            match next {
                Next::Message(bytes) => self.show(&mut attendance, &bytes)?,
                Next::Over(AttendError::Closed { .. } | AttendError::Broken(_)) if is_leaving => return Ok(()),
                Next::Over(why) => return Err(why.into()),
                Next::Passed => self.orchestrator.handle_timeout(now()),
                Next::Typed(line) => {
                    let leaves = match line.as_deref().map(read).transpose().map(Option::flatten) {
                        Ok(Some(TypedCommand::Quit)) => true,
                        Ok(Some(asked)) => {
                            let done = self.answer(&mut attendance, asked);
                            self.report_and_go_on(done)?;
                            false
                        }
                        Ok(None) => line.is_none(),
                        Err(failure) => {
                            self.report_and_go_on(Err(failure))?;
                            false
                        }
                    };
                    if leaves {
                        attendance.leave();
                        is_leaving = true;
                    }
                }
            }
            self.settle(&mut attendance)?;
        }
    }

    async fn hear(&self, attendance: &mut Attendance) -> Next {
        let due = self.orchestrator.poll_timeout().map(|(at, _)| at.into());
        let passed = async {
            match due {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            heard = attendance.next() => heard.map_or_else(Next::Over, Next::Message),
            () = passed => Next::Passed,
        }
    }

    /// Prints a faulty line's failure and goes on, since the next line may be right.
    fn report_and_go_on(&self, done: Result<(), Failure>) -> Result<(), Failure> {
        match done {
            Err(Failure::NobodyReads) => Err(Failure::NobodyReads),
            Err(failure) => {
                self.output.failure(&failure);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn show(&mut self, attendance: &mut Attendance, bytes: &Bytes) -> Result<(), Failure> {
        if self.output.wants_json() {
            self.output.raw(&[bytes, &b"\n"[..]].concat())?;
        }
        self.orchestrator.handle_message(now(), bytes);
        while let Some(spoken) = self.orchestrator.poll_transmit() {
            attendance.send(&spoken.bytes);
        }
        Ok(())
    }

    /// Shows new events, and keeps learnt rules.
    fn settle(&mut self, attendance: &mut Attendance) -> Result<(), Failure> {
        while let Some(event) = self.orchestrator.poll_event() {
            let room = &mut self.orchestrator.participant;
            if event == Event::Welcomed && self.is_person {
                self.orchestrator.people.extend(room.me().cloned());
            } else if let Event::Asked(request) = &event
                && let Ok(spoken) = room.respond(SystemTime::now(), request, Answer::Error(NO_TOOLS))
            {
                attendance.send(&spoken.bytes);
            }
            let line = shown::line(&event, &self.orchestrator.participant, self.output);
            self.print(line)?;
        }
        while let Some(event) = self.orchestrator.automation.poll_event() {
            let line = rules::line(&event, &self.orchestrator.automation);
            self.print(line)?;
        }
        self.shelf.keep(&self.orchestrator.automation)
    }

    /// Prints for people; a reader of JSON gets the messages instead.
    fn print(&self, lines: impl IntoIterator<Item = String>) -> Result<(), Failure> {
        if self.output.wants_json() {
            return Ok(());
        }
        lines.into_iter().try_for_each(|line| self.output.line(&line))
    }

    /// Carries out a typed command.
    fn answer(&mut self, attendance: &mut Attendance, asked: TypedCommand) -> Result<(), Failure> {
        let at = SystemTime::now();
        let mut say = |spoken: Result<Spoken, Unsaid>| {
            let spoken = spoken.map_err(|why| Failure::Refused(why.to_string()))?;
            attendance.send(&spoken.bytes);
            Ok(())
        };
        let Orchestrator { participant: room, automation, .. } = &mut self.orchestrator;
        match asked {
            TypedCommand::Approve { number, to } => {
                say(room.fulfil(at, ChainId(number), &to.iter().map(String::as_str).collect::<Vec<_>>()))
            }
            TypedCommand::Reject { number, reason } => say(room.end(at, ChainId(number), Ending::Reject, reason.as_deref())),
            TypedCommand::Withdraw { number } => say(room.end(at, ChainId(number), Ending::Withdraw, None)),
            TypedCommand::Pause { who, seconds, reason } => {
                say(room.pause(at, &[&who], seconds, reason.as_deref()))?;
                self.print([format!("{} is asked to pause; /resume {0} ends it", printable(&who))])
            }
            TypedCommand::Resume { who } => {
                say(room.resume(at, &[&who]))?;
                self.print([format!("{} is asked to go on", printable(&who))])
            }
            TypedCommand::Say(text) => say(room.chat(at, &[], &text)),
            TypedCommand::Propose(wanted) => say(wanted.with(|to, call| room.propose(at, &[to], call))),
            TypedCommand::Call(wanted) => say(wanted.with(|to, call| room.request(at, &[to], call, None))),
            TypedCommand::Accept { offer, acts, an_hour } => self.accept(offer, acts, an_hour),
            TypedCommand::Revoke { rule } => self.revoke(rule),
            TypedCommand::Export => room.chains().iter().try_for_each(|(_, chain)| self.output.line(&chain.export())),
            TypedCommand::Acts => {
                let acts: Vec<_> = automation.acts().collect();
                let (json, lines) = (json!({ "acts": acts }), acts.into_iter().map(rules::act).collect());
                self.list(&json, lines)
            }
            TypedCommand::Offers => {
                let offers: Vec<_> = automation.offers().collect();
                let (json, lines) = (json!({ "offers": offers }), offers.into_iter().flat_map(rules::offer).collect());
                self.list(&json, lines)
            }
            TypedCommand::Rules => {
                let rules: Vec<_> = automation.rules().collect();
                let (json, lines) = (json!({ "rules": rules }), rules.into_iter().flat_map(rules::rule).collect());
                self.list(&json, lines)
            }
            TypedCommand::Open => {
                let lines = shown::open(room, self.output);
                self.print(lines)
            }
            TypedCommand::Who => {
                let lines = shown::who(room);
                self.print(lines)
            }
            TypedCommand::Help | TypedCommand::Quit => self.print([HELP.to_owned()]),
        }
    }

    fn list(&self, json: &serde_json::Value, lines: Vec<String>) -> Result<(), Failure> {
        if self.output.wants_json() {
            return self.output.line(&json.to_string());
        }
        self.print(if lines.is_empty() { vec!["there are none yet".to_owned()] } else { lines })
    }

    fn revoke(&mut self, rule: u64) -> Result<(), Failure> {
        let by = self.person()?;
        let revoked = self.orchestrator.automation.revoke(SystemTime::now(), RuleId(rule), &by);
        revoked.map_err(|why| Failure::Refused(why.to_string()))
    }

    fn accept(&mut self, offer: u64, acts: Option<u32>, an_hour: Option<u32>) -> Result<(), Failure> {
        let by = self.person()?;
        let limits = Limits::default();
        let limits = Limits { acts: acts.unwrap_or(limits.acts), an_hour: an_hour.unwrap_or(limits.an_hour), ..limits };
        let accepted = self.orchestrator.automation.accept(SystemTime::now(), OfferId(offer), &by, limits);
        let rule = accepted.map_err(|why| Failure::Refused(why.to_string()))?;
        self.print([format!("{rule} acts from now on, while this runs; /revoke {} ends it", rule.0)])
    }

    /// Gives the typing participant, if a person.
    fn person(&self) -> Result<Person, Failure> {
        let me = self.orchestrator.participant.me().filter(|me| self.orchestrator.people.contains(*me));
        let not = || Failure::Refused("only a person makes and ends rules: say that you are one with --person and your name".to_owned());
        me.cloned().map(Person).ok_or_else(not)
    }
}

impl ToolRequest {
    fn with<T>(&self, say: impl FnOnce(&str, Call<'_>) -> T) -> T {
        let params = format!("{{\"name\":{},\"arguments\":{}}}", json!(self.tool), self.arguments);
        say(&self.to, Call { method: "tools/call", params: Some(params.as_bytes()) })
    }
}

impl From<AttendError> for Failure {
    fn from(error: AttendError) -> Self {
        use gateway::admin::shapes::RefusalKind;
        let text = error.to_string();
        match error {
            AttendError::Address(_) => Self::Usage(text),
            AttendError::Broken(_) | AttendError::Closed { .. } | AttendError::Connect(_) | AttendError::Strange { .. } => {
                Self::Failed(text)
            }
            AttendError::Exposed(_) => Self::Refused(text),
            AttendError::Refused(refusal) => match refusal.kind {
                RefusalKind::Failed | RefusalKind::TooMany => Self::Failed(text),
                RefusalKind::NotFound => Self::NotFound(text),
                RefusalKind::Refused => Self::Refused(text),
            },
        }
    }
}
