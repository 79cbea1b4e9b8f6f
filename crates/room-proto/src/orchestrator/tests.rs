#![expect(clippy::disallowed_methods, reason = "a test has to begin at some time")]

use std::time::{Duration, SystemTime};

use super::*;
use crate::automation::{AutomationState, Bounds as Rules, Deviation, Limits, RuleId, Standing};
use crate::chain::Bounds;
use crate::sitting::{self, SeatedServer};
use crate::voice::Answer;
use banyan_model::Now;

/// An orchestrator named `boss`, a person like `alice`; `bot` is none.
struct Seen {
    boss: Orchestrator,
    now: Now,
    told: u32,
}

impl Seen {
    fn new(capabilities: &str) -> Self {
        let people = ["alice", "boss"].map(|name| ParticipantId::new(name).unwrap()).into();
        let automation = Automation::new(Rules::default(), AutomationState::default());
        let boss = Orchestrator::new(Participant::new(Bounds::default(), 1 << 20, 9), automation, people);
        let now = Now { instant: Instant::now(), wall: SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000) };
        let mut seen = Self { boss, now, told: 0 };
        let you = format!(r#"{{"you":{{"id":"boss","capabilities":{capabilities}}},"participants":[]}}"#);
        seen.hears("system:gateway", "system/welcome", None, &you);
        seen
    }

