//! Doubt about the era of a server. A replaced server answers unknown requests with errors, and over HTTP no broken connection shows the
//! replacement; so after a suspicious answer it is probed again. Does not reconnect.

use std::any::Any;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use banyan_model::Era;
use bytes::Bytes;
use mcp_proto::client::stateless_meta;
use mcp_proto::envelope::Answer;
use mcp_proto::era::STATELESS;
use mcp_proto::json::{self, Members};
use tokio_util::sync::CancellationToken;

use crate::upstream::http::{HttpUpstream, HttpWire, SpokenRevision};
use call::tree::mount::Mount;
use call::tree::port::{Instance, OutgoingRequest, UpstreamError};

/// Probe: known to every server of the stateless era, and to none of the other.
const DISCOVER: &str = "server/discover";
/// Method that servers of either era may lack.
const LISTEN: &str = "subscriptions/listen";
/// Shortest interval between probes.
const AGAIN: Duration = Duration::from_secs(30);
/// Longest wait for the answer to a probe.
const PATIENCE: Duration = Duration::from_secs(10);
/// Errors by which servers of the initialize era refuse requests before a handshake, and unknown methods.
const OLDER: [&[u8]; 5] = [b"-32601", b"-32600", b"-32000", b"-32001", b"-32022"];
/// Error by which a server refuses a revision (2026-07-28, "Version negotiation").
const OTHER_REVISION: &[u8] = b"-32022";

/// Time of the last probe of a server, over any connection.
#[derive(Debug, Default)]
pub struct Doubts(Mutex<Option<Instant>>);

impl Doubts {
    /// Notes a probe now; `false` where the last was too recent.
    fn note_probe(&self) -> bool {
        let (now, mut last) = (Instant::now(), self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let may = last.is_none_or(|last| now.saturating_duration_since(last) >= AGAIN);
        if may {
            *last = Some(now);
        }
        may
    }
}

impl HttpWire {
    /// Judges an outcome: where a server of the other era would answer the same, probes the server. A caller may provoke such answers, so
    /// only the probe's own answer counts, and probes are rare.
    pub fn doubt(self: &Arc<Self>, out: &OutgoingRequest<'_>, outcome: &Result<Answer, UpstreamError>) {
        let is_strange = match outcome {
            Ok(Answer::Result(_)) => return,
            Ok(Answer::Error(error)) => is_strange(self.era(), Members::again(error).get("code").unwrap_or_default()),
            Err(UpstreamError::Refused { status, .. }) => self.era() == Era::Stateless && is_unknown(*status),
            Err(_) => return,
        };
        if !is_strange || out.method == LISTEN {
            return;
        }
        // An era named by the configuration is not in doubt.
        let Some(mount) = self.inbox.mount.upgrade().filter(|mount| mount.config.era.is_none() && self.doubts.note_probe()) else { return };
        let wire = Arc::clone(self);
        tokio::spawn(async move {
            if wire.beside().speaks(&mount).await.is_some_and(|era| era != wire.era()) {
                let own = |shared: &Instance| {
                    (&*shared.upstream as &dyn Any).downcast_ref::<HttpUpstream>().is_some_and(|own| Arc::ptr_eq(&own.0, &wire))
                };
                mount.connections.replace_shared(own, "it does not speak the era any more that it spoke");
            }
        });
    }

    /// Makes a second wire to the same server, without a session.
    fn beside(&self) -> Arc<Self> {
        let wire = Self {
            pool: Arc::clone(&self.pool),
            url: self.url.clone(),
            heads: self.heads.to(&self.url),
            oauth: self.oauth.clone(),
            doubts: Arc::clone(&self.doubts),
            spoken: SpokenRevision::default(),
            session: OnceLock::new(),
            inbox: self.inbox.clone(),
            limit: self.limit,
            next_id: AtomicU64::new(2),
            calls: Mutex::default(),
            closed: CancellationToken::new(),
        };
        wire.spoken.set(Some(STATELESS));
        Arc::new(wire)
    }

    /// Era of the server by its answer to the probe; `None` for an answer that does not tell.
    async fn speaks(self: &Arc<Self>, mount: &Mount) -> Option<Era> {
        let params = Bytes::from(format!("{{\"_meta\":{}}}", stateless_meta(&mount.gate.node.shared())));
        let out = OutgoingRequest::plain(DISCOVER, params);
        match tokio::time::timeout(PATIENCE, Box::pin(self.request(&out, None))).await.ok()? {
            Ok(Answer::Result(result)) => {
                let revisions = result.members().get("supportedVersions").and_then(json::elements).unwrap_or_default();
                revisions.into_iter().filter_map(json::as_str).any(|revision| revision == STATELESS).then_some(Era::Stateless)
            }
            Ok(Answer::Error(error)) => {
                let code = Members::again(&error).get("code").unwrap_or_default();
                OLDER.contains(&code).then_some(Era::Initialize)
            }
            Err(UpstreamError::Refused { status, .. }) => is_unknown(status).then_some(Era::Initialize),
            Err(_) => None,
        }
    }
}

fn is_strange(era: Era, code: &[u8]) -> bool {
    if era == Era::Stateless { OLDER.contains(&code) } else { code == OTHER_REVISION }
}

/// Checks for a status by which servers of the initialize era refuse requests before a handshake. Other statuses concern credentials and
/// rates.
fn is_unknown(status: u16) -> bool {
    matches!(status, 400 | 404..=406)
}
