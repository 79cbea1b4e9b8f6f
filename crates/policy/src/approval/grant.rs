//! Agreement given beforehand, for a while: for calls of matching tools with matching arguments by matching callers. The right to give a
//! grant
//! is not decided here.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::anchor::is_same;
use super::challenge::Call;
use super::proof::Statement;
use super::standing::Vote;

/// The scope of a grant. `*` in a pattern stands for any text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// Pattern of the tool's dotted name.
    pub tool: String,
    /// Pattern of the caller's principal.
    pub caller: String,
    /// A pattern for each permitted argument: against the text of strings, else against canonical JSON.
    #[serde(default)]
    pub arguments: BTreeMap<String, String>,
    /// Permits other arguments besides.
    #[serde(default)]
    pub any_other: bool,
    /// End of the grant: Unix time, in seconds.
    pub expires: u64,
    /// For how many calls; `None`: any number.
    #[serde(default)]
    pub uses: Option<u32>,
}

/// A grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub id: String,
    pub terms: Terms,
    /// Votes of the people who gave the grant.
    pub given: Vec<Vote>,
    /// Principals of the people who gave the grant.
    #[serde(default)]
    pub principals: Vec<String>,
    /// Number of calls let through.
    pub used: u32,
    /// Time of revocation: Unix time, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<u64>,
}

impl Terms {
    /// Namespace of SSH signatures over a grant, and the `type` of the text.
    pub const NAMESPACE: &'static str = "banyan-grant-v1";

    /// Writes the text to be signed for the grant `id` at the gate `gate`: canonical JSON (RFC 8785).
    pub fn statement(&self, id: &str, gate: &str) -> Statement {
        let arguments: BTreeMap<Vec<u16>, String> = self
            .arguments
            .iter()
            .map(|(name, glob)| (name.encode_utf16().collect(), format!("{}:{}", json::quote(name), json::quote(glob))))
            .collect();
        let arguments: Vec<String> = arguments.into_values().collect();
        let uses = self.uses.map_or("null".to_owned(), |uses| uses.to_string());
        let text = format!(
            "{{\"any_other\":{},\"arguments\":{{{}}},\"caller\":{},\"expires\":{},\"gate\":{},\"id\":{},\"tool\":{},\"type\":\"{}\",\"uses\":{uses}}}",
            self.any_other,
            arguments.join(","),
            json::quote(&self.caller),
            self.expires,
            json::quote(gate),
            json::quote(id),
            json::quote(&self.tool),
            Self::NAMESPACE,
        );
        Statement { text, namespace: Self::NAMESPACE }
    }

    fn fits(&self, call: &Call) -> bool {
        // Whoever gave it for tools has not thought of what else there is to send.
        let is_call = |tool: &str| !tool.contains(": ");
        if is_call(&self.tool) != is_call(&call.tool)
            || !call.others.is_empty()
            || !matches(&self.tool, &call.tool)
            || !matches(&self.caller, &call.caller)
        {
            return false;
        }
        let Ok(Value::Object(arguments)) = serde_json::from_str(&call.arguments) else { return false };
        let fits = |(name, value): (&String, &Value)| match self.arguments.get(name) {
            Some(glob) => matches(glob, &value.as_str().map_or_else(|| value.to_string(), str::to_owned)),
            None => self.any_other,
        };
        self.arguments.keys().all(|name| arguments.contains_key(name)) && arguments.iter().all(fits)
    }
}

impl Grant {
    /// Tells if the grant is neither expired at `now`, nor used up, nor revoked. The desk knows if the votes count.
    pub(super) fn lasts(&self, now: u64) -> bool {
        self.revoked.is_none() && now < self.terms.expires && self.terms.uses.is_none_or(|uses| self.used < uses)
    }

    /// Tells if the grant covers `call`, and was not given by the caller of `call`.
    pub(super) fn fits(&self, call: &Call) -> bool {
        let own = self.principals.contains(&call.caller) || self.given.iter().any(|vote| is_same(&vote.person, &call.caller));
        !own && self.terms.fits(call)
    }
}

/// Matches the whole of `text`; `*` is any run of characters.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::super::canonical;
    use super::*;

    fn terms(arguments: &[(&str, &str)], any_other: bool) -> Terms {
        let arguments = arguments.iter().map(|(name, glob)| ((*name).to_owned(), (*glob).to_owned())).collect();
        Terms { tool: "files.*".into(), caller: "ci".into(), arguments, any_other, expires: 100, uses: Some(2) }
    }

    fn call(tool: &str, caller: &str, arguments: &str) -> Call {
        Call { caller: caller.into(), tool: tool.into(), route: vec!["files".into()], arguments: arguments.into(), ..Call::default() }
    }

    #[test]
    fn a_grant_is_for_its_tools_callers_and_arguments_only() {
        let narrow = terms(&[("path", "/tmp/*"), ("n", "1")], false);
        assert!(narrow.fits(&call("files.rm", "ci", r#"{"n":1,"path":"/tmp/x"}"#)));
        for other in [
            call("disk.rm", "ci", r#"{"n":1,"path":"/tmp/x"}"#),
            call("files.rm", "cd", r#"{"n":1,"path":"/tmp/x"}"#),
            call("files.rm", "ci", r#"{"n":1,"path":"/etc/x"}"#),
            call("files.rm", "ci", r#"{"n":2,"path":"/tmp/x"}"#),
            call("files.rm", "ci", r#"{"path":"/tmp/x"}"#),
            call("files.rm", "ci", r#"{"force":true,"n":1,"path":"/tmp/x"}"#),
            call("files.rm", "ci", "[]"),
        ] {
            assert!(!narrow.fits(&other), "{other:?}");
        }
        let anything = Terms { tool: "*".into(), caller: "*".into(), ..terms(&[], true) };
        assert!(anything.fits(&call("files.rm", "ci", "{}")));
        assert!(!anything.fits(&call("files: vendor/erase", "ci", "{}")), "it was given for tools");
        assert!(!anything.fits(&Call { others: r#"{"task":{}}"#.into(), ..call("files.rm", "ci", "{}") }), "nobody has seen that");
        assert!(terms(&[("path", "/tmp/*")], true).fits(&call("files.rm", "ci", r#"{"force":true,"path":"/tmp/"}"#)));
    }

    #[test]
    fn a_pattern_is_a_text_with_gaps() {
        for (pattern, text, fits) in
            [("", "", true), ("*", "", true), ("a*b*c", "aXbYbc", true), ("a*a", "a", false), ("ab", "abc", false), ("*b", "ab", true)]
        {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn what_is_signed_is_canonical_and_names_all_of_it() {
        let statement = terms(&[("\u{fb33}", "\"x\""), ("\u{1f600}", "y")], false).statement("g1", "gate");
        assert_eq!(canonical(statement.text.as_bytes()).unwrap(), statement.text);
    }
}
