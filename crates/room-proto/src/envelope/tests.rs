use proptest::prelude::*;

use super::*;

/// Every JSON example of the specification that is an envelope, with its section.
const EXAMPLES: [(&str, &str); 10] = [
    (
        "3",
        r#"{"protocol":"mcpx/v0.1","id":"2f6b6e70-7b36-4b8b-9ad8-7c4f7d0e2d0b","ts":"2025-08-26T14:00:00Z","from":"robot-alpha",
            "to":["coordinator"],"kind":"mcp/request:tools/call","correlation_id":"env-1","payload":{}}"#,
    ),
    (
        "3.1.1",
        r#"{"protocol":"mcpx/v0.1","id":"env-call-1","from":"trusted-agent","to":["target-agent"],
            "kind":"mcp/request:tools/call:dangerous_operation","payload":{"jsonrpc":"2.0","id":42,"method":"tools/call",
            "params":{"name":"dangerous_operation","arguments":{"target":"production"}}}}"#,
    ),
    (
        "3.1.2",
        r#"{"protocol":"mcpx/v0.1","id":"env-resp-1","from":"target-agent","to":["trusted-agent"],
            "kind":"mcp/response:tools/call:dangerous_operation","correlation_id":"env-call-1","payload":{"jsonrpc":"2.0","id":42,
            "result":{"content":[{"type":"text","text":"Operation completed"}]}}}"#,
    ),
    (
        "3.2",
        r#"{"protocol":"mcpx/v0.1","id":"env-req-1","from":"untrusted-agent","to":["target-agent"],
            "kind":"mcp/proposal:tools/call:dangerous_operation","payload":{"method":"tools/call",
            "params":{"name":"dangerous_operation","arguments":{"target":"production"}}}}"#,
    ),
    (
        "3.2.1",
        r#"{"protocol":"mcpx/v0.1","id":"env-fulfill-1","from":"human-user","to":["target-agent"],
            "kind":"mcp/request:tools/call:dangerous_operation","correlation_id":"env-req-1","payload":{"jsonrpc":"2.0","id":44,
            "method":"tools/call","params":{"name":"dangerous_operation","arguments":{"target":"production"}}}}"#,
    ),
    (
        "3.2.1",
        r#"{"protocol":"mcpx/v0.1","id":"env-fulfill-resp-1","from":"target-agent","to":["human-user","untrusted-agent"],
            "kind":"mcp/response:tools/call:dangerous_operation","correlation_id":"env-fulfill-1","payload":{"jsonrpc":"2.0","id":44,
            "result":{"content":[{"type":"text","text":"Operation completed successfully"}]}}}"#,
    ),
    (
        "3.3",
        r#"{"protocol":"mcpx/v0.1","id":"env-chat-1","from":"user-alice","kind":"chat",
            "payload":{"text":"Hello everyone!","format":"plain"}}"#,
    ),
    (
        "3.4",
        r#"{"protocol":"mcpx/v0.1","id":"env-presence-1","from":"system:gateway","kind":"system/presence",
            "payload":{"event":"join","participant":{"id":"new-agent","capabilities":["mcp/proposal:*","chat"]}}}"#,
    ),
    (
        "3.5.1",
        r#"{"protocol":"mcpx/v0.1","id":"env-welcome-1","from":"system:gateway","to":["new-participant"],"kind":"system/welcome",
            "payload":{"you":{"id":"new-participant","capabilities":["mcp/proposal:*","chat"]},"participants":[
            {"id":"agent-1","capabilities":["mcp/*","chat"]},{"id":"agent-2","capabilities":["mcp/response:*","chat"]}]}}"#,
    ),
    (
        "3.5.2",
        r#"{"protocol":"mcpx/v0.1","id":"env-violation-1","from":"system:gateway","to":["violator"],"kind":"system/error",
            "correlation_id":"env-bad-call","payload":{"error":"capability_violation",
            "message":"You lack capability for 'mcp/request:tools/call'","attempted_kind":"mcp/request:tools/call",
            "your_capabilities":["mcp/proposal:*","chat"]}}"#,
    ),
];

const MOST: usize = 1 << 20;

fn decode(text: &str) -> Result<Envelope<'_>, RefusedEnvelope> {
    Envelope::decode(text.as_bytes(), MOST)
}

