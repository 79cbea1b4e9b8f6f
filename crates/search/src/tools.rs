//! The three tools that a client is shown in place of thousands: their definitions and their answers, as raw JSON.
//!
//! Does not look anything up and does not call anything: the call pipeline does, and takes the words from here.

use std::fmt::Write;

use bytes::Bytes;
use mcp_proto::json::{self, Members};

use super::parameters::parameter_names;

/// Finds tools: `query`, and if wanted `server` and `limit`.
pub const SEARCH: &str = "search_tools";
/// Shows the whole definition of one tool: `name`.
pub const DESCRIBE: &str = "describe_tool";
/// Calls a tool: `name` and `arguments`. The result is the called tool's.
pub const CALL: &str = "call_tool";

/// Number of tools in an answer, by default.
pub const DEFAULT_LIMIT: usize = 8;
/// Most tools in an answer.
pub const MAX_LIMIT: usize = 50;
/// Most servers named in the description of `search_tools`.
const SERVERS_NAMED: usize = 60;
/// Bytes of the longest description in an answer.
const DESCRIPTION_LIMIT: usize = 240;

/// A tool, as needed for the answer of a search.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// The name for this client.
    pub name: &'a str,
    pub definition: &'a [u8],
}

/// The arguments of `search_tools`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SearchArguments {
    pub query: String,
    /// Only the tools of this mount.
    pub server: Option<String>,
    /// Number of tools, 1 to [`MAX_LIMIT`].
    pub limit: usize,
}

/// The definitions of the three tools, as elements of a `tools/list`; `servers` are the names of the mounts.
pub fn definitions(servers: &[&str]) -> [Bytes; 3] {
    [search_definition(servers).as_str(), DESCRIBE_DEFINITION, CALL_DEFINITION].map(compact)
}

/// Reads the raw `arguments` of `search_tools`; `None` without a `query`.
pub fn search_arguments(arguments: &[u8]) -> Option<SearchArguments> {
    let members = Members::again(arguments);
    let limit = members.get("limit").and_then(|raw| std::str::from_utf8(raw).ok()?.parse::<f64>().ok());
    Some(SearchArguments {
        query: members.str("query")?.into_owned(),
        server: members.str("server").filter(|server| !server.is_empty()).map(Into::into),
        limit: limit.map_or(DEFAULT_LIMIT, |limit| (limit as usize).clamp(1, MAX_LIMIT)),
    })
}

