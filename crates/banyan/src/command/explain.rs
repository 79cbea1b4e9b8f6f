//! `banyan explain`: refused calls and registrations, with causes and remedies. Asks a running gate; decides nothing.

use clap::Args;
use gateway::admin::shapes::{Decisions, RefusedRegistration, RefusedRegistrations};

use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::printable::printable;
use crate::{decided, gate, table, threads, time};

/// Decisions shown of one tool.
const NEWEST: usize = 5;

/// Says why a call was refused, by the id in its error or by its tool; or why registrations were, the newest first.
#[derive(Args)]
pub(crate) struct Explain {
    /// A decision (`d-…`), the last decisions about a tool, or only the registrations of this segment, or of the server with this id
    #[arg(value_name = "DECISION|TOOL|SEGMENT|ID")]
    of: Option<String>,
}

impl Explain {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let gate = gate::needed(place)?;
        if let Some(id) = self.of.as_deref().filter(|of| of.starts_with("d-")) {
            let found: Decisions = threads::wait(gate.get("/-/decisions", &[("id", id)]))??;
            return decision(id, &found, output);
        }
        if let Some(tool) = self.of.as_deref().filter(|of| of.contains(['.', '_'])) {
            let mut found: Decisions = threads::wait(gate.get("/-/decisions", &[]))??;
            found.decisions.retain(|one| one.resource == tool || one.resource.replace('.', "__") == tool);
            found.decisions.truncate(NEWEST);
            if !found.decisions.is_empty() {
                return of_tool(&found, output);
            }
        }
        let query: Vec<(&str, &str)> = self.of.iter().map(|of| ("of", of.as_str())).collect();
        let refused: RefusedRegistrations = threads::wait(gate.get("/-/refused", &query))??;
        if output.wants_json() {
            return output.json(&refused);
        }
        if refused.refused.is_empty() {
            return output.line(&nothing(self.of.as_deref()));
        }
        for line in refused.refused.iter().flat_map(|one| lines(one, time::now(), output)) {
            output.line(&line)?;
        }
        Ok(())
    }
}

/// Words an empty answer, and other places to look.
fn nothing(of: Option<&str>) -> String {
    let registered = "`banyan tree` shows who is registered";
    match of.map(printable) {
        Some(of) => format!(
            "no rule refused a call of `{of}` lately, and no registration of `{of}` was refused since the gate began\n  `banyan audit list \
             --tool {of}` shows the calls of a tool, `banyan audit show {of}` a call or an approval by its id; {registered}"
        ),
        None => format!(
            "no registration was refused since the gate began; {registered}\n  `banyan audit list --outcome refused` shows the calls that were, \
             and `banyan explain ID` a decision of the rules by the id in its error"
        ),
    }
}

/// Draws the decisions about one tool, the newest first.
fn of_tool(found: &Decisions, output: &Output) -> Result<(), Failure> {
    if output.wants_json() {
        return output.json(found);
    }
    let now = time::now();
    found.decisions.iter().flat_map(|one| decided::lines(one, now, output)).try_for_each(|line| output.line(&line))
}

fn decision(id: &str, found: &Decisions, output: &Output) -> Result<(), Failure> {
    let one = found.decisions.first().ok_or_else(|| {
        let id = printable(id);
        Failure::NotFound(format!(
            "there is no decision {id}: the gate remembers the last 4096, and its record has no call of that id\n  `banyan audit list --event \
             refused` shows what was refused"
        ))
    })?;
    if output.wants_json() {
        return output.json(one);
    }
    decided::lines(one, time::now(), output).iter().try_for_each(|line| output.line(line))
}

fn lines(one: &RefusedRegistration, now: u64, output: &Output) -> [String; 3] {
    let wanted = one.segment.as_deref().unwrap_or("(unreadable)");
    let times = if one.times > 1 { format!(", {} times", one.times) } else { String::new() };
    let ago = table::duration(now.saturating_sub(one.at));
    let reason = output.paint(Look::Bad, &printable(&one.reason));
    let id = one.subserver_id.as_deref().unwrap_or("unknown");
    [
        format!("{}  {reason} ({}), {ago} ago{times}", output.paint(Look::Strong, &printable(wanted)), one.code),
        format!("    asked for by `{}`, server {}", printable(&one.principal), printable(id)),
        format!("    {}", printable(&one.hint)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ax_27_people_are_told_who_was_refused_why_and_what_to_do() {
        let one = serde_json::json!({"at": 100, "principal": "edge-1", "segment": "plant", "subserver_id": "7", "code": -31001,
            "reason": "namespace_conflict", "hint": "choose another segment", "times": 3});
        let drawn = lines(&serde_json::from_value(one).unwrap(), 160, &Output::new(false));
        assert_eq!(drawn[0], "plant  namespace_conflict (-31001), 1m ago, 3 times");
        assert_eq!(drawn[1], "    asked for by `edge-1`, server 7");
        assert_eq!(drawn[2], "    choose another segment");
    }
}
