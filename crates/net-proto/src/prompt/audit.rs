//! Report on the security of a running configuration, in one step: the rules of the dialect, and what each finding wants. Shows no line of
//! the configuration.

use super::{PromptDevice, PromptStep, ToolCall};
use crate::fault::{Code, Fault};

/// The report; a device that gave no configuration gets none.
pub(super) fn report(is_detailed: bool, device: PromptDevice<'_>) -> Result<PromptStep, Fault> {
    let Some(running) = device.running else {
        return Err(Fault::new(Code::ConfigIncompatible, "the running configuration of this device can't be read").at("running-config"));
    };
    let findings = device.dialect.findings(running, is_detailed);
    let rules = device.dialect.audit_rules(is_detailed);
    let profile = if is_detailed { "detailed" } else { "basic" };
    let title = format!("Security audit ({profile})");
    let mut markdown = format!("## {title}\n\n{} of {rules} rules found something.\n", findings.len());
    for finding in &findings {
        let line = finding.line.map_or_else(String::new, |line| format!(", line {line}"));
        let severity = format!("{:?}", finding.severity).to_lowercase();
        markdown.push_str(&format!("\n- **{severity}** `{}`{line}: {} {}", finding.id, finding.says, finding.fix));
    }
    if !findings.is_empty() {
        let call =
            ToolCall { tool: "network.file.pull", arguments: serde_json::json!({ "filename": "running-config" }), needs_approval: false };
        markdown.push_str(&format!("\n\nThe lines, without their secrets: {}", call.written()));
    }
    Ok(PromptStep::over(title, markdown.trim_end()))
}
