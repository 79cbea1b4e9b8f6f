//! Refusals to other agents as problem documents. Decides on none.

use agent_proto::served::rejection::{ClientRefusal, RefusalReason};
use door::reply::{Payload, typed};
use http::header::{CACHE_CONTROL, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use json::quote;

/// Refusal as RFC 9457 has it, with a word for programs.
pub fn problem(status: StatusCode, code: &str, text: &str) -> Response<Payload> {
    let body = format!("{{\"status\":{},\"code\":\"{code}\",\"title\":{}}}", status.as_u16(), quote(text));
    let mut response = typed(status, "application/problem+json", body.into());
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Refuses a message for its tokens, with the status that draft -01 has for them.
pub fn untrue(refusal: &ClientRefusal) -> Response<Payload> {
    let (status, code) = match refusal.wait() {
        Some(_) => (StatusCode::TOO_MANY_REQUESTS, "policy_violation"),
        None if refusal.kind == RefusalReason::Evidence => (StatusCode::FORBIDDEN, "policy_violation"),
        None => (StatusCode::SERVICE_UNAVAILABLE, "internal_error"),
    };
    let mut refused = problem(status, code, &refusal.message);
    refused.headers_mut().extend(refusal.wait().map(|wait| (RETRY_AFTER, HeaderValue::from(wait))));
    refused
}
