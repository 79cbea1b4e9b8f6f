//! Notifications of registered servers, and of their losses, for sessions and gates above (AX-50 to AX-52, AX-60). The relay decides on
//! order and amount, nothing here does.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use banyan_model::Segment;
use bytes::Bytes;
use mcp_proto::envelope::{self, Message, Notification};
use mcp_proto::json::Duplicates;
use mesh_proto::refusal::SessionEnd;
use mesh_proto::relay::{Relay, RelayOutput, notice};

use crate::mesh::Mesh;
use crate::registry::rising::{RisingNotification, RisingRelay};
use call::tree::sourced::sourced;

/// Counts of dropped notifications.
#[derive(Debug, Default)]
pub struct DroppedNotifications(Mutex<DropCounts>);

#[derive(Debug, Default)]
struct DropCounts {
    all: u64,
    by_segment: BTreeMap<Segment, u64>,
}

impl DroppedNotifications {
    /// Takes over the numbers of notifications dropped of registered servers and of mounts, in all and by segment.
    pub fn note(&self, relay: &Relay, mounts: &RisingRelay) {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all = relay.dropped() + mounts.dropped();
        if counted.all == all {
            return;
        }
        counted.all = all;
        counted.by_segment = relay.losses().chain(mounts.losses()).map(|(segment, dropped)| (segment.clone(), dropped)).collect();
    }

    /// Writes `{"notifications_dropped": ..., "by_segment": {...}}`: since the start of the gate, and of present sessions and mounts.
    pub fn to_json(&self) -> String {
        let counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let each: Vec<String> = counted.by_segment.iter().map(|(segment, dropped)| format!("\"{segment}\":{dropped}")).collect();
        format!("{{\"notifications_dropped\":{},\"by_segment\":{{{}}}}}", counted.all, each.join(","))
    }
}

/// Passes on the relay's output.
pub fn relayed(mesh: &Mesh, relayed: &RelayOutput) {
    match relayed {
        RelayOutput::Notification { segment, bytes } => {
            if let Ok(Message::Notification(notification)) = Message::parse(bytes, Duplicates::RefuseTop) {
                mesh.gate.hub.relayed(segment, &sourced(segment, &notification));
            }
        }
        RelayOutput::Overflow { segment, dropped } => {
            mesh.gate.hub.noticed(segment, &made(notice::OVERFLOW, &notice::overflow(segment, *dropped)));
        }
    }
}

/// Passes on the output of the relay of mounts: to gates above alone, since sessions have heard already.
pub fn rising(mesh: &Mesh, rising: &RisingNotification) {
    match &rising.relayed {
        RelayOutput::Notification { segment, bytes } => {
            if let Ok(Message::Notification(notification)) = Message::parse(bytes, Duplicates::RefuseTop) {
                mesh.gate.hub.rise(segment, &rising.principal, &sourced(segment, &notification));
            }
        }
        RelayOutput::Overflow { segment, dropped } => {
            mesh.gate.hub.rise(segment, &rising.principal, &made(notice::OVERFLOW, &notice::overflow(segment, *dropped)));
        }
    }
}

/// Announces the loss of a registered server.
pub fn lost(mesh: &Mesh, segment: &Segment, why: SessionEnd) {
    mesh.gate.hub.noticed(segment, &made(notice::LOST, &notice::lost(segment, why)));
}

fn made(method: &str, params: &str) -> Notification {
    let whole = envelope::notification(method, params.as_bytes());
    Notification { method: method.to_owned(), params: Bytes::copy_from_slice(params.as_bytes()).into(), whole }
}
