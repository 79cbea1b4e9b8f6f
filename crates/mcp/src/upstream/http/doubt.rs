//! A server that may speak another era than it did. One that was replaced answers what it knows no more with errors, and over HTTP no connection
//! breaks by which that shows: so it is asked once more. How it is connected to anew is not known here.

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

use crate::upstream::http::{HttpUpstream, HttpWire, Spoken};
use call::tree::mount::Mount;
use call::tree::port::{Instance, Outgoing, UpstreamError};

/// What a server of the stateless era is asked, and one of the other era does not know.
const DISCOVER: &str = "server/discover";
/// What servers of either era may lack.
const LISTEN: &str = "subscriptions/listen";
/// It is not asked more often than this.
const AGAIN: Duration = Duration::from_secs(30);
/// Its answer is not waited for any longer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Errors by which servers of the initialize era refuse what has no handshake before it, and what they do not know.
const OLDER: [&[u8]; 5] = [b"-32601", b"-32600", b"-32000", b"-32001", b"-32022"];
/// The error by which a server refuses a revision (2026-07-28, "Version negotiation").
const OTHER_REVISION: &[u8] = b"-32022";

/// When a server was asked last which era it speaks, over whatever connection.
#[derive(Debug, Default)]
pub struct Doubts(Mutex<Option<Instant>>);

impl Doubts {
    /// Notes that the server is asked now; `false`: that would be too soon.
    fn take(&self) -> bool {
        let (now, mut last) = (Instant::now(), self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let may = last.is_none_or(|last| now.saturating_duration_since(last) >= AGAIN);
        if may {
            *last = Some(now);
        }
        may
    }
}

impl HttpWire {
    /// Takes note of what came of a request: where a server of the other era would say the same, it is asked which it speaks. Whoever calls may
    /// have made it say that, so nothing but its own answer counts, and it is not asked often.
    pub fn doubt(self: &Arc<Self>, out: &Outgoing<'_>, outcome: &Result<Answer, UpstreamError>) {
        let is_strange = match outcome {
            Ok(Answer::Result(_)) => return,
            Ok(Answer::Error(error)) => is_strange(self.era(), Members::again(error).get("code").unwrap_or_default()),
            Err(UpstreamError::Refused { status, .. }) => self.era() == Era::Stateless && is_unknown(*status),
            Err(_) => return,
        };
        if !is_strange || out.method == LISTEN {
            return;
        }
        // Where the configuration names the era, it is not looked for.
        let Some(mount) = self.inbox.mount.upgrade().filter(|mount| mount.config.era.is_none() && self.doubts.take()) else { return };
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

    /// A wire to the same server that has said nothing so far.
    fn beside(&self) -> Arc<Self> {
        let wire = Self {
            pool: Arc::clone(&self.pool),
            url: self.url.clone(),
            heads: self.heads.to(&self.url),
            oauth: self.oauth.clone(),
            doubts: Arc::clone(&self.doubts),
            spoken: Spoken::default(),
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

    /// The era that the server speaks by its own answer; `None`: that does not say.
    async fn speaks(self: &Arc<Self>, mount: &Mount) -> Option<Era> {
        let params = Bytes::from(format!("{{\"_meta\":{}}}", stateless_meta(&mount.gate.node.shared())));
        let out = Outgoing::plain(DISCOVER, params);
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

/// Whether servers of the initialize era refuse by this status what has no handshake before it. Others say who may ask, and how often.
fn is_unknown(status: u16) -> bool {
    matches!(status, 400 | 404..=406)
}
