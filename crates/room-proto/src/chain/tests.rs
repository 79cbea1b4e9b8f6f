#![expect(clippy::disallowed_methods, reason = "a test has to begin at some time")]

use std::time::SystemTime;

use super::*;
use crate::envelope::MAX_KIND;
use banyan_model::Now;

struct Seen {
    chains: Chains,
    now: Now,
}

impl Seen {
    fn new(chains: usize) -> Self {
        Self {
            chains: Chains::new(Bounds { chains, expiry: Duration::from_secs(300) }),
            now: Now { instant: Instant::now(), wall: SystemTime::UNIX_EPOCH },
        }
    }

    /// Takes a message: `id from kind [> correlation] [@ to] [= name in the params]`.
    fn sees(&mut self, line: &str) -> MessageRole {
        let text = written(line);
        self.chains.handle_envelope(self.now, &Envelope::decode(text.as_bytes(), 1 << 16).unwrap())
    }

    fn state(&self, chain: u64) -> State {
        self.chains.get(ChainId(chain)).unwrap().state
    }
}

fn written(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let after = |mark: &str| words.iter().position(|word| *word == mark).map(|at| words[at + 1]);
    let of = after(">").map(|of| format!(r#","correlation_id":"{of}""#)).unwrap_or_default();
    let to = after("@").map(|to| format!(r#","to":["{to}"]"#)).unwrap_or_default();
    let payload = after("=").map_or("{}".to_owned(), |name| format!(r#"{{"params":{{"name":"{name}"}}}}"#));
    format!(r#"{{"protocol":"mcpx/v0.1","id":"{}","from":"{}","kind":"{}"{of}{to},"payload":{payload}}}"#, words[0], words[1], words[2])
}

const FIRST: ChainId = ChainId(1);
const SECOND: ChainId = ChainId(2);

#[test]
fn mx_22_a_fulfilled_and_answered_proposal_is_a_listed_chain() {
    let mut seen = Seen::new(10);
    assert_eq!(seen.sees("p agent mcp/proposal:tools/call:rm @ target"), MessageRole::Proposed(FIRST));
    assert_eq!(seen.chains.open().map(|(id, _)| id).collect::<Vec<_>>(), [FIRST]);
    assert_eq!(seen.sees("f human mcp/request:tools/call:rm > p @ target"), MessageRole::Fulfilled(FIRST));
    assert_eq!(seen.chains.open().count(), 0);
    assert_eq!(seen.sees("r target mcp/response:tools/call:rm > f"), MessageRole::Answered(FIRST));
    assert_eq!(seen.sees("c human chat > p"), MessageRole::Unrelated);
    let chain = seen.chains.get(FIRST).unwrap();
    let ids = [&chain.proposal, &chain.request, &chain.response].map(|step| step.as_ref().unwrap().id.as_str());
    assert_eq!((ids, chain.state), (["p", "f", "r"], State::Answered));
    assert_eq!(seen.chains.iter().count(), 1);
}

#[test]
fn mx_03_a_response_is_for_fulfiller_and_proposer() {
    let mut seen = Seen::new(10);
    seen.sees("p agent mcp/proposal:tools/call:rm");
    seen.sees("f human mcp/request:tools/call:rm > p @ target");
    seen.sees("q human mcp/request:tools/list @ target");
    seen.sees("own agent mcp/proposal:tools/list");
    seen.sees("ownf agent mcp/request:tools/list > own");
    let audience = |line: &str| seen.chains.audience(&Envelope::decode(written(line).as_bytes(), 1 << 16).unwrap());
    assert_eq!(audience("f human mcp/request:tools/call:rm > p"), ["human", "agent"]);
    assert_eq!(audience("q human mcp/request:tools/list"), ["human"]);
    assert_eq!(audience("ownf agent mcp/request:tools/list > own"), ["agent"]);
    assert_eq!(audience("unseen human mcp/request:tools/list > p"), ["human"]);
}

#[test]
fn mx_03_a_response_counts_once_and_from_an_addressee() {
    let mut seen = Seen::new(10);
    seen.sees("q human mcp/request:tools/call:ls @ target");
    seen.sees("p agent mcp/proposal:tools/call:rm");
    for stray in [
        "r1 other mcp/response:tools/call:ls > q",
        "r2 target mcp/response:tools/list > q",
        "r3 target mcp/response:tools/call:ls > unknown",
        "r4 target mcp/response:tools/call:rm > p",
    ] {
        assert_eq!(seen.sees(stray), MessageRole::Stray, "{stray}");
    }
    assert_eq!(seen.sees("r5 target mcp/response:tools/call > q"), MessageRole::Answered(FIRST));
    assert_eq!(seen.sees("r6 target mcp/response:tools/call > q"), MessageRole::Stray);
}

#[test]
fn mx_22_late_and_deviating_requests_are_no_fulfilment() {
    let mut seen = Seen::new(10);
    seen.sees("p agent mcp/proposal:tools/call:rm");
    assert_eq!(seen.sees("x human mcp/request:tools/call:mkfs > p"), MessageRole::Deviates { proposal: FIRST, request: SECOND });
    assert_eq!(seen.sees("y human mcp/request:tools/call > p"), MessageRole::Deviates { proposal: FIRST, request: ChainId(3) });
    assert_eq!(seen.state(1), State::Open);
    assert_eq!(seen.sees("f human mcp/request:tools/call:rm > p"), MessageRole::Fulfilled(FIRST));
    let late = MessageRole::Late { proposal: FIRST, state: State::Requested, request: ChainId(4) };
    assert_eq!(seen.sees("g boss mcp/request:tools/call:rm > p"), late);
    assert_eq!(seen.sees("r target mcp/response:tools/call:rm > g"), MessageRole::Answered(ChainId(4)));
    assert_eq!(seen.state(1), State::Requested);
    // An id belongs to the message that had it first.
    assert_eq!(seen.sees("p mallory mcp/proposal:tools/call:rm"), MessageRole::Repeated);
    assert_eq!(seen.sees("f mallory mcp/request:tools/call:rm > p"), MessageRole::Repeated);
}

#[test]
fn a4_the_context_in_the_kind_does_not_matter() {
    for (proposed, asked) in [("", ""), ("", ":rm"), (":rm", ""), (":rm", ":rm")] {
        let mut seen = Seen::new(10);
        seen.sees(&format!("p agent mcp/proposal:tools/call{proposed} @ target = rm"));
        let other = seen.sees("x human mcp/request:tools/call > p @ target = mkfs");
        assert_eq!(other, MessageRole::Deviates { proposal: FIRST, request: SECOND }, "{proposed}");
        let line = |id: &str| format!("{id} human mcp/request:tools/call{asked} > p @ target = rm");
        assert_eq!(seen.sees(&line("f")), MessageRole::Fulfilled(FIRST), "{proposed} {asked}");
        let late = MessageRole::Late { proposal: FIRST, state: State::Requested, request: ChainId(3) };
        assert_eq!(seen.sees(&line("g")), late, "{proposed} {asked}");
        assert_eq!(seen.chains.open().count(), 0);
    }
}

#[test]
fn a4_nothing_fulfils_a_proposal_with_an_overlong_name() {
    let mut seen = Seen::new(10);
    let long = "n".repeat(MAX_KIND + 1);
    seen.sees(&format!("p agent mcp/proposal:tools/call = {long}"));
    let deviates = MessageRole::Deviates { proposal: FIRST, request: SECOND };
    assert_eq!(seen.sees(&format!("f human mcp/request:tools/call > p = {long}")), deviates);
}

#[test]
fn params_are_compared_but_for_their_meta() {
    let one = br#"{"name":"rm","arguments":{"n":1.0},"_meta":{"a":1}}"#;
    assert!(same_params(one, br#"{"name":"rm","_meta":{},"arguments":{"n":1.0}}"#));
    for other in [r#"{"name":"rm","arguments":{"n":1}}"#, r#"{"name":"rm"}"#, r#"{"name":"rm","arguments":{"n":1.0},"task":{}}"#] {
        assert!(!same_params(one, other.as_bytes()) && !same_params(other.as_bytes(), one), "{other}");
    }
}

#[test]
fn mx_22_proposals_expire_and_are_withdrawn_or_rejected() {
    let mut seen = Seen::new(10);
    for id in ["p", "q", "s"] {
        seen.sees(&format!("{id} agent mcp/proposal:tools/call:rm"));
    }
    assert_eq!(seen.sees("w other mcp/withdraw:tools/call > p"), MessageRole::Stray);
    assert_eq!(seen.sees("w agent mcp/withdraw:tools/call > p"), MessageRole::Ended(FIRST));
    assert_eq!(seen.sees("j human mcp/reject:tools/call > q"), MessageRole::Ended(SECOND));
    assert_eq!(seen.sees("j human mcp/reject:tools/call > q"), MessageRole::Stray);
    assert_eq!([seen.state(1), seen.state(2)], [State::Withdrawn, State::Rejected]);
    let due = seen.now.instant + Duration::from_secs(300);
    assert_eq!(seen.chains.poll_timeout().map(|(at, _)| at), Some(due));
    seen.chains.handle_timeout(Now { instant: due, ..seen.now });
    assert_eq!((seen.chains.poll_output(), seen.chains.poll_output()), (Some(ChainId(3)), None));
    assert_eq!((seen.state(3), seen.chains.poll_timeout()), (State::Expired, None));
    seen.now.instant = due;
    let late = MessageRole::Late { proposal: ChainId(3), state: State::Expired, request: ChainId(4) };
    assert_eq!(seen.sees("f human mcp/request:tools/call:rm > s"), late);
}

/// A story shared with participants in other languages: message, role, and the state of the chain afterwards.
#[test]
fn mx_22_messages_of_the_golden_story_have_their_roles() {
    let golden: serde_json::Value = serde_json::from_str(include_str!("../../tests/golden.json")).unwrap();
    let rows: Vec<(String, String, Option<String>)> = serde_json::from_value(golden["chains"].clone()).unwrap();
    let mut seen = Seen::new(100);
    for (line, expected, stands) in &rows {
        let found = seen.sees(line);
        let (word, chain) = match found {
            MessageRole::Answered(id) => ("answered", Some(id)),
            MessageRole::Deviates { request, .. } => ("deviates", Some(request)),
            MessageRole::Ended(id) => ("ended", Some(id)),
            MessageRole::Fulfilled(id) => ("fulfilled", Some(id)),
            MessageRole::Late { request, .. } => ("late", Some(request)),
            MessageRole::Proposed(id) => ("proposed", Some(id)),
            MessageRole::Repeated => ("repeated", None),
            MessageRole::Requested(id) => ("requested", Some(id)),
            MessageRole::Stray => ("stray", None),
            MessageRole::Unrelated => ("unrelated", None),
        };
        let state = chain.map(|id| seen.chains.get(id).unwrap().state.word());
        assert_eq!((word, state), (expected.as_str(), stands.as_deref()), "{line}");
    }
    assert!(rows.len() > 15);
}

#[test]
fn mx_24_an_exported_chain_has_actors_times_rule_and_reason() {
    let mut seen = Seen::new(10);
    let mut sees = |line: &str, payload: &str| {
        seen.now.wall += Duration::from_secs(1);
        let text = written(line).replace(r#""payload":{}"#, &format!(r#""payload":{payload}"#));
        seen.chains.handle_envelope(seen.now, &Envelope::decode(text.as_bytes(), 1 << 16).unwrap())
    };
    sees("p agent mcp/proposal:tools/call:rm", "{}");
    sees("f human mcp/request:tools/call:rm > p @ target", r#"{"params":{"_meta":{"io.banyan/rule":{"id":"rule-3"}}}}"#);
    sees("r target mcp/response:tools/call:rm > f", r#"{"result":{"isError":true}}"#);
    sees("q agent mcp/proposal:tools/call:rm", "{}");
    sees("j human mcp/reject:tools/call:rm > q", &format!(r#"{{"reason":"no \"rm\" today{}"}}"#, "!".repeat(2_000)));
    let exported: Vec<String> = seen.chains.iter().map(|(_, chain)| chain.export()).collect();
    assert_eq!(
        exported[0],
        concat!(
            r#"{"state":"answered","proposal":{"id":"p","ts":"1970-01-01T00:00:01Z","from":"agent","to":[],"kind":"mcp/proposal:tools/call:rm"},"#,
            r#""request":{"id":"f","ts":"1970-01-01T00:00:02Z","from":"human","to":["target"],"kind":"mcp/request:tools/call:rm"},"#,
            r#""response":{"id":"r","ts":"1970-01-01T00:00:03Z","from":"target","to":[],"kind":"mcp/response:tools/call:rm"},"#,
            r#""outcome":"failed","rule":"rule-3"}"#
        )
    );
    let rejected: serde_json::Value = serde_json::from_str(&exported[1]).unwrap();
    assert_eq!(
        (&rejected["state"], &rejected["end"]["from"], &rejected["request"]),
        (&"rejected".into(), &"human".into(), &serde_json::Value::Null)
    );
    let reason = rejected["reason"].as_str().unwrap();
    assert!(reason.starts_with("no \"rm\" today!") && reason.len() == 1_000);
}

#[test]
fn what_is_kept_is_bounded_and_the_oldest_goes() {
    let mut seen = Seen::new(3);
    for id in 0..1_000 {
        seen.sees(&format!("p{id} agent mcp/proposal:tools/call:rm"));
        seen.sees(&format!("f{id} human mcp/request:tools/call:rm > p{}", id - id % 2));
    }
    assert_eq!((seen.chains.iter().count(), seen.chains.ids.len() <= 6, seen.chains.waiting.len() <= 3), (3, true, true));
    assert_eq!(seen.sees("r target mcp/response:tools/call:rm > f0"), MessageRole::Stray);
}
