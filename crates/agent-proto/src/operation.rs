//! Requests to agents in the two bindings over HTTP (A2A 1.0, sections 9 and 11). Sends none.

use json::{Duplicates, Members};

use crate::card::Binding;
use crate::fault::AgentFault;
use crate::part::MessagePart;

/// A request to an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentRequest {
    /// A message; `streams` asks for events until the turn is over.
    Send {
        message: OutgoingMessage,
        streams: bool,
    },
    GetTask(String),
    CancelTask(String),
    /// Asks for the events of a task that is at work.
    Subscribe(String),
}

/// A message to an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutgoingMessage {
    /// Id of the message, unlike that of any other.
    pub id: String,
    /// Continues a conversation.
    pub context: Option<String>,
    /// Answers a task that waits.
    pub task: Option<String>,
    pub parts: Vec<MessagePart>,
    /// Raw members of `metadata`, by key.
    pub metadata: Vec<(String, String)>,
}

/// A request as HTTP has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    pub method: &'static str,
    /// Path behind the URL of the interface; empty for JSON-RPC.
    pub path: String,
    pub body: Option<String>,
    pub content_type: &'static str,
}

/// Reasons to refuse the body of an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// The agent refused the request.
    #[error(transparent)]
    Fault(#[from] AgentFault),
    #[error("its answer is no JSON-RPC response: {0}")]
    NoResponse(String),
    #[error("it answers another request than the one it was sent")]
    OtherId,
}

impl AgentRequest {
    /// Checks for an answer that comes as a stream of events.
    pub fn streams(&self) -> bool {
        match self {
            Self::Send { streams, .. } => *streams,
            Self::Subscribe(_) => true,
            Self::GetTask(_) | Self::CancelTask(_) => false,
        }
    }

    /// Writes the request for a binding. `id` becomes the id of a JSON-RPC request.
    pub fn write(&self, binding: Binding, tenant: Option<&str>, id: u64) -> HttpRequest {
        match binding {
            Binding::JsonRpc => self.write_rpc(tenant, id),
            Binding::Rest => self.write_rest(tenant),
        }
    }

    fn write_rpc(&self, tenant: Option<&str>, id: u64) -> HttpRequest {
        let tenant = tenant.map(|tenant| format!("\"tenant\":{},", json::quote(tenant))).unwrap_or_default();
        let by_id = |task: &str| format!("{{{tenant}\"id\":{}}}", json::quote(task));
        let (method, params) = match self {
            Self::Send { message, streams } => {
                let method = if *streams { "SendStreamingMessage" } else { "SendMessage" };
                (method, format!("{{{tenant}{}}}", message.members(*streams)))
            }
            Self::GetTask(task) => ("GetTask", by_id(task)),
            Self::CancelTask(task) => ("CancelTask", by_id(task)),
            Self::Subscribe(task) => ("SubscribeToTask", by_id(task)),
        };
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        HttpRequest { method: "POST", path: String::new(), body: Some(body), content_type: "application/json" }
    }

    fn write_rest(&self, tenant: Option<&str>) -> HttpRequest {
        let tenant = tenant.map(|tenant| format!("/{}", escape(tenant))).unwrap_or_default();
        let (method, path, body) = match self {
            Self::Send { message, streams } => {
                let verb = if *streams { "stream" } else { "send" };
                ("POST", format!("/message:{verb}"), Some(format!("{{{}}}", message.members(*streams))))
            }
            Self::GetTask(task) => ("GET", format!("/tasks/{}", escape(task)), None),
            Self::CancelTask(task) => ("POST", format!("/tasks/{}:cancel", escape(task)), Some("{}".to_owned())),
            Self::Subscribe(task) => ("POST", format!("/tasks/{}:subscribe", escape(task)), Some("{}".to_owned())),
        };
        HttpRequest { method, path: tenant + &path, body, content_type: "application/a2a+json" }
    }

    /// Finds the answer in a body that came with the HTTP status `status`; `id` as for [`Self::write`].
    pub fn read(binding: Binding, status: u16, id: u64, body: &[u8]) -> Result<&[u8], AnswerError> {
        match binding {
            Binding::Rest if (200..300).contains(&status) => Ok(body),
            Binding::Rest => Err(AgentFault::from_rest(body).into()),
            Binding::JsonRpc => read_rpc(body, id),
        }
    }
}

