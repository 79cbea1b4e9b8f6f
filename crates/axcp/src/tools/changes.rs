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
use mcp_proto::catalog::Kind;

/// Pause in which further changes are put together.
const TOGETHER: Duration = Duration::from_millis(300);

/// Listener to the lists of tools that one caller is shown.
pub(crate) struct ToolChanges {
    /// The hub holds listeners weakly.
    _listener: Arc<Listener>,
    news: Reader,
}

impl ToolChanges {
    /// Begins to listen.
    pub(crate) fn listen(gate: &GateTree, caller: &Caller) -> Self {
        let lane = Lane::new();
        let news = lane.read(0);
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
        if poll_fn(|cx| self.news.poll_next(cx)).await.is_none() {
            // The gate ends, and the link with it.
            std::future::pending::<()>().await;
        }
        let drained = async { while poll_fn(|cx| self.news.poll_next(cx)).await.is_some() {} };
        drop(tokio::time::timeout(TOGETHER, drained).await);
    }
}
