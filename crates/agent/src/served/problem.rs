//! Refusals to other agents as problem documents. Decides on none.

use door::reply::{Payload, typed};
use http::header::{CACHE_CONTROL, HeaderValue};
use http::{Response, StatusCode};
use json::quote;

/// Refusal as RFC 9457 has it, with a word for programs.
pub fn problem(status: StatusCode, code: &str, text: &str) -> Response<Payload> {
    let body = format!("{{\"status\":{},\"code\":\"{code}\",\"title\":{}}}", status.as_u16(), quote(text));
    let mut response = typed(status, "application/problem+json", body.into());
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
