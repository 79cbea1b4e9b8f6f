//! `banyan room join`: a participant at the terminal. Messages of the room are shown, typed lines are said or done, and rules accepted by a
//! person
//! act meanwhile. Proposals are decided by the person, not here.

use std::collections::BTreeSet;
use std::io::BufRead;
use std::path::PathBuf;

use banyan_model::Now;
use bytes::Bytes;
use clap::Args;
use gateway::rooms::{AttendError, Attendance, Entrance, LONGEST, Token};
use room_proto::automation::{Limits, OfferId, Person, RuleId};
use room_proto::chain::{Bounds, ChainId};
use room_proto::name::{ParticipantId, Topic};
use room_proto::orchestrator::{Orchestrator, OrchestratorOutput};
use room_proto::participant::{Event, Participant};
use room_proto::standard;
use room_proto::voice::{Call, Ending, SpeechError, Utterance};
use runtime::clock::SystemClock;
use runtime::drive::{self, drive};
use serde_json::json;
use tokio::sync::mpsc;

use super::again::{FailedReturn, FindEntrance, WayBack, is_passing};
use super::asked::{HELP, ToolRequest, TypedCommand, read};
use super::rules::Shelf;
use super::{rules, shown};
use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::Output;
use crate::printable::printable;
use crate::{gate, terminal, threads};

/// Greatest number of typed lines waiting for the room.
const TYPED: usize = 64;

/// Comes into a room.
#[derive(Args)]
#[command(after_help = super::asked::HELP)]
pub(crate) struct Join {
    /// The room
    room: String,
    /// Name in a room of the running gate [default: the user's name]; elsewhere the token has the name
    #[arg(long = "as", value_name = "NAME", env = "USER", hide_env_values = true)]
    name: Option<String>,
    /// A gate elsewhere, like `https://root.example.com` [default: the running gate, as its owner]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Token for a gate elsewhere
    #[arg(long, env = "BANYAN_ROOM_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Send the token over plain http on a network: a listener there can use it
    #[arg(long)]
    insecure: bool,
    /// A person among the participants: rules are learnt from the decisions of people; several times [default: the person at a terminal here]
    #[arg(long, value_name = "NAME")]
    person: Vec<String>,
    /// Keep the rules of this room, and the decisions behind them, in this file
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Only show events: read nothing from standard input
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
        let (entrance, serves) = self.entrance(place)?;
        let participant = Participant::new(Bounds::default(), LONGEST, seed()?);
        let orchestrator = Orchestrator::new(participant, automation, people);
        let typed = if self.watch { None } else { Some(typed()) };
        threads::wait(async {
            let attendance = Attendance::open(&entrance).await?;
            let is_person = terminal::somebody_is_there();
            let find = || match self.entrance(place)? {
                (entrance, again) if again == serves => Ok(entrance),
                (_, _) => {
                    Err(Failure::Refused("the room was at a gate that runs no more, and another gate runs now: join anew".to_owned()))
                }
            };
            let (away, is_leaving, find) = (None, false, &find as &FindEntrance<'_>);
            let mut table = Table { orchestrator, attendance, away, find, typed, shelf, output, is_person, is_leaving };
            drive(&mut table, &SystemClock).await
        })?
    }

    /// Finds the way in, and the configuration that the running gate serves.
    fn entrance(&self, place: &Place) -> Result<(Entrance, Option<String>), Failure> {
        let topic = Topic::new(&self.room).map_err(|why| Failure::Usage(format!("{:?} names no room: {why}", self.room)))?;
        let (url, token, certificate, participant, serves) = match &self.url {
            Some(url) => (url.clone(), self.token.clone(), None, None, None),
            None => {
                let gate = gate::presence(place)?;
                let name = self.name.clone().ok_or_else(|| Failure::Usage("say as whom to come in, with --as NAME".to_owned()))?;
                (gate.url, Some(gate.token), gate.certificate, Some(name), Some(gate.serves))
            }
        };
        Ok((Entrance { url, certificate, token: token.map(Token), topic, participant, insecure: self.insecure }, serves))
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

/// The person at the terminal, in the room.
struct Table<'a> {
    orchestrator: Orchestrator,
    attendance: Attendance,
    /// Tries to come back, while the connection is lost.
    away: Option<WayBack>,
    find: &'a FindEntrance<'a>,
    /// Lines of the keyboard; `None`: nothing is read.
    typed: Option<mpsc::Receiver<String>>,
    shelf: Shelf,
    output: &'a Output,
    is_person: bool,
    is_leaving: bool,
}

/// Event of the room or the keyboard.
enum TableInput {
    Closed(AttendError),
    Returned(Result<Box<Attendance>, FailedReturn>),
    Message(Bytes),
    Typed(Option<String>),
}

impl drive::Driver for Table<'_> {
    type Machine = Orchestrator;
    type Input = TableInput;
    type End = Result<(), Failure>;

