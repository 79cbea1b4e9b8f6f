//! Adapts between the eras: members that a request must carry or must not, and members that an answer lacks.
//!
//! Changes nothing within an era, and between eras only the members named here; all other bytes stay.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use banyan_model::{Era, Method};
use bytes::Bytes;
use mcp_proto::envelope::Answer;
use mcp_proto::era::{STATELESS, key};
use mcp_proto::json::{self, Members, Object};
use mcp_proto::splice::{self, Change};
use telemetry::trace_context::TraceContext;

use crate::tree::back::Back;
use crate::tree::caller::Caller;
use crate::tree::port::Member;
use crate::way::resolve::Resolved;

/// Time for which a client may keep a result of the initialize era, in milliseconds: none, since its server has not allowed any.
const TTL_MS: &[u8] = b"0";

/// The params of `caller` as a server of `era` expects them.
pub fn params<'a>(params: &'a Object, caller: &Caller, era: Era) -> Cow<'a, Object> {
    match (caller.era, era) {
        (Era::Initialize, Era::Initialize) | (Era::Stateless, Era::Stateless) => Cow::Borrowed(params),
        (Era::Initialize, Era::Stateless) => Cow::Owned(with_meta(params, caller)),
        (Era::Stateless, Era::Initialize) => without_meta(params),
    }
}

/// Adds the members that the stateless era wants. Nearly always all are missing, and then nothing has to be parsed.
fn with_meta(params: &Object, caller: &Caller) -> Object {
    let claims = claims(caller);
    match params.meta() {
        None if !params.members().has("_meta") => {
            let end = params.trim_ascii_end().len() - 1;
            splice::insert(params, end, params.members().is_empty(), &[b"\"_meta\":{", &claims, b"}"]).into()
        }
        Some(meta) if !CLAIMS.iter().any(|key| meta.has(key)) => {
            let end = params.members().span("_meta").map_or(params.len(), |span| span.end) - 1;
            splice::insert(params, end, meta.is_empty(), &[&claims]).into()
        }
        meta => {
            let claimed = [b"{", &claims[..], b"}"].concat();
            let claimed = Members::again(&claimed);
            let changes: Vec<_> = CLAIMS.iter().filter_map(|key| Some((*key, Change::Set(claimed.get(key)?)))).collect();
            let old = params.get("_meta").filter(|_| meta.is_some()).unwrap_or(Bytes::from_static(b"{}"));
            let meta = splice::edit(&old, &changes);
            splice::edit(params, &[("_meta", Change::Set(&meta))]).into()
        }
    }
}

/// Members that the stateless era wants in every request.
const CLAIMS: [&str; 4] = [key::PROTOCOL_VERSION, key::CLIENT_CAPABILITIES, key::CLIENT_INFO, key::LOG_LEVEL];

/// Writes these members, as they follow each other in `_meta`.
fn claims(caller: &Caller) -> Vec<u8> {
    let level = caller.session.as_ref().map_or("", |session| session.log_level().name());
    let [version, capabilities, info, log_level] = CLAIMS;
    let mut out = Vec::with_capacity(256 + caller.capabilities.len() + caller.info.len());
    for part in ["\"", version, "\":\"", STATELESS, "\",\"", capabilities, "\":"] {
        out.extend_from_slice(part.as_bytes());
    }
    out.extend_from_slice(&caller.capabilities);
    for part in [",\"", info, "\":"] {
        out.extend_from_slice(part.as_bytes());
    }
    out.extend_from_slice(&caller.info);
    if !level.is_empty() {
        for part in [",\"", log_level, "\":\"", level, "\""] {
            out.extend_from_slice(part.as_bytes());
        }
    }
    out
}

fn without_meta(params: &Object) -> Cow<'_, Object> {
    let members = params.members();
    let mut changes: Vec<(&str, Change<'_>)> = Vec::new();
    for gone in ["inputResponses", "requestState"] {
        if members.has(gone) {
            changes.push((gone, Change::Remove));
        }
    }
    let meta = members.get("_meta").map(|meta| {
        let gone = [key::PROTOCOL_VERSION, key::CLIENT_CAPABILITIES, key::CLIENT_INFO, key::LOG_LEVEL];
        splice::edit(meta, &gone.map(|k| (k, Change::Remove)))
    });
    match &meta {
        // Only keys of the other era stood there.
        Some(meta) if Members::again(meta).is_empty() => changes.push(("_meta", Change::Remove)),
        Some(meta) => changes.push(("_meta", Change::Set(meta))),
        None => {}
    }
    if changes.is_empty() { Cow::Borrowed(params) } else { Cow::Owned(splice::edit(params, &changes).into()) }
}

