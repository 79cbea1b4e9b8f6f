//! What each of the servers has to say for itself. Does not know the wire.

use std::future::Future;

use serde_json::{Map, Value, json};

use super::connection::Connection;
use super::request::Asked;

/// The arguments of a tool or prompt.
pub(super) type Arguments = Map<String, Value>;

/// Who a server is.
pub(super) struct About {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) instructions: &'static str,
}

/// A server of the demonstration. What it does not override, it does not offer.
pub(super) trait Server: Send + Sync + 'static {
    /// Who it is.
    fn about(&self) -> About;

    /// What it can do, besides tools: the `capabilities` of the initialize era, `tools` left out.
    fn capabilities(&self) -> Value {
        json!({})
    }

    /// The raw definitions of its tools, in a fixed order.
    fn tools(&self) -> Vec<Value>;

    /// Calls a tool that is among [`Server::tools`].
    fn call(&self, asked: &Asked, tool: &str, arguments: &Arguments) -> impl Future<Output = Result<Value, Refusal>> + Send;

    /// Its resources.
    fn resources(&self) -> Vec<Value> {
        Vec::new()
    }

    /// Its resource templates.
    fn templates(&self) -> Vec<Value> {
        Vec::new()
    }

    /// The contents behind a URI; `None` when there is nothing.
    fn read(&self, _uri: &str) -> Option<Value> {
        None
    }

    /// Its prompts.
    fn prompts(&self) -> Vec<Value> {
        Vec::new()
    }

    /// The result of getting a prompt that is among [`Server::prompts`].
    fn prompt(&self, name: &str, _arguments: &Arguments) -> Result<Value, Refusal> {
        Err(Refusal::invalid(format!("there is no prompt `{name}`")))
    }

    /// All values for an argument of the prompt or template `reference` (its name or its URI template).
    fn completions(&self, _reference: &str, _argument: &str) -> Vec<String> {
        Vec::new()
    }

    /// Called once, before the first request: the way to tell all listeners of changes.
    fn connected(&self, _connection: &Connection) {}
}

/// Why a request gets no result.
#[derive(Debug)]
pub(super) enum Refusal {
    /// An answer of the client is needed first: the whole `input_required` result of the stateless era.
    InputRequired(Value),
    /// A JSON-RPC error.
    Rpc { code: i64, message: String, data: Option<Value> },
}

impl Refusal {
    /// Invalid parameters.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::Rpc { code: -32602, message: message.into(), data: None }
    }
}

/// A tool result that is text and structure at once.
pub(super) fn structured(text: impl Into<String>, value: Value) -> Value {
    let mut result = self::text(text);
    result["structuredContent"] = value;
    result
}

/// A tool result that is text only.
pub(super) fn text(text: impl Into<String>) -> Value {
    json!({ "content": [{ "type": "text", "text": text.into() }] })
}

/// A tool result that says what went wrong and what to do, for the model to read.
pub(super) fn failed(why: impl Into<String>) -> Value {
    json!({ "content": [{ "type": "text", "text": why.into() }], "isError": true })
}

/// The text argument `name`, when it is there and not empty.
pub(super) fn text_of<'a>(arguments: &'a Arguments, name: &str) -> Option<&'a str> {
    arguments.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty())
}

/// The number argument `name`, as a whole number.
pub(super) fn number_of(arguments: &Arguments, name: &str) -> Option<u64> {
    let value = arguments.get(name)?;
    value.as_u64().or_else(|| value.as_f64().filter(|number| *number >= 0.0).map(|number| number as u64))
}
