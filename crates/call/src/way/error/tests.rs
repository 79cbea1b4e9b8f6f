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
        let data = told.data.unwrap();
        let members = mcp_proto::json::Members::parse(data.as_bytes(), mcp_proto::json::Duplicates::RefuseDeep).unwrap();
        assert!(members.str("reason").is_some(), "{data}");
    }
}

#[test]
fn a_missing_resource_is_told_as_each_era_expects() {
    let error = CallError::UnknownResource("x://y".into());
    assert_eq!(error.tell(Era::Stateless).code, -32602);
    assert_eq!(error.tell(Era::Initialize).code, -32002);
    assert!(error.tell(Era::Stateless).data.unwrap().contains("\"uri\":\"x://y\""));
}
