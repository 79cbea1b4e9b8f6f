//! The face of a server: its texts, lists and answers. Does not know the wire.

use std::borrow::Cow;
use std::future::Future;

use serde_json::{Map, Value, json};

use crate::connection::Connection;
use crate::request::{Era, Request};

/// The arguments of a tool or prompt.
pub type Arguments = Map<String, Value>;

/// Identity and texts of a server.
pub struct About {
    pub name: Cow<'static, str>,
    pub title: Cow<'static, str>,
    pub version: Cow<'static, str>,
    pub instructions: Cow<'static, str>,
}

impl About {
    /// Describes a server with constant texts.
    pub const fn fixed(name: &'static str, title: &'static str, version: &'static str, instructions: &'static str) -> Self {
        let (name, title) = (Cow::Borrowed(name), Cow::Borrowed(title));
        Self { name, title, version: Cow::Borrowed(version), instructions: Cow::Borrowed(instructions) }
    }
}

/// Time for which a client of the stateless era may keep lists and contents.
#[derive(Clone, Copy, Debug)]
pub struct Keeping {
    pub milliseconds: u64,
    /// `public` or `private`.
    pub scope: &'static str,
}

/// A server. Methods left at their defaults offer nothing.
pub trait Server: Send + Sync + 'static {
    /// Gives identity and texts.
    fn about(&self) -> About;

    /// Gives the capabilities besides tools: the `capabilities` of the initialize era, without `tools`.
    fn capabilities(&self, _era: Era) -> Value {
        json!({})
    }

    /// Gives the lifetime of lists and contents.
    fn keeping(&self) -> Keeping {
        Keeping { milliseconds: 1000, scope: "public" }
    }

    /// Surrounds all work for a request, until its answer waits to be written.
    fn within_request(work: impl Future<Output = ()> + Send) -> impl Future<Output = ()> + Send {
        work
    }

    /// Lists the raw definitions of the tools, in a fixed order.
    fn tools(&self) -> Vec<Value>;

    /// Calls a tool listed by [`Server::tools`].
    fn call(&self, request: &Request, tool: &str, arguments: &Arguments) -> impl Future<Output = Result<Value, Refusal>> + Send;

    fn resources(&self) -> Vec<Value> {
        Vec::new()
    }

    fn templates(&self) -> Vec<Value> {
        Vec::new()
    }

    /// Reads a URI and gives the whole result; `None` for an unknown URI.
    fn read(
        &self,
        _request: &Request,
        _uri: &str,
        _params: &Map<String, Value>,
    ) -> impl Future<Output = Result<Option<Value>, Refusal>> + Send {
        std::future::ready(Ok(None))
    }

    fn prompts(&self) -> Vec<Value> {
        Vec::new()
    }

    /// Gives the result of getting a prompt listed by [`Server::prompts`], with the params of the request.
    fn prompt(&self, _request: &Request, name: &str, _params: &Map<String, Value>) -> impl Future<Output = Result<Value, Refusal>> + Send {
        std::future::ready(Err(Refusal::invalid(format!("there is no prompt `{name}`"))))
    }

    /// Answers a method beyond MCP; `None` for unknown methods.
    fn other(
        &self,
        _request: &Request,
        _method: &str,
        _params: &Map<String, Value>,
    ) -> impl Future<Output = Option<Result<Value, Refusal>>> + Send {
        std::future::ready(None)
    }

    /// Lists all values for an argument of the prompt or template `reference` (its name or its URI template), of which `typed` is the
    /// beginning.
    fn completions(&self, _reference: &str, _argument: &str, _typed: &str) -> impl Future<Output = Vec<String>> + Send {
        std::future::ready(Vec::new())
    }

    /// Begins to follow resources, so that each later change is told; answers those that can be followed.
    fn follow(&self, uris: &[String]) -> impl Future<Output = Vec<String>> + Send {
        std::future::ready(uris.to_vec())
    }

    /// Makes the result of a subscription of the initialize era.
    fn subscription(&self, _request: &Request, _id: &str) -> Value {
        json!({})
    }

    /// Called once, before the first request: the way to tell all listeners of changes.
    fn connected(&self, _connection: &Connection) {}
}

/// Reasons for a request to get no result.
#[derive(Debug)]
pub enum Refusal {
    /// An answer of the client is needed first: the whole `input_required` result of the stateless era.
    InputRequired(Value),
    /// A JSON-RPC error.
    Rpc { code: i64, message: String, data: Option<Value> },
}

impl Refusal {
    /// Refuses invalid parameters.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Rpc { code: -32602, message: message.into(), data: None }
    }
}

/// Makes a tool result of both text and structure.
pub fn structured(text: impl Into<String>, value: Value) -> Value {
    let mut result = self::text(text);
    result["structuredContent"] = value;
    result
}

/// Makes a tool result of text only.
pub fn text(text: impl Into<String>) -> Value {
    json!({ "content": [{ "type": "text", "text": text.into() }] })
}

/// Makes a tool result for a failure, with its cause and remedy for the model to read.
pub fn failed(why: impl Into<String>) -> Value {
    json!({ "content": [{ "type": "text", "text": why.into() }], "isError": true })
}

/// Gives the arguments among the params of a request.
pub fn arguments(params: &Map<String, Value>) -> Arguments {
    params.get("arguments").and_then(Value::as_object).cloned().unwrap_or_default()
}

/// Gives the text argument `name`, if present and not empty.
pub fn text_of<'a>(arguments: &'a Arguments, name: &str) -> Option<&'a str> {
    arguments.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty())
}

/// The number argument `name`, as a whole number.
pub fn number_of(arguments: &Arguments, name: &str) -> Option<u64> {
    let value = arguments.get(name)?;
    value.as_u64().or_else(|| value.as_f64().filter(|number| *number >= 0.0).map(|number| number as u64))
}
