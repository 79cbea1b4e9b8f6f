//! `banyan call TOOL`: one call, by hand or from a script. Prints the result; does not judge it beyond `isError`.

use bytes::Bytes;
use clap::Args;
use gateway::admin::shapes::CallRequest;
use serde_json::Value;

use crate::arguments::Place;
use crate::asked::Asked;
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::printable::{printable, printable_lines};
use crate::{call_arguments, runtime};

/// Calls one tool and prints what it answers.
#[derive(Args)]
#[command(after_help = "After `=`, what reads as a number, true, false or null is that, and everything else is text.\n\
    Examples:\n  banyan call time.now zone=Europe/Vienna\n  banyan call files.read_text '{\"path\": \"notes.txt\"}'\n  \
    echo '{\"a\": 1}' | banyan call calc.add -")]
pub(crate) struct Call {
    /// The tool: its dotted name, or the name a client is shown
    tool: String,
    /// Its arguments: one JSON object, key=value, key:=json, or `-` to read an object from standard input
    #[arg(value_name = "JSON|KEY=VALUE")]
    arguments: Vec<String>,
}

impl Call {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let arguments = call_arguments::object(&self.arguments)?;
        let request = CallRequest { tool: self.tool.clone(), arguments, raw: false };
        let result = runtime::wait(self.ask(place, &request, output))??;
        let value: Value = serde_json::from_slice(&result).map_err(|e| Failure::Failed(format!("the result is no JSON: {e}")))?;
        if output.wants_json() {
            output.raw(&[&result[..], b"\n"].concat())?;
        } else {
            for line in shown(&value, output) {
                output.line(&line)?;
            }
        }
        if value["_meta"]["io.banyan/approval"].is_object() {
            return Err(Failure::Refused(format!("`{}` was not called: it waits for a person", self.tool)));
        }
        if value["isError"] == Value::Bool(true) {
            return Err(Failure::ToolFailed(format!("`{}` reports that it failed", self.tool)));
        }
        Ok(())
    }

    async fn ask(&self, place: &Place, request: &CallRequest, output: &Output) -> Result<Bytes, Failure> {
        let asked = Asked::find(place, output).await?;
        let answer = asked.with_near_tools(&self.tool, asked.call(request).await).await;
        asked.end(output).await;
        answer
    }
}

/// The content for people: texts as they are, the rest by what it is.
fn shown(result: &Value, output: &Output) -> Vec<String> {
    let content = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut lines: Vec<String> = content.iter().map(|c| piece(c, output)).collect();
    if content.is_empty() {
        let value = result.get("structuredContent").unwrap_or(result);
        lines.push(serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string()));
    }
    lines
}

fn piece(content: &Value, output: &Output) -> String {
    let text = |key: &str| content[key].as_str().unwrap_or_default();
    match text("type") {
        "text" => printable_lines(text("text")),
        "audio" | "image" => {
            let bytes = text("data").len() / 4 * 3;
            output.paint(Look::Dim, &format!("[{}: {}, about {bytes} bytes; --json shows it]", text("type"), printable(text("mimeType"))))
        }
        "resource_link" => output.paint(Look::Dim, &format!("[link: {}]", printable(text("uri")))),
        "resource" => {
            let resource = &content["resource"];
            let uri = resource["uri"].as_str().unwrap_or_default();
            let head = output.paint(Look::Dim, &format!("[resource: {}]", printable(uri)));
            resource["text"].as_str().map_or_else(|| head.clone(), |t| format!("{head}\n{}", printable_lines(t)))
        }
        _ => content.to_string(),
    }
}
