//! `banyan trace TOOL`: the way of a call, step by step, and how long each takes. Calls no tool.

use clap::Args;
use gateway::admin::shapes::{Hop, Trace as Traced, TraceRequest};
use serde::Serialize;

use crate::arguments::Place;
use crate::asked::AskedGate;
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::printable::printable;
use crate::table::{self, Align};
use crate::threads;

/// Shows the way to a tool through the gates below, like traceroute, and how long each step takes.
#[derive(Args)]
pub(crate) struct Trace {
    /// The tool: its dotted name, the name a client is shown, or SERVER.NAME as the record has it
    tool: String,
}

/// `banyan trace --json`.
#[derive(Serialize)]
struct Report<'a> {
    tool: &'a str,
    hops: Vec<Step<'a>>,
}

#[derive(Serialize)]
struct Step<'a> {
    #[serde(flatten)]
    hop: &'a Hop,
    /// Milliseconds of the step itself, without later steps.
    own_ms: f64,
}

impl Trace {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let traced = threads::wait(self.ask(place, output))??;
        let report = Report { tool: &traced.tool, hops: steps(&traced.hops) };
        if output.wants_json() {
            output.json(&report)?;
        } else {
            for line in lines(&report, output) {
                output.line(&line)?;
            }
        }
        match traced.hops.iter().find_map(|hop| Some((hop, hop.error.as_ref()?))) {
            Some((hop, error)) => Err(Failure::Failed(format!("the way ends at `{}`: {}", printable(&hop.mount), printable(error)))),
            None => Ok(()),
        }
    }

    async fn ask(&self, place: &Place, output: &Output) -> Result<Traced, Failure> {
        let asked = AskedGate::find(place, output).await?;
        let traced = asked.trace(&TraceRequest { tool: self.tool.clone() }).await;
        let traced = asked.with_near_tools(&self.tool, traced).await;
        asked.finish(output).await;
        traced
    }
}

fn steps(hops: &[Hop]) -> Vec<Step<'_>> {
    let after = hops.iter().skip(1).map(|hop| hop.ms).chain([0.0]);
    hops.iter().zip(after).map(|(hop, after)| Step { hop, own_ms: (hop.ms - after).max(0.0) }).collect()
}

fn lines(report: &Report<'_>, output: &Output) -> Vec<String> {
    let mut rows = vec![["", "MOUNT", "IS", "OVER", "IN ALL", "THIS STEP"].map(str::to_owned).to_vec()];
    for (number, Step { hop, own_ms }) in report.hops.iter().enumerate() {
        let kind = if hop.gate { "gate" } else { "server" };
        let over = [hop.transport.as_str(), hop.era.as_deref().unwrap_or_default()].join(" ");
        let took = |ms: f64| hop.error.as_ref().map_or_else(|| format!("{ms:.1} ms"), |_| output.paint(Look::Bad, "failed"));
        rows.push(vec![(number + 1).to_string(), printable(&hop.mount), kind.to_owned(), printable(&over), took(hop.ms), took(*own_ms)]);
    }
    let columns = [Align::Right, Align::Left, Align::Left, Align::Left, Align::Right, Align::Right];
    std::iter::once(output.paint(Look::Strong, &printable(report.tool))).chain(table::lines(&columns, &rows)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_takes_what_those_after_it_do_not() {
        let hop = |mount: &str, ms| Hop { mount: mount.into(), gate: true, transport: "http".into(), era: None, ms, error: None };
        let hops = [hop("a", 5.0), hop("b", 2.0), hop("c", 2.5)];
        let own: Vec<f64> = steps(&hops).iter().map(|step| step.own_ms).collect();
        assert_eq!(own, [3.0, 0.0, 2.5]);
        let drawn = lines(&Report { tool: "a.b.c.t", hops: steps(&hops) }, &Output::new(false));
        assert_eq!(drawn[0], "a.b.c.t");
        assert!(drawn[2].contains("5.0 ms") && drawn[2].contains("3.0 ms"), "{drawn:?}");
    }
}
