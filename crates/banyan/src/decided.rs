//! Decisions of the rules, drawn for people. What was decided is not looked up here.

use gateway::admin::shapes::{DecidedRule, DecisionRow};

use crate::output::{Look, Output};
use crate::printable::printable;
use crate::table;

/// Draws a decision: fate of the call, caller, rules, their advice.
pub(crate) fn lines(one: &DecisionRow, now: u64, output: &Output) -> Vec<String> {
    let look = if one.effect == "deny" { Look::Bad } else { Look::Warn };
    let ago = table::duration(now.saturating_sub(one.at));
    let mut lines = vec![format!("{}  {}, {ago} ago: {}", one.id, output.paint(look, &one.effect), why(&one.cause))];
    let groups = if one.groups.is_empty() { String::new() } else { format!(", in {}", one.groups.join(", ")) };
    let client = if one.client.is_empty() { String::new() } else { format!(", with {}", one.client) };
    let known = if one.recorded { String::new() } else { format!(" ({}{groups}{client})", one.kind) };
    lines.push(printable(&format!("    {}{known} wanted to {} {}", one.principal, one.action, one.resource)));
    if !one.inputs.is_empty() {
        let inputs: Vec<String> = one.inputs.iter().map(|(name, text)| format!("{name} {text}")).collect();
        lines.push(printable(&format!("    by {}", inputs.join(", "))));
    }
    if one.recorded {
        lines.push("    from the record, which keeps the names of rules: what they say is what they say today".to_owned());
    }
    lines.extend(one.error.iter().map(|error| printable(&format!("    {error}"))));
    lines.extend(one.rules.iter().flat_map(|rule| of_rule(rule, output)));
    if let Some(shadow) = &one.shadow {
        lines.push(format!("    in shadow mode: {}, {}", shadow.effect, why(&shadow.cause)));
        lines.extend(shadow.rules.iter().flat_map(|rule| of_rule(rule, output)));
    }
    lines
}

fn of_rule(rule: &DecidedRule, output: &Output) -> Vec<String> {
    let place = if rule.text.is_empty() { "(not among the rules any more)".to_owned() } else { format!("(line {})", rule.line) };
    let mut lines = vec![format!("    {} {place}", output.paint(Look::Strong, &printable(&rule.id)))];
    lines.extend(rule.remedy.iter().map(|remedy| format!("      what helps: {}", printable(remedy))));
    lines.extend(rule.text.lines().map(|line| format!("      {}", output.paint(Look::Dim, &printable(line)))));
    lines
}

fn why(cause: &str) -> &str {
    match cause {
        "forbidden" => "these rules forbid it",
        "gated" => "these rules want somebody to agree first",
        "not_permitted" => "no rule permits it",
        "permitted" => "these rules permit it",
        "policy_error" => "a rule could not be evaluated, and then nothing is allowed",
        "unknown" => "there is nothing of that name",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_told_the_rule_and_what_helps() {
        let one = serde_json::json!({"id": "d-1", "at": 40, "principal": "ci", "kind": "token", "groups": ["ops"], "client": "x",
            "action": "call", "resource": "m.wipe", "inputs": {"irreversible": "true", "arguments": "{\"disk\":\"string:1\"}"}, "effect": "deny", "cause": "forbidden",
            "rules": [{"id": "no-wipe", "line": 3, "remedy": "ask the owner", "text": "forbid (principal, action, resource);"}]});
        let drawn = lines(&serde_json::from_value(one).unwrap(), 100, &Output::new(false));
        assert_eq!(drawn[0], "d-1  deny, 1m ago: these rules forbid it");
        assert_eq!(drawn[1], "    ci (token, in ops, with x) wanted to call m.wipe");
        assert_eq!(drawn[2], "    by arguments {\"disk\":\"string:1\"}, irreversible true");
        assert_eq!(drawn[3..], ["    no-wipe (line 3)", "      what helps: ask the owner", "      forbid (principal, action, resource);"]);
    }
}
