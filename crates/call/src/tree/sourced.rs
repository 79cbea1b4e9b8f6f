//! Source of a notification: the path of segments to its server (MCP-AX 12, AX-50). Passes nothing on.

use banyan_model::Segment;
use bytes::Bytes;
use mcp_proto::envelope::Notification;
use mcp_proto::era::key;
use mcp_proto::json;
use mcp_proto::splice::{self, Change};
use mesh_proto::relay::{SOURCE, source};

/// Adds the source to a notification from `segment`, and removes the tag of the stream between; every other byte stays.
pub fn sourced(segment: &Segment, notification: &Notification) -> Notification {
    let meta = notification.params.meta().unwrap_or_default();
    let below = meta.str(SOURCE);
    let from = source(segment, below.as_deref()).unwrap_or_else(|| segment.to_string());
    let raw = notification.params.members().get("_meta").filter(|raw| raw.starts_with(b"{")).unwrap_or(b"{}").to_vec();
    let from = json::quote(&from);
    let meta = splice::edit(&raw, &[(SOURCE, Change::Set(from.as_bytes())), (key::SUBSCRIPTION_ID, Change::Remove)]);
    let params = splice::edit(&notification.params, &[("_meta", Change::Set(&meta))]);
    let params_member: &[(&str, Change<'_>)] = &[("params", Change::Set(&params))];
    let whole = Bytes::from(splice::edit(&notification.whole, params_member));
    Notification { method: notification.method.clone(), params: Bytes::from(params).into(), whole }
}

#[cfg(test)]
mod tests {
    use mcp_proto::envelope::Message;
    use mcp_proto::json::{Duplicates, Members};

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
        let once = sourced(&Segment::nearest("stm"), &notification(text));
        let twice = sourced(&Segment::nearest("edge"), &once);
        let whole = String::from_utf8_lossy(&twice.whole).into_owned();
        assert!(whole.contains(r#""x-mcpax-source":"edge.stm""#) && whole.contains(r#""level":1.0"#), "{whole}");
        assert_eq!(Members::again(&twice.whole).get("params"), Some(&twice.params[..]));
    }

    #[test]
    fn ax_52_ids_of_events_and_causes_pass_unchanged() {
        let text = r#"{"jsonrpc":"2.0","method":"m","params":{"_meta":{"x-mcpax-event-id":"\u0065-1","x-mcpax-causal-parent":null}}}"#;
        let whole = sourced(&Segment::nearest("stm"), &notification(text)).whole;
        let whole = String::from_utf8_lossy(&whole).into_owned();
        assert!(whole.contains(r#""x-mcpax-event-id":"\u0065-1","x-mcpax-causal-parent":null"#), "{whole}");
    }
}
