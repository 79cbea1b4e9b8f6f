//! A caller, a call and a question for tests of tasks. Knows no test.

use agent_proto::served::incoming::SkillCall;
use agent_proto::served::input::TaskQuestion;
use banyan_model::{Principal, PrincipalKind};

pub(super) fn token(name: &str) -> Principal {
    Principal::new(PrincipalKind::Token, name)
}

pub(super) fn call() -> SkillCall {
    SkillCall { skill: "a".into(), arguments: "{}".into(), extension: None }
}

pub(super) fn question() -> TaskQuestion {
    let params = br#"{"message":"which colour?","requestedSchema":{"type":"object","properties":{"colour":{"type":"string"}}}}"#;
    TaskQuestion::read("elicitation/create", params).unwrap()
}
