use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proptest::prelude::*;

use super::claims::EctClaims;
use super::compact::{CarriedEct, EctAlgorithm, carried, signed_part, signing_input};
use super::graph::EctGraph;
use super::replay::EctReplays;
use super::work::WitnessedWork;
use super::*;

const NOW: u64 = 1_772_064_150;
const ID: &str = "550e8400-e29b-41d4-a716-446655440000";

/// Claims of the sample payload of the draft's author, completed by the times.
const SAMPLE: &str = r#"{"iss":"spiffe://example.com/agent/a","aud":"spiffe://example.com/agent/b","iat":1772064150,"exp":1772064750,
    "jti":"550e8400-e29b-41d4-a716-446655440000","exec_act":"review_spec","par":[],"ext":{"pol":"policy_v1","pol_decision":"approved"}}"#;

fn uuid(number: u64) -> String {
    format!("00000000-0000-4000-8000-{number:012x}")
}

fn token(number: u64, parents: &[u64], issued: u64) -> EctClaims {
    linked(EctDraft::Draft00, None, number, parents, issued)
}

fn linked(draft: EctDraft, workflow: Option<&str>, number: u64, parents: &[u64], issued: u64) -> EctClaims {
    let parents: Vec<String> = parents.iter().map(|parent| uuid(*parent)).collect();
    let parents: Vec<&str> = parents.iter().map(String::as_str).collect();
    let (id, expires) = (uuid(number), issued + 300);
    let work = WitnessedWork {
        issuer: "spiffe://example.com/gate",
        audience: &["b"],
        issued,
        expires,
        id: &id,
        workflow,
        action: "aepb:translate",
        parents: &parents,
        input: None,
        output: None,
        extension: None,
    };
    EctClaims::parse(&work.claims(draft).unwrap()).unwrap()
}

fn changed(from: &str, to: &str) -> Result<EctClaims, EctFault> {
    assert!(SAMPLE.contains(from), "{from}");
    EctClaims::parse(SAMPLE.replace(from, to).as_bytes())
}

