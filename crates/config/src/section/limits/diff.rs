//! Differences of the bounds. Enforces none.

use crate::diff::{self, Change, differing};
use crate::resolved::{Config, Limits};

/// Lists the differences of the section.
pub(super) fn changes(old: &Config, new: &Config) -> Vec<Change> {
    let changed = diff::keys("limits", limit_fields(&old.limits, &new.limits));
    let note = "response_size holds for connections to servers made from now on";
    changed.map(|change| change.but_for(&["response_size"], note)).into_iter().collect()
}

fn limit_fields(old: &Limits, new: &Limits) -> Vec<&'static str> {
    let Limits {
        request_bytes,
        response_bytes,
        calls,
        calls_per_mount,
        wait,
        sessions,
        session_idle,
        tools_per_mount,
        share,
        connections,
        connections_per_address,
        body_bytes,
        stream_bytes,
        parked,
        listeners,
        subscriptions,
        question,
    } = old;
    differing([
        ("request_size", *request_bytes != new.request_bytes),
        ("response_size", *response_bytes != new.response_bytes),
        ("calls", *calls != new.calls),
        ("calls_per_mount", *calls_per_mount != new.calls_per_mount),
        ("wait", *wait != new.wait),
        ("sessions", *sessions != new.sessions),
        ("session_idle", *session_idle != new.session_idle),
        ("tools_per_mount", *tools_per_mount != new.tools_per_mount),
        ("share", *share != new.share),
        ("connections", *connections != new.connections),
        ("connections_per_address", *connections_per_address != new.connections_per_address),
        ("bodies", *body_bytes != new.body_bytes),
        ("streams", *stream_bytes != new.stream_bytes),
        ("parked", *parked != new.parked),
        ("listeners", *listeners != new.listeners),
        ("subscriptions", *subscriptions != new.subscriptions),
        ("question", *question != new.question),
    ])
}
