use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;
use proptest::sample::select;

use super::*;

/// A room in which `agent` proposes, `alice` and `bob` decide, and `files` carries out.
struct Table {
    automation: Automation,
    now: u64,
}

fn person(name: &str) -> Person {
    Person(ParticipantId::new(name).unwrap())
}

fn proposed(id: &str, from: &str, arguments: &str) -> String {
    format!(
        r#"{{"protocol":"mcpx/v0.1","id":"{id}","from":"{from}","kind":"mcp/proposal:tools/call:write",
            "payload":{{"method":"tools/call","params":{{"name":"write","arguments":{arguments}}}}}}}"#
    )
}

fn read(text: &str) -> Envelope<'_> {
    Envelope::decode(text.as_bytes(), 1 << 20).unwrap()
}

impl Table {
    fn new() -> Self {
        Self { automation: Automation::new(Bounds::default(), AutomationState::default()), now: 1_000_000 }
    }

    #[expect(clippy::disallowed_methods, reason = "a test has to begin at some time")]
    fn at(&self) -> Now {
        Now { instant: Instant::now(), wall: UNIX_EPOCH + Duration::from_secs(self.now) }
    }

    fn proposes(&mut self, id: &str, from: &str, arguments: &str) -> Option<Fulfil> {
        let at = self.at();
        self.automation.handle_proposal(at, &read(&proposed(id, from, arguments)))
    }

    /// Lets `by` make the call proposed as `proposal`, with these arguments.
    fn fulfils(&mut self, proposal: &str, by: &str, arguments: &str) {
        let request = proposed("f", by, arguments).replace("mcp/proposal", "mcp/request");
        let request = request.replacen("\"kind\"", &format!("\"to\":[\"files\"],\"correlation_id\":\"{proposal}\",\"kind\""), 1);
        let at = self.at();
        self.automation.handle_fulfilment(at, &person(by), &read(&request));
    }

    fn rejects(&mut self, proposal: &str, by: &str) {
        let at = self.at();
        self.automation.handle_rejection(at, &person(by), proposal);
    }

    /// Repeats a proposal by the agent and an approval by alice.
    fn learns(&mut self, name: &str, times: usize) {
        for n in 0..times {
            let arguments = report(n);
            assert_eq!(self.proposes(&format!("{name}{n}"), "agent", &arguments), None);
            self.fulfils(&format!("{name}{n}"), "alice", &arguments);
        }
    }

    fn offer(&self) -> &Offer {
        let offers: Vec<&Offer> = self.automation.offers().collect();
        assert_eq!(offers.len(), 1, "{offers:?}");
        offers[0]
    }

    fn accepts(&mut self, by: &str, limits: Limits) -> Result<RuleId, RuleError> {
        let (at, offer) = (self.at(), self.offer().id);
        self.automation.accept(at, offer, &person(by), limits)
    }

    fn standing(&self, rule: RuleId) -> &Standing {
        &self.automation.rules().find(|known| known.id == rule).unwrap().standing
    }
}

