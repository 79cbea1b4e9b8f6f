//! Between the desk and the rows of the store: what changed as rows, and rows as they were. Nothing is decided here.

use policy::approval::{Approval, Change, Desk, Grant, Operator};
use serde::de::DeserializeOwned;

use crate::store::{Kept, Kind, Row, StoreError};

/// What has to be written.
pub(super) fn changed(desk: &Desk) -> Vec<Row> {
    desk.changes().filter_map(|change| row(desk, change)).collect()
}

fn row(desk: &Desk, change: &Change) -> Option<Row> {
    match change {
        Change::Approval(id) => {
            let approval = desk.approval(id)?;
            let over = approval.standing.is_over().then_some(approval.since);
            Some(Row { kind: Kind::Approval, id: id.clone(), over, body: Some(serde_json::to_string(approval).ok()?) })
        }
        Change::Grant(id) => {
            let grant = desk.grant(id)?;
            let over = grant.revoked.or(Some(grant.terms.expires));
            Some(Row { kind: Kind::Grant, id: id.clone(), over, body: Some(serde_json::to_string(grant).ok()?) })
        }
        Change::Operator(id) => {
            let body = desk.anchors().operators.get(id).and_then(|operator| serde_json::to_string(operator).ok());
            Some(Row { kind: Kind::Operator, id: id.clone(), over: None, body })
        }
    }
}

/// Gives the desk what was kept.
pub(super) fn restore(desk: &mut Desk, kept: &Kept, now: u64) -> Result<(), StoreError> {
    desk.reinstate(read::<Operator>(kept, Kind::Operator)?, read::<Grant>(kept, Kind::Grant)?);
    desk.restore(now, read::<Approval>(kept, Kind::Approval)?);
    Ok(())
}

fn read<T: DeserializeOwned>(kept: &Kept, kind: Kind) -> Result<Vec<T>, StoreError> {
    let mut found = Vec::new();
    for body in kept.all(kind)? {
        match serde_json::from_str(&body) {
            Ok(value) => found.push(value),
            Err(error) => tracing::error!(%error, ?kind, "a row in the state directory can't be read and is left there"),
        }
    }
    Ok(found)
}
