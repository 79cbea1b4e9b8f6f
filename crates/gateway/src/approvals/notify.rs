//! Telling what becomes of calls that wait: lines for whoever follows the admin API, and signed posts to webhooks. Each transition is told
//! once; nothing is decided here.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use policy::approval::{Approval, Desk, Event, News, Standing, hex};
use serde_json::json;
use tokio::sync::mpsc;

use super::now;
use super::shown::{ApprovalShown, link};
use crate::Inner;
use crate::config::resolved::Webhook;

/// How many posts may wait; more are not made.
const DEPTH: usize = 256;
/// How long one may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait before it is tried again, each time.
const AGAIN: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(20)];

/// The name of an event.
pub(super) fn name(event: Event) -> &'static str {
    match event {
        Event::Requested => "requested",
        Event::Approved => "approved",
        Event::Expiring => "expiring",
        Event::Moved(standing) => standing.as_str(),
    }
}

/// A line of `GET /-/approvals/events`.
pub(super) fn line(gateway: &Inner, desk: &Desk, news: &News, approval: &Approval) -> Bytes {
    let shown = ApprovalShown::of(gateway, desk, approval);
    Bytes::from(format!("{}\n", json!({ "event": name(news.event), "approval": shown })))
}

/// The way to the webhooks.
pub(super) struct Webhooks {
    gateway: Arc<Inner>,
    posts: mpsc::Sender<(Vec<Webhook>, String)>,
}

impl Webhooks {
    /// Begins the task that posts. It ends with its last sender.
    pub(super) fn new(gateway: Arc<Inner>) -> Self {
        let (posts, mut waiting) = mpsc::channel::<(Vec<Webhook>, String)>(DEPTH);
        let of_task = Arc::clone(&gateway);
        tokio::spawn(async move {
            while let Some((webhooks, body)) = waiting.recv().await {
                let all = webhooks.iter().map(|webhook| deliver(&of_task, webhook, &body));
                futures_util::future::join_all(all).await;
            }
        });
        Self { gateway, posts }
    }

    /// Tells of a transition. A call that goes out after people agreed is no news to them.
    pub(super) fn tell(&self, news: &News, approval: &Approval) {
        let is_quiet = matches!(news.event, Event::Moved(Standing::Dispatched | Standing::Done | Standing::Below));
        let webhooks = self.gateway.config.load().gate.as_deref().map(|gate| gate.webhooks.clone()).unwrap_or_default();
        if is_quiet || webhooks.is_empty() {
            return;
        }
        let challenge = &approval.challenge;
        let body = json!({
            "event": name(news.event),
            "id": challenge.id,
            "tool": challenge.call.tool,
            "caller": challenge.call.caller,
            "standing": approval.standing,
            "approvals": approval.votes.len(),
            "required": challenge.required,
            "expires": challenge.expires,
            "url": link(&self.gateway, &challenge.id),
        });
        if self.posts.try_send((webhooks, body.to_string())).is_err() {
            tracing::error!(id = challenge.id, "too many webhooks wait: this transition is not posted");
        }
    }
}

async fn deliver(gateway: &Inner, webhook: &Webhook, body: &str) {
    let secret = match webhook.secret.resolve(&*gateway.sources) {
        Ok(secret) => secret,
        Err(error) => return tracing::error!(%error, url = %webhook.url, "a webhook can't be signed, so it is not posted"),
    };
    for (tries, wait) in AGAIN.into_iter().enumerate() {
        match post(gateway, webhook, secret.expose(), body).await {
            Ok(()) => return,
            Err(why) => tracing::warn!(why, tries = tries + 1, url = %webhook.url, "a webhook was not taken"),
        }
        tokio::time::sleep(wait).await;
    }
    tracing::error!(url = %webhook.url, "a webhook was not taken: whoever it tells does not know that something waits");
}

async fn post(gateway: &Inner, webhook: &Webhook, secret: &str, body: &str) -> Result<(), String> {
    let told = |error: reqwest::Error| error.without_url().to_string();
    let builder = reqwest::Client::builder().timeout(PATIENCE).redirect(reqwest::redirect::Policy::none()).no_proxy();
    let builder = match gateway.connector.tls() {
        Ok(tls) => builder.tls_backend_preconfigured(rustls::ClientConfig::clone(&tls)),
        Err(_) => builder,
    };
    let at = now();
    let request = builder.build().map_err(told)?.post(webhook.url.clone());
    let request = request.header("content-type", "application/json").header("banyan-timestamp", at.to_string());
    let request = request.header("banyan-signature", signature(secret, at, body)).body(body.to_owned());
    request.send().await.and_then(reqwest::Response::error_for_status).map(drop).map_err(told)
}

/// `v1=` and the HMAC-SHA256 of the time, a dot and the body.
fn signature(secret: &str, at: u64, body: &str) -> String {
    let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, secret.as_bytes());
    format!("v1={}", hex(aws_lc_rs::hmac::sign(&key, format!("{at}.{body}").as_bytes()).as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_post_is_signed_with_its_time() {
        // RFC 4231, test case 2, has the key `Jefe` and the text `what do ya want for nothing?`; the time makes ours another text.
        assert_eq!(signature("Jefe", 1, "x").len(), 3 + 64);
        assert_ne!(signature("Jefe", 1, "x"), signature("Jefe", 2, "x"));
        assert_ne!(signature("Jefe", 1, "x"), signature("Jeff", 1, "x"));
    }
}