/// Adds the trace context of this hop to `_meta`, unless already there.
pub fn traced<'a>(params: Cow<'a, Object>, trace: Option<&TraceContext>) -> Cow<'a, Object> {
    let Some(trace) = trace else { return params };
    let raw = params.get("_meta").unwrap_or(Bytes::from_static(b"{}"));
    if params.meta().and_then(|meta| meta.str("traceparent")).as_deref() == Some(trace.traceparent()) {
        return params;
    }
    let (parent, state) = (json::quote(trace.traceparent()), trace.tracestate().map(json::quote));
    let state = state.as_deref().map_or(Change::Remove, |s| Change::Set(s.as_bytes()));
    let meta = splice::edit(&raw, &[("traceparent", Change::Set(parent.as_bytes())), ("tracestate", state)]);
    Cow::Owned(splice::edit(&params, &[("_meta", Change::Set(&meta))]).into())
}

/// Adapts the answer of a server of `era` to the caller's.
pub fn answer(answer: Answer, resolved: &Resolved, era: Era) -> Answer {
    let answer = in_plain_terms(answer, resolved);
    if resolved.caller.era == Era::Initialize || era == Era::Stateless {
        return answer;
    }
    match answer {
        Answer::Result(result) => Answer::Result(completed(&result, resolved.aim.method() == Method::ResourceRead)),
        // The initialize era has an error code of its own for a missing resource.
        Answer::Error(error) if resolved.aim.method() == Method::ResourceRead && Members::again(&error).get("code") == Some(b"-32002") => {
            Answer::Error(Bytes::from(splice::edit(&error, &[("code", Change::Set(b"-32602"))])))
        }
        error @ Answer::Error(_) => error,
    }
}

/// Turns a gate's unknown method of MCP-AX (5.2, AX-04) into the unknown tool of a caller without the extension.
fn in_plain_terms(answer: Answer, resolved: &Resolved) -> Answer {
    let is_plain = !resolved.caller.scope.speaks_mesh && resolved.branch.is_gate() && resolved.aim.method() == Method::ToolCall;
    match answer {
        Answer::Error(error) if is_plain && Members::again(&error).get("code") == Some(b"-32601") => {
            Answer::Error(Bytes::from(splice::edit(&error, &[("code", Change::Set(b"-32602"))])))
        }
        answer @ (Answer::Error(_) | Answer::Result(_)) => answer,
    }
}

/// Members that the stateless era wants in every result, followed by those of a result that may be kept.
const WANTED: [Member; 3] = [("resultType", b"\"complete\""), ("ttlMs", TTL_MS), ("cacheScope", b"\"private\"")];

/// Members to append where the result of a server of `era` lacks them; `None` if the result must be whole before it goes on.
pub fn lacking(resolved: &Resolved, era: Era) -> Option<&'static [Member]> {
    match (resolved.caller.era, era) {
        (Era::Initialize, Era::Initialize) | (Era::Stateless, Era::Stateless) => Some(&[]),
        // The result may be a question.
        (Era::Initialize, Era::Stateless) => None,
        (Era::Stateless, Era::Initialize) => Some(wanted(resolved.aim.method() == Method::ResourceRead)),
    }
}

fn wanted(cacheable: bool) -> &'static [Member] {
    if cacheable { &WANTED } else { &WANTED[..1] }
}

/// Adds the members that the stateless era wants in every result.
pub fn completed(result: &Object, cacheable: bool) -> Object {
    let members = result.members();
    let mut lacking = Vec::new();
    for (name, value) in wanted(cacheable).iter().filter(|(name, _)| !members.has(name)) {
        let comma: &[u8] = if lacking.is_empty() { b"\"" } else { b",\"" };
        for part in [comma, name.as_bytes(), b"\":", value] {
            lacking.extend_from_slice(part);
        }
    }
    if lacking.is_empty() || !result.ends_with(b"}") {
        return result.clone();
    }
    splice::insert(result, result.len() - 1, members.is_empty(), &[&lacking]).into()
}

/// Questions of a stateless server, to be answered before it goes on.
pub struct InputQuestions {
    questions: Vec<(String, Bytes)>,
    state: Option<Bytes>,
}

/// Reads the questions in an unfinished result.
pub fn input_required(answer: &Answer) -> Option<InputQuestions> {
    let Answer::Result(result) = answer else { return None };
    let members = result.members();
    if members.str("resultType")? != "input_required" {
        return None;
    }
    let questions = members.object("inputRequests").map(|m| m.iter().map(|(k, raw)| (k.into_owned(), result.slice_ref(raw))).collect());
    Some(InputQuestions { questions: questions.unwrap_or_default(), state: members.get("requestState").map(|raw| result.slice_ref(raw)) })
}

impl InputQuestions {
    /// State with which the caller is to come back, as written by the server.
    pub fn state(&self) -> Option<&Bytes> {
        self.state.as_ref()
    }

