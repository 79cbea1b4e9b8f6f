//! Tasks and resources mentioned in answers, taken out of each for later requests that name them. Keeps none (`tree::remembered`).

use std::sync::Arc;

use banyan_model::Method;
use config::resolved::Config;
use mcp_proto::envelope::Answer;
use mcp_proto::json::{self, Object};
use policy::decide::Verdict;

use crate::tree::caller::Caller;
use crate::tree::gate::Load;
use crate::tree::remembered::TaskOrigin;
use crate::tree::snapshot::Branch;
use crate::words::key;

/// Longest result searched for URIs, in bytes.
const SEARCHED: usize = 256 << 10;

/// Facts about a call whose answer is remembered.
pub struct About {
    pub method: Method,
    /// Place of the tool in its owner's catalog.
    pub tool: Option<usize>,
    /// Verdict of the rules about the call.
    pub verdict: Option<Arc<Verdict>>,
}

/// Notes the tasks and URIs of an answer.
pub fn remember(load: &Load, (config, owner): (&Config, &Branch), caller: &Caller, about: About, answer: &Answer) {
    let Answer::Result(result) = answer else { return };
    let mount = &owner.mount.config.name;
    // A question about a task does not begin it.
    if matches!(about.method, Method::ToolCall | Method::Unknown)
        && let Some(id) = task_id(result)
    {
        let tool = about.tool.and_then(|place| owner.catalog.tools.get(place)).map(|offer| offer.entry.key.as_str());
        let verdict = config.policy.as_ref().map(|rules| rules.digest).zip(about.verdict);
        let begun = TaskOrigin { mount: mount.clone(), tool: tool.unwrap_or_default().into(), verdict };
        load.tasks.note(&caller.principal, &id, begun);
    }
    if owner.has_resources && result.len() <= SEARCHED {
        let uris = uris(result);
        if !uris.is_empty() {
            load.seen.note(mount, &uris);
        }
    }
}

/// The id of the task a result begins: at the top (2026-07-28), or in `task` (2025-11-25).
fn task_id(result: &Object) -> Option<String> {
    let members = result.members();
    let at_the_top = || members.str("taskId").filter(|_| members.str("resultType").as_deref() == Some("task"));
    at_the_top().or_else(|| members.object("task")?.str("taskId")).map(|id| id.into_owned())
}

/// Texts of all members named `uri`, at any depth.
fn uris(result: &[u8]) -> Vec<String> {
    let mut out = Vec::new();
    if key::is_escaped(result) {
        // An escaped key has many spellings, so every string is looked at.
        let mut at = 0;
        while let Some(start) = memchr::memchr(b'"', &result[at..]).map(|start| at + start) {
            let Some(length) = string_end(&result[start..]) else { break };
            at = start + length;
            if key::value(&result[at..]).is_some() && json::as_str(&result[start..at]).as_deref() == Some("uri") {
                out.extend(text_of(&result[at..]));
            }
        }
    } else {
        out.extend(memchr::memmem::find_iter(result, b"\"uri\"").filter_map(|at| text_of(&result[at + 5..])));
    }
    out
}

/// Text behind a key, where `rest` begins; `None` for another kind of value.
fn text_of(rest: &[u8]) -> Option<String> {
    let value = key::value(rest)?;
    json::as_str(&value[..string_end(value)?]).map(|text| text.into_owned())
}

/// End of the JSON string at the start of `text`.
fn string_end(text: &[u8]) -> Option<usize> {
    let mut escaped = false;
    let inner = text.strip_prefix(b"\"")?;
    inner
        .iter()
        .position(|b| {
            let ends = *b == b'"' && !escaped;
            escaped = *b == b'\\' && !escaped;
            ends
        })
        .map(|at| at + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_and_task_ids_are_found_in_results() {
        let raw = br#"{"content":[{"type":"resource_link","uri" : "a://\"b"},{"uri":5},{"x":{"uri":"c://d"}}]}"#;
        assert_eq!(uris(raw), ["a://\"b", "c://d"]);
        let spelled = br#"{"a":"\"uri\":","\u0075r\u0069":"a://1","uri":"b://\u0032","u\u0072\u0069":{"uri":7,"x":"uri"}}"#;
        assert_eq!(uris(spelled), ["a://1", "b://2"]);
        assert_eq!(uris(br#"{"\u0075ri":"a://b","x":"\\"}"#), ["a://b"]);
        let task = |raw: &'static [u8]| task_id(&bytes::Bytes::from_static(raw).into());
        assert_eq!(task(br#"{"resultType":"task","taskId":"t1"}"#).as_deref(), Some("t1"));
        assert_eq!(task(br#"{"task":{"taskId":"t2"}}"#).as_deref(), Some("t2"));
        assert_eq!(task(br#"{"taskId":"t3","content":[]}"#), None);
    }
}
