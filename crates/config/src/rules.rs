//! Reads a file of rules, and shows mistakes as in `banyan.toml`. Does not know the meaning of rules.

use std::path::Path;

use policy::decide::Policies;
use serde_json::Value;

use super::problem::{ConfigError, Flaw, invalid};
use super::snippet::Shown;

/// Rules with mistakes.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadRules(pub ConfigError);

/// Reads rules from `text`; `path` stands in errors.
pub fn parse(path: &Path, text: &str) -> Result<Policies, BadRules> {
    Policies::parse(text).map_err(|flaws| {
        // Rules hold no secrets, so the whole line is shown.
        let shown = flaws.into_iter().map(|flaw| Flaw { help: flaw.help, shown: Shown::Whole, ..Flaw::new(flaw.span, flaw.message) });
        BadRules(invalid(path, text, &Value::Null, shown.collect()))
    })
}

/// The rules of `banyan policy init`.
pub const STARTER: &str = r#"// Who may call what: rules in Cedar (https://docs.cedarpolicy.com), read by Banyan.
//
// What no rule permits is refused, and a rule that forbids wins over all that permit.
//   action     Action::"call" a tool, "prompt" for a prompt, "read" a resource, "send" a method that Banyan does not know
//   resource   Tool::"github.create_issue" itself, or all of a server: resource in Mount::"github"
//              of a tool: name, mount, read_only, reversible, irreversible, idempotent, scope, cost, latency
//   principal  Principal::"ci", principal in Group::"ops", principal in Role::"admin@corp"; name, kind, client, scopes
//   context    context.arguments.NAME (ask `has` first), context.time.{hour, minute, weekday, unix}, context.profile
// Above a rule: @id("name"), @remedy("what to do"), @mode("shadow") to try it out, @effect("gate") to have somebody agree first,
// @scope("name") to have the caller sign in again with that scope.

@id("everybody-may")
permit (principal, action, resource);

// Take away the slashes to have somebody agree before anything is done that can't be undone:
// @id("ask-first")
// @effect("gate")
// forbid (principal, action == Action::"call", resource)
// when { resource.irreversible };
"#;