#[test]
fn ae_40_the_claims_of_both_drafts_are_read() {
    let old = EctClaims::parse(SAMPLE.as_bytes()).unwrap();
    assert_eq!((old.draft, old.id.as_str(), old.action.as_str(), old.parents.len()), (EctDraft::Draft00, ID, "review_spec", 0));
    assert_eq!(old.extension.as_deref(), Some(&br#"{"pol":"policy_v1","pol_decision":"approved"}"#[..]));
    let new = EctClaims::parse(SAMPLE.replace("\"par\"", "\"pred\"").replace("\"ext\"", "\"ect_ext\"").as_bytes()).unwrap();
    assert_eq!((new.draft, EctClaims { draft: old.draft, ..new }), (EctDraft::Draft01, old));
}

#[test]
fn ae_40_names_of_both_drafts_are_refused() {
    for (from, to) in [(r#""par":[]"#, r#""par":[],"pred":[]"#), (r#""par""#, r#""pred""#), (r#""ext""#, r#""ect_ext""#)] {
        assert_eq!(changed(from, to), Err(EctFault::Names), "{to}");
    }
}

#[test]
fn ae_40_unsound_claims_are_refused() {
    let deep = format!(r#""ext":{}1{}"#, r#"{"a":"#.repeat(6), "}".repeat(6));
    let long = format!(r#""ext":{{"a":"{}","#, "x".repeat(4096));
    let many = (0..101).map(|number| format!("\"{}\"", uuid(number))).collect::<Vec<_>>().join(",");
    let ext = r#""ext":{"pol":"policy_v1","pol_decision":"approved"}"#;
    assert_eq!(changed(ext, &deep), Err(EctFault::Oversized("5 levels in its extension")));
    assert_eq!(changed(r#""ext":{"#, &long), Err(EctFault::Oversized("4096 bytes in its extension")));
    assert_eq!(changed("[]", &format!("[{many}]")), Err(EctFault::Oversized("100 predecessors")));
    assert_eq!(changed("review_spec", &"x".repeat(1025)), Err(EctFault::Oversized("1024 bytes in a claim")));
    assert_eq!(changed("review_spec", &"x".repeat(LONGEST_TOKEN)), Err(EctFault::Oversized("16384 bytes")));
    for (from, to) in [
        (r#""par":[]"#, r#""par":[],"p\u0061r":[]"#),
        (r#""pol":"policy_v1""#, r#""pol":1,"pol":2"#),
        (r#""par":[],"#, ""),
        (r#""par":[]"#, r#""par":{}"#),
        (r#""par":[]"#, r#""par":["550e8400"]"#),
        (r#""par":[]"#, r#""par":["550e8400-e29b-41d4-a716-446655440001","550E8400-e29b-41d4-a716-446655440001"]"#),
        (r#""exec_act":"review_spec","#, ""),
        (r#""exec_act":"review_spec""#, r#""exec_act":7"#),
        (r#""spiffe://example.com/agent/b""#, "[]"),
        ("1772064750", "1772064150"),
        ("1772064750", "1e10"),
        ("1772064750", "-1"),
        ("1772064750", "\"1772064750\""),
        (r#""par":[]"#, r#""par":[],"inp_hash":"sha-256:x""#),
        (r#""par":[]"#, r#""par":[],"wid":"mine""#),
        (ext, r#""ext":[]"#),
    ] {
        assert!(matches!(changed(from, to), Err(EctFault::Form(_))), "{to}");
    }
    assert_eq!(changed("1772064750", "1772064750.5").unwrap().expires, 1_772_064_750);
}

#[test]
fn ae_40_times_and_audience_are_judged_at_their_edges() {
    let claims = EctClaims::parse(SAMPLE.as_bytes()).unwrap();
    let lasting = EctClaims { expires: NOW + 10_000, ..claims.clone() };
    let verifier = ["spiffe://example.com/agent/c", "spiffe://example.com/agent/b"];
    for (claims, now, judged) in [
        (&claims, NOW - SKEW, Ok(())),
        (&claims, NOW - SKEW - 1, Err(EctFault::Early)),
        (&claims, NOW + 600 + SKEW - 1, Ok(())),
        (&claims, NOW + 600 + SKEW, Err(EctFault::Expired)),
        (&lasting, NOW + MOST_AGE, Ok(())),
        (&lasting, NOW + MOST_AGE + 1, Err(EctFault::Stale)),
    ] {
        assert_eq!(claims.judge(&verifier, now), judged, "{now}");
    }
    assert_eq!(claims.judge(&["spiffe://example.com/agent/a"], NOW), Err(EctFault::Audience));
}

#[test]
fn ae_40_only_listed_algorithms_and_types_are_read() {
    let of = |header: &str| format!("{}.{}.AAAA", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(SAMPLE));
    let refused = |header: &str| CarriedEct::read(&of(header)).map(drop);
    assert_eq!(refused(r#"{"typ":"exec+jwt","alg":"ES256","kid":"k"}"#), Ok(()));
    for algorithm in ["none", "None", "HS256", "RS256", "es256", ""] {
        let header = format!(r#"{{"typ":"exec+jwt","alg":"{algorithm}","kid":"k"}}"#);
        assert_eq!(refused(&header), Err(EctFault::Algorithm(algorithm.into())));
    }
    assert_eq!(refused(r#"{"typ":"JWT","alg":"ES256","kid":"k"}"#), Err(EctFault::Type("JWT".into())));
    for header in [
        r#"{"typ":"exec+jwt","alg":"ES256"}"#,
        r#"{"typ":"exec+jwt","alg":"ES256","kid":""}"#,
        r#"{"typ":"exec+jwt","alg":"ES256","kid":"k","crit":["b64"],"b64":false}"#,
        r#"{"typ":"exec+jwt","alg":"ES256","alg":"none","kid":"k"}"#,
    ] {
        assert!(matches!(refused(header), Err(EctFault::Form(_))), "{header}");
    }
}

#[test]
fn ae_40_a_text_with_a_dot_is_never_plain() {
    let plain = URL_SAFE_NO_PAD.encode(SAMPLE);
    assert!(matches!(CarriedEct::read(&plain), Ok(CarriedEct::Plain(claims)) if claims.id == ID));
    for text in [format!("{plain}."), format!(".{plain}"), format!("{plain}.."), format!(".{plain}."), format!("{plain}=")] {
        assert!(CarriedEct::read(&text).is_err(), "{text}");
    }
}

#[test]
fn ae_40_an_id_is_taken_once_until_it_expires() {
    let mut replays = EctReplays::new(2);
    let first = token(1, &[], NOW);
    assert_eq!(changed(ID, &ID.to_ascii_uppercase()).unwrap().id, ID);
    let mut take = |holder: &str, numbers: &[u64], now| {
        replays.admit(holder, &numbers.iter().map(|number| token(*number, &[], NOW + number)).collect::<Vec<_>>(), now)
    };
    assert_eq!(take("a", &[1], NOW), Ok(()));
    assert_eq!(take("b", &[1], NOW + 300 + SKEW), Err(EctFault::Replayed(uuid(1))));
    assert_eq!(take("a", &[2], NOW + 10), Ok(()));
    assert_eq!(take("a", &[3], NOW + 10), Err(EctFault::Crowded(301 + SKEW - 10)));
    assert_eq!(take("a", &[3], NOW + 301 + SKEW), Ok(()));
    assert_eq!(replays.count(), 2);
    let other = EctClaims { issuer: Some("spiffe://example.com/other".into()), ..first };
    assert_eq!(replays.admit("b", &[token(3, &[], NOW), other.clone()], NOW), Err(EctFault::Replayed(uuid(3))));
    replays.expire(NOW + 302 + SKEW);
    assert_eq!(replays.admit("b", &[other], NOW), Ok(()), "a refused message takes none of its ids, and no issuer uses up ids of another");
}

#[test]
fn ae_40_no_number_of_holders_fills_the_memory() {
    let mut replays = EctReplays::new(1 << 10);
    let mut numbers = 0..;
    for holder in 0..32 {
        let mut one = || replays.admit(&holder.to_string(), &[token(numbers.next().unwrap(), &[], NOW)], NOW);
        let count = (0..).take_while(|_| one().is_ok()).count();
        assert!(count >= 16 && (holder > 0 || count > 99), "{holder}: {count}");
    }
    replays.expire(NOW + 900);
    assert_eq!((replays.count(), replays.admit("b", &[], NOW)), (0, Ok(())));
}

#[test]
fn ae_41_what_is_linked_is_sifted_out() {
    let other = EctClaims { action: "other".into(), ..token(1, &[], NOW) };
    let tokens = vec![
        token(1, &[], NOW),
        token(2, &[1], NOW),
        other,
        token(3, &[9], NOW),
        token(4, &[3], NOW),
        token(5, &[6], NOW),
        token(6, &[5], NOW),
    ];
    let (graph, faults) = EctGraph::sift(9, tokens);
    assert_eq!(
        graph.tokens().map(|token| (token.id.clone(), token.action.as_str())).collect::<Vec<_>>(),
        [(uuid(1), "aepb:translate"), (uuid(2), "aepb:translate")]
    );
    let faults: Vec<EctFault> = faults.into_iter().map(|(_, fault)| fault).collect();
    assert_eq!(faults.len(), 5);
    for fault in [
        EctFault::Replayed(uuid(1)),
        EctFault::Parent(uuid(9)),
        EctFault::Parent(uuid(3)),
        EctFault::Cycle(uuid(5)),
        EctFault::Cycle(uuid(6)),
    ] {
        assert!(faults.contains(&fault), "{fault}");
    }
}

#[test]
fn ae_40_two_signatures_of_one_text_are_one_token() {
    assert_eq!(signed_part("a.b.c"), signed_part("a.b.d"));
    assert_ne!(signed_part("a.b.c"), signed_part("a.c.c"));
    assert_eq!(signed_part("plain"), "plain");
}

#[test]
fn ae_40_the_graph_refuses_what_is_not_linked() {
    let mut graph = EctGraph::new(4);
    assert_eq!(graph.add(token(1, &[], NOW)), Ok(()));
    assert_eq!(graph.add(token(1, &[], NOW)), Err(EctFault::Replayed(uuid(1))));
    assert_eq!(graph.add(token(2, &[9], NOW)), Err(EctFault::Parent(uuid(9))));
    assert_eq!(graph.add(token(2, &[2], NOW)), Err(EctFault::Cycle(uuid(2))));
    assert_eq!(graph.add(token(2, &[1], NOW - SKEW)), Err(EctFault::Order(uuid(1))));
    assert_eq!(graph.add(token(2, &[1], NOW - SKEW + 1)), Ok(()));
    let workflow = uuid(77);
    assert_eq!(graph.add(linked(EctDraft::Draft01, Some(&workflow), 3, &[2], NOW)), Err(EctFault::Workflow(uuid(2))));
    assert_eq!(graph.add(token(3, &[1, 2], NOW)), Ok(()));
    assert_eq!(graph.add(token(4, &[3], NOW)), Ok(()));
    assert_eq!(graph.add(token(5, &[], NOW)), Err(EctFault::Full(4)));
    let ancestors: Vec<&str> = graph.ancestors(&uuid(4)).unwrap().iter().map(|token| token.id.as_str()).collect();
    assert_eq!(ancestors, [uuid(1), uuid(2), uuid(3)]);
}

#[test]
fn ae_41_tokens_are_listed_behind_their_predecessors() {
    let tokens = vec![token(1, &[3, 4], NOW), token(2, &[], NOW), token(3, &[2], NOW), token(4, &[2], NOW)];
    let graph = EctGraph::gather(9, tokens).unwrap();
    let listed: Vec<String> = graph.ordered().map(|token| token.id.clone()).collect();
    assert_eq!((listed.len(), &listed[0], &listed[3]), (4, &uuid(2), &uuid(1)));
}

#[test]
fn ae_41_a_circle_in_an_export_is_found() {
    let circle = vec![token(1, &[3], NOW), token(2, &[1], NOW), token(3, &[2], NOW), token(4, &[], NOW)];
    let circular = format!("{}, {}, {}", uuid(1), uuid(2), uuid(3));
    assert_eq!(EctGraph::gather(9, circle).map(drop), Err(EctFault::Cycle(circular)));
    assert_eq!(EctGraph::gather(9, vec![token(1, &[8], NOW)]).map(drop), Err(EctFault::Parent(uuid(8))));
    assert_eq!(EctGraph::gather(9, vec![token(1, &[], NOW), token(1, &[], NOW)]).map(drop), Err(EctFault::Replayed(uuid(1))));
    assert_eq!(EctGraph::gather(1, vec![token(1, &[], NOW), token(2, &[], NOW)]).map(drop), Err(EctFault::Full(1)));
}

#[test]
fn ae_40_tokens_are_found_in_repeated_and_joined_lines() {
    assert_eq!(carried(["a.b.c", "d , e,,", ""]), Ok(vec!["a.b.c", "d", "e"]));
    assert!(matches!(carried([",a".repeat(65).as_str()]), Err(EctFault::Oversized(_))));
    assert!(matches!(carried(["a".repeat(65 << 10).as_str()]), Err(EctFault::Oversized(_))));
}

proptest! {
    /// Edges from lower to higher numbers make a graph in any order of the export, and as many tokens come out.
    #[test]
    fn ae_41_any_order_of_an_export_is_the_same_graph(edges in prop::collection::vec(prop::collection::btree_set(0_u64..12, 0..4), 1..12), seed: u64) {
        let mut tokens: Vec<(u64, EctClaims)> = Vec::new();
        for (number, parents) in (0_u64..).zip(&edges) {
            let parents: Vec<u64> = parents.iter().copied().filter(|parent| *parent < number).collect();
            tokens.push((seed.wrapping_mul(number * 2 + 1).rotate_left(17), token(number, &parents, NOW)));
        }
        tokens.sort_by_key(|(place, _)| *place);
        let graph = EctGraph::gather(12, tokens.iter().map(|(_, token)| token.clone()).collect()).unwrap();
        prop_assert_eq!(graph.tokens().count(), edges.len());
        for (_, token) in &tokens {
            let ancestors = graph.ancestors(&token.id).unwrap();
            prop_assert!(ancestors.iter().all(|ancestor| ancestor.id < token.id));
            prop_assert!(token.parents.iter().all(|parent| ancestors.iter().any(|ancestor| ancestor.id == *parent)));
        }
    }

    /// Claims that are written are read as meant, whatever their texts hold.
    #[test]
    fn ae_40_written_claims_are_read_as_meant(issuer in ".{1,40}", action in ".{1,40}", body: Vec<u8>, is_new: bool, lifetime in 1_u64..900) {
        let (draft, hash) = (if is_new { EctDraft::Draft01 } else { EctDraft::Draft00 }, spelled_hash(&body));
        let parent = uuid(3);
        let work = WitnessedWork {
            issuer: &issuer, audience: &[&action, "b"], issued: NOW, expires: NOW + lifetime, id: ID, workflow: Some(ID), action: &action,
            parents: &[&parent], input: Some(&hash), output: None, extension: Some(r#"{"a.b":[1]}"#),
        };
        let text = work.claims(draft).unwrap();
        let token = format!("{}.AAAA", signing_input(draft, EctAlgorithm::EdDsa, &issuer, &text));
        let Ok(CarriedEct::Signed(signed)) = CarriedEct::read(&token) else { panic!("{token}") };
        let claims = signed.claims().unwrap();
        prop_assert_eq!((signed.key_id, claims.draft, claims.issuer), (issuer.clone(), draft, Some(issuer)));
        prop_assert_eq!((claims.action, claims.parents, claims.input), (action, vec![parent], Some(hash)));
        prop_assert_eq!((claims.expires, claims.extension.as_deref()), (NOW + lifetime, Some(&br#"{"a.b":[1]}"#[..])));
    }
}
