//! Transport HTTP+SSE of revision 2024-11-05 as a pipe: a stream of events in, a POST for each message out. Reads no message.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcp_proto::sse::Decoder;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::upstream::http::{Body, HttpWire, Sent, excerpt};
use crate::upstream::pipe::{Carrier, ServerInput};
use crate::upstream::pool::Reply;
use call::tree::port::{OutgoingRequest, UpstreamError};

/// Opens the stream and waits until the server has named its endpoint.
pub async fn start(wire: HttpWire) -> Result<Carrier, UpstreamError> {
    let response = wire.get(None).await?;
    let (incoming_tx, incoming) = mpsc::channel(256);
    let (outgoing, outgoing_rx) = mpsc::channel(256);
    let (close, ended) = (CancellationToken::new(), CancellationToken::new());
    let (endpoint_tx, endpoint) = oneshot::channel();
    let reading = Reading { base: wire.url.clone(), limit: wire.limit, endpoint: Some(endpoint_tx), incoming: incoming_tx.clone() };
    let (closing, over) = (close.clone(), ended.clone());
    tokio::spawn(async move {
        tokio::select! {
            why = reading.run(response) => drop(incoming_tx.send(ServerInput::Ended(why)).await),
            () = closing.cancelled() => {}
        }
        over.cancel();
    });
    let named = tokio::time::timeout(Duration::from_secs(10), endpoint).await;
    let Ok(Ok(endpoint)) = named else {
        return Err(UpstreamError::Malformed(
            "it opened an event stream but named no endpoint on it: it may not be an HTTP+SSE server".into(),
        ));
    };
    let poster = HttpWire { heads: wire.heads.to(&endpoint), url: endpoint, ..wire };
    tokio::spawn(post_all(Arc::new(poster), outgoing_rx, close.clone()));
    Ok(Carrier { incoming, outgoing, close, ended, probe: Duration::from_secs(5) })
}

struct Reading {
    base: url::Url,
    limit: usize,
    endpoint: Option<oneshot::Sender<url::Url>>,
    incoming: mpsc::Sender<ServerInput>,
}

impl Reading {
    async fn run(mut self, mut body: Reply) -> String {
        let mut decoder = Decoder::new(self.limit);
        while let Some(Ok(data)) = body.piece().await {
            decoder.handle_bytes(&data);
            loop {
                let event = match decoder.poll_event() {
                    Ok(Some(event)) => event,
                    Ok(None) => break,
                    Err(e) => return e.to_string(),
                };
                if let Err(why) = self.event(event.name.as_deref(), event.data).await {
                    return why;
                }
            }
        }
        "its event stream has ended".into()
    }

    async fn event(&mut self, name: Option<&str>, data: Bytes) -> Result<(), String> {
        if name != Some("endpoint") {
            return self.incoming.send(ServerInput::Message(data)).await.map_err(|_| "nobody reads it any more".into());
        }
        let text = String::from_utf8_lossy(&data).into_owned();
        let url = self.base.join(text.trim()).map_err(|e| format!("it named an endpoint that is no URL: {e}"))?;
        // The endpoint may lead anywhere, but credentials stay with the origin.
        if url.origin() != self.base.origin() {
            return Err(format!("it named an endpoint on another origin ({})", excerpt(text.as_bytes())));
        }
        if let Some(waiting) = self.endpoint.take() {
            drop(waiting.send(url));
        }
        Ok(())
    }
}

/// Posts in order, since a notification must not overtake the request before it.
async fn post_all(wire: Arc<HttpWire>, mut messages: mpsc::Receiver<Bytes>, close: CancellationToken) {
    while let Some(message) = messages.recv().await {
        match wire.post(Sent::whole(&message), &OutgoingRequest::plain("", Bytes::new())).await {
            Ok(Body::Whole(200..300, _)) => {}
            Ok(Body::Events(_)) => {}
            Ok(Body::Whole(status, body)) => tracing::warn!(%status, body = excerpt(&body), "the server refused a message"),
            Err(e) => {
                tracing::debug!(error = %e, "a message did not reach the server");
                close.cancel();
                return;
            }
        }
    }
}
