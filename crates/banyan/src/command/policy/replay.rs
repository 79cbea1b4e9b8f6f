//! `banyan policy replay`: earlier calls, decided by today's rules. The running gate asks its rules; calls nothing.

use std::path::PathBuf;

use clap::Args;
use gateway::admin::shapes::ReplayReport;

use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::printable::printable;
use crate::table::{self, Align, counted};
use crate::{gate, threads, time};

/// Asks the rules about calls that were made, from the record.
#[derive(Args)]
pub(super) struct Replay {
    /// Calls not older than this: `15m`, `24h`, `7d`
    #[arg(long, value_name = "AGE", default_value = "7d")]
    since: String,
    /// Rules to ask in place of those in force
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
}

impl Replay {
    pub(super) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let age = config::age(&self.since);
        let age = age.ok_or_else(|| Failure::Usage(format!("`{}` is no age: write 15m, 24h or 7d", self.since)))?;
        let since = time::now().saturating_sub(age.as_secs()).saturating_mul(1_000_000);
        let rules = self.rules.as_ref().map(|file| {
            let text = super::text(file)?;
            // Read here first, so that what is wrong with it is shown with its lines.
            super::read(file, &text)?;
            Ok::<_, Failure>(text)
        });
        let body = serde_json::json!({ "since": since, "rules": rules.transpose()? });
        let gate = gate::needed(place)?;
        let answer = threads::wait(gate.post("/-/policy/replay", &body))??;
        let told: ReplayReport =
            serde_json::from_slice(&answer).map_err(|error| Failure::Failed(format!("the gate's answer can't be read: {error}")))?;
        if output.wants_json() {
            return output.json(&told);
        }
        drawn(&told, output)
    }
}

fn drawn(told: &ReplayReport, output: &Output) -> Result<(), Failure> {
    let calls = counted(usize::try_from(told.calls).unwrap_or(usize::MAX), "call");
    output.line(&format!(
        "{calls} in the record: of {} something else would become now, of {} that can't be told",
        told.other, told.untold
    ))?;
    let mut rows = Vec::new();
    for row in &told.rows {
        let rules = if row.rules.is_empty() { String::new() } else { format!("({})", row.rules.join(", ")) };
        let absent = if row.absent { " (not there now)" } else { "" };
        let remedy = row.remedy.as_ref().map(|remedy| format!("- {remedy}")).unwrap_or_default();
        let turn = format!("{} -> {}", row.was, row.now);
        let cells = [row.calls.to_string(), turn, row.principal.clone(), format!("{} {}{absent}", row.action, row.resource), rules, remedy];
        rows.push(cells.iter().map(|cell| printable(cell)).collect::<Vec<_>>());
    }
    let columns = [Align::Right, Align::Left, Align::Left, Align::Left, Align::Left, Align::Left];
    table::lines(&columns, &rows).iter().try_for_each(|line| output.line(line))?;
    if told.untold > 0 {
        let text = format!(
            "what can't be told depends on arguments, of which the record holds hashes and shapes only ({}): `arguments = \"full\"` in [audit] \
             records them from then on",
            told.arguments.join(", ")
        );
        output.line(&output.paint(Look::Warn, &printable(&text)))?;
    }
    for guessed in &told.guessed {
        let text = format!("`{}` reads what the record does not hold, and was asked without: {}", guessed.rule, guessed.without);
        output.line(&output.paint(Look::Warn, &printable(&text)))?;
    }
    Ok(())
}