/// A sound message with one member in another spelling; `None`: left out.
fn with(member: &str, raw: Option<&str>) -> String {
    let sound = [
        ("protocol", r#""mcpx/v0.1""#),
        ("id", r#""m-1""#),
        ("ts", r#""2025-08-26T14:00:00Z""#),
        ("from", r#""a""#),
        ("to", r#"["b"]"#),
        ("kind", r#""chat""#),
        ("correlation_id", r#""m-0""#),
        ("payload", r#"{"text":"x"}"#),
    ];
    let own = sound.iter().filter(|(name, _)| *name != member).copied();
    let parts: Vec<String> = own.chain(raw.map(|raw| (member, raw))).map(|(name, raw)| format!("\"{name}\":{raw}")).collect();
    format!("{{{}}}", parts.join(","))
}

#[test]
fn mx_01_every_example_of_the_specification_is_read() {
    for (section, text) in EXAMPLES {
        let envelope = decode(text).unwrap_or_else(|refused| panic!("{section}: {refused:?}"));
        let timed = text.replacen('{', r#"{"ts":"2025-08-26T14:00:00.5+02:00","#, 1);
        let bare = text.replace(r#""ts":"2025-08-26T14:00:00Z","#, "");
        assert_eq!(decode(&bare).unwrap(), envelope, "{section}");
        if !text.contains("\"ts\"") {
            assert_eq!(decode(&timed).unwrap(), envelope, "{section}");
        }
    }
    let call = decode(EXAMPLES[1].1).unwrap();
    assert_eq!((&*call.id, &*call.from, call.to.as_slice()), ("env-call-1", "trusted-agent", &["target-agent".into()][..]));
    assert_eq!(call.kind().context(), Some("dangerous_operation"));
    assert!(call.payload.starts_with(br#"{"jsonrpc":"2.0","id":42"#) && call.correlation_id.is_none());
    assert!(decode(EXAMPLES[6].1).unwrap().is_broadcast());
}

#[test]
fn mx_01_a_refusal_names_the_wrong_member_and_advises() {
    let cases = [
        ("id", None),
        ("id", Some("7")),
        ("id", Some(r#""""#)),
        ("id", Some(r#""a\nb""#)),
        ("from", None),
        ("from", Some("null")),
        ("kind", None),
        ("kind", Some(r#"["chat"]"#)),
        ("kind", Some(r#""mcp/request""#)),
        ("kind", Some(r#""mcp/request:""#)),
        ("kind", Some(r#""mcp/response::x""#)),
        ("kind", Some(r#""cha\ud800t""#)),
        ("to", Some(r#""b""#)),
        ("to", Some("null")),
        ("to", Some("[1]")),
        ("correlation_id", Some("null")),
        ("correlation_id", Some(r#"["m-0"]"#)),
        ("ts", Some(r#""yesterday""#)),
        ("ts", Some("1756216800")),
        ("payload", None),
        ("payload", Some("[]")),
        ("payload", Some("null")),
        ("payload", Some(r#""{}""#)),
    ];
    for (wrong, raw) in cases {
        let text = with(wrong, raw);
        let refused = decode(&text).unwrap_err();
        let Refusal::Invalid { member, why } = &refused.why else { panic!("{text}: {refused:?}") };
        assert_eq!((*member, refused.why.code()), (wrong, "invalid_envelope"), "{text}");
        assert!(why.len() > 7, "{why}");
        assert_eq!(refused.id.as_deref(), (wrong != "id").then_some("m-1"), "{text}");
    }
    assert!(decode(&with("kind", Some("\"a\\\"\u{fffd}\""))).is_ok(), "a character that was written out is whole");
    let long = format!("\"{}\"", "a".repeat(257));
    assert!(decode(&with("id", Some(&long))).is_err() && decode(&with("kind", Some(&long))).is_ok());
    let many = format!("[{}]", vec!["\"b\""; 1001].join(","));
    assert!(decode(&with("to", Some(&many))).is_err());
    assert!(decode(&with("to", Some("[]"))).unwrap().is_broadcast());
}

#[test]
fn mx_01_another_protocol_is_told_so_whatever_else_it_lacks() {
    for given in [r#""mcp-x/v0""#, r#""mew/v0.4""#, r#""mcpx/v0.10""#, r#""MCPX/v0.1""#] {
        let text = format!(r#"{{"protocol":{given},"id":"m-1","type":"x"}}"#);
        let refused = decode(&text).unwrap_err();
        assert_eq!((refused.why.code(), refused.id.as_deref()), ("unsupported_protocol", Some("m-1")), "{text}");
    }
    let missing = decode(&with("protocol", None)).unwrap_err();
    assert_eq!(missing.why, Refusal::Invalid { member: "protocol", why: "is missing" });
}

#[test]
fn mx_01_what_two_readers_could_read_differently_is_refused() {
    let spoofs = [
        r#"{"from":"a","from":"b","protocol":"mcpx/v0.1","id":"1","kind":"chat","payload":{}}"#,
        r#"{"from":"a","fro\u006d":"b","protocol":"mcpx/v0.1","id":"1","kind":"chat","payload":{}}"#,
        r#"{"protocol":"mcpx/v0.1","id":"1","from":"a","kind":"chat","payload":{},"payload":{"text":"x"}}"#,
        "",
        "{}{}",
        "[]",
        "chat",
        r#"{"protocol":"mcpx/v0.1","id":"1","from":"a","kind":"chat","payload":{},}"#,
        "\u{feff}{}",
    ];
    for text in spoofs {
        let refused = decode(text).unwrap_err();
        assert!(matches!(refused.why, Refusal::NotJson(_)) && refused.why.code() == "invalid_envelope", "{text}");
        assert!(refused.why.to_string().contains("one JSON object"), "{}", refused.why);
    }
    // Twice within the payload is its readers' business: it is not looked into (MX-05).
    assert!(decode(&with("payload", Some(r#"{"a":1,"a":2}"#))).is_ok());
    let long = format!(r#"{{"{0}":1,"{0}":2}}"#, "k".repeat(100_000));
    assert!(decode(&long).unwrap_err().why.to_string().len() < 400);
    let whole = with("to", None);
    let refused = Envelope::decode(whole.as_bytes(), whole.len() - 1).unwrap_err();
    assert_eq!(refused.why, Refusal::TooLarge { most: whole.len() - 1, size: whole.len() });
    assert!(Envelope::decode(whole.as_bytes(), whole.len()).is_ok());
}

#[test]
fn mx_03_responses_refer_and_proposals_do_not() {
    let kinds = |kind: &str, refers: bool| {
        let text = with("kind", Some(kind));
        let text = if refers { text } else { text.replace(r#""correlation_id":"m-0","#, "") };
        decode(&text).map(|_| ()).map_err(|refused| refused.why)
    };
    let member = |outcome: Result<(), Refusal>| match outcome {
        Err(Refusal::Invalid { member, .. }) => member,
        other => panic!("{other:?}"),
    };
    assert_eq!(member(kinds(r#""mcp/response:tools/call""#, false)), "correlation_id");
    assert_eq!(member(kinds(r#""mcp/proposal:tools/call""#, true)), "correlation_id");
    for (kind, refers) in [
        (r#""mcp/response:tools/call""#, true),
        (r#""mcp/proposal:tools/call""#, false),
        (r#""mcp/request:tools/call""#, true),
        (r#""mcp/request:tools/call""#, false),
        (r#""chat""#, true),
        (r#""mcp/withdraw:tools/call""#, true),
    ] {
        assert_eq!(kinds(kind, refers), Ok(()), "{kind}");
    }
}

#[test]
fn every_refusal_has_a_code_and_advice() {
    let kind = "mcp/request:tools/call:rm".to_owned();
    let wait = std::time::Duration::from_millis(250);
    let cases = [
        (Refusal::From { given: "a".into(), own: "b".into() }, "auth_violation", "put that there"),
        (Refusal::Invalid { member: "to", why: "must be a list" }, "invalid_envelope", "`to` must be a list"),
        (Refusal::Lacking { kind: kind.clone() }, "capability_violation", "propose it as 'mcp/proposal:tools/call:rm'"),
        (Refusal::Lacking { kind: "chat".into() }, "capability_violation", "ask an admin"),
        (Refusal::NotJson(json::JsonError::TooDeep), "invalid_envelope", "one JSON object"),
        (Refusal::Protocol { given: "mew/v0.4".into(), wanted: PROTOCOL }, "unsupported_protocol", "send `mcpx/v0.1`"),
        (Refusal::RateLimited { retry_after: wait }, "rate_limited", "send it again in 250 ms"),
        (Refusal::Reserved { kind: "system/x".into() }, "capability_violation", "only the gateway"),
        (Refusal::TooLarge { most: 1, size: 2 }, "payload_too_large", "send less"),
    ];
    for (refusal, code, text) in cases {
        assert_eq!(refusal.code(), code);
        assert!(refusal.to_string().contains(text), "{refusal}");
        assert_eq!(refusal.attempted_kind().is_some(), code == "capability_violation");
        assert_eq!(refusal.retry_after(), (code == "rate_limited").then_some(wait));
    }
    assert!(Refusal::Lacking { kind: kind.clone() }.to_string().starts_with(&format!("You lack capability for '{kind}'")));
}

proptest! {
    #[test]
    fn whatever_comes_is_read_or_refused(text in "[\"{}:,a-z0-9\\\\u/ \\[\\]]{0,80}") {
        _ = decode(&text);
    }

    #[test]
    fn mx_05_order_spacing_and_foreign_members_do_not_matter(seed in any::<prop::sample::Index>(), space in "[ \n\t]{0,3}", extra in "[a-z]{1,8}") {
        let mut parts = [
            r#""protocol":"mcpx/v0.1""#.to_owned(),
            r#""id":"m-1""#.to_owned(),
            r#""from":"a""#.to_owned(),
            r#""kind":"mcp\/request:tools\/call:\u0072m""#.to_owned(),
            r#""payload":{"n":1.000000000000000000001e400}"#.to_owned(),
            format!("\"x-{extra}\":[1,{{}}]"),
        ];
        let by = seed.index(parts.len());
        parts.rotate_left(by);
        let text = format!("{space}{{{space}{}{space}}}{space}", parts.join(&format!("{space},{space}")));
        let envelope = decode(&text).unwrap();
        prop_assert_eq!(envelope.kind().as_str(), "mcp/request:tools/call:rm");
        prop_assert_eq!(envelope.payload, &br#"{"n":1.000000000000000000001e400}"#[..]);
    }
}
