//! A server that may speak another era than it did. One that was replaced answers what it knows no more with errors, and over HTTP no connection
//! breaks by which that shows: so it is asked once more. How it is connected to anew is not known here.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use banyan_model::Era;
use bytes::Bytes;
use mcp_proto::client::stateless_meta;
use mcp_proto::envelope::Answer;
use mcp_proto::json::Members;

use super::HttpWire;
use crate::upstream::{Outgoing, UpstreamError};

/// What a server of the stateless era is asked, and one of the other era does not know.
const DISCOVER: &str = "server/discover";
/// It is not asked more often than this.
const AGAIN: Duration = Duration::from_secs(30);
/// Its answer is not waited for any longer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Errors by which servers of the initialize era refuse what has no handshake before it, and what they do not know.
const OLDER: [&[u8]; 5] = [b"-32601", b"-32600", b"-32000", b"-32001", b"-32022"];
/// The error by which a server refuses a revision (2026-07-28, "Version negotiation").
const OTHER_REVISION: &[u8] = b"-32022";

impl HttpWire {
    /// Takes note of what came of a request: where a server of the other era would say the same, it is asked which it speaks.
    pub(super) fn doubt(self: &Arc<Self>, out: &Outgoing<'_>, outcome: &Result<Answer, UpstreamError>) {
        let is_strange = match outcome {
            Ok(Answer::Result(_)) => return,
            Ok(Answer::Error(error)) => is_strange(self.era(), Members::again(error).get("code").unwrap_or_default()),
            Err(UpstreamError::Refused { status, .. }) => self.era() == Era::Stateless && (400..=406).contains(status),
            Err(_) => return,
        };
        if !is_strange || out.method == DISCOVER || self.doubted.swap(true, Ordering::Relaxed) {
            return;
        }
        let wire = Arc::clone(self);
        tokio::spawn(async move {
            if wire.speaks_otherwise().await
                && let Some(mount) = wire.inbox.mount.upgrade()
            {
                mount.speaks_otherwise(&wire);
            }
            tokio::select! {
                () = tokio::time::sleep(AGAIN) => wire.doubted.store(false, Ordering::Relaxed),
                () = wire.closed.cancelled() => {}
            }
        });
    }

    /// Asks a server of the stateless era what it is; one of the initialize era that refuses the revision has said it.
    async fn speaks_otherwise(self: &Arc<Self>) -> bool {
        let Some(mount) = self.inbox.mount.upgrade().filter(|_| self.era() == Era::Stateless) else { return true };
        let params = Bytes::from(format!("{{\"_meta\":{}}}", stateless_meta(&mount.gateway.node.shared())));
        let out = Outgoing::plain(DISCOVER, params);
        match tokio::time::timeout(PATIENCE, Box::pin(self.request(&out, None))).await {
            Ok(Ok(Answer::Error(_)) | Err(UpstreamError::Refused { .. })) => true,
            Ok(Ok(Answer::Result(_)) | Err(_)) | Err(_) => false,
        }
    }
}

fn is_strange(era: Era, code: &[u8]) -> bool {
    if era == Era::Stateless { OLDER.contains(&code) } else { code == OTHER_REVISION }
}