fn report(n: usize) -> String {
    format!(r#"{{"path":"/srv/reports/day-{n}.txt","text":"All {n} fine","mode":"new","size":{}}}"#, 10 + n)
}

/// A table with a rule accepted by alice.
fn ruled(limits: Limits) -> (Table, RuleId) {
    let mut table = Table::new();
    table.learns("p", 5);
    let rule = table.accepts("alice", limits).unwrap();
    (table, rule)
}

#[test]
fn mx_23_an_offer_shows_evidence_and_coverage() {
    let mut table = Table::new();
    table.learns("p", 4);
    assert_eq!(table.automation.offers().count(), 0);
    table.learns("q", 1);
    let offer = table.offer().clone();
    let evidence: Vec<(&str, &str)> = offer.evidence.iter().map(|one| (one.proposal.as_str(), one.by.as_str())).collect();
    assert_eq!(evidence, [("p0", "alice"), ("p1", "alice"), ("p2", "alice"), ("p3", "alice"), ("q0", "alice")]);
    let told = offer.pattern.to_string();
    assert_eq!(
        told,
        "what \"agent\" proposes: tools/call \"write\" by \"files\"; `/arguments/mode` is \"new\"; `/arguments/path` is \"/srv/reports/day-\" \
         and then 5 characters of letters, digits, any of \".\", without `..`; `/arguments/size` is a whole number from 10 to 13; \
         `/arguments/text` is \"All \" and then 6 characters of letters, digits, any of \" \", without `..`"
    );
    assert_eq!(table.automation.poll_output(), Some(Event::Offered(offer.id)));
    // The same again is the same offer, with more that speaks for it.
    table.learns("r", 2);
    assert_eq!((table.offer().id, table.offer().evidence.len()), (offer.id, 7));
}

#[test]
fn mx_23_no_act_without_an_accepted_rule() {
    let mut table = Table::new();
    table.learns("p", 50);
    assert_eq!(table.proposes("x", "agent", &report(1)), None);
    assert_eq!(table.accepts("agent", Limits::default()), Err(RuleError::Own));
    for limits in [(0, 1, 1), (1, 0, 1), (1, 1, 0), (10_001, 1, 1), (1, 1_001, 1), (1, 1, 367 * 86_400)] {
        let limits = Limits { acts: limits.0, an_hour: limits.1, seconds: limits.2 };
        assert_eq!(table.accepts("alice", limits), Err(RuleError::Limits));
    }
    let at = table.at();
    assert_eq!(table.automation.accept(at, OfferId(99), &person("alice"), Limits::default()), Err(RuleError::NotOffered));
    assert_eq!((table.automation.rules().count(), table.proposes("y", "agent", &report(1))), (0, None));
}

#[test]
fn mx_23_every_act_names_its_rule_and_can_be_listed() {
    let (mut table, rule) = ruled(Limits::default());
    let text = proposed("x", "agent", &report(3));
    let text = text.replace("\"arguments\"", r#""_meta":{"io.banyan/rule":{"accepted_by":"boss"},"io.banyan/approval":1},"arguments""#);
    let fulfil = table.automation.handle_proposal(table.at(), &read(&text)).unwrap();
    let params: serde_json::Value = serde_json::from_slice(&fulfil.params).unwrap();
    assert_eq!(params["_meta"], serde_json::json!({"io.banyan/rule": {"id": "rule-1", "accepted_by": "alice"}}));
    assert_eq!(params["arguments"]["path"], "/srv/reports/day-3.txt");
    assert_eq!((fulfil.rule, fulfil.to, fulfil.proposal.as_str(), fulfil.method.as_str()), (rule, vec!["files".into()], "x", "tools/call"));
    let at = table.at();
    table.automation.handle_outcome(at, "x", Outcome::Done);
    let acts: Vec<&Act> = table.automation.acts().collect();
    assert_eq!(acts, [&Act { rule, proposal: "x".into(), at: table.now, outcome: Some(Outcome::Done) }]);
    assert_eq!(table.proposes("x", "agent", &report(3)), None, "the same proposal is not fulfilled twice");
    let known = table.automation.rules().next().unwrap();
    assert_eq!((known.accepted_by.as_str(), known.evidence.len(), known.acts), ("alice", 5, 1));
}

#[test]
fn mx_23_a_rule_leaves_proposals_beyond_its_limits_to_people() {
    let (mut table, rule) = ruled(Limits { acts: 5, an_hour: 2, seconds: 3 * 3_600 });
    let tries = |table: &mut Table, id: &str| table.proposes(id, "agent", &report(1)).is_some();
    assert_eq!([tries(&mut table, "a"), tries(&mut table, "b"), tries(&mut table, "c")], [true, true, false]);
    table.now += 3_600;
    assert_eq!([tries(&mut table, "d"), tries(&mut table, "e"), tries(&mut table, "f")], [true, true, false]);
    table.now -= 1_800;
    assert!(!tries(&mut table, "g"), "a clock that goes back makes no room");
    table.now += 2 * 3_600;
    assert!(tries(&mut table, "h") && !tries(&mut table, "i"));
    assert!(matches!(table.standing(rule), Standing::Spent { .. }));
    let (mut table, rule) = ruled(Limits { acts: 5, an_hour: 5, seconds: 60 });
    table.now += 60;
    assert_eq!(table.proposes("a", "agent", &report(1)), None);
    assert_eq!(table.standing(rule), &Standing::Expired { at: table.now });
}

#[test]
fn mx_23_the_first_deviation_ends_a_rule_and_unlearns() {
    type Deviate = fn(&mut Table);
    let cases: [(&str, Deviate); 9] = [
        ("outside", |table| _ = table.proposes("x", "agent", &report(1).replace("/srv/reports", "/etc"))),
        ("leads out", |table| _ = table.proposes("x", "agent", &report(1).replace("day-1.txt", "day-../.."))),
        ("one more argument", |table| _ = table.proposes("x", "agent", &report(1).replace("{", "{\"force\":true,"))),
        ("one less", |table| _ = table.proposes("x", "agent", &report(1).replace("\"mode\":\"new\",", ""))),
        ("a number too large", |table| _ = table.proposes("x", "agent", &report(1).replace(":11}", ":1000}"))),
        ("too much to look at", |table| _ = table.proposes("x", "agent", &report(1).replace("fine", &"x".repeat(20_000)))),
        ("rejected by a person, though done", |table| {
            assert!(table.proposes("x", "agent", &report(1)).is_some());
            table.rejects("x", "bob");
        }),
        ("done otherwise by a person", |table| {
            assert!(table.proposes("x", "agent", &report(1)).is_some());
            table.fulfils("x", "bob", &report(2));
        }),
        ("failed", |table| {
            assert!(table.proposes("x", "agent", &report(1)).is_some());
            let at = table.at();
            table.automation.handle_outcome(at, "x", Outcome::Failed);
        }),
    ];
    for (what, deviate) in cases {
        let (mut table, rule) = ruled(Limits::default());
        deviate(&mut table);
        let Standing::Stopped { why, .. } = table.standing(rule) else { panic!("{what}: {:?}", table.standing(rule)) };
        let named = match why {
            Deviation::Contrary { proposal, .. } | Deviation::Failed { proposal } | Deviation::Outside { proposal } => proposal,
        };
        assert_eq!(named, "x", "{what}");
        assert_eq!(table.proposes("y", "agent", &report(1)), None, "{what}");
        table.learns("again", 4);
        assert_eq!(table.automation.offers().count(), 0, "{what}");
    }
    // Others, and other tools, are other subjects.
    let (mut table, rule) = ruled(Limits::default());
    assert_eq!(table.proposes("x", "other", "{\"path\":\"/etc\"}"), None);
    assert_eq!(table.standing(rule), &Standing::Active);
}

#[test]
fn mx_23_a_revoked_rule_comes_back_only_by_new_decisions() {
    let (mut table, rule) = ruled(Limits::default());
    let at = table.at();
    assert_eq!(table.automation.revoke(at, rule, &person("bob")), Ok(()));
    assert_eq!(table.automation.revoke(at, rule, &person("bob")), Err(RuleError::NoRule));
    assert_eq!(table.standing(rule), &Standing::Revoked { at: table.now, by: "bob".into() });
    table.learns("again", 4);
    assert_eq!((table.automation.offers().count(), table.proposes("y", "agent", &report(1))), (0, None));
    table.learns("more", 1);
    assert_eq!(table.offer().evidence.len(), 5);
    assert!(table.offer().evidence.iter().all(|one| one.proposal.starts_with("again") || one.proposal.starts_with("more")));
    assert_eq!(table.accepts("bob", Limits::default()), Ok(RuleId(2)));
}

#[test]
fn mx_23_what_somebody_decided_against_is_covered_by_no_rule() {
    let mut table = Table::new();
    table.proposes("no", "agent", &report(1));
    table.rejects("no", "bob");
    table.learns("p", 5);
    assert_eq!(table.automation.offers().count(), 0, "the very same was rejected");
    let mut table = Table::new();
    table.proposes("no", "agent", &report(1).replace("day-1.txt", "day-x.txt").replace("All 1", "All x"));
    table.rejects("no", "bob");
    table.learns("p", 5);
    table.learns("q", 5);
    let exactly = |argument: &Argument| matches!(argument.expected, ExpectedValues::OneOf(_));
    assert!(table.offer().pattern.arguments.values().all(exactly), "{}", table.offer().pattern);
    // Made otherwise than proposed, and decided by whoever proposed: neither speaks for a rule.
    let mut table = Table::new();
    for n in 0..9 {
        table.proposes(&format!("p{n}"), "agent", &report(n));
        table.fulfils(&format!("p{n}"), if n % 2 == 0 { "agent" } else { "bob" }, &report(if n % 2 == 0 { n } else { 0 }));
    }
    assert_eq!(table.automation.offers().count(), 0);
}

#[test]
fn mx_23_kept_state_resumes_and_waiting_proposals_go_to_people() {
    let (mut table, rule) = ruled(Limits { acts: 2, an_hour: 2, seconds: 3_600 });
    assert!(table.proposes("a", "agent", &report(1)).is_some());
    let text = serde_json::to_string(table.automation.kept()).unwrap();
    let kept: AutomationState = serde_json::from_str(&text).unwrap();
    assert_eq!(&kept, table.automation.kept());
    let mut again = Table { automation: Automation::new(Bounds::default(), kept), now: table.now };
    assert_eq!(again.proposes("a", "agent", &report(1)), None, "it was fulfilled before");
    assert!(again.proposes("b", "agent", &report(1)).is_some());
    assert!(matches!(again.standing(rule), Standing::Spent { .. }));
    let mut table = Table::new();
    table.learns("p", 5);
    let kept = table.automation.kept().clone();
    let again = Automation::new(Bounds::default(), kept);
    assert_eq!(again.offers().map(|offer| offer.evidence.len()).collect::<Vec<_>>(), [5]);
}

#[test]
fn memory_is_bounded_and_keeps_active_rules() {
    let bounds = Bounds { acts: 3, decisions: 6, evidence: 2, open: 4, rules: 1 };
    let mut table = Table { automation: Automation::new(bounds, AutomationState::default()), now: 5_000 };
    table.learns("p", 50);
    assert_eq!(table.automation.decided().count(), 6);
    let rule = table.accepts("alice", Limits { acts: 9, an_hour: 9, seconds: 60 }).unwrap();
    let last = report(47);
    assert_eq!((0..20).filter(|n| table.proposes(&format!("x{n}"), "agent", &last).is_some()).count(), 9);
    assert_eq!((table.automation.acts().count(), table.automation.open.len()), (3, 4));
    table.learns("q", 6);
    let next = table.accepts("bob", Limits::default()).unwrap();
    assert_eq!(table.automation.rules().map(|rule| rule.id).collect::<Vec<_>>(), [next]);
    assert!(next > rule);
    let other = |n: usize| format!("{{\"n\":{n}}}");
    for n in 0..2 {
        table.proposes(&format!("o{n}"), "other", &other(n));
        table.fulfils(&format!("o{n}"), "bob", &other(n));
    }
    assert_eq!(table.accepts("bob", Limits::default()), Err(RuleError::Full));
}

/// A step of a story.
#[derive(Debug, Clone)]
enum Happens {
    Proposed { from: &'static str, path: &'static str, n: u8 },
    Approved { back: usize, by: &'static str },
    Amended { back: usize },
    Rejected { back: usize },
    Answered { back: usize, well: bool },
    Accepted { acts: u32, an_hour: u32, seconds: u64 },
    Revoked { which: u64 },
    Passed { seconds: u64 },
}

fn happens() -> impl Strategy<Value = Happens> {
    let back = 0..4_usize;
    let path = select(vec!["/a/b1", "/a/b2", "/a/b3", "/a/b1", "/a/../x", "/c/d1"]);
    prop_oneof![
        8 => (select(vec!["agent", "agent", "other"]), path, 0..4_u8).prop_map(|(from, path, n)| Happens::Proposed { from, path, n }),
        8 => (back.clone(), select(vec!["alice", "bob", "agent"])).prop_map(|(back, by)| Happens::Approved { back, by }),
        1 => back.clone().prop_map(|back| Happens::Amended { back }),
        1 => back.clone().prop_map(|back| Happens::Rejected { back }),
        2 => (back, prop::bool::weighted(0.9)).prop_map(|(back, well)| Happens::Answered { back, well }),
        3 => (1..6_u32, 1..4_u32, 1..9_000_u64).prop_map(|(acts, an_hour, seconds)| Happens::Accepted { acts, an_hour, seconds }),
        1 => (1..5_u64).prop_map(|which| Happens::Revoked { which }),
        2 => (0..2_000_u64).prop_map(|seconds| Happens::Passed { seconds }),
    ]
}

/// Facts of a rule, kept without asking the rule.
#[derive(Default)]
struct Known {
    limits: Limits,
    from: u64,
    over: bool,
    acted: Vec<u64>,
}

/// Decisions and rules as an observer would count them.
#[derive(Default)]
struct Watched {
    cases: Vec<(String, String, Case)>,
    contrary: Vec<Case>,
    approved: BTreeMap<String, Case>,
    settled: Vec<String>,
    rules: BTreeMap<RuleId, Known>,
}

impl Watched {
    fn back(&self, back: usize) -> Option<(String, String, Case)> {
        self.cases.len().checked_sub(back + 1).map(|at| self.cases[at].clone())
    }

    /// Forbids acts of every rule that covers `case`.
    fn contradicted(&mut self, table: &Table, case: &Case, id: &str) {
        let covering = table.automation.rules().filter(|rule| rule.pattern.covers(case)).map(|rule| rule.id);
        let acted = table.automation.acts().filter(|act| act.proposal == id).map(|act| act.rule);
        for rule in covering.chain(acted).collect::<Vec<_>>() {
            self.rules.get_mut(&rule).unwrap().over = true;
        }
    }

    fn happen(&mut self, table: &mut Table, what: &Happens) {
        match what {
            Happens::Proposed { from, path, n } => {
                let id = format!("p{}", self.cases.len());
                let arguments = format!("{{\"path\":\"{path}\",\"n\":{n}}}");
                let text = proposed(&id, from, &arguments);
                let case = Case::of_proposal(&read(&text));
                let fulfil = table.proposes(&id, from, &arguments);
                self.acted(table, &case, fulfil.as_ref());
                self.cases.push((id, arguments, case));
            }
            Happens::Approved { back, by } => {
                let Some((id, arguments, case)) = self.back(*back) else { return };
                table.fulfils(&id, by, &arguments);
                if *by != case.subject.proposer && !self.settled.contains(&id) {
                    self.approved.insert(id.clone(), case);
                }
                self.settled.push(id);
            }
            Happens::Amended { back } => {
                let Some((id, arguments, case)) = self.back(*back).filter(|(id, ..)| !self.settled.contains(id)) else { return };
                self.contradicted(table, &case, &id);
                table.fulfils(&id, "bob", &arguments.replace("path", "other"));
                self.contrary.push(case);
                self.settled.push(id);
            }
            Happens::Rejected { back } => {
                let Some((id, _, case)) = self.back(*back) else { return };
                if !self.settled.contains(&id) {
                    self.contradicted(table, &case, &id);
                    self.contrary.push(case);
                }
                table.rejects(&id, "bob");
                self.settled.push(id);
            }
            Happens::Answered { back, well } => {
                let Some((id, ..)) = self.back(*back) else { return };
                let act = table.automation.acts().find(|act| act.proposal == id && act.outcome.is_none()).map(|act| act.rule);
                self.rules.iter_mut().filter(|(rule, _)| Some(**rule) == act && !well).for_each(|(_, known)| known.over = true);
                let at = table.at();
                table.automation.handle_outcome(at, &id, if *well { Outcome::Done } else { Outcome::Failed });
            }
            Happens::Accepted { acts, an_hour, seconds } => {
                let limits = Limits { acts: *acts, an_hour: *an_hour, seconds: *seconds };
                let (at, Some(offer)) = (table.at(), table.automation.offers().next().map(|offer| offer.id)) else { return };
                let rule = table.automation.accept(at, offer, &person("alice"), limits).unwrap();
                self.rules.insert(rule, Known { limits, from: table.now, ..Known::default() });
            }
            Happens::Revoked { which } => {
                let at = table.at();
                if table.automation.revoke(at, RuleId(*which), &person("bob")).is_ok() {
                    self.rules.get_mut(&RuleId(*which)).unwrap().over = true;
                }
            }
            Happens::Passed { seconds } => table.now += seconds,
        }
    }

    /// Checks an act, or the absence of an act.
    fn acted(&mut self, table: &Table, case: &Case, fulfil: Option<&Fulfil>) {
        if let Some(fulfil) = fulfil {
            let known = self.rules.get_mut(&fulfil.rule).expect("nothing acts that nobody accepted");
            assert!(!known.over, "{} acted after it had ended", fulfil.rule);
            let rule = table.automation.rules().find(|rule| rule.id == fulfil.rule).unwrap();
            assert!(rule.pattern.covers(case), "{} does not cover {case:?}", rule.pattern);
            known.acted.push(table.now);
            let hour = known.acted.iter().filter(|at| **at + 3_600 > table.now).count();
            assert!(known.acted.len() <= known.limits.acts as usize && hour <= known.limits.an_hour as usize);
            assert!(table.now < known.from + known.limits.seconds);
        }
        let outside = table.automation.rules().filter(|rule| rule.pattern.subject == case.subject && !rule.pattern.covers(case));
        outside.for_each(|rule| self.rules.get_mut(&rule.id).unwrap().over = true);
    }

    fn check(&self, table: &Table) {
        for offer in table.automation.offers() {
            assert!(offer.evidence.len() >= 2);
            for one in &offer.evidence {
                let case = self.approved.get(&one.proposal).expect("evidence is what a person approved");
                assert!(offer.pattern.covers(case) && one.by != case.subject.proposer);
            }
            assert_eq!(self.contrary.iter().find(|case| offer.pattern.covers(case)), None, "{}", offer.pattern);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn mx_23_random_stories_break_no_limit_of_rules_and_offers(
        story in prop::collection::vec(happens(), 0..160)
    ) {
        let bounds = Bounds { evidence: 2, ..Bounds::default() };
        let mut table = Table { automation: Automation::new(bounds, AutomationState::default()), now: 1_000_000 };
        let mut watched = Watched::default();
        for what in &story {
            watched.happen(&mut table, what);
            watched.check(&table);
        }
    }
}
