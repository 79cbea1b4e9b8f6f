//! With whom a gate is registered, in lines for people. Does not find out how it stands.

use gateway::admin::shapes::{JoinStatus, ParentStatus};

use crate::output::{Look, Output};
use crate::printable::printable;
use crate::{table, time};

/// Draws a line for each parent, and below it faults and remedies.
pub(crate) fn lines(joined: &JoinStatus, output: &Output) -> Vec<String> {
    let now = time::now();
    let next = joined.next_try.map(|at| format!(", next try in {}", table::duration(at.saturating_sub(now)))).unwrap_or_default();
    let mut lines = Vec::new();
    for parent in &joined.parents {
        lines.push(line(joined, parent, &next, now, output));
        if !parent.budget.is_empty() {
            let limits: Vec<String> = parent.budget.iter().map(|(name, most)| format!("{} {most}", printable(name))).collect();
            lines.push(format!("    calls from here are bounded there: {}", limits.join(", ")));
        }
        let more = parent.error.iter().chain(&parent.hint);
        lines.extend(more.flat_map(|text| text.lines()).map(|text| format!("    {}", printable(text))));
    }
    if joined.withheld > 0 {
        let tools = table::counted(usize::try_from(joined.withheld).unwrap_or(usize::MAX), "tool");
        lines.push(format!("    {tools} not shown there; `banyan status` at the parent says why"));
    }
    lines
}

fn line(joined: &JoinStatus, parent: &ParentStatus, next: &str, now: u64, output: &Output) -> String {
    let (url, since) = (printable(&parent.url), table::duration(now.saturating_sub(parent.since)));
    let state = output.paint(look(&parent.state), words(&parent.state));
    match parent.state.as_str() {
        "registered" => format!("{state} {url} as {} for {since}", output.paint(Look::Strong, &joined.segment)),
        "idle" => format!("{state} {url}"),
        _ => format!("{state} {url} for {since}{next}"),
    }
}

/// Words a state, in a sentence with the parent's address.
fn words(state: &str) -> &str {
    match state {
        "registered" => "registered with",
        "refused" => "refused by",
        "unreachable" => "can't reach",
        "lost" => "lost",
        "trying" => "trying",
        _ => "not needed:",
    }
}

/// Chooses the look of a state.
pub(crate) fn look(state: &str) -> Look {
    match state {
        "registered" => Look::Good,
        "refused" => Look::Bad,
        "idle" => Look::Dim,
        _ => Look::Warn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_that_refuses_is_told_of_with_what_mends_it() {
        let parent = |url: &str, state: &str, error: Option<&str>| ParentStatus {
            url: url.into(),
            state: state.into(),
            since: time::now(),
            parent_id: None,
            budget: std::collections::BTreeMap::new(),
            error: error.map(Into::into),
            hint: error.map(|_| "choose another segment".into()),
        };
        let parents = vec![parent("https://a/", "refused", Some("namespace_conflict (-31001)")), parent("https://b/", "registered", None)];
        let joined = JoinStatus { segment: "edge".into(), parents, next_try: None, withheld: 2 };
        let lines = lines(&joined, &Output::new(false));
        assert_eq!(lines[0], "refused by https://a/ for 0s");
        assert_eq!(lines[1..3], ["    namespace_conflict (-31001)", "    choose another segment"]);
        assert_eq!(lines[3], "registered with https://b/ as edge for 0s");
        assert!(lines[4].contains("2 tools not shown"), "{lines:?}");
    }
}
