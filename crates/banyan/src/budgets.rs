//! Budgets and their use, drawn for people. Counts nothing.

use gateway::admin::shapes::BudgetStatus;

use crate::printable::printable;
use crate::table::{self, Align};

/// Draws a line for each account.
pub(crate) fn lines(budgets: &[BudgetStatus]) -> Vec<String> {
    let rows: Vec<Vec<String>> = budgets.iter().map(row).collect();
    table::lines(&[Align::Left; 5], &rows)
}

fn row(one: &BudgetStatus) -> Vec<String> {
    let of = |spent: u64, most: Option<u64>, what: &str| most.map(|most| format!("{spent} of {most} {what}")).unwrap_or_default();
    let whose = one.session.as_ref().map_or_else(|| one.principal.clone(), |session| format!("{} ({session}…)", one.principal));
    let cells = [
        of(one.calls_in_minute, one.max_calls_per_minute.map(u64::from), "calls a minute"),
        of(one.mutable_calls, one.max_mutable_calls_per_session, "changes"),
        of(one.cost_units, one.max_cost_units_per_session, "cost units"),
    ];
    [format!("budget {}", printable(&one.budget)), printable(&whose)]
        .into_iter()
        .chain(cells.into_iter().filter(|c| !c.is_empty()))
        .collect()
}
