//! What each of the servers has to say for itself. Does not know the wire.

use std::borrow::Cow;
use std::future::Future;

use serde_json::{Map, Value, json};

use crate::connection::Connection;
use crate::request::{Era, Request};

/// The arguments of a tool or prompt.
pub type Arguments = Map<String, Value>;

/// Who a server is.
pub struct About {
    pub name: Cow<'static, str>,
    pub title: Cow<'static, str>,
    pub version: Cow<'static, str>,
    pub instructions: Cow<'static, str>,
}

impl About {
    /// A server whose texts never change.
    pub const fn fixed(name: &'static str, title: &'static str, version: &'static str, instructions: &'static str) -> Self {
        let (name, title) = (Cow::Borrowed(name), Cow::Borrowed(title));
        Self { name, title, version: Cow::Borrowed(version), instructions: Cow::Borrowed(instructions) }
    }
}

/// How long a client of the stateless era may keep lists and contents.
#[derive(Clone, Copy, Debug)]
pub struct Keeping {
    pub milliseconds: u64,
    /// `public` or `private`.
    pub scope: &'static str,
}

/// A server of the demonstration. What it does not override, it does not offer.
pub trait Server: Send + Sync + 'static {
    /// Who it is.
    fn about(&self) -> About;

    /// What it can do, besides tools: the `capabilities` of the initialize era, `tools` left out.
    fn capabilities(&self, _era: Era) -> Value {
        json!({})
    }

    /// For how long its lists and contents hold.
    fn keeping(&self) -> Keeping {
        Keeping { milliseconds: 1000, scope: "public" }
    }

    /// The raw definitions of its tools, in a fixed order.
    fn tools(&self) -> Vec<Value>;

    /// Calls a tool that is among [`Server::tools`].
    fn call(&self, request: &Request, tool: &str, arguments: &Arguments) -> impl Future<Output = Result<Value, Refusal>> + Send;

    /// Its resources.
    fn resources(&self) -> Vec<Value> {
        Vec::new()
    }

    /// Its resource templates.
    fn templates(&self) -> Vec<Value> {
        Vec::new()
    }

    /// The whole result of reading a URI; `None` when there is nothing.
    fn read(
        &self,
        _request: &Request,
        _uri: &str,
        _params: &Map<String, Value>,
    ) -> impl Future<Output = Result<Option<Value>, Refusal>> + Send {
        std::future::ready(Ok(None))
    }

    /// Its prompts.
    fn prompts(&self) -> Vec<Value> {
        Vec::new()
    }

    /// The result of getting a prompt that is among [`Server::prompts`].
    fn prompt(&self, _request: &Request, name: &str, _arguments: &Arguments) -> impl Future<Output = Result<Value, Refusal>> + Send {
        std::future::ready(Err(Refusal::invalid(format!("there is no prompt `{name}`"))))
    }

    /// Answers a method that MCP does not have; `None` for those that this server does not have either.
    fn other(
        &self,
        _request: &Request,
        _method: &str,
        _params: &Map<String, Value>,
    ) -> impl Future<Output = Option<Result<Value, Refusal>>> + Send {
        std::future::ready(None)
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
pub enum Refusal {
    /// An answer of the client is needed first: the whole `input_required` result of the stateless era.
    InputRequired(Value),
    /// A JSON-RPC error.
    Rpc { code: i64, message: String, data: Option<Value> },
}

impl Refusal {
    /// Invalid parameters.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Rpc { code: -32602, message: message.into(), data: None }
    }
}

/// A tool result that is text and structure at once.
pub fn structured(text: impl Into<String>, value: Value) -> Value {
    let mut result = self::text(text);
    result["structuredContent"] = value;
    result
}

/// A tool result that is text only.
pub fn text(text: impl Into<String>) -> Value {
    json!({ "content": [{ "type": "text", "text": text.into() }] })
}

/// A tool result that says what went wrong and what to do, for the model to read.
pub fn failed(why: impl Into<String>) -> Value {
    json!({ "content": [{ "type": "text", "text": why.into() }], "isError": true })
}

/// The text argument `name`, when it is there and not empty.
pub fn text_of<'a>(arguments: &'a Arguments, name: &str) -> Option<&'a str> {
    arguments.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty())
}

/// The number argument `name`, as a whole number.
pub fn number_of(arguments: &Arguments, name: &str) -> Option<u64> {
    let value = arguments.get(name)?;
    value.as_u64().or_else(|| value.as_f64().filter(|number| *number >= 0.0).map(|number| number as u64))
}
