//! Steps of a change within a prompt: the candidate, a commit for limited time, the confirmation. Commit and confirmation wait for a person
//! (section 6.4 of the draft). Applies nothing.

use serde_json::json;

use super::ToolCall;

/// Lines of a diff that are shown.
const SHOWN: usize = 200;

/// Call that puts lines into the candidate.
pub(super) fn candidate(lines: &[String]) -> ToolCall {
    ToolCall { tool: "network.cli.configure", arguments: json!({ "commands": lines }), needs_approval: false }
}

/// Text and call of the commit, with the diff that the candidate answered.
pub(super) fn commit(number: u32, diff: &str, confirmed: Option<u64>) -> (String, ToolCall) {
    let (arguments, back) = match confirmed {
        Some(seconds) => (json!({ "confirmed": seconds }), format!("What nobody confirms within {seconds} seconds is rolled back.")),
        None => (json!({}), "**This device rolls nothing back by itself.**".to_owned()),
    };
    let diff: String = diff.lines().take(SHOWN).map(|line| format!("    {line}\n")).collect();
    let text = format!("{diff}\n{number}. **Ask the user whether this is to be applied**, and go on only after a yes. {back}");
    (text, ToolCall { tool: "network.commit", arguments, needs_approval: true })
}

/// Text and call of the confirmation.
pub(super) fn confirmation(number: u32) -> (String, ToolCall) {
    let text = format!("{number}. Check that all is well. **Ask the user whether the change is to stay**, and go on only after a yes:");
    (text, ToolCall { tool: "network.commit", arguments: json!({ "confirm": true }), needs_approval: true })
}
