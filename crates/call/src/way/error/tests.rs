use std::time::Duration;

use crate::way::error::*;

#[test]
fn ours_are_in_our_range_and_give_a_reason() {
    let lost = |error| CallError::Upstream {
        mount: "m".into(),
        error,
        report: Some(Box::new(Report { call: "1".into(), stderr: vec!["a \"quoted\" line".into()] })),
    };
    let all = [
        CallError::Cancelled,
        CallError::Late,
        CallError::Overloaded { what: "calls", most: 1 },
        CallError::ProfileGone("p".into()),
        CallError::RecordFull,
        CallError::RecordShare { until: 1 },
        CallError::WithdrawnTooOften { wait: 1 },
        CallError::Unrecorded("x".into()),
        CallError::Unavailable { mount: "m".into(), why: "x".into(), since: SystemTime::now(), next_try: None, report: None },
        lost(UpstreamError::Lost("x".into())),
        lost(UpstreamError::SessionLost),
        lost(UpstreamError::Silent(Duration::from_secs(1))),
        lost(UpstreamError::Endless(Duration::from_secs(1))),
        lost(UpstreamError::TooLarge(1)),
    ];
    for error in all {
        let told = error.tell(Era::Stateless);
        assert!((-32019..=-32000).contains(&told.code), "{error:?}");
        assert!(!(-31019..=-31001).contains(&told.code), "{error:?}: a code of refused registrations");
        let data = told.data.unwrap();
        let members = mcp_proto::json::Members::parse(data.as_bytes(), mcp_proto::json::Duplicates::RefuseDeep).unwrap();
        assert!(members.str("reason").is_some(), "{data}");
    }
}

#[test]
fn ax_04_an_unknown_tool_has_its_callers_code() {
    let denied = |scope| {
        let like = CallError::UnknownTool("t".into());
        CallError::Denied(Box::new(DeniedCall {
            id: DecisionId::default(),
            like,
            cause: "forbidden",
            rules: Vec::new(),
            owner: None,
            scope,
        }))
    };
    for error in [CallError::UnknownTool("t".into()), denied(None)] {
        for era in [Era::Initialize, Era::Stateless] {
            let (plain, mesh) = (error.tell(era), error.clone().for_mesh().tell(era));
            assert_eq!((plain.code, mesh.code, plain.status), (-32602, -32601, mesh.status), "{error}");
            assert_eq!((plain.message, plain.data), (mesh.message, mesh.data));
        }
    }
    let scoped = denied(Some("tools:write".into())).for_mesh();
    assert_eq!((scoped.wanted_scope(), scoped.tell(Era::Stateless).code), (Some("tools:write"), -32000));
    assert_eq!(CallError::UnknownPrompt("p".into()).for_mesh().tell(Era::Stateless).code, -32602);
}

#[test]
fn a_missing_resource_is_told_as_each_era_expects() {
    let error = CallError::UnknownResource("x://y".into());
    assert_eq!(error.tell(Era::Stateless).code, -32602);
    assert_eq!(error.tell(Era::Initialize).code, -32002);
    assert!(error.tell(Era::Stateless).data.unwrap().contains("\"uri\":\"x://y\""));
}
