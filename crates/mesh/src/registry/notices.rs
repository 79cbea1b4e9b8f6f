//! Notifications of registered servers, and of their losses, for sessions and gates above (AX-50 to AX-52, AX-60). The relay decides on
//! order and amount, nothing here does.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use banyan_model::Segment;
use bytes::Bytes;
use mcp_proto::envelope::{self, Message, Notification};
use mcp_proto::json::{self, Duplicates};
use mcp_proto::splice::{self, Change};
use mesh_proto::parent::Parent;
use mesh_proto::refusal::SessionEnd;
use mesh_proto::relay::{Relay, RelayOutput, SOURCE, notice, source};

use crate::mesh::Mesh;

/// Counts of dropped notifications.
#[derive(Debug, Default)]
pub struct DroppedNotifications(Mutex<DropCounts>);

#[derive(Debug, Default)]
struct DropCounts {
    /// DroppedNotifications before the relay.
    before: u64,
    relayed: u64,
    by_segment: BTreeMap<Segment, u64>,
}

impl DroppedNotifications {
    /// Counts a notification dropped before the relay.
    pub fn one_more(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).before += 1;
    }

    /// Takes over the numbers of notifications dropped by the relay, in all and by segment.
    pub fn note(&self, relay: &Relay, parent: &Parent) {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counted.relayed == relay.dropped() {
            return;
        }
        counted.relayed = relay.dropped();
        let each = parent.sessions().map(|session| (session.segment.clone(), relay.dropped_of(session.key)));
        counted.by_segment = each.filter(|(_, dropped)| *dropped > 0).collect();
    }

    /// Writes `{"notifications_dropped": ..., "by_segment": {...}}`: since the start of the gate, and of present sessions.
    pub fn to_json(&self) -> String {
        let counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let each: Vec<String> = counted.by_segment.iter().map(|(segment, dropped)| format!("\"{segment}\":{dropped}")).collect();
        format!("{{\"notifications_dropped\":{},\"by_segment\":{{{}}}}}", counted.before + counted.relayed, each.join(","))
    }
}

/// Passes on the relay's output.
pub fn relayed(mesh: &Mesh, relayed: &RelayOutput) {
    match relayed {
        RelayOutput::Notification { segment, bytes } => {
            if let Ok(Message::Notification(notification)) = Message::parse(bytes, Duplicates::RefuseTop) {
                mesh.gate.hub.relayed(segment, &prefixed(segment, &notification));
            }
        }
        RelayOutput::Overflow { segment, dropped } => {
            mesh.gate.hub.noticed(segment, &made(notice::OVERFLOW, &notice::overflow(segment, *dropped)));
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

/// Adds the source to a notification; every other byte stays.
fn prefixed(segment: &Segment, notification: &Notification) -> Notification {
    let meta = notification.params.meta().unwrap_or_default();
    let below = meta.str(SOURCE);
    let from = source(segment, below.as_deref()).unwrap_or_else(|| segment.to_string());
    let raw = notification.params.members().get("_meta").filter(|raw| raw.starts_with(b"{")).unwrap_or(b"{}").to_vec();
    let meta = splice::edit(&raw, &[(SOURCE, Change::Set(json::quote(&from).as_bytes()))]);
    let params = splice::edit(&notification.params, &[("_meta", Change::Set(&meta))]);
    let params_member: &[(&str, Change<'_>)] = &[("params", Change::Set(&params))];
    let whole = Bytes::from(splice::edit(&notification.whole, params_member));
    Notification { method: notification.method.clone(), params: Bytes::from(params).into(), whole }
}

#[cfg(test)]
mod tests {
    use mcp_proto::json::Members;

    use super::*;

    fn notification(text: &'static str) -> Notification {
        match Message::parse(&Bytes::from_static(text.as_bytes()), Duplicates::RefuseTop) {
            Ok(Message::Notification(notification)) => notification,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn ax_50_a_notification_names_its_source_over_any_hops() {
        let text = r#"{"jsonrpc":"2.0","method":"notifications/alarm","params":{ "level":1.0 }}"#;
        let once = prefixed(&Segment::nearest("stm"), &notification(text));
        let twice = prefixed(&Segment::nearest("edge"), &once);
        let whole = String::from_utf8_lossy(&twice.whole).into_owned();
        assert!(whole.contains(r#""x-mcpax-source":"edge.stm""#) && whole.contains(r#""level":1.0"#), "{whole}");
        assert_eq!(Members::again(&twice.whole).get("params"), Some(&twice.params[..]));
    }

    #[test]
    fn ax_52_ids_of_events_and_causes_pass_unchanged() {
        let text = r#"{"jsonrpc":"2.0","method":"m","params":{"_meta":{"x-mcpax-event-id":"\u0065-1","x-mcpax-causal-parent":null}}}"#;
        let whole = prefixed(&Segment::nearest("stm"), &notification(text)).whole;
        let whole = String::from_utf8_lossy(&whole).into_owned();
        assert!(whole.contains(r#""x-mcpax-event-id":"\u0065-1","x-mcpax-causal-parent":null"#), "{whole}");
    }
}