    /// Asks the caller all questions at once; returns the params of the next round, or the client's error.
    pub async fn answered(self, params: &Bytes, back: &Arc<Back>) -> Result<Bytes, Bytes> {
        let asked = self.questions.iter().map(|(key, raw)| async move {
            let question = Members::again(raw);
            let method = question.str("method").unwrap_or_default().into_owned();
            let params = question.get("params").map_or(Bytes::from_static(b"{}"), |p| with_elicitation_id(&raw.slice_ref(p)));
            (key.clone(), back.ask(&method, &params).await)
        });
        let answers: BTreeMap<String, Answer> = futures_util::future::join_all(asked).await.into_iter().collect();
        let mut object = Vec::from(*b"{");
        for (key, answer) in &answers {
            // A client that can't answer would only be asked again.
            let result = match answer {
                Answer::Result(result) => result,
                Answer::Error(error) => return Err(error.clone()),
            };
            if object.len() > 1 {
                object.push(b',');
            }
            object.extend_from_slice(json::quote(key).as_bytes());
            object.push(b':');
            object.extend_from_slice(result);
        }
        object.push(b'}');
        let state = self.state.as_deref().map_or(Change::Remove, Change::Set);
        Ok(Bytes::from(splice::edit(params, &[("inputResponses", Change::Set(&object)), ("requestState", state)])))
    }
}

/// Adds the id that revision 2025-11-25 wants with every elicitation by URL and the stateless era lacks.
fn with_elicitation_id(params: &Bytes) -> Bytes {
    let members = Members::again(params);
    if members.get("mode") != Some(b"\"url\"") || members.has("elicitationId") {
        return params.clone();
    }
    let id = json::quote(&runtime::random::token());
    Bytes::from(splice::edit(params, &[("elicitationId", Change::Set(id.as_bytes()))]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_gets_only_what_it_lacks() {
        let raw = Bytes::from_static(br#"{ "content":[],"n":1.0 }"#).into();
        assert_eq!(&completed(&raw, false)[..], br#"{ "content":[],"n":1.0,"resultType":"complete" }"#);
        let full = Object::from(Bytes::from_static(br#"{"resultType":"task","ttlMs":1,"cacheScope":"public"}"#));
        assert_eq!(completed(&full, true), full);
    }

    #[test]
    fn a_request_for_the_stateless_era_says_who_asks() {
        let scope = crate::words::view_key::ViewKey {
            mount: None,
            profile: "".into(),
            style: mcp_proto::projection::Style::Safe,
            annotated: false,
            speaks_mesh: false,
            is_seated: false,
        };
        let caller = super::super::own_caller(scope);
        let claims = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"banyan"}"#;
        for (before, after) in [
            (r#"{ "name":"x" }"#, format!(r#"{{ "name":"x","_meta":{{{claims}}} }}"#)),
            ("{}", format!(r#"{{"_meta":{{{claims}}}}}"#)),
            (r#"{"_meta":{},"a":1}"#, format!(r#"{{"_meta":{{{claims}}},"a":1}}"#)),
            (r#"{"_meta":{"progressToken":1},"a":1}"#, format!(r#"{{"_meta":{{"progressToken":1,{claims}}},"a":1}}"#)),
            (
                r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"1","progressToken":1}}"#,
                format!(r#"{{"_meta":{{{}}}}}"#, claims.replacen(r#"28","#, r#"28","progressToken":1,"#, 1)),
            ),
            (r#"{"_meta":7}"#, format!(r#"{{"_meta":{{{claims}}}}}"#)),
        ] {
            let said = with_meta(&Bytes::copy_from_slice(before.as_bytes()).into(), &caller);
            assert_eq!(std::str::from_utf8(&said).unwrap(), after, "{before}");
        }
    }

    #[test]
    fn the_other_eras_keys_leave_and_the_rest_stays() {
        let raw = Bytes::from_static(
            br#"{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","progressToken":1},"requestState":"s"}"#,
        );
        assert_eq!(&without_meta(&raw.into())[..], br#"{"name":"x","_meta":{"progressToken":1}}"#);
        let only = Bytes::from_static(br#"{"name":"x","_meta":{"io.modelcontextprotocol/clientInfo":{}}}"#);
        assert_eq!(&without_meta(&only.into())[..], br#"{"name":"x"}"#);
    }

    #[test]
    fn questions_are_found_in_an_unfinished_result() {
        let raw =
            Bytes::from_static(br#"{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}},"requestState":"s"}"#);
        let wanted = input_required(&Answer::Result(raw.into())).unwrap();
        assert_eq!((wanted.questions.len(), wanted.state.as_deref()), (1, Some(&b"\"s\""[..])));
        assert!(input_required(&Answer::Result(Object::empty())).is_none());
    }
}