    fn machine(&mut self) -> &mut Orchestrator {
        &mut self.orchestrator
    }

    async fn next(&mut self) -> Result<TableInput, Self::End> {
        // Nothing that is typed is done before it is known as whom.
        let reads = self.orchestrator.participant.me().is_some() && !self.is_leaving;
        let (attendance, away, find) = (&mut self.attendance, &self.away, self.find);
        let event = async move {
            match away {
                Some(away) => TableInput::Returned(away.attempt(find).await.map(Box::new)),
                None => attendance.next().await.map_or_else(TableInput::Closed, TableInput::Message),
            }
        };
        Ok(match &mut self.typed {
            Some(lines) if reads => tokio::select! {
                line = lines.recv() => TableInput::Typed(line),
                event = event => event,
            },
            _ => event.await,
        })
    }

    async fn handle(&mut self, now: Now, input: TableInput) -> Result<(), Self::End> {
        match input {
            TableInput::Closed(AttendError::Closed { .. } | AttendError::Broken(_)) if self.is_leaving => Err(Ok(())),
            TableInput::Closed(why) if is_passing(&why) => {
                let away = WayBack::begin();
                self.output.remark(&format!("{why}\n  away from the room: next try in {} s", away.seconds()));
                self.away = Some(away);
                Ok(())
            }
            TableInput::Closed(why) => Err(Err(why.into())),
            TableInput::Returned(returned) => self.come_back(returned).map_err(Err),
            TableInput::Typed(line)
                if self.away.is_some() && line.as_deref().is_none_or(|line| matches!(read(line), Ok(Some(TypedCommand::Quit)))) =>
            {
                Err(Ok(()))
            }
            TableInput::Message(bytes) => self.hear(now, &bytes).map_err(Err),
            TableInput::Typed(line) => self.obey(now, line.as_deref()).map_err(Err),
        }
    }

    async fn carry(&mut self, now: Now, outcome: OrchestratorOutput) -> Result<(), Self::End> {
        match outcome {
            OrchestratorOutput::Room(event) => self.show(now, &event).map_err(Err),
            OrchestratorOutput::Rule(event) => self.print(rules::line(&event, &self.orchestrator.automation)).map_err(Err),
            OrchestratorOutput::Send(spoken) => {
                self.attendance.send(&spoken.bytes);
                Ok(())
            }
        }
    }

    /// Keeps what was learnt.
    async fn rest(&mut self, _: Now) -> Result<(), Self::End> {
        self.shelf.keep(&self.orchestrator.automation).map_err(Err)
    }
}

