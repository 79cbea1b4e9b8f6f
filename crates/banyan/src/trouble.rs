//! Troubles of a running gate as a whole, and their remedies: its configuration, its record, its parents. Servers are not looked at here.

use gateway::admin::shapes::{AuditStatus, BrokenRecord, JoinStatus, NotInForce, Status};

use crate::examine::Finding;
use crate::printable::{printable, printable_lines};
use crate::{table, time};

/// Lists a configuration that is not in force, and faults of the record.
pub(crate) fn of_gate(status: &Status) -> Vec<Finding> {
    let refused = status.not_in_force.as_ref().map(|refused| not_in_force(refused, &status.serves));
    refused.into_iter().chain(status.audit.iter().flat_map(record)).collect()
}

/// Lists parents of the gate without a registration.
pub(crate) fn of_parents(joined: &JoinStatus) -> Vec<Finding> {
    let wanted = joined.parents.iter().filter(|parent| !matches!(parent.state.as_str(), "idle" | "registered" | "trying"));
    let finding = |parent: &gateway::ParentStatus| {
        let why = parent.error.as_deref().map(|error| format!(": {}", printable(error))).unwrap_or_default();
        let message = format!("{} for {}{why}", parent.state, age(parent.since));
        let fix = parent.hint.as_deref().map_or("see that it runs and that its address is right".to_owned(), printable_lines);
        let subject = format!("parent {}", printable(&parent.url));
        if joined.registered().is_some() { Finding::warning(subject, message, fix) } else { Finding::problem(subject, message, fix) }
    };
    wanted.map(finding).collect()
}

fn not_in_force(refused: &NotInForce, serves: &str) -> Finding {
    let why = refused.error.as_deref().map(|error| format!(":\n{}", printable_lines(error))).unwrap_or_default();
    let message = format!("not in force for {}: the gate goes on with the one before{why}", age(refused.since));
    Finding::problem("configuration on disk", message, format!("correct {}: the gate takes it as soon as it is saved", printable(serves)))
}

fn record(audit: &AuditStatus) -> Vec<Finding> {
    let mut findings = Vec::new();
    let dir = audit.directory.as_deref().map(printable).unwrap_or_default();
    if let Some(BrokenRecord { chain, since, why }) = &audit.broken {
        let message = format!("broken for {}: {}", age(*since), printable(why));
        let fix = format!("`banyan audit verify` says where; keep {dir}/{chain} as evidence, outside of the record, once you know");
        findings.push(Finding::problem("record", message, fix));
    }
    if let Some(why) = &audit.failing {
        let fix = format!("make room in {dir}, or let this user write there");
        findings.push(Finding::problem("record", format!("nothing can be recorded: {}", printable(why)), fix));
    }
    if audit.full {
        let message = "full, and nothing in it is old enough to be taken away: calls are refused until something is";
        findings.push(Finding::problem(
            "record",
            message,
            "raise `full_size` in [audit], or lower `keep_at_least`, and start the gate again",
        ));
    }
    for over in &audit.over_share {
        let wait = table::duration(over.until.saturating_sub(time::now()));
        let message = format!("holds the share of {}: calls of that principal are refused for {wait} more", printable(&over.principal));
        let fix = "raise `full_size` in [audit], or lower `keep_at_least`, and start the gate again; or raise `share` in [limits]";
        findings.push(Finding::problem("record", message, fix));
    }
    if audit.unrecorded > 0 {
        let message = format!("{} entries were lost since the gate began", audit.unrecorded);
        findings.push(Finding::warning("record", message, "the log of the gate says why; `gap` entries in the record say when"));
    }
    findings
}

fn age(since: u64) -> String {
    table::duration(time::now().saturating_sub(since))
}
