//! Steps of a call on its way: progress for the caller, and the agent's task taken back when the caller goes. Decides nothing about answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agent_proto::turn::AgentTurn;
use bytes::Bytes;
use call::tree::asks;
use call::tree::back::Back;
use call::tree::port::{OutgoingRequest, UpstreamError};
use json::quote;
use mcp_proto::envelope::{self, Notification};
use mcp_proto::hidden;
use tokio::sync::Semaphore;

use crate::mounted::conversation::{CallEnd, Conversation};

/// Most characters of words about the work.
const LONGEST_STEP: usize = 1_000;

/// Steps of a call, told to its caller.
pub struct Steps<'a> {
    back: Option<&'a Arc<Back>>,
    /// The caller's token for progress.
    token: Option<Bytes>,
    count: AtomicU64,
    /// Places for withdrawals at this mount.
    withdrawals: &'a Arc<Semaphore>,
}

impl<'a> Steps<'a> {
    /// Makes the steps of a request.
    pub fn new(out: &OutgoingRequest<'_>, back: Option<&'a Arc<Back>>, withdrawals: &'a Arc<Semaphore>) -> Self {
        let token = out.params.meta().and_then(|meta| meta.get("progressToken").map(Bytes::copy_from_slice));
        Self { back, token, count: AtomicU64::new(0), withdrawals }
    }

    /// Follows a conversation to the end of its turn. A call that is cancelled, or whose answers are refused, cancels the task.
    pub async fn follow(&self, mut conversation: Conversation) -> Result<AgentTurn, CallEnd> {
        let cancel = self.back.map(|back| back.cancel.clone()).unwrap_or_default();
        while !conversation.turn.is_over() {
            let words = tokio::select! {
                biased;
                () = cancel.cancelled() => Err(UpstreamError::Cancelled.into()),
                words = conversation.next() => words,
            };
            match words {
                Ok(words) => self.tell(words),
                Err(why) => {
                    if matches!(why, CallEnd::Upstream(UpstreamError::Cancelled | UpstreamError::TooLarge(_) | UpstreamError::Malformed(_)))
                    {
                        self.withdraw(conversation);
                    }
                    return Err(why);
                }
            }
        }
        if conversation.turn.is_final() {
            conversation.linger().await;
        }
        Ok(conversation.turn)
    }

    /// Withdraws from a conversation in the background, if there is a place. A place is bounded in time.
    pub fn withdraw(&self, mut conversation: Conversation) {
        let Ok(place) = Arc::clone(self.withdrawals).try_acquire_owned() else {
            return tracing::debug!("too many withdrawals at once: a task that nobody waits for is not cancelled");
        };
        // What the agent has said is of no use any more.
        conversation.turn = conversation.turn.emptied();
        tokio::spawn(async move {
            conversation.withdraw().await;
            drop(place);
        });
    }

    fn tell(&self, words: Option<String>) {
        let Some(back) = self.back else { return };
        let (Some(token), Some(words)) = (&self.token, words) else { return back.stir() };
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let token = String::from_utf8_lossy(token);
        let words: String = words.chars().take(LONGEST_STEP).collect();
        let message = quote(&hidden::without(&words));
        let params = Bytes::from(format!("{{\"progressToken\":{token},\"progress\":{count},\"message\":{message}}}"));
        let method = "notifications/progress";
        let whole = envelope::notification(method, &params);
        asks::pass_on(back, &Notification { method: method.into(), params: params.into(), whole });
    }
}
