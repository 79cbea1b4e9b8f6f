//! `GET /-/events`: the status of servers as server-sent events, first the whole, then each change. A slow reader misses steps in between,
//! never the latest state. Does not find the status.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use serde::Serialize;

use crate::Gateway;
use crate::admin::shapes::{Change, Status};
use crate::admin::viewer::Viewer;

/// Interval for values that change without news: calls in flight and their durations.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Pause after a change, in which further changes of the same cause gather.
const GATHER: Duration = Duration::from_millis(40);
/// Looks without an event, after which a comment shows that the stream lives.
const SILENT_LOOKS: u32 = 15;

struct EventReader {
    gateway: Gateway,
    viewer: Viewer,
    last: Option<Status>,
    tree: u64,
    number: u64,
}

/// Streams events without end, as far as a viewer may see.
pub(super) fn events(gateway: Gateway, viewer: Viewer) -> impl Stream<Item = Bytes> {
    stream::unfold(EventReader { gateway, viewer, last: None, tree: 0, number: 0 }, |mut reader| async move {
        let event = reader.next().await;
        Some((event, reader))
    })
}

impl EventReader {
    async fn next(&mut self) -> Bytes {
        let Some(mut last) = self.last.take() else {
            self.tree = self.gateway.0.gate.mounts.tree.load().number();
            let whole = self.viewer.status(&self.gateway, false).await;
            let event = self.event("snapshot", &whole);
            self.last = Some(whole);
            return event;
        };
        for _ in 0..SILENT_LOOKS {
            if let Some(change) = self.change(&mut last).await {
                self.last = Some(last);
                return self.event("change", &change);
            }
            let looked = tokio::time::timeout(LOOK_AGAIN, self.gateway.changed()).await;
            if looked.is_ok() {
                tokio::time::sleep(GATHER).await;
            }
        }
        self.last = Some(last);
        Bytes::from_static(b": nothing has changed\n\n")
    }

    /// Replaces `last` by the present status and gives the difference, if any.
    async fn change(&mut self, last: &mut Status) -> Option<Change> {
        let tree = self.gateway.0.gate.mounts.tree.load().number();
        let lists = std::mem::replace(&mut self.tree, tree) != tree;
        let now = self.viewer.status(&self.gateway, false).await;
        let change = difference(last, &now, lists);
        *last = now;
        change
    }

    fn event(&mut self, name: &str, data: &impl Serialize) -> Bytes {
        self.number += 1;
        let data = serde_json::to_string(data).unwrap_or_default();
        format!("event: {name}\nid: {}\ndata: {data}\n\n", self.number).into()
    }
}

fn difference(old: &Status, new: &Status, lists: bool) -> Option<Change> {
    // Mounts mostly keep their order, so look at the same index first.
    let was = |i: usize, name: &str| old.mounts.get(i).filter(|m| m.name == name).or_else(|| old.mounts.iter().find(|m| m.name == name));
    let mounts: Vec<_> = new.mounts.iter().enumerate().filter(|(i, m)| was(*i, &m.name) != Some(*m)).map(|(_, m)| m.clone()).collect();
    let gone: Vec<_> = if old.mounts.len() + mounts.len() == new.mounts.len() {
        Vec::new()
    } else {
        old.mounts.iter().filter(|m| !new.mounts.iter().any(|n| n.name == m.name)).map(|m| m.name.clone()).collect()
    };
    let budgets = (old.budgets != new.budgets).then(|| new.budgets.clone());
    let is_other = budgets.is_some() || !mounts.is_empty() || !gone.is_empty() || lists;
    let is_other = is_other || (old.sessions, &old.joined) != (new.sessions, &new.joined);
    let is_other = is_other || (&old.not_in_force, &old.audit) != (&new.not_in_force, &new.audit);
    let (joined, not_in_force, audit) = (new.joined.clone(), new.not_in_force.clone(), new.audit.clone());
    is_other.then_some(Change { mounts, gone, lists, sessions: new.sessions, joined, not_in_force, audit, budgets })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::shapes::{AuditStatus, BrokenRecord, NotInForce};

    fn of(mounts: &serde_json::Value, sessions: usize) -> Status {
        let mounts: Vec<serde_json::Value> = mounts.as_array().unwrap().iter().map(mount).collect();
        let whole = serde_json::json!({"version": "1", "pid": 1, "url": "", "serves": "", "uptime_seconds": 0, "sessions": sessions, "mounts": mounts});
        serde_json::from_value(whole).unwrap()
    }

    fn mount(pair: &serde_json::Value) -> serde_json::Value {
        serde_json::json!({"name": pair[0], "origin": "", "state": pair[1], "since": 1, "next_try": null, "error": null, "era": null,
            "version": null, "transport": "stdio", "tools": 1, "prompts": 0, "resources": 0, "restarts": 0, "in_flight": 0, "notes": []})
    }

    fn told(old: &Status, new: &Status, lists: bool) -> Option<(Vec<String>, Vec<String>)> {
        difference(old, new, lists).map(|c| (c.mounts.into_iter().map(|m| format!("{} {}", m.name, m.state)).collect(), c.gone))
    }

    #[test]
    fn only_what_changed_is_told() {
        let two = of(&serde_json::json!([["a", "ready"], ["b", "ready"]]), 0);
        assert_eq!(told(&two, &two, false), None);
        assert_eq!(told(&two, &two, true), Some((vec![], vec![])), "lists changed");
        let lost = of(&serde_json::json!([["a", "ready"], ["b", "degraded"]]), 0);
        assert_eq!(told(&two, &lost, false), Some((vec!["b degraded".into()], vec![])));
        let other = of(&serde_json::json!([["c", "ready"], ["b", "ready"]]), 0);
        assert_eq!(told(&two, &other, false), Some((vec!["c ready".into()], vec!["a".into()])));
        let fewer = of(&serde_json::json!([["b", "ready"]]), 0);
        assert_eq!(told(&two, &fewer, false), Some((vec![], vec!["a".into()])));
        assert_eq!(told(&fewer, &two, false), Some((vec!["a ready".into()], vec![])));
        let busier = of(&serde_json::json!([["a", "ready"], ["b", "ready"]]), 3);
        assert_eq!(difference(&two, &busier, false).unwrap().sessions, 3);
        let spent = serde_json::json!({"budget": "b", "principal": "ci", "calls_in_minute": 1, "max_calls_per_minute": 2, "mutable_calls": 0,
            "max_mutable_calls_per_session": null, "cost_units": 0, "max_cost_units_per_session": null});
        let spending = Status { budgets: vec![serde_json::from_value(spent).unwrap()], ..two.clone() };
        assert_eq!(difference(&two, &spending, false).unwrap().budgets.unwrap().len(), 1);
        assert_eq!(difference(&spending, &two, false).unwrap().budgets.unwrap(), vec![]);
        assert_eq!(difference(&two, &busier, false).unwrap().budgets, None);
        let refused = Status { not_in_force: Some(NotInForce { since: 1, error: None }), ..two.clone() };
        assert!(difference(&two, &refused, false).unwrap().not_in_force.is_some());
        let broken = BrokenRecord { chain: "chain-0001".into(), since: 1, why: "w".into() };
        let broken = Status { audit: Some(AuditStatus { broken: Some(broken), ..AuditStatus::default() }), ..two.clone() };
        assert_eq!(difference(&two, &broken, false).unwrap().audit, broken.audit);
    }
}
