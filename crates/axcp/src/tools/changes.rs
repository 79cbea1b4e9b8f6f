//! News of changed lists of tools, for whoever has offered them. Lists nothing.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use call::tree::caller::Caller;
use call::tree::gate::GateTree;
use call::tree::hub::Listener;
use call::words::lane::{Lane, Reader};
use call::words::subscriptions::Subscriptions;
use futures_util::FutureExt as _;
use mcp_proto::catalog::Kind;
use tokio::time::{Instant, sleep_until};

/// Pause in which further changes are put together.
const TOGETHER: Duration = Duration::from_millis(300);

/// Pause behind a list that could not be made.
const AGAIN: Duration = Duration::from_secs(5);

/// Listener to the lists of tools that one caller is shown.
pub(crate) struct ToolChanges {
    /// The hub holds listeners weakly.
    _listener: Arc<Listener>,
    news: ListNews,
}

/// News of a list, put together. A wait for them may be dropped without loss.
struct ListNews {
    heard: Reader,
    /// End of the pause behind the first of the news.
    due: Option<Instant>,
}

impl ToolChanges {
    /// Begins to listen.
    pub(crate) fn listen(gate: &GateTree, caller: &Caller) -> Self {
        let lane = Lane::new();
        let news = ListNews { heard: lane.read(0), due: None };
        let listener = Arc::new(Listener {
            lane,
            id: Bytes::from_static(b"1"),
            scope: caller.scope.clone(),
            subject: Arc::clone(&caller.subject),
            kinds: vec![Kind::Tools],
            wanted: Subscriptions::default(),
            is_decided: false,
            held: Mutex::new(None),
        });
        gate.hub.listen(&listener);
        Self { _listener: listener, news }
    }

    /// Waits until the list may be another.
    pub(crate) async fn changed(&mut self) {
        self.news.changed().await;
    }

    /// Has the wait end once more after a pause: the last list could not be made.
    pub(crate) fn again(&mut self) {
        self.news.due.get_or_insert(Instant::now() + AGAIN);
    }
}

impl ListNews {
    async fn changed(&mut self) {
        let due = match self.due {
            Some(due) => due,
            None => {
                if poll_fn(|cx| self.heard.poll_next(cx)).await.is_none() {
                    // The gate ends, and the link with it.
                    std::future::pending::<()>().await;
                }
                // Nothing is awaited between the news and the note of them.
                *self.due.insert(Instant::now() + TOGETHER)
            }
        };
        sleep_until(due).await;
        while poll_fn(|cx| self.heard.poll_next(cx)).now_or_never().flatten().is_some() {}
        self.due = None;
    }
}

#[cfg(test)]
mod tests {
    use call::words::lane::Weight;

    use super::*;

    #[tokio::test]
    async fn xc_21_news_survive_a_wait_that_is_dropped() {
        let lane = Lane::new();
        let mut news = ListNews { heard: lane.read(0), due: None };
        assert!(news.changed().now_or_never().is_none() && news.due.is_none(), "no news yet");
        lane.push(Bytes::from_static(b"{}"), Weight::Kept);
        assert!(news.changed().now_or_never().is_none(), "further news may follow");
        assert!(news.due.is_some(), "the dropped wait has lost nothing");
        lane.push(Bytes::from_static(b"{}"), Weight::Kept);
        news.changed().await;
        assert!(news.changed().now_or_never().is_none() && news.due.is_none(), "both are told at once");
    }
}
