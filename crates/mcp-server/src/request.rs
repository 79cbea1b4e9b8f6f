//! A request as its tool sees it: progress, log, and questions to the client, in the era's own way.
//!
//! Does not read the wire; the connection does.

use serde_json::{Map, Value, json};

use crate::connection::Connection;
use crate::protocol::RESERVED;
use crate::server::Refusal;

/// The era of MCP of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Era {
    /// Revisions up to 2025-11-25.
    Initialize,
    /// Revision 2026-07-28.
    Stateless,
}

/// Log levels, from the least to the most urgent.
pub(crate) const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// A request under way.
pub struct Request {
    pub connection: Connection,
    pub era: Era,
    /// The capabilities declared by the client, for this request or its session.
    pub capabilities: Value,
    /// The lowest wanted log level, if any.
    pub level: Option<String>,
    pub meta: Map<String, Value>,
    /// Answers to earlier questions, and the state sent with them (stateless era).
    pub inputs: Map<String, Value>,
    pub state: Option<String>,
}

/// A question to the person behind the client.
pub struct Question {
    /// Names the question among others.
    pub key: &'static str,
    pub message: String,
    /// The form: a JSON Schema.
    pub schema: Value,
    /// The state to be sent back with the answer; the client can change it.
    pub state: String,
}

/// A person's answer.
pub struct Reply {
    /// `accept`, `decline` or `cancel`.
    pub action: String,
    /// The form's content.
    pub content: Map<String, Value>,
}

impl Request {
    /// Tells how far the work is, when the client wants to know.
    pub async fn progress(&self, done: f64, total: f64, message: &str) {
        if let Some(token) = self.meta.get("progressToken") {
            let params = json!({ "progressToken": token, "progress": done, "total": total, "message": message });
            self.connection.notify("notifications/progress", params).await;
        }
    }

    /// Logs to the client, if it wants the level.
    pub async fn log(&self, level: &str, data: &str) {
        let urgency = |level: &str| LEVELS.iter().position(|known| *known == level);
        let wanted = self.level.as_deref().and_then(urgency);
        if wanted.is_some_and(|wanted| urgency(level) >= Some(wanted)) {
            let params = json!({ "level": level, "logger": "demo", "data": data });
            self.connection.notify("notifications/message", params).await;
        }
    }

    /// Tells if the client can put a question to a person.
    pub fn can_ask(&self) -> bool {
        self.capabilities.get("elicitation").is_some_and(Value::is_object)
    }

    /// Asks the person behind the client: by a request of our own, or by refusing until the answer comes along.
    pub async fn ask(&self, question: Question) -> Result<Reply, Refusal> {
        let params = json!({ "mode": "form", "message": question.message, "requestedSchema": question.schema });
        let answer = match self.era {
            Era::Initialize => self.connection.request("elicitation/create", params).await?,
            Era::Stateless => match self.inputs.get(question.key) {
                Some(answer) => answer.clone(),
                None => return Err(input_required(&question, &params)),
            },
        };
        let action = answer.get("action").and_then(Value::as_str).unwrap_or("cancel").to_owned();
        let content = answer.get("content").and_then(Value::as_object).cloned().unwrap_or_default();
        Ok(Reply { action, content })
    }

    /// Makes the refusal for a client that can't ask anybody (stateless era).
    pub fn cannot_ask(&self) -> Refusal {
        Refusal::Rpc {
            code: -32021,
            message: "this needs a person's confirmation, and the client can't ask for it".into(),
            data: Some(json!({ "requiredCapabilities": { "elicitation": {} } })),
        }
    }
}

fn input_required(question: &Question, params: &Value) -> Refusal {
    Refusal::InputRequired(json!({
        "resultType": "input_required",
        "inputRequests": { question.key: { "method": "elicitation/create", "params": params } },
        "requestState": question.state,
    }))
}

/// Reads the member `name` of `_meta` reserved by MCP.
pub(crate) fn reserved<'a>(meta: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    meta.get(&format!("{RESERVED}{name}"))
}