    /// Takes a message; gives the id.
    fn hears(&mut self, from: &str, kind: &str, of: Option<&str>, payload: &str) -> String {
        self.told += 1;
        let id = format!("m{}", self.told);
        let of = of.map(|of| format!(r#","correlation_id":"{of}""#)).unwrap_or_default();
        let to = if kind.starts_with("mcp/request") { r#","to":["files"]"# } else { "" };
        let text = format!(r#"{{"protocol":"mcpx/v0.1","id":"{id}","from":"{from}"{to},"kind":"{kind}"{of},"payload":{payload}}}"#);
        self.boss.handle_message(self.now, &text.into());
        id
    }

    fn proposes(&mut self) -> String {
        self.hears("agent", "mcp/proposal:tools/call:ls", None, CALL)
    }

    fn approves(&mut self, by: &str, proposal: &str) {
        self.hears(by, "mcp/request:tools/call:ls", Some(proposal), CALL);
    }

    /// Gives the next message of the rules.
    fn says(&mut self) -> Option<Utterance> {
        std::iter::from_fn(|| self.boss.poll_output()).find_map(|output| match output {
            OrchestratorOutput::Send(spoken) => Some(spoken),
            OrchestratorOutput::Room(_) | OrchestratorOutput::Rule(_) => None,
        })
    }

    /// Lets the room return the next message of the rules.
    fn acts(&mut self) -> Option<String> {
        let spoken = self.says()?;
        self.boss.handle_message(self.now, &spoken.bytes);
        Some(spoken.id)
    }

    fn accepts(&mut self) -> RuleId {
        let offer = self.boss.automation.offers().next().expect("an offer").id;
        let boss = Person(ParticipantId::new("boss").unwrap());
        self.boss.automation.accept(self.now, offer, &boss, Limits::default()).unwrap()
    }

    fn standing(&self) -> Standing {
        self.boss.automation.rules().next().unwrap().standing.clone()
    }
}

const CALL: &str = r#"{"method":"tools/call","params":{"name":"ls"}}"#;
const ALL: &str = r#"["mcp/*","chat"]"#;

#[test]
fn mx_23_an_orchestrator_learns_from_people_and_then_fulfils() {
    let mut seen = Seen::new(ALL);
    for _ in 0..9 {
        let proposal = seen.proposes();
        seen.approves("bot", &proposal);
    }
    assert_eq!(seen.boss.automation.offers().count(), 0, "a program's decisions are nobody's");
    for by in ["alice", "boss", "alice", "boss", "alice"] {
        let proposal = seen.proposes();
        seen.approves(by, &proposal);
        assert_eq!(seen.acts(), None);
    }
    let rule = seen.accepts();
    let proposal = seen.proposes();
    let request = seen.acts().unwrap();
    let (_, chain) = seen.boss.participant.chains().iter().last().unwrap();
    assert_eq!((chain.proposal.as_ref().unwrap().id.as_str(), chain.rule.as_deref()), (proposal.as_str(), Some("rule-1")));
    assert_eq!(chain.state, State::Requested);
    seen.hears("files", "mcp/response:tools/call:ls", Some(&request), r#"{"id":1,"result":{}}"#);
    let act = seen.boss.automation.acts().next().unwrap();
    assert_eq!((act.rule, act.proposal.as_str(), act.outcome), (rule, proposal.as_str(), Some(Outcome::Done)));
    assert_eq!((seen.standing(), seen.boss.automation.decided().count()), (Standing::Active, 5));
}

#[test]
fn mx_23_errors_and_rejections_end_an_orchestrators_rule() {
    let learnt = || {
        let mut seen = Seen::new(ALL);
        for _ in 0..5 {
            let proposal = seen.proposes();
            seen.approves("alice", &proposal);
        }
        seen.accepts();
        let proposal = seen.proposes();
        let request = seen.acts().unwrap();
        (seen, proposal, request)
    };
    let (mut seen, proposal, request) = learnt();
    seen.hears("files", "mcp/response:tools/call:ls", Some(&request), r#"{"id":1,"result":{"isError":true}}"#);
    assert!(matches!(seen.standing(), Standing::Stopped { why: Deviation::Failed { proposal: of }, .. } if of == proposal));
    let (mut seen, proposal, _) = learnt();
    seen.hears("bot", "mcp/reject:tools/call:ls", Some(&proposal), "{}");
    assert_eq!(seen.standing(), Standing::Active);
    seen.hears("alice", "mcp/reject:tools/call:ls", Some(&proposal), "{}");
    assert!(matches!(seen.standing(), Standing::Stopped { why: Deviation::Contrary { by, .. }, .. } if by == "alice"));
    seen.proposes();
    assert_eq!(seen.acts(), None);
}

#[test]
fn mx_23_expired_and_forbidden_proposals_are_not_fulfilled() {
    let mut seen = Seen::new(r#"["chat"]"#);
    for _ in 0..5 {
        let proposal = seen.proposes();
        seen.approves("alice", &proposal);
    }
    seen.accepts();
    seen.proposes();
    assert_eq!(seen.acts(), None);
    assert!(matches!(seen.standing(), Standing::Stopped { why: Deviation::Failed { .. }, .. }), "without the capability it has failed");
    let mut seen = Seen::new(ALL);
    let proposal = seen.proposes();
    let (due, _) = seen.boss.poll_timeout().unwrap();
    seen.now.instant = due;
    seen.boss.handle_timeout(seen.now);
    while seen.boss.poll_output().is_some() {}
    seen.approves("alice", &proposal);
    assert_eq!(seen.boss.automation.decided().count(), 0);
}

#[test]
fn mx_23_a_paused_orchestrator_fulfils_nothing_and_learns_on() {
    let mut seen = Seen::new(ALL);
    let taught = |seen: &mut Seen| {
        let proposal = seen.proposes();
        seen.approves("alice", &proposal);
    };
    (0..5).for_each(|_| taught(&mut seen));
    seen.accepts();
    let control = |seen: &mut Seen, kind: &str, to: &str| {
        let text = format!(r#"{{"protocol":"mcpx/v0.1","id":"{kind}","from":"ann","to":["{to}"],"kind":"{kind}","payload":{{}}}}"#);
        seen.boss.handle_message(seen.now, &text.into());
    };
    control(&mut seen, "participant/pause", "bot");
    seen.proposes();
    assert!(seen.acts().is_some(), "another one is paused");
    control(&mut seen, "participant/pause", "boss");
    seen.proposes();
    assert_eq!((seen.acts(), seen.standing()), (None, Standing::Active), "it is left to people");
    let before = seen.boss.automation.decided().count();
    taught(&mut seen);
    assert_eq!(seen.boss.automation.decided().count(), before + 1);
    control(&mut seen, "participant/resume", "boss");
    assert_eq!(seen.acts(), None, "what came meanwhile is not made up for");
    seen.proposes();
    assert!(seen.acts().is_some());
}

/// A message to the server in the room, as everybody gets it.
fn to_files(from: &str, id: &str, kind: &str, of: Option<&str>) -> Bytes {
    let of = of.map(|of| format!(r#","correlation_id":"{of}""#)).unwrap_or_default();
    let payload = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ls"}}"#;
    format!(r#"{{"protocol":"mcpx/v0.1","id":"{id}","from":"{from}","to":["files"],"kind":"{kind}"{of},"payload":{payload}}}"#).into()
}

#[test]
fn mx_23_a_rule_fulfils_at_a_seated_server() {
    let id = |name: &str| ParticipantId::new(name).unwrap();
    let bounds = sitting::Bounds { room: "ops".into(), name: id("files"), calls: 8, of_one: 8, proposals: 8, message_bytes: 1 << 16 };
    let mut files = SeatedServer::new(bounds, id("gate"), Duration::from_secs(60), 3);
    let mut seen = Seen::new(ALL);
    let welcome = r#"{"you":{"id":"files","capabilities":["mcp/response:*"]},"participants":[]}"#;
    let welcome = format!(r#"{{"protocol":"mcpx/v0.1","id":"w","from":"system:gateway","kind":"system/welcome","payload":{welcome}}}"#);
    files.handle_message(seen.now, &welcome.into());
    let mut hear = |seen: &mut Seen, message: &Bytes| {
        seen.boss.handle_message(seen.now, message);
        files.handle_message(seen.now, message);
        let mut calls = Vec::new();
        while let Some(output) = files.poll_output() {
            match output {
                sitting::Output::Call(asked) => {
                    files.handle_answer(seen.now, asked.call, Answer::Result(b"{}"));
                    calls.push(asked.by);
                }
                sitting::Output::Cancel { why, .. } => calls.push(why),
                sitting::Output::Send(answer) => seen.boss.handle_message(seen.now, &answer),
                sitting::Output::Approved(_)
                | sitting::Output::Dropped { .. }
                | sitting::Output::Propose(_)
                | sitting::Output::SendAsGate(_) => {}
            }
        }
        calls
    };
    for round in 0..5 {
        let proposal = format!("p{round}");
        assert!(hear(&mut seen, &to_files("agent", &proposal, "mcp/proposal:tools/call:ls", None)).is_empty());
        let request = to_files("alice", &format!("r{round}"), "mcp/request:tools/call:ls", Some(&proposal));
        assert_eq!(hear(&mut seen, &request), ["fulfilled by \"alice\" in the room \"ops\"", "alice"]);
    }
    let rule = seen.accepts();
    hear(&mut seen, &to_files("agent", "p5", "mcp/proposal:tools/call:ls", None));
    let request = seen.says().expect("the rule's request");
    assert_eq!(hear(&mut seen, &request.bytes), ["fulfilled by \"boss\" in the room \"ops\"", "boss"]);
    let act = seen.boss.automation.acts().next().unwrap();
    assert_eq!((act.rule, act.proposal.as_str(), act.outcome), (rule, "p5", Some(Outcome::Done)));
    // A person comes too late, and nothing is done twice.
    assert!(hear(&mut seen, &to_files("alice", "late", "mcp/request:tools/call:ls", Some("p5"))).is_empty());
    assert!(seen.says().is_none());
}

#[test]
fn a4_a_rule_fulfils_proposals_without_context() {
    let mut seen = Seen::new(ALL);
    let proposes = |seen: &mut Seen| seen.hears("agent", "mcp/proposal:tools/call", None, CALL);
    for by in ["alice", "boss", "alice", "boss", "alice"] {
        let proposal = proposes(&mut seen);
        seen.approves(by, &proposal);
    }
    seen.accepts();
    proposes(&mut seen);
    let request = seen.acts().unwrap();
    seen.hears("files", "mcp/response:tools/call:ls", Some(&request), r#"{"id":1,"result":{}}"#);
    assert_eq!(seen.boss.automation.acts().next().unwrap().outcome, Some(Outcome::Done));
    assert_eq!(seen.boss.participant.chains().open().count(), 0);
}
