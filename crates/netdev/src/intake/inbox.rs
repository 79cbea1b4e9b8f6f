//! Messages of a device that were received, bounded and counted. Receives nothing.

use std::sync::{Mutex, MutexGuard, PoisonError};

use net_proto::log::{LogMessage, LogTail};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// Messages of a device, the last of them kept.
#[derive(Debug)]
pub(crate) struct Inbox {
    content: Mutex<InboxContent>,
    /// Woken by each message.
    pub(crate) news: Notify,
}

#[derive(Debug)]
pub(crate) struct InboxContent {
    pub(crate) tail: LogTail,
    /// Messages that got lost on the way to this process.
    lost: u64,
    /// Datagrams that the system dropped at the address, from whichever device they came.
    dropped_by_system: u64,
    /// Messages that were not the device's, and the last reason.
    refused: u64,
    reason: Option<String>,
    /// Breaks after which messages may be missing.
    gaps: u64,
    /// Reason for which nothing is received.
    pub(crate) failure: Option<String>,
}

impl Inbox {
    pub(crate) fn new(most_lines: usize, most_bytes: usize) -> Self {
        let content = InboxContent {
            tail: LogTail::new(most_lines, most_bytes),
            lost: 0,
            dropped_by_system: 0,
            refused: 0,
            reason: None,
            gaps: 0,
            failure: None,
        };
        Self { content: Mutex::new(content), news: Notify::new() }
    }

    pub(crate) fn content(&self) -> MutexGuard<'_, InboxContent> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, arrived: i64, message: LogMessage, line: String) {
        self.content().tail.push(arrived, message, line);
        self.news.notify_waiters();
    }

    pub(super) fn lose(&self, count: u64) {
        let mut content = self.content();
        content.lost = content.lost.saturating_add(count);
    }

    /// Notes what the system dropped so far.
    pub(super) fn drop_unseen(&self, count: u64) {
        self.content().dropped_by_system = count;
    }

    pub(super) fn refuse(&self, reason: &str) {
        let mut content = self.content();
        content.refused = content.refused.saturating_add(1);
        content.reason = Some(reason.to_owned());
    }

    pub(super) fn miss(&self) {
        let mut content = self.content();
        content.gaps = content.gaps.saturating_add(1);
    }

    pub(super) fn fail(&self, failure: Option<String>) {
        self.content().failure = failure;
    }
}

impl InboxContent {
    /// Counts for the metadata of a read.
    pub(crate) fn counts(&self) -> Value {
        json!({ "received": self.tail.next_number(), "lost": self.lost, "droppedBySystem": self.dropped_by_system, "refused": self.refused, "lastRefusal": self.reason, "gaps": self.gaps, "failure": self.failure })
    }
}
