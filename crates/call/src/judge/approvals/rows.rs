//! Conversion between the desk and the rows of its store. Decides nothing.

use banyan_model::Now;
use policy::approval::{Approval, Change, Desk, Grant, Operator};
use serde::de::DeserializeOwned;
use store::{PendingTurn, Row, RowKind, StoreError};

/// Rows to be written.
pub fn changed(desk: &Desk) -> Vec<Row> {
    desk.changes().filter_map(|change| row(desk, change)).collect()
}

fn row(desk: &Desk, change: &Change) -> Option<Row> {
    match change {
        Change::Approval(id) => {
            let approval = desk.approval(id)?;
            let over = approval.standing.is_over().then_some(approval.since);
            Some(Row { kind: RowKind::Approval, id: id.clone(), over, body: Some(serde_json::to_string(approval).ok()?) })
        }
        Change::Grant(id) => {
            let grant = desk.grant(id)?;
            let over = grant.revoked.or(Some(grant.terms.expires));
            Some(Row { kind: RowKind::Grant, id: id.clone(), over, body: Some(serde_json::to_string(grant).ok()?) })
        }
        Change::Operator(id) => {
            let body = desk.anchors().operators.get(id).and_then(|operator| serde_json::to_string(operator).ok());
            Some(Row { kind: RowKind::Operator, id: id.clone(), over: None, body })
        }
    }
}

/// Restores the desk from the approvals of earlier runs.
pub fn restore(desk: &mut Desk, turn: &dyn PendingTurn, now: Now) -> Result<(), StoreError> {
    let (operators, grants, approvals) = (turn.all(RowKind::Operator)?, turn.all(RowKind::Grant)?, turn.all(RowKind::Approval)?);
    desk.reinstate(read::<Operator>(RowKind::Operator, &operators), read::<Grant>(RowKind::Grant, &grants));
    desk.restore(now, read::<Approval>(RowKind::Approval, &approvals));
    Ok(())
}

/// Puts changed entries of the desk back to their kept state.
pub fn put_back(desk: &mut Desk, turn: &dyn PendingTurn) -> Result<(), StoreError> {
    let (mut approvals, mut grants) = (Vec::new(), Vec::new());
    for change in desk.changes() {
        match change {
            Change::Approval(id) => approvals.extend(turn.one(RowKind::Approval, id)?),
            Change::Grant(id) => grants.extend(turn.one(RowKind::Grant, id)?),
            Change::Operator(_) => {}
        }
    }
    desk.put_back(read::<Approval>(RowKind::Approval, &approvals), read::<Grant>(RowKind::Grant, &grants));
    Ok(())
}

/// Reads operators from their rows.
pub fn operators(bodies: &[String]) -> Vec<Operator> {
    read(RowKind::Operator, bodies)
}

fn read<T: DeserializeOwned>(kind: RowKind, bodies: &[String]) -> Vec<T> {
    let read = |body: &String| match serde_json::from_str(body) {
        Ok(value) => Some(value),
        Err(error) => {
            tracing::error!(%error, ?kind, "a row in the state directory can't be read and is left there");
            None
        }
    };
    bodies.iter().filter_map(read).collect()
}
