//! Standing stream for messages outside of calls: GET in the initialize era, `subscriptions/listen` in the stateless one. Does not handle
//! the messages.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use mcp_proto::client::Identity;
use mcp_proto::envelope::{Answer, Message};
use mcp_proto::json::{self, Duplicates};
use mcp_proto::sse::Decoder;
use tokio::sync::oneshot;

use crate::upstream::http::HttpWire;
use crate::upstream::pool::Reply;
use crate::upstream::supervise::HELD;
use call::tree::back::Back;
use call::tree::mount::wanted_lists;
use call::tree::port::{Instance, OutgoingRequest, UpstreamError};

/// Keeps the GET stream of an initialize-era session open as long as the wire. Servers need not offer one. `opened` fires at the first
/// answer of any kind.
pub async fn keep_get(wire: Arc<HttpWire>, opened: oneshot::Sender<()>) {
    let mut opened = Some(opened);
    let mut last_id: Option<Arc<str>> = None;
    let mut stood: Option<Instant> = None;
    let mut failures = 0u32;
    loop {
        let mut retry = Duration::from_secs(1);
        let answer = wire.get(last_id.as_deref()).await;
        if answer.is_ok() {
            // Changes during a gap are found by fetching again, but not for a server that ends each stream at once.
            if stood.is_none_or(|since| since.elapsed() > HELD) {
                wire.inbox.missed();
            }
            stood = Some(Instant::now());
        }
        drop(opened.take());
        match answer {
            Ok(response) => {
                failures = 0;
                read(&wire, response, &mut last_id, &mut retry).await;
            }
            Err(UpstreamError::Refused { status: 400..=499, .. } | UpstreamError::SignIn(_)) => return,
            Err(_) => failures += 1,
        }
        let wait = retry.max(Duration::from_millis(200 << failures.min(7)));
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = wire.closed.cancelled() => return,
        }
    }
}

async fn read(wire: &Arc<HttpWire>, mut body: Reply, last_id: &mut Option<Arc<str>>, retry: &mut Duration) {
    let mut decoder = Decoder::new(wire.limit);
    loop {
        let piece = tokio::select! {
            piece = body.piece() => piece,
            () = wire.closed.cancelled() => return,
        };
        let Some(Ok(data)) = piece else { return };
        decoder.handle_bytes(&data);
        while let Ok(Some(event)) = decoder.poll_event() {
            if event.id.is_some() {
                *last_id = event.id;
            }
            if let Some(ms) = event.retry {
                *retry = Duration::from_millis(ms.min(60_000));
            }
            match Message::parse(&event.data, Duplicates::RefuseTop) {
                Ok(Message::Notification(n)) => wire.inbox.notified(&n, &[]),
                Ok(Message::Request(r)) => wire.answer_question(r, None),
                Ok(Message::Response(_)) | Err(_) => {}
            }
        }
    }
}

/// Listens, as `identity`, for list changes and for updates of `uris` until the stream ends. Messages go to `back`.
pub async fn listen(instance: &Instance, identity: &Identity, uris: &[String], back: &Arc<Back>) -> Result<Answer, UpstreamError> {
    let mut wanted: Vec<String> = wanted_lists(instance).map(|flag| format!("\"{flag}\":true")).collect();
    if !uris.is_empty() {
        let quoted: Vec<String> = uris.iter().map(|u| json::quote(u)).collect();
        wanted.push(format!("\"resourceSubscriptions\":[{}]", quoted.join(",")));
    }
    let meta = mcp_proto::client::stateless_meta(identity);
    let params = format!("{{\"notifications\":{{{}}},\"_meta\":{meta}}}", wanted.join(","));
    instance.stand(&OutgoingRequest::plain("subscriptions/listen", Bytes::from(params)), Some(back)).await
}
