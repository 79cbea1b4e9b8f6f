//! `banyan call TOOL`: a call by hand or from a script. Prints the result; does not judge it beyond `isError`.

use bytes::Bytes;
use clap::Args;
use gateway::admin::shapes::{CallRequest, ToolRow};
use serde::Deserialize;
use serde_json::Value;

use crate::arguments::Place;
use crate::asked::AskedGate;
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::printable::{printable, printable_lines};
use crate::signature::ToolSignature;
use crate::{call_arguments, table, terminal, threads, time};

/// Calls one tool and prints its answer.
#[derive(Args)]
#[command(after_help = "After `=`, what reads as a number, true, false or null is that, and everything else is text.\n\
    Examples:\n  banyan call time.now zone=Europe/Vienna\n  banyan call files.read_text '{\"path\": \"notes.txt\"}'\n  \
    echo '{\"a\": 1}' | banyan call calc.add -")]
pub(crate) struct Call {
    /// The tool: its dotted name, the name a client is shown, or SERVER.NAME as the record has it
    tool: String,
    /// Its arguments: one JSON object, key=value, key:=json, or `-` to read an object from standard input
    #[arg(value_name = "JSON|KEY=VALUE")]
    arguments: Vec<String>,
    /// Where a person has to approve the call, wait for that [default: where a person is at the terminal]
    #[arg(long, overrides_with = "no_wait")]
    wait: bool,
    /// Do not wait: make the same call again once it is approved
    #[arg(long)]
    no_wait: bool,
}

/// A gate's answer about a call that waits for a person.
#[derive(Deserialize)]
struct HeldCall {
    id: String,
    expires: u64,
}

impl Call {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let arguments = call_arguments::object(&self.arguments)?;
        let request = CallRequest { tool: self.tool.clone(), arguments, raw: false, waits: false };
        let result = threads::wait(self.ask(place, &request, output))??;
        let value: Value = serde_json::from_slice(&result).map_err(|e| Failure::Failed(format!("the result is no JSON: {e}")))?;
        if output.wants_json() {
            output.raw(&[&result[..], b"\n"].concat())?;
        } else {
            for line in shown(&value, output) {
                output.line(&line)?;
            }
        }
        if let Some(held) = HeldCall::read(&value) {
            return Err(Failure::Refused(format!(
                "`{}` was not called: it waits for a person for {}\n  `banyan approve {}` approves it; then make the same call again, or \
                 make it with `--wait`",
                self.tool,
                held.left(),
                held.short()
            )));
        }
        if value["isError"] == Value::Bool(true) {
            return Err(Failure::ToolFailed(format!("`{}` reports that it failed", self.tool)));
        }
        Ok(())
    }

    async fn ask(&self, place: &Place, request: &CallRequest, output: &Output) -> Result<Bytes, Failure> {
        let asked = AskedGate::find_for(Some(&self.tool), place, output).await?;
        let answer = match self.slip(&asked, request).await {
            Some(slip) => Err(Failure::Usage(slip)),
            None => asked.with_near_tools(&self.tool, self.answered(&asked, request, output).await).await,
        };
        asked.finish(output).await;
        answer
    }

    /// Finds a slip in the arguments, which most servers would pass over. A tool that nobody finds is told by the call.
    async fn slip(&self, asked: &AskedGate, request: &CallRequest) -> Option<String> {
        let tools = asked.tools(None).await.ok()?.tools;
        let one = asked.definition(&ToolRow::find(&tools, &self.tool)?.dotted).await.ok()?;
        let (definition, arguments) =
            (serde_json::from_str(one.definition.get()).ok()?, serde_json::from_str(request.arguments.get()).ok()?);
        let slip = ToolSignature::read(&definition).slip(&self.tool, &arguments)?;
        Some(format!("{slip}\n  `banyan tools {}` shows its arguments", printable(&self.tool)))
    }

    async fn answered(&self, asked: &AskedGate, request: &CallRequest, output: &Output) -> Result<Bytes, Failure> {
        let answer = asked.call(request).await?;
        let Some(held) = HeldCall::read(&serde_json::from_slice(&answer).unwrap_or_default()) else { return Ok(answer) };
        if matches!(asked, AskedGate::Own(_)) {
            let why = "no gate is running, so that nobody can approve it\n  start one with `banyan up`, and make the call again";
            return Err(Failure::Refused(format!("`{}` was not called: a person has to approve it, and {why}", self.tool)));
        }
        if !self.wait && (self.no_wait || !terminal::somebody_is_there()) {
            return Ok(answer);
        }
        output.remark(&format!(
            "`{}` waits for a person for {}: `banyan approve {}` in another terminal approves it, `banyan deny {}` says no",
            self.tool,
            held.left(),
            held.short(),
            held.short()
        ));
        asked.call(&CallRequest { waits: true, ..request.clone() }).await
    }
}

impl HeldCall {
    fn read(result: &Value) -> Option<Self> {
        Self::deserialize(result.get("_meta")?.get("io.banyan/approval")?).ok()
    }

    /// Gives the time left for a person.
    fn left(&self) -> String {
        table::duration(self.expires.saturating_sub(time::now()))
    }

    /// As much of the id as a person types.
    fn short(&self) -> String {
        printable(&self.id.chars().take(8).collect::<String>())
    }
}

/// Draws the content for people: texts unchanged, the rest by its kind.
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
