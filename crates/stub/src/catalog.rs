//! Tools of a part as MCP lists them, from the configuration alone; the part's own table only says if they agree. Calls nothing.

use mesh_proto::annotation::key;
use serde_json::{Map, Value as Json, json};
use stub_proto::table::{PartTable, TableRow, ValueKind};

use crate::settings::{StubSettings, StubTool, StubValue};

/// Lists the tools. Those that the part's table contradicts are degraded.
pub(crate) fn list(settings: &StubSettings, table: Option<&PartTable>) -> Json {
    let tools: Vec<Json> = settings.tools.iter().map(|tool| shown(tool, settings.transport(), mismatch(tool, table).is_some())).collect();
    json!({ "tools": tools })
}

/// Says how the part's table contradicts the configuration, if it does; a part without a table contradicts nothing.
pub(crate) fn mismatch(tool: &StubTool, table: Option<&PartTable>) -> Option<String> {
    let ours = tool.row();
    let Some(theirs) = table?.row(tool.id) else {
        return Some(format!(
            "the configuration has tool {} as {}, and the part lists no tool with this number",
            tool.id,
            signature(&ours)
        ));
    };
    let differs = format!("the configuration has tool {} as {}, and the part lists it as {}", tool.id, signature(&ours), signature(theirs));
    (ours != *theirs).then_some(differs)
}

fn signature(row: &TableRow) -> String {
    let words: Vec<&str> = row.arguments.iter().map(|kind| kind.word()).collect();
    format!("({}) -> {}", words.join(", "), row.answer.word())
}

fn shown(tool: &StubTool, transport: &str, is_degraded: bool) -> Json {
    let mut meta = json!({
        key::LATENCY_CLASS: tool.latency.as_str(),
        key::MUTABLE: tool.is_mutable,
        key::REVERSIBLE: tool.is_reversible,
        key::IDEMPOTENT: tool.is_idempotent,
        key::TRANSPORT: transport,
    });
    if is_degraded {
        meta[key::AVAILABILITY] = "degraded".into();
    }
    let mut shown = json!({
        "name": tool.name,
        "description": tool.description,
        "inputSchema": schema(&tool.arguments, true),
        "annotations": {
            "readOnlyHint": !tool.is_mutable,
            "destructiveHint": tool.is_mutable && !tool.is_reversible,
            "idempotentHint": tool.is_idempotent,
            "openWorldHint": false,
        },
        "_meta": meta,
    });
    if !tool.results.is_empty() {
        shown["outputSchema"] = schema(&tool.results, false);
    }
    shown
}

fn schema(values: &[StubValue], is_closed: bool) -> Json {
    let properties: Map<String, Json> = values.iter().map(|value| (value.name.clone(), property(value))).collect();
    let required: Vec<&str> = values.iter().map(|value| value.name.as_str()).collect();
    let mut schema = json!({ "type": "object", "properties": properties, "required": required });
    if is_closed {
        schema["additionalProperties"] = false.into();
    }
    schema
}

fn property(value: &StubValue) -> Json {
    let mut property = match value.kind {
        ValueKind::Uint => json!({ "type": "integer", "minimum": 0 }),
        ValueKind::Int => json!({ "type": "integer" }),
        ValueKind::Bool => json!({ "type": "boolean" }),
        ValueKind::Float => json!({ "type": "number" }),
        ValueKind::Text => json!({ "type": "string" }),
        ValueKind::Bytes => json!({ "type": "string", "contentEncoding": "base64" }),
        ValueKind::Array | ValueKind::Map | ValueKind::Null => json!({}),
    };
    for (key, bound) in [("minimum", value.minimum), ("maximum", value.maximum)] {
        if let Some(bound) = bound {
            property[key] = bound.into();
        }
    }
    let unit = value.unit.as_ref().map(|unit| format!("in {unit}"));
    let words: Vec<&str> = value.description.as_deref().into_iter().chain(unit.as_deref()).collect();
    if !words.is_empty() {
        property["description"] = words.join(", ").into();
    }
    property
}
