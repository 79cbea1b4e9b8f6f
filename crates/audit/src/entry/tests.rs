use proptest::prelude::*;

use super::*;
use crate::hash::sha256;
use crate::record::*;

fn intent<'a>(text: &'a str, shape: &'a RawValue) -> Intent<'a> {
    let shape = Raw(shape.get());
    Intent {
        approval: Some(text.into()),
        arguments: Some(Arguments { hash: sha256(text.as_bytes()), shape: Some(shape), value: Some(shape) }),
        began: 1,
        call: text.into(),
        decision: Some(text.into()),
        gated: true,
        method: "tools/call".into(),
        mount: Some(text.into()),
        name: text.into(),
        principal: text.into(),
        request: text.into(),
        trace: Some(text.into()),
    }
}

/// A record of each kind, every member set.
fn all<'a>(text: &'a str, shape: &'a RawValue) -> Vec<Record<'a>> {
    let t = || Text::from(text);
    let hash = sha256(text.as_bytes());
    let outcome = || Outcome { bytes: Some(3), code: Some(-32000), ending: "error".into(), reason: Some(t()), took: 9 };
    let after = After { chain: t(), root: Some(hash), size: 4, why: t() };
    vec![
        Record::ApprovalAsked(Asked {
            approval: t(),
            causes: vec![t()],
            challenge: hash,
            expires: 5,
            policy: t(),
            principal: t(),
            required: 2,
            tool: t(),
        }),
        Record::ApprovalDecided(Decided {
            approval: t(),
            by: Some(t()),
            challenge: hash,
            decision: "approved".into(),
            key: Some(t()),
            proof: Some(hash),
            reason: Some(t()),
            tool: t(),
        }),
        Record::BrokeHere(Broke { cut: 17, why: t() }),
        Record::Called(Called { intent: intent(text, shape), outcome: outcome() }),
        Record::Changed(Changed { lines: vec![t(), t()], version: Some(t()), what: "policy".into() }),
        Record::Ended(Ended { call: t(), outcome: outcome() }),
        Record::Gap(Gap { missing: 3, since: 4 }),
        Record::Intended(intent(text, shape)),
        Record::Refused(Refused { code: -32602, count: Some(7), intent: intent(text, shape), reason: t(), rules: vec![t()] }),
        Record::Registration(Registration {
            count: None,
            authority: Some(t()),
            principal: t(),
            reason: Some(t()),
            segment: Some(t()),
            subserver: Some(t()),
            what: "lost".into(),
        }),
        Record::Started(Started { after: Some(after), node: t(), version: t() }),
        Record::Stopped,
        Record::Unknown { event: format!("later {text}").into(), facts: shape },
    ]
}

fn line(record: Record<'_>) -> Vec<u8> {
    let mut line = Vec::new();
    Entry { record, previous: Hash::ZERO, seq: 12, time: 1_763_738_067_123_456 }.encode(&mut line).unwrap();
    line
}

#[test]
fn every_event_that_is_written_is_named() {
    let facts = RawValue::from_string("{}".into()).unwrap();
    let known: std::collections::BTreeSet<_> = all("x", &facts).iter().filter_map(Record::known).collect();
    assert_eq!(known.into_iter().collect::<Vec<_>>(), EVENTS);
}

#[test]
fn a_line_is_readable() {
    let facts = Record::Gap(Gap { missing: 3, since: 4 });
    let zero = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let wanted = format!(r#"{{"event":"gap","facts":{{"missing":3,"since":4}},"prev":"{zero}","seq":12,"time":1763738067123456}}"#);
    assert_eq!(String::from_utf8(line(facts)).unwrap(), wanted);
}

#[test]
fn what_is_no_entry_is_refused() {
    let good = String::from_utf8(line(Record::Gap(Gap { missing: 3, since: 4 }))).unwrap();
    assert!(Entry::decode(good.as_bytes()).is_ok());
    for (from, to) in [
        ("\"seq\":12", "\"seq\": 12"),
        ("\"seq\":12", "\"seq\":12.0"),
        ("\"seq\":12,", ""),
        ("\"missing\":3", "\"missing\":3,\"more\":1"),
        ("\"missing\":3,\"since\":4", "\"since\":4,\"missing\":3"),
        ("\"missing\":3", "\"missing\":3,\"missing\":3"),
        ("AAA=", "AAB="),
        ("gap", "g\\u0061p"),
        ("}", "} "),
    ] {
        assert!(Entry::decode(good.replacen(from, to, 1).as_bytes()).is_err(), "{to}");
    }
}

#[test]
fn an_entry_too_long_for_a_bundle_leaves_no_trace() {
    let long = "x".repeat(MAX_ENTRY);
    let mut out = b"before".to_vec();
    let entry = Entry { record: Record::BrokeHere(Broke { cut: 1, why: long.into() }), previous: Hash::ZERO, seq: 0, time: 0 };
    assert!(entry.encode(&mut out).is_err());
    assert_eq!(out, b"before");
}

proptest! {
    #[test]
    fn every_kind_is_canonical_and_comes_back(text in ".*") {
        let shape = RawValue::from_string(crate::shape::shape(serde_json::json!({"b": text, "a": [1]}).to_string().as_bytes()).unwrap()).unwrap();
        for record in all(&text, &shape) {
            let line = line(record);
            prop_assert_eq!(canonical::canonical(&line).unwrap(), line.clone());
            let entry = Entry::decode(&line).unwrap();
            let mut again = Vec::new();
            entry.encode(&mut again).unwrap();
            prop_assert_eq!(again, line);
        }
    }

    #[test]
    fn what_is_written_by_hand_is_what_serde_writes(text in ".*", number: u64, code: i64, some: [bool; 9]) {
        let text = text.as_str();
        let maybe = |nth: usize| some[nth].then(|| Text::from(text));
        let arguments = Arguments { hash: sha256(text.as_bytes()), shape: some[0].then_some(Raw("[1]")), value: some[1].then_some(Raw("{}")) };
        let intent = Intent {
            arguments: some[2].then_some(arguments),
            began: number,
            decision: maybe(3),
            gated: some[4],
            mount: maybe(5),
            trace: maybe(6),
            ..intent(text, RawValue::NULL)
        };
        let outcome = Outcome { bytes: some[7].then_some(number), code: some[8].then_some(code), reason: maybe(0), ending: text.into(), took: number };
        let (mut by_hand, mut ended) = (Vec::new(), Vec::new());
        intent.write(&mut by_hand);
        outcome.write(&mut ended);
        prop_assert_eq!(by_hand, serde_json::to_vec(&intent).unwrap());
        prop_assert_eq!(ended, serde_json::to_vec(&outcome).unwrap());
    }
}
