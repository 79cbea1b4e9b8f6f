//! News among the gates of a store. The facts stand in the store, not in the news.

use futures_util::future::BoxFuture;

/// Way of one kind of news from each gate to all gates of a store, the teller included. News in quick succession may be heard as one, and
/// may be lost with the telling gate: a gate that must not miss any asks the store now and then besides.
pub trait Bus: Send + Sync {
    /// Tells of a change. Waits for nobody.
    fn tell(&self);

    /// Ends at the first news of any gate since the last end. One listener a gate.
    fn heard(&self) -> BoxFuture<'_, ()>;
}
