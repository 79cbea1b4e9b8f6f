use banyan_model::Now;
use proptest::prelude::*;
use std::time::UNIX_EPOCH;

use super::*;
use crate::chain::{Bounds, Chains, MessageRole};
use crate::participant::check;

fn voice(name: &str) -> Voice {
    Voice::new(ParticipantId::new(name).unwrap(), 7)
}

/// A message, read as the room and a participant read messages.
fn heard(spoken: &Utterance) -> Envelope<'_> {
    let envelope = Envelope::decode(&spoken.bytes, 1 << 20).unwrap();
    assert_eq!((check(&envelope), &*envelope.id), (Ok(()), spoken.id.as_str()), "{:?}", spoken.bytes);
    envelope
}

const RM: Call<'_> = Call { method: "tools/call", params: Some(br#"{"name":"rm","arguments":{"path":"/"}}"#) };

#[test]
#[expect(clippy::disallowed_methods, reason = "a test has to begin at some time")]
fn messages_link_from_proposal_to_response() {
    let (mut agent, mut human, mut target) = (voice("agent"), Voice::new(ParticipantId::new("human").unwrap(), 8), voice("target"));
    let mut chains = Chains::new(Bounds::default());
    let now = Now { instant: std::time::Instant::now(), wall: UNIX_EPOCH };
    let proposal = agent.proposal(UNIX_EPOCH, &[], RM).unwrap();
    let MessageRole::Proposed(chain) = chains.handle_envelope(now, &heard(&proposal)) else { panic!("no proposal") };
    let request = human.request(UNIX_EPOCH, &["target"], RM, Some(&proposal.id)).unwrap();
    assert_eq!(chains.handle_envelope(now, &heard(&request)), MessageRole::Fulfilled(chain));
    let asked = heard(&request);
    assert_eq!((asked.kind().context(), &*asked.from), (Some("rm"), "human"));
    let audience = chains.audience(&asked);
    let audience: Vec<&str> = audience.iter().map(String::as_str).collect();
    target.chat(UNIX_EPOCH, &[], "hold on", Some(&request.id));
    let response = target.response(UNIX_EPOCH, &audience, &asked, Answer::Result(br#"{"content":[]}"#)).unwrap();
    let answered = heard(&response);
    assert_eq!((answered.to.as_slice(), answered.kind().as_str()), (&["human".into(), "agent".into()][..], "mcp/response:tools/call:rm"));
    assert!(std::str::from_utf8(answered.payload).unwrap().contains(&format!("\"id\":\"{}\"", request.id)));
    assert_eq!(chains.handle_envelope(now, &answered), MessageRole::Answered(chain));
}

#[test]
fn broadcast_requests_and_unsound_json_are_not_said() {
    let mut voice = voice("a");
    assert_eq!(voice.request(UNIX_EPOCH, &[], RM, None), Err(SpeechError::Broadcast));
    for params in ["[1]", "{", r#"{"name":"a","name":"b"}"#, "", "{} {}"] {
        let call = Call { method: "tools/call", params: Some(params.as_bytes()) };
        assert_eq!(voice.proposal(UNIX_EPOCH, &[], call), Err(SpeechError::Json), "{params}");
    }
    let broken = Call { method: "tools/call", params: Some(br#"{"name":"a\nb"}"#) };
    assert_eq!(voice.proposal(UNIX_EPOCH, &[], broken), Err(SpeechError::Kind));
    assert_eq!(voice.request(UNIX_EPOCH, &["b"], Call { method: "", params: None }, None), Err(SpeechError::Kind));
    let all = voice.notification(UNIX_EPOCH, &[], Call { method: "notifications/tools/list_changed", params: None }).unwrap();
    assert!(heard(&all).is_broadcast() && !std::str::from_utf8(&all.bytes).unwrap().contains("\"id\":\"b"));
    let asked = voice.request(UNIX_EPOCH, &["b"], RM, None).unwrap();
    assert_eq!(voice.response(UNIX_EPOCH, &["a"], &heard(&asked), Answer::Error(b"7")), Err(SpeechError::Json));
    assert!(voice.response(UNIX_EPOCH, &["a"], &heard(&asked), Answer::Error(br#"{"code":1,"message":"no"}"#)).is_ok());
}

proptest! {
    #[test]
    fn kind_and_payload_name_the_same_target(name in "[^\\p{Cc}]{1,80}", text in ".{0,200}") {
        let params = format!(r#" {{"uri":{0},"name":{0}}} "#, json::quote(&name));
        let mut voice = voice("a \"quoted\" one");
        for method in ["tools/call", "resources/read", "prompts/get", "tools/list"] {
            let call = Call { method, params: Some(params.as_bytes()) };
            let spoken = voice.request(UNIX_EPOCH, &["b"], call, Some("p")).unwrap();
            let context = (method != "tools/list").then_some(name.as_str());
            let envelope = heard(&spoken);
            prop_assert_eq!(envelope.kind().context(), context);
        }
        let other: String = text.chars().filter(|c| !c.is_control()).take(60).chain(['x']).collect();
        let spoken = voice.chat(UNIX_EPOCH, &["b", &other], &text, None);
        prop_assert_eq!(heard(&spoken).to.len(), 2);
    }
}