/// The result of `search_tools`; `all` is how many tools were searched.
pub fn search_result(query: &str, found: &[Found<'_>], all: usize) -> Bytes {
    if found.is_empty() {
        let text = format!(
            "None of the {all} tools matches {query:?}. Use other words: what the tool does and what it does it to, such as \
             \"create issue\" or \"list files\"."
        );
        return result(&text, Some(&format!(r#"{{"tools":[],"searched":{all}}}"#)), false);
    }
    let mut text = format!("The best {} of {all} tools for {query:?}:\n", found.len());
    let mut structured = String::from(r#"{"tools":["#);
    for (number, tool) in found.iter().enumerate() {
        let brief = Brief::new(tool);
        brief.write_text(number + 1, &mut text);
        structured.push_str(if number == 0 { "" } else { "," });
        brief.write_json(&mut structured);
    }
    text.push_str("\n* required. Call one with call_tool; describe_tool shows its whole input schema.");
    // Writing into a String can't fail.
    let _infallible = write!(structured, r#"],"searched":{all}}}"#);
    result(&text, Some(&structured), false)
}

/// Makes the result of `describe_tool`: the definition as shown to this client.
pub fn describe_result(definition: &[u8]) -> Bytes {
    let definition = String::from_utf8_lossy(definition);
    result(&definition, Some(&definition), false)
}

/// Makes the result of `describe_tool` and `call_tool` for an unknown name; `similar` are names that look alike.
pub fn unknown_tool(name: &str, similar: &[&str]) -> Bytes {
    let similar = if similar.is_empty() { String::new() } else { format!(" Did you mean {}?", similar.join(" or ")) };
    let name: String = name.chars().take(200).collect();
    result(&format!("There is no tool {name:?}.{similar} Find names with search_tools."), None, true)
}

/// Makes the result of the three tools for unusable arguments.
pub fn bad_arguments(tool: &str) -> Bytes {
    let needed = match tool {
        SEARCH => r#"{"query": "words that say what the tool should do"}"#,
        DESCRIBE => r#"{"name": "a name from search_tools"}"#,
        _ => r#"{"name": "a name from search_tools", "arguments": {}}"#,
    };
    result(&format!("{tool} needs arguments of this form: {needed}"), None, true)
}

/// About how many tokens a model spends on `bytes` bytes of JSON.
pub fn approximate_tokens(bytes: usize) -> usize {
    bytes.div_ceil(4)
}

/// A tool in the answer of a search.
struct Brief<'a> {
    name: &'a str,
    description: String,
    parameters: Vec<(String, bool)>,
    tokens: usize,
}

impl<'a> Brief<'a> {
    fn new(tool: &Found<'a>) -> Self {
        let definition = Members::again(tool.definition);
        let text = definition.str("description").or_else(|| definition.str("title")).unwrap_or_default();
        Self {
            name: tool.name,
            description: shorten(&text),
            parameters: definition.get("inputSchema").map(parameter_names).unwrap_or_default(),
            tokens: approximate_tokens(tool.definition.len()),
        }
    }

    fn write_text(&self, number: usize, text: &mut String) {
        let parameters: Vec<_> =
            self.parameters.iter().map(|(name, required)| format!("{name}{}", if *required { "*" } else { "" })).collect();
        let parameters = if parameters.is_empty() { "none".into() } else { parameters.join(", ") };
        // Writing into a String can't fail.
        let _infallible =
            write!(text, "\n{number}. {} (about {} tokens)\n   {}\n   arguments: {parameters}\n", self.name, self.tokens, self.description);
    }

    fn write_json(&self, text: &mut String) {
        let list = |required_only: bool| {
            let names = self.parameters.iter().filter(|(_, required)| *required || !required_only);
            names.map(|(name, _)| json::quote(name)).collect::<Vec<_>>().join(",")
        };
        // Writing into a String can't fail.
        let _infallible = write!(
            text,
            r#"{{"name":{},"description":{},"arguments":[{}],"required":[{}],"tokens":{}}}"#,
            json::quote(self.name),
            json::quote(&self.description),
            list(false),
            list(true),
            self.tokens
        );
    }
}

/// Makes one line, cut at a sentence or a word.
fn shorten(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.len() <= DESCRIPTION_LIMIT {
        return line;
    }
    let head = &line[..line.floor_char_boundary(DESCRIPTION_LIMIT)];
    match head.rfind(". ") {
        Some(end) if end > DESCRIPTION_LIMIT / 4 => head[..=end].into(),
        _ => format!("{} …", head.rsplit_once(' ').map_or(head, |(words, _)| words)),
    }
}

fn result(text: &str, structured: Option<&str>, is_error: bool) -> Bytes {
    let text = json::quote(text);
    let structured = structured.map(|value| format!(r#","structuredContent":{value}"#)).unwrap_or_default();
    let error = if is_error { r#","isError":true"# } else { "" };
    format!(r#"{{"content":[{{"type":"text","text":{text}}}]{structured}{error}}}"#).into()
}

fn search_definition(servers: &[&str]) -> String {
    let mut named: Vec<&str> = servers.iter().take(SERVERS_NAMED).copied().collect();
    if servers.len() > SERVERS_NAMED {
        named.push("and others");
    }
    let description = format!(
        "Finds tools by what they do. The tools of these servers can be found and called: {}. Search before saying that something \
         can't be done. Use a few words for the action and the thing, such as \"create issue\"; then call what was found with call_tool.",
        named.join(", ")
    );
    SEARCH_DEFINITION.replace("\"DESCRIPTION\"", &json::quote(&description))
}

const SEARCH_DEFINITION: &str = r#"{"name":"search_tools","title":"Search tools","description":"DESCRIPTION",
"inputSchema":{"type":"object","properties":{
"query":{"type":"string","description":"What the tool should do, in a few words"},
"server":{"type":"string","description":"Only the tools of this server"},
"limit":{"type":"integer","minimum":1,"maximum":50,"default":8,"description":"How many tools at most"}},
"required":["query"]},
"outputSchema":{"type":"object","properties":{
"tools":{"type":"array","items":{"type":"object","properties":{
"name":{"type":"string"},"description":{"type":"string"},
"arguments":{"type":"array","items":{"type":"string"}},
"required":{"type":"array","items":{"type":"string"}},
"tokens":{"type":"integer"}},"required":["name","description","arguments","required","tokens"]}},
"searched":{"type":"integer"}},"required":["tools","searched"]},
"annotations":{"title":"Search tools","readOnlyHint":true,"idempotentHint":true,"openWorldHint":false}}"#;

const DESCRIBE_DEFINITION: &str = r#"{"name":"describe_tool","title":"Describe a tool",
"description":"Shows the whole definition of one tool: its description and the JSON Schema of its arguments. Use it before call_tool when the names of the arguments that search_tools gave are not enough.",
"inputSchema":{"type":"object","properties":{
"name":{"type":"string","description":"The tool's name, exactly as search_tools gave it"}},
"required":["name"]},
"annotations":{"title":"Describe a tool","readOnlyHint":true,"idempotentHint":true,"openWorldHint":false}}"#;

const CALL_DEFINITION: &str = r#"{"name":"call_tool","title":"Call a tool",
"description":"Calls a tool that search_tools found. The answer is the tool's own.",
"inputSchema":{"type":"object","properties":{
"name":{"type":"string","description":"The tool's name, exactly as search_tools gave it"},
"arguments":{"type":"object","description":"The tool's arguments, as its input schema wants them","additionalProperties":true}},
"required":["name"]},
"annotations":{"title":"Call a tool","readOnlyHint":false,"destructiveHint":true,"openWorldHint":true}}"#;

/// Takes out the line ends of the texts above; inside strings there are none.
fn compact(definition: &str) -> Bytes {
    definition.replace('\n', "").into()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const DEFINITION: &[u8] = br#"{"name":"create_issue","description":"Open a new\nissue.","inputSchema":{"type":"object","properties":{"title":{},"body":{}},"required":["title"]}}"#;

    #[test]
    fn the_definitions_are_tools_with_schemas_and_name_the_servers() {
        let definitions = definitions(&["github", "say \"hi\""]);
        let tools: Vec<Value> = definitions.iter().map(|raw| serde_json::from_slice(raw).unwrap()).collect();
        assert_eq!(tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect::<Vec<_>>(), [SEARCH, DESCRIBE, CALL]);
        for tool in &tools {
            assert_eq!(tool["inputSchema"]["type"], "object");
            assert!(tool["description"].as_str().unwrap().len() > 40);
        }
        assert!(tools[0]["description"].as_str().unwrap().contains("github, say \"hi\""));
        assert!(definitions.iter().all(|raw| !raw.contains(&b'\n')));
    }

    #[test]
    fn a_very_wide_tree_does_not_make_the_description_long() {
        let names: Vec<String> = (0..10_000).map(|number| format!("server{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let total: usize = definitions(&names).iter().map(Bytes::len).sum();
        assert!(total < 4_000, "{total}");
    }

    #[test]
    fn the_three_tools_cost_a_model_little() {
        let tokens: usize = definitions(&["github", "slack"]).iter().map(|raw| approximate_tokens(raw.len())).sum();
        assert!(tokens < 700, "{tokens}");
    }

    #[test]
    fn arguments_are_read_leniently_and_bounded() {
        let read = |text: &str| search_arguments(text.as_bytes());
        assert_eq!(read(r#"{"query":"x"}"#), Some(SearchArguments { query: "x".into(), server: None, limit: DEFAULT_LIMIT }));
        let limits = ["0", "-5", "3.0", "1e9", "\"7\""].map(|limit| read(&format!(r#"{{"query":"x","limit":{limit}}}"#)).unwrap().limit);
        assert_eq!(limits, [1, 1, 3, MAX_LIMIT, DEFAULT_LIMIT]);
        assert_eq!(read(r#"{"query":"x","server":"github"}"#).unwrap().server.as_deref(), Some("github"));
        assert_eq!(read(r#"{"text":"x"}"#), None);
    }

    #[test]
    fn a_search_says_the_same_in_text_and_in_structure() {
        let found = [Found { name: "github__create_issue", definition: DEFINITION }];
        let result: Value = serde_json::from_slice(&search_result("new \"issue\"", &found, 1204)).unwrap();
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("1. github__create_issue (about 37 tokens)\n   Open a new issue.\n   arguments: title*, body\n"), "{text}");
        let tool = &result["structuredContent"]["tools"][0];
        assert_eq!(tool["name"], "github__create_issue");
        assert_eq!((&tool["arguments"], &tool["required"]), (&serde_json::json!(["title", "body"]), &serde_json::json!(["title"])));
        assert_eq!(result["structuredContent"]["searched"], 1204);
    }

    #[test]
    fn what_was_not_found_says_what_to_do() {
        let empty: Value = serde_json::from_slice(&search_result("qqq", &[], 10)).unwrap();
        assert!(empty["content"][0]["text"].as_str().unwrap().contains("other words"));
        assert_eq!(empty["structuredContent"]["tools"], serde_json::json!([]));
        let unknown: Value = serde_json::from_slice(&unknown_tool("git.comit", &["git__commit"])).unwrap();
        assert_eq!(unknown["isError"], true);
        assert!(unknown["content"][0]["text"].as_str().unwrap().contains("Did you mean git__commit?"));
        let bad: Value = serde_json::from_slice(&bad_arguments(CALL)).unwrap();
        assert!(bad["content"][0]["text"].as_str().unwrap().contains("\"arguments\""));
    }

    #[test]
    fn a_description_is_one_line_that_ends_well() {
        assert_eq!(shorten("One\n  two."), "One two.");
        let sentences = shorten(&format!("{}. {}", "a".repeat(100), "b ".repeat(200)));
        assert_eq!(sentences, format!("{}.", "a".repeat(100)));
        let words = shorten(&"wörd ".repeat(100));
        assert!(words.ends_with("wörd …") && words.len() <= DESCRIPTION_LIMIT + 4, "{words}");
    }

    #[test]
    fn a_definition_is_described_as_it_is() {
        let result: Value = serde_json::from_slice(&describe_result(DEFINITION)).unwrap();
        let definition: Value = serde_json::from_slice(DEFINITION).unwrap();
        assert_eq!(result["structuredContent"], definition);
        assert_eq!(result["content"][0]["text"].as_str().unwrap().as_bytes(), DEFINITION);
    }
}
