//! A health check of a device: a command, and the output of a healthy device. Asks no device.

use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most bytes of a compiled expression, and of an output that is searched by one.
const LARGEST: usize = 1 << 18;
const SEARCHED: usize = 1 << 20;

/// A command of the device, and how its output looks for a healthy device. Each of `expect`, `absent` and `matches` that is given has to hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Health {
    /// The command, such as `show bgp summary`.
    pub command: String,
    /// A text that the output holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<String>,
    /// A text that the output does not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
    /// A regular expression that a line of the output matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &r"^Neighbor\s+10\.0\.12\.2\b.*\bFull\b")]
    pub matches: Option<String>,
    /// Seconds after a change within which the device has to become healthy. Default: 0, at once.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub within: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
const fn is_zero(within: &u64) -> bool {
    *within == 0
}

impl Health {
    /// Finds the flaw of a check that could not be used.
    pub fn flaw(&self) -> Option<String> {
        let is_blank = |text: &&Option<String>| text.as_ref().is_some_and(|text| text.trim().is_empty());
        let given = [&self.expect, &self.absent, &self.matches];
        if self.command.trim().is_empty() {
            return Some("a health check has no command".to_owned());
        }
        if given.iter().any(is_blank) {
            return Some(format!("the health check `{}` has an empty text to look for", self.command));
        }
        if given.iter().all(|text| text.is_none()) {
            return Some(format!("the health check `{}` names nothing to look for: add `expect`, `absent` or `matches`", self.command));
        }
        let error = self.matches.as_deref().and_then(|text| expression(text).err())?;
        Some(format!("`matches` of the health check `{}` is no regular expression: {error}", self.command))
    }

    /// Says how the output of the command differs from that of a healthy device, as the rest of a sentence.
    pub fn complaint(&self, output: &str) -> Option<String> {
        // A daemon that is gone shows nothing, and nothing bad either.
        if output.trim().is_empty() {
            return Some("shows nothing".to_owned());
        }
        if let Some(text) = self.expect.as_ref().filter(|text| !output.contains(text.as_str())) {
            return Some(format!("does not show `{text}`"));
        }
        if let Some(text) = self.absent.as_ref().filter(|text| output.contains(text.as_str())) {
            return Some(format!("shows `{text}`"));
        }
        let text = self.matches.as_ref()?;
        if output.len() > SEARCHED {
            return Some(format!("shows more than {SEARCHED} bytes, too much to be searched for `{text}`: take a narrower command"));
        }
        match expression(text) {
            Ok(expression) if output.lines().any(|line| expression.is_match(line)) => None,
            Ok(_) => Some(format!("has no line that matches `{text}`")),
            Err(error) => Some(format!("can't be judged: `{text}` is no regular expression ({error})")),
        }
    }
}

fn expression(text: &str) -> Result<Regex, String> {
    let built = RegexBuilder::new(text).size_limit(LARGEST).build();
    built.map_err(|error| error.to_string().lines().last().unwrap_or_default().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expect: Option<&str>, absent: Option<&str>, matches: Option<&str>) -> Health {
        let [expect, absent, matches] = [expect, absent, matches].map(|text| text.map(str::to_owned));
        Health { command: "show x".to_owned(), expect, absent, matches, within: 0 }
    }

    #[test]
    fn nm_09_all_that_a_health_check_names_counts() {
        let output = "Neighbor 10.0.0.2 Full/DR\r\nNeighbor 10.0.0.3 Down\r\n";
        for (health, complaint) in [
            (check(Some("Full"), None, None), None),
            (check(Some("2-Way"), None, None), Some("does not show `2-Way`")),
            (check(Some("Full"), Some("Down"), None), Some("shows `Down`")),
            (check(None, Some("Init"), None), None),
            (check(None, None, Some("^Neighbor 10.0.0.3 Down$")), None),
            (check(None, None, Some("10.0.0.3 .*Full")), Some("has no line that matches `10.0.0.3 .*Full`")),
            (check(None, None, Some("10.0.0.2[^x]*Down")), Some("has no line that matches `10.0.0.2[^x]*Down`")),
        ] {
            assert_eq!(health.complaint(output).as_deref(), complaint, "{health:?}");
        }
        assert_eq!(check(None, Some("Down"), None).complaint("\r\n").as_deref(), Some("shows nothing"));
        assert!(check(None, None, Some("x")).complaint(&"x ".repeat(SEARCHED)).is_some_and(|why| why.contains("narrower command")));
    }

    #[test]
    fn a_health_check_without_a_meaning_is_refused() {
        assert!(check(None, None, None).flaw().is_some_and(|flaw| flaw.contains("names nothing")));
        assert!(check(Some(" "), None, None).flaw().is_some());
        assert!(check(Some("Full"), Some(""), None).flaw().is_some_and(|flaw| flaw.contains("empty text")));
        assert!(check(None, None, Some("(")).flaw().is_some_and(|flaw| flaw.contains("unclosed group")));
        assert!(check(None, None, Some(r"(\w{900}){900}")).flaw().is_some(), "too large");
        assert_eq!(check(Some("Full"), None, Some("x$")).flaw(), None);
    }
}