impl Table<'_> {
    /// Goes on in the room after a try to come back, or waits for the next try.
    fn come_back(&mut self, returned: Result<Box<Attendance>, FailedReturn>) -> Result<(), Failure> {
        match (returned, &mut self.away) {
            (Ok(attendance), _) => {
                (self.attendance, self.away) = (*attendance, None);
                self.output.remark("back in the room");
            }
            (Err(FailedReturn::Passing(failure)), Some(away)) => {
                away.put_off();
                self.output.remark(&format!("{failure}\n  still away from the room: next try in {} s", away.seconds()));
            }
            (Err(FailedReturn::Passing(failure) | FailedReturn::Final(failure)), _) => return Err(failure),
        }
        Ok(())
    }

    /// Does what a typed line says; `None`: there are no more lines.
    fn obey(&mut self, now: Now, line: Option<&str>) -> Result<(), Failure> {
        let leaves = match line.map(read).transpose().map(Option::flatten) {
            Ok(Some(TypedCommand::Quit)) => true,
            Ok(Some(asked)) => {
                let done = self.answer(now, asked);
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
            self.attendance.leave();
            self.is_leaving = true;
        }
        Ok(())
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

    fn hear(&mut self, now: Now, bytes: &Bytes) -> Result<(), Failure> {
        if self.output.wants_json() {
            self.output.raw(&[bytes, &b"\n"[..]].concat())?;
        }
        self.orchestrator.handle_message(now, bytes);
        Ok(())
    }

    /// Shows an event of the room.
    fn show(&mut self, now: Now, event: &Event) -> Result<(), Failure> {
        let room = &mut self.orchestrator.participant;
        if *event == Event::Welcomed && self.is_person {
            self.orchestrator.people.extend(room.me().cloned());
        } else if let Event::Asked(request) = event
            && let Some(said) = standard::respond(room, now, request)
        {
            self.attendance.send(&said.bytes);
        }
        self.print(shown::line(event, &self.orchestrator.participant, self.output))
    }

    /// Prints for people; a reader of JSON gets the messages instead.
    fn print(&self, lines: impl IntoIterator<Item = String>) -> Result<(), Failure> {
        if self.output.wants_json() {
            return Ok(());
        }
        lines.into_iter().try_for_each(|line| self.output.line(&line))
    }

    /// Carries out a typed command.
    fn answer(&mut self, now: Now, asked: TypedCommand) -> Result<(), Failure> {
        let (attendance, is_away) = (&mut self.attendance, self.away.is_some());
        let mut say = |spoken: Result<Utterance, SpeechError>| {
            if is_away {
                return Err(Failure::Refused("nothing was sent: the connection to the room is lost; say it again once back".to_owned()));
            }
            let spoken = spoken.map_err(|why| Failure::Refused(why.to_string()))?;
            attendance.send(&spoken.bytes);
            Ok(())
        };
        let Orchestrator { participant: room, automation, .. } = &mut self.orchestrator;
        match asked {
            TypedCommand::Approve { number, to } => {
                say(room.fulfil(now, ChainId(number), &to.iter().map(String::as_str).collect::<Vec<_>>()))
            }
            TypedCommand::Reject { number, reason } => say(room.end_proposal(now, ChainId(number), Ending::Reject, reason.as_deref())),
            TypedCommand::Withdraw { number } => say(room.end_proposal(now, ChainId(number), Ending::Withdraw, None)),
            TypedCommand::Pause { who, seconds, reason } => {
                say(room.pause(now, &[&who], seconds, reason.as_deref()))?;
                self.print([format!("{} is asked to pause; /resume {0} ends it", printable(&who))])
            }
            TypedCommand::Resume { who } => {
                say(room.resume(now, &[&who]))?;
                self.print([format!("{} is asked to go on", printable(&who))])
            }
            TypedCommand::Say(text) => say(room.chat(now, &[], &text)),
            TypedCommand::Propose(wanted) => say(wanted.with(|to, call| room.propose(now, &[to], call))),
            TypedCommand::Call(wanted) => say(wanted.with(|to, call| room.request(now, &[to], call, None))),
            TypedCommand::Accept { offer, acts, an_hour } => self.accept(now, offer, acts, an_hour),
            TypedCommand::Revoke { rule } => self.revoke(now, rule),
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

    fn revoke(&mut self, now: Now, rule: u64) -> Result<(), Failure> {
        let by = self.person()?;
        let revoked = self.orchestrator.automation.revoke(now, RuleId(rule), &by);
        revoked.map_err(|why| Failure::Refused(why.to_string()))
    }

    fn accept(&mut self, now: Now, offer: u64, acts: Option<u32>, an_hour: Option<u32>) -> Result<(), Failure> {
        let by = self.person()?;
        let limits = Limits::default();
        let limits = Limits { acts: acts.unwrap_or(limits.acts), an_hour: an_hour.unwrap_or(limits.an_hour), ..limits };
        let accepted = self.orchestrator.automation.accept(now, OfferId(offer), &by, limits);
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
