//! Questions of a server to its client: finds the caller meant, or refuses.
//!
//! A wrong guess would show a person's question to another person, so nothing is guessed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use mcp_proto::envelope::{self, Answer, Notification};
use mcp_proto::era::{self, LogLevel};

use crate::tree::back::{Back, OpenQuestion, capability_for};
use crate::tree::port::{Inbox, Owner};

/// Draws a unique number.
pub fn ticket() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Passes a notification to its caller.
pub fn pass_on(back: &Back, notification: &Notification) {
    back.notify(&notification.method, &notification.whole, level_of(notification));
}

/// The level of a log notification.
pub fn level_of(notification: &Notification) -> Option<LogLevel> {
    notification.params.members().str("level").and_then(|l| LogLevel::parse(&l))
}

/// A question of a server, outside the stream of any call.
pub struct ServerQuestion {
    pub method: String,
    pub params: Bytes,
    /// Calls in flight on its connection.
    pub near: Vec<Arc<Back>>,
    pub inbox: Inbox,
}

impl ServerQuestion {
    /// Asks the caller meant, or refuses with the reason.
    pub async fn answer(&self) -> Answer {
        if let Owner::Session(session) = &self.inbox.owner {
            return match session.upgrade() {
                Some(session) => self.ask_session(&session).await,
                None => refuse("the client has gone"),
            };
        }
        if let Some(mount) = self.inbox.mount.upgrade() {
            mount.saw_question(&self.method, self.near.is_empty());
        }
        if let [only] = &self.near[..] {
            return only.ask(&self.method, &self.params).await;
        }
        let capability = capability_for(&self.method);
        let able: Vec<_> = self.near.iter().filter(|b| capability.is_none_or(|c| era::declares(&b.caller.capabilities, c))).collect();
        match able[..] {
            [only] => only.ask(&self.method, &self.params).await,
            [] => refuse("no client that can answer is behind this connection"),
            _ => refuse(
                "several clients share this connection and it can't be told which of them is meant; Banyan gives each its own from now on: call again",
            ),
        }
    }

    async fn ask_session(&self, session: &Arc<crate::words::session::Session>) -> Answer {
        if let [only] = &self.near[..] {
            return only.ask(&self.method, &self.params).await;
        }
        let capability = capability_for(&self.method);
        if capability.is_some_and(|c| !era::declares(&session.opening.capabilities, c)) {
            return refuse("the client does not support it");
        }
        let Some((message, answer)) = session.ask(&self.method, &self.params) else {
            return refuse("the client has too many questions to answer");
        };
        // For which of these calls it is asked can't be told.
        let _asking: Vec<_> = self.near.iter().map(|back| OpenQuestion::on(&**back)).collect();
        match self.near.first() {
            // The stream of a call reaches the client even if it opened no other.
            Some(call) => call.send(message),
            None => session.notify(message, crate::words::lane::Weight::Kept),
        }
        answer.await.unwrap_or_else(|| refuse("the client has gone, or took too long to answer"))
    }
}

fn refuse(why: &str) -> Answer {
    Answer::Error(envelope::error_object(-32601, why, None))
}
