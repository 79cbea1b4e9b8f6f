//! News among the gates of one store. What there is to know stands in the store, and not in the news.

use futures_util::future::BoxFuture;

/// Way of one kind of news from each gate to all gates of a store, the teller included. News that come quickly one after the other may be heard
/// as one, and news may be lost with the gate that tells: whoever must not miss any asks the store now and then besides.
pub trait Bus: Send + Sync {
    /// Tells that something changed. Waits for nobody.
    fn tell(&self);

    /// Ends when something was told since it ended last, by whichever gate. One listener a gate.
    fn heard(&self) -> BoxFuture<'_, ()>;
}
