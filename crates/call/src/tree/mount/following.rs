//! Following resources: asks the server to announce changes to the subscriptions kept in `subscribed.rs`. Does not decide who may
//! subscribe.

use banyan_model::Era;
use bytes::Bytes;
use mcp_proto::envelope::{self, Notification};
use mcp_proto::json;

use crate::tree::mount::Mount;
use crate::tree::mount::subscribed::AgreementWait;
use crate::tree::port::{Instance, OutgoingRequest, UpstreamError};
use crate::words::session::Session;

/// Subscriptions made at a server at once.
const AT_ONCE: usize = 16;

impl Mount {
    /// Adds a subscriber to `uri`, who can rely on it once [`Self::follows`] has returned.
    pub fn subscribe(&self, uri: &str) {
        if self.connections.subscribed.add(uri)
            && self.connections.shared.load().as_ref().is_none_or(|instance| instance.era() == Era::Stateless)
        {
            self.connections.subscribed.change();
            self.connections.wake.notify_one();
        }
    }

    /// Removes a subscriber from `uri`.
    pub async fn unsubscribe(&self, uri: &str) {
        if !self.connections.subscribed.remove(uri) {
            return;
        }
        let Some(instance) = self.connections.shared.load_full() else { return };
        if instance.era() == Era::Stateless {
            self.connections.subscribed.change();
            self.connections.wake.notify_one();
        } else if let Err(error) = subscribe_on(&instance, "resources/unsubscribe", uri).await {
            tracing::debug!(%error, uri, "a subscription could not be ended at the server");
        }
    }

    /// Waits until the server announces changes of each of `uris`, all subscribed to; returns those it never will, with the error. A server
    /// that is away, or slow to agree, is not waited for: its later agreement comes with an update, since there may have been a change.
    pub async fn follows<'u>(&self, uris: &[&'u str]) -> Vec<(&'u str, UpstreamError)> {
        let Some(instance) = self.connections.shared.load_full() else {
            self.connections.subscribed.owe(uris);
            return Vec::new();
        };
        if instance.era() == Era::Stateless {
            let waited = self.connections.subscribed.agreed(uris).await;
            if waited == AgreementWait::Late {
                self.connections.subscribed.owe(uris);
            }
            let is_refused = |uri: &str| {
                waited == AgreementWait::Refused || waited == AgreementWait::Agreed && self.connections.subscribed.is_left_out(uri)
            };
            let how = if waited == AgreementWait::Refused { "it refuses" } else { "it leaves this out of what it agrees to in" };
            let why = || UpstreamError::Untold(format!("{how} `subscriptions/listen`"));
            return uris.iter().filter(|uri| is_refused(uri)).map(|uri| (*uri, why())).collect();
        }
        let mut refused = Vec::new();
        for some in uris.chunks(AT_ONCE) {
            let taken = futures_util::future::join_all(some.iter().map(|uri| self.subscribe_at_server(&instance, uri))).await;
            refused.extend(some.iter().zip(taken).filter_map(|(uri, taken)| Some((*uri, taken.err()?))));
        }
        refused
    }

    /// Subscribes to `uri` at a server of the initialize era, unless done on this connection.
    pub async fn subscribe_at_server(&self, instance: &Instance, uri: &str) -> Result<(), UpstreamError> {
        let Some(taken) = self.connections.subscribed.taken(uri) else { return Ok(()) };
        taken.get_or_try_init(|| subscribe_on(instance, "resources/subscribe", uri)).await?;
        if self.connections.subscribed.take_owed(uri) {
            self.may_have_changed(uri);
        }
        Ok(())
    }

    /// Notifies the subscribers of `uri` of a possible change during a gap.
    pub fn may_have_changed(&self, uri: &str) {
        let params = format!("{{\"uri\":{}}}", json::quote(uri));
        let whole = envelope::notification("notifications/resources/updated", params.as_bytes());
        let method = "notifications/resources/updated".to_owned();
        self.gate.hub.updated(&self.config.name, uri, &Notification { method, params: Bytes::from(params).into(), whole });
    }

    /// Changes a subscription on a session's own connection, if it has one.
    pub async fn subscription_of(&self, session: &Session, uri: &str, method: &str) {
        if let Some(instance) = self.own_of(session)
            && let Err(error) = subscribe_on(&instance, method, uri).await
        {
            tracing::debug!(%error, uri, "a subscription could not be changed on a session's own connection");
        }
    }
}

/// Sends a subscribing or unsubscribing `method` for `uri` to an instance.
pub async fn subscribe_on(instance: &Instance, method: &str, uri: &str) -> Result<(), UpstreamError> {
    let params = Bytes::from(format!("{{\"uri\":{}}}", json::quote(uri)));
    match instance.request(&OutgoingRequest::plain(method, params), None).await? {
        envelope::Answer::Result(_) => Ok(()),
        envelope::Answer::Error(error) => {
            let said = json::Members::again(&error).str("message").unwrap_or_default().into_owned();
            Err(UpstreamError::Untold(format!("it refuses `{method}`: {said}")))
        }
    }
}
