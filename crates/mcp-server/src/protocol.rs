//! The methods of MCP over a [`Server`], and what either era adds to a result. Does no I/O.

use serde_json::{Map, Value, json};

use crate::request::{Era, Request};
use crate::server::{Refusal, Server, arguments};

/// The revisions with a handshake, newest first.
const INITIALIZE: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The stateless revision.
pub(crate) const STATELESS: &str = "2026-07-28";
/// The prefix of the keys of `_meta` reserved by MCP.
pub(crate) const RESERVED: &str = "io.modelcontextprotocol/";

/// Makes the result of `method`, without additions of the era.
pub(crate) async fn answer<S: Server>(server: &S, request: &Request, method: &str, params: &Map<String, Value>) -> Result<Value, Refusal> {
    match method {
        "completion/complete" => complete(server, params).await,
        "prompts/get" => prompt(server, request, params).await,
        "prompts/list" => list("prompts", server.prompts(), params),
        "resources/list" => list("resources", server.resources(), params),
        "resources/read" => read(server, request, params).await,
        "resources/templates/list" => list("resourceTemplates", server.templates(), params),
        "tools/call" => call(server, request, params).await,
        "tools/list" => list("tools", server.tools(), params),
        "server/discover" if request.era == Era::Stateless => Ok(discover(server)),
        "ping" if request.era == Era::Initialize => Ok(json!({})),
        _ => server
            .other(request, method, params)
            .await
            .unwrap_or_else(|| Err(Refusal::Rpc { code: -32601, message: format!("there is no method `{method}`"), data: None })),
    }
}

/// Adds the members required by the stateless era to the result of `method`.
pub(crate) fn finish<S: Server>(server: &S, era: Era, method: &str, mut result: Value) -> Value {
    let Some(members) = result.as_object_mut().filter(|_| era == Era::Stateless) else { return result };
    let complete = !members.contains_key("resultType");
    members.entry("resultType").or_insert_with(|| "complete".into());
    if complete && (method.ends_with("/list") || method == "resources/read" || method == "server/discover") {
        let keeping = server.keeping();
        members.insert("ttlMs".into(), keeping.milliseconds.into());
        members.insert("cacheScope".into(), keeping.scope.into());
    }
    let meta = members.entry("_meta").or_insert_with(|| json!({}));
    if let Some(meta) = meta.as_object_mut() {
        meta.insert(format!("{RESERVED}serverInfo"), info(server));
    }
    result
}

/// The result of `initialize`.
pub(crate) fn initialize<S: Server>(server: &S, params: &Map<String, Value>) -> Value {
    let wanted = params.get("protocolVersion").and_then(Value::as_str);
    let version = INITIALIZE.into_iter().find(|known| wanted == Some(known)).unwrap_or(INITIALIZE[0]);
    json!({
        "protocolVersion": version,
        "capabilities": capabilities(server, Era::Initialize),
        "serverInfo": info(server),
        "instructions": server.about().instructions,
    })
}

fn discover<S: Server>(server: &S) -> Value {
    json!({
        "supportedVersions": [STATELESS],
        "capabilities": capabilities(server, Era::Stateless),
        "instructions": server.about().instructions,
    })
}

fn capabilities<S: Server>(server: &S, era: Era) -> Value {
    let mut all = json!({ "tools": {}, "logging": {} });
    if let (Some(all), Value::Object(more)) = (all.as_object_mut(), server.capabilities(era)) {
        all.extend(more);
    }
    all
}

fn info<S: Server>(server: &S) -> Value {
    let about = server.about();
    json!({ "name": about.name, "title": about.title, "version": about.version })
}

fn list(member: &str, entries: Vec<Value>, params: &Map<String, Value>) -> Result<Value, Refusal> {
    if params.contains_key("cursor") {
        return Err(Refusal::invalid("there is only one page: leave `cursor` out"));
    }
    Ok(Value::Object(Map::from_iter([(member.to_owned(), Value::Array(entries))])))
}

async fn call<S: Server>(server: &S, request: &Request, params: &Map<String, Value>) -> Result<Value, Refusal> {
    let name = named(params, "name")?;
    if !has(&server.tools(), "name", name) {
        return Err(Refusal::invalid(format!("there is no tool `{name}`")));
    }
    check_arguments(params)?;
    server.call(request, name, &arguments(params)).await
}

async fn prompt<S: Server>(server: &S, request: &Request, params: &Map<String, Value>) -> Result<Value, Refusal> {
    let name = named(params, "name")?;
    if !has(&server.prompts(), "name", name) {
        return Err(Refusal::invalid(format!("there is no prompt `{name}`")));
    }
    check_arguments(params)?;
    server.prompt(request, name, params).await
}

/// Refuses arguments that are no object: they would count as none, and a call with none may do more.
fn check_arguments(params: &Map<String, Value>) -> Result<(), Refusal> {
    match params.get("arguments") {
        None | Some(Value::Null | Value::Object(_)) => Ok(()),
        Some(_) => Err(Refusal::invalid("`arguments` is no object: give each argument as a member of one")),
    }
}

async fn read<S: Server>(server: &S, request: &Request, params: &Map<String, Value>) -> Result<Value, Refusal> {
    let uri = named(params, "uri")?;
    server.read(request, uri, params).await?.ok_or_else(|| no_resource(request.era, uri))
}

/// Refuses a URI that the server does not have.
pub(crate) fn no_resource(era: Era, uri: &str) -> Refusal {
    // The code of the initialize era for this one case; the stateless era has none of its own.
    let code = if era == Era::Initialize { -32002 } else { -32602 };
    Refusal::Rpc { code, message: format!("there is no resource `{uri}`"), data: Some(json!({ "uri": uri })) }
}

async fn complete<S: Server>(server: &S, params: &Map<String, Value>) -> Result<Value, Refusal> {
    let reference = params.get("ref").and_then(|r| r.get("name").or_else(|| r.get("uri"))).and_then(Value::as_str);
    let argument = params.get("argument").and_then(|a| a.get("name")).and_then(Value::as_str);
    let (Some(reference), Some(argument)) = (reference, argument) else {
        return Err(Refusal::invalid("completion needs `ref` with a name or a URI, and `argument` with a name"));
    };
    let typed = params.get("argument").and_then(|a| a.get("value")).and_then(Value::as_str).unwrap_or_default();
    let mut values = server.completions(reference, argument, typed).await;
    let begun = typed.to_lowercase();
    values.retain(|value| value.to_lowercase().starts_with(&begun));
    let total = values.len();
    values.truncate(100);
    Ok(json!({ "completion": { "values": values, "total": total, "hasMore": total > 100 } }))
}

fn named<'a>(params: &'a Map<String, Value>, member: &str) -> Result<&'a str, Refusal> {
    params.get(member).and_then(Value::as_str).ok_or_else(|| Refusal::invalid(format!("`{member}` is missing")))
}

fn has(entries: &[Value], member: &str, value: &str) -> bool {
    entries.iter().any(|entry| entry.get(member).and_then(Value::as_str) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_without_an_object_are_refused() {
        let params = |arguments: Value| Map::from_iter([("arguments".to_owned(), arguments)]);
        for given in [json!("{\"hash\": \"x\"}"), json!([1]), json!(false), json!(7)] {
            assert!(matches!(check_arguments(&params(given.clone())), Err(Refusal::Rpc { code: -32602, .. })), "{given}");
        }
        assert!(check_arguments(&params(json!({ "a": 1 }))).is_ok() && check_arguments(&Map::new()).is_ok());
    }
}