impl OutgoingMessage {
    /// Writes the members of a `SendMessageRequest`. Without a stream the agent shall answer at once, so that nobody holds a connection open.
    fn members(&self, streams: bool) -> String {
        let mut out = format!("\"message\":{{\"messageId\":{},\"role\":\"ROLE_USER\"", json::quote(&self.id));
        for (key, text) in [("contextId", &self.context), ("taskId", &self.task)] {
            if let Some(text) = text {
                out.push_str(&format!(",\"{key}\":{}", json::quote(text)));
            }
        }
        out.push_str(",\"parts\":[");
        for (at, part) in self.parts.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            part.write(&mut out);
        }
        out.push(']');
        if !self.metadata.is_empty() {
            let members: Vec<String> = self.metadata.iter().map(|(key, raw)| format!("{}:{raw}", json::quote(key))).collect();
            out.push_str(&format!(",\"metadata\":{{{}}}", members.join(",")));
        }
        out.push('}');
        if !streams {
            out.push_str(",\"configuration\":{\"returnImmediately\":true}");
        }
        out
    }
}

fn read_rpc(body: &[u8], id: u64) -> Result<&[u8], AnswerError> {
    let response = Members::parse(body, Duplicates::RefuseTop).map_err(|error| AnswerError::NoResponse(error.to_string()))?;
    if let Some(error) = response.get("error") {
        return Err(AgentFault::from_rpc(error).into());
    }
    if response.get("id") != Some(id.to_string().as_bytes()) {
        return Err(AnswerError::OtherId);
    }
    response.get("result").ok_or_else(|| AnswerError::NoResponse("it has no result".into()))
}

/// Escapes a segment of a path, so that an id of the agent's making leads nowhere else.
fn escape(segment: &str) -> String {
    let mut out = String::with_capacity(segment.len());
    for byte in segment.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::Content;

    fn message() -> OutgoingMessage {
        OutgoingMessage {
            id: "m\"1".into(),
            context: Some("c".into()),
            parts: vec![MessagePart::new(Content::Text("hi".into()))],
            metadata: vec![("io.banyan/skill".into(), "\"draft\"".into())],
            ..OutgoingMessage::default()
        }
    }

    #[test]
    fn a_message_is_the_same_over_both_bindings() {
        let send = AgentRequest::Send { message: message(), streams: false };
        let rest = send.write(Binding::Rest, Some("a/b"), 7);
        assert_eq!((rest.method, rest.path.as_str()), ("POST", "/a%2Fb/message:send"));
        let rpc = send.write(Binding::JsonRpc, None, 7);
        let rpc: serde_json::Value = serde_json::from_str(&rpc.body.unwrap()).unwrap();
        let rest: serde_json::Value = serde_json::from_str(&rest.body.unwrap()).unwrap();
        assert_eq!((rpc["method"].as_str(), &rpc["params"]), (Some("SendMessage"), &rest));
        assert_eq!(rest["message"]["messageId"], "m\"1");
        assert_eq!(rest["message"]["metadata"]["io.banyan/skill"], "draft");
        assert_eq!(rest["configuration"]["returnImmediately"], true);
        let stream = AgentRequest::Send { message: message(), streams: true }.write(Binding::JsonRpc, Some("t"), 1);
        let stream: serde_json::Value = serde_json::from_str(&stream.body.unwrap()).unwrap();
        assert_eq!((&stream["method"], &stream["params"]["tenant"]), (&"SendStreamingMessage".into(), &"t".into()));
        assert!(stream["params"].get("configuration").is_none());
    }

    #[test]
    fn an_id_of_a_task_leads_nowhere_else() {
        let path = |task: &str| AgentRequest::CancelTask(task.into()).write(Binding::Rest, None, 1).path;
        assert_eq!(path("../x?y#z"), "/tasks/%2E%2E%2Fx%3Fy%23z:cancel");
    }

    #[test]
    fn only_the_answer_to_the_request_counts() {
        let read = |body: &'static str| AgentRequest::read(Binding::JsonRpc, 200, 3, body.as_bytes());
        assert_eq!(read(r#"{"jsonrpc":"2.0","id":3,"result":{"a":1}}"#).unwrap(), br#"{"a":1}"#);
        assert_eq!(read(r#"{"jsonrpc":"2.0","id":4,"result":{}}"#).unwrap_err(), AnswerError::OtherId);
        assert!(matches!(read(r#"{"jsonrpc":"2.0","id":null,"error":{"code":1}}"#).unwrap_err(), AnswerError::Fault(_)));
        assert!(matches!(read("{}").unwrap_err(), AnswerError::OtherId));
        assert!(matches!(AgentRequest::read(Binding::Rest, 404, 3, b"{}").unwrap_err(), AnswerError::Fault(_)));
    }
}
